package calamp

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/diagnosis"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// A run that did not converge, or that blames a good part of the sensors, is a first try. Message passing may fail where W is far
// from random, and the fault finder may have judged before signals were found. Further tries leave one of these out, and the
// likeliest of those that succeed is the answer.

// try is one way to solve a problem.
type try struct {
	name    string
	problem *Problem
	opt     Options
	res     *Result
	blamed  *try // one that left out sensors and readings, which this one has not; nil where all are in
}

// tries is what was tried of one problem.
type tries struct {
	ctx   context.Context
	done  []*try
	count int // of runs, those that were impossible among them

	offsets bool // have been tried
	given   bool // a range or a noise variance was, and is learned in the end
	sites   bool // signals were integrated out, without anything left out
	left    bool // and without what the first try left out, or that was not needed
	joined  bool // the first try came to an answer as signals that belong together alone
}

// mostBlamed is the part of the sensors, or of the readings, above which it is the run that is in doubt: the limit of the warning
// many-broken.
const mostBlamed = 0.2

// mostMisfit is the mean square of residuals, in those expected, above which the model does not explain the readings: that of
// diagnosis.
const mostMisfit = 3

// misfit is the mean square of the residuals of the readings in use.
func (r *Result) misfit() float64 {
	total, count := 0.0, 0.0
	sensors, columns := r.Residual.Dims()
	for mu := range sensors {
		if r.Broken != nil && r.Broken[mu] > 0.5 {
			continue
		}
		for k := range columns {
			v := r.Residual.At(mu, k)
			if v == 0 || r.Outlier != nil && r.Outlier.At(mu, k) > 0.5 { // missing, or left out
				continue
			}
			total, count = total+v*v, count+1
		}
	}
	return total / max(count, 1)
}

// trusted reports whether a result can be an answer. One about which vector AMP hovers may be the neighbour of another: of microphones 3 all directions were one step of the grid off.
func (t *try) trusted() bool {
	if t.res == nil || t.res.Status != Converged || t.res.hovered {
		return false
	}
	return !t.misfits() && !t.blamesMany()
}

// misfits reports whether the readings are not explained.
func (t *try) misfits() bool { return !(t.res.misfit() <= mostMisfit) }

// settled reports whether it can be, and nothing speaks for another one: where rows of a sensor ask for different gains, signals may be those of another mode, as shifted ones are behind neighbouring
// rows of a Fourier transform.
func (t *try) settled() bool { return t.trusted() && !t.res.rowsApart }

// unexplained reports whether signals are known far worse than noise explains: message passing may have found another maximum than that of the largest evidence. Of 54 answers by message passing to
// field problems, those of seven are, of which one is within bounds.
func (t *try) unexplained() bool {
	return t.res.warns(UnexplainedVariance)
}

// warns reports whether a result has a warning.
func (r *Result) warns(of WarningCode) bool {
	return slices.ContainsFunc(r.Warnings, func(w Warning) bool { return w.Code == of })
}

// blamesMany reports whether a good part of the sensors, or of the readings, were left out: what is left is explained by anything.
func (t *try) blamesMany() bool {
	sensors, readings := t.res.Residual.Dims()
	return float64(len(t.res.BrokenSensors)) > mostBlamed*float64(sensors) || float64(len(t.res.OutlyingReadings())) > mostBlamed*float64(sensors*readings)
}

// solveTrying is Solve with further tries, and halves of the snapshots that check the answer.
func solveTrying(ctx context.Context, p *Problem, opt *Options) (*Result, error) {
	t := &tries{ctx: ctx}
	res, err := t.solve(p, opt)
	if i := slices.IndexFunc(t.done, func(a *try) bool { return a.res == res }); err == nil && i >= 0 {
		halvesCompared(ctx, t.done[i])
		sparsenessTested(ctx, t.done[i])
	}
	return res, err
}

// solve is Solve with further tries.
func (t *tries) solve(p *Problem, opt *Options) (*Result, error) {
	asked := &try{name: "as asked", problem: p, opt: *opt}
	if why := hopeless(p, opt); why != nil {
		asked.opt.MaxIter = 1
		err := t.run(asked)
		return why.end(asked.res), err
	}
	answer, err := t.answer(asked)
	if spread := phasesLearned(asked); spread != nil && err == nil && len(t.done) > 0 && !t.anyAnswers(answer) {
		answer, err = t.withPhasesLearned(spread)
	}
	if answer != nil {
		return answer.res, err
	}
	return t.best(), err
}

// phasesLearned is a problem whose spread of phases was given, with that learned; nil where it was not given, or the phases are free or known. Phases of sensors that are dead are anywhere, for which a spread
// that is true of the others has no place.
func phasesLearned(asked *try) *try {
	if asked.opt.Algorithm != solver.AutoAlgorithm || asked.opt.Learn.Phases || asked.problem == nil {
		return nil
	}
	known, calibrates := asked.problem.Channel.(channel.Calibrating)
	if !calibrates {
		return nil
	}
	turning, turns := known.Calibration().(channel.Turning)
	if !turns || turning.Phases() == 0 || math.IsInf(turning.Phases(), 1) {
		return nil
	}
	p, opt := *asked.problem, asked.opt
	p.Channel = known.WithCalibration(turning.WithPhases(nearNominal))
	opt.Learn.Phases = true
	return &try{name: "the spread of phases learned", problem: &p, opt: opt}
}

// withPhasesLearned is answer, after no answer with the spread of phases as it was given.
func (t *tries) withPhasesLearned(spread *try) (*try, error) {
	given, before := channel.PhasesOf(channel.CalibrationOf(t.done[0].problem.Channel)), t.done
	t.done, t.sites, t.offsets = nil, false, false
	answer, err := t.answer(spread)
	if t.done = append(before, t.done...); answer == nil {
		answer = t.likeliest()
	}
	if answer.opt.Learn.Phases || hasFreePhases(answer) {
		answer.res.Warnings = append(answer.res.Warnings, *contradiction([]string{
			where("the concentration of phases about the nominal ones", given, channel.PhasesOf(channel.CalibrationOf(answer.res.Channel))),
		}))
		if answer.res.warns(ShiftedDirections) { // the spread that was given would have decided
			answer.res.Status, answer.res.Reason = NothingRecovered, "no answer has the phases that were given, and without these other directions are as likely"
		}
	}
	return answer, err
}

// anyAnswers reports whether the answer, or the likeliest try where that is nil, is one that can be used.
func (t *tries) anyAnswers(answer *try) bool {
	if answer == nil && len(t.done) > 0 {
		answer = t.likeliest()
	}
	return answer != nil && answer.answers()
}

// answer tries until there is an answer. That is the likeliest of all tries where it returns nil.
func (t *tries) answer(asked *try) (*try, error) {
	if within := learnedWithin(asked); within != nil {
		return t.asGiven(asked, within)
	}
	first := asked
	if free := scaleLearned(asked); free != nil {
		first = free
	}
	first.opt.searches = true
	if err := t.start(first, first); err != nil {
		return first, err
	}
	return t.goOn(first, unless(first, asked))
}

// start runs the first try, not for long where the signals of a later one may be integrated out: what has not converged by then is no worse tried otherwise.
func (t *tries) start(first, later *try) error {
	asked := first.opt.MaxIter
	if one, _ := stepWork(later); (asked == 0 || asked == defaultMaxIter) && one <= mostSoon && integrable(later) && !tooLong(first) {
		first.opt.MaxIter = mostFirst
	}
	err := t.run(first)
	first.opt.MaxIter = asked
	if err == nil {
		err = t.together(first)
	}
	return err
}

// goOn goes on after the first try. further is tried where signals that are integrated out are no answer.
func (t *tries) goOn(first *try, further func(*try) *try) (*try, error) {
	if found, err := t.integratedPhases(first); found || err != nil {
		return nil, err
	}
	if t.foundNear() { // and is no answer for another reason, which message passing does not mend
		return nil, nil
	}
	if free := freePhases(first); free != nil {
		if err := t.run(free); err != nil {
			return nil, err
		}
		switch {
		case free.res == nil:
		case first.trusted() && !free.trusted():
			warnOfStart(first.res)
			return first, nil
		default:
			if found, err := t.nearPhases(first, free); found || err != nil {
				return nil, err
			}
			t.done = slices.DeleteFunc(t.done, func(a *try) bool { return a == first })
			first = free
		}
	}
	if first.settled() && !((first.unexplained() || t.joined || first.mayBeWrong()) && integrable(first)) || first.res.oneScene && first.answers() || first.opt.Algorithm != solver.AutoAlgorithm || tooLong(first) {
		return first, nil
	}
	if first.settled() && (t.joined || !first.unexplained()) {
		return t.orLikelier(first)
	}
	rungs, free := []func(*try) *try{t.integrated, t.withoutBlamed, further, withoutFaults, t.otherAlgorithm}, hasFreePhases(first)
	if channel.ColumnsOf(first.problem.Channel) > 1 {
		rungs = rungs[3:] // signals have been integrated out where they can be
	}
	if free {
		rungs = []func(*try) *try{withoutFaults}
	}
	for _, next := range rungs {
		if t.answered(free) && !t.leavesOutMore(first) || t.silent() {
			break
		}
		if again := next(first); again != nil {
			if err := t.run(again); err != nil {
				return nil, err
			}
		}
		if found, err := t.withOffsets(first); found || err != nil {
			return nil, err
		}
	}
	if free {
		if err := t.fromStarts(first); err != nil {
			return nil, err
		}
	}
	if t.silent() {
		return nil, nil
	}
	for _, last := range []func(*try) *try{t.fromBest, t.integratedFrom} {
		if again := last(first); again != nil {
			if err := t.run(again); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// together takes signals to belong together where they were to be asked, and their fields had nothing to say since the first try came to no answer; at last with all sensors and readings taken for
// good. The first try has the result of that where its own fields say so, as in [solveTogether].
func (t *tries) together(first *try) error {
	if first.res == nil || first.settled() || first.opt.Joint != solver.AutoJoint || tooLong(first) {
		return nil
	}
	if first.res.Support == nil && (!first.res.Plan.Has("joint test") || first.res.jointGain < amp.DecidedApart) {
		return nil
	}
	all := &try{name: "signals that belong together", problem: first.problem, opt: first.opt}
	all.opt.MaxIter = further(first.opt.MaxIter)
	for _, a := range []*try{all, withoutFaults(all)} {
		if a == nil {
			continue
		}
		a.opt.Joint, a.opt.jointFound = solver.JointOn, true
		t.count++
		if err := a.solve(t.ctx, t.count); t.ctx.Err() != nil {
			return t.ctx.Err()
		} else if err == nil && a.settled() && (a.res.oneScene || a.res.jointGain > amp.LeastJointGain && !a.res.partlyOwn()) {
			a.res.Plan.Explain("joint rows", fmt.Sprintf("at first: %v after %d iterations; now the fields are e^%.3g times as likely if entries are there in all signals or in none; %s",
				first.res.Status, first.res.Iterations, a.res.jointGain, a.res.covarianceInWords()))
			first.res, t.joined = a.res, true
			return nil
		}
	}
	return nil
}

// mayBeWrong reports whether an answer by message passing is not to be trusted by itself, or makes up for gains of sensors of several rows by signals, or leaves out sensors or readings behind a W that is unlike the one it is exact for: then it may be wrong in these, and in the others. Of the field problems
// a coded aperture with offsets had lost two sensors and three readings, and was off by 4.5 times what is possible; behind a ring blur with spikes gains were off by .12, with a quarter within their intervals.
func (t *try) mayBeWrong() bool {
	if channel.ColumnsOf(t.problem.Channel) > 1 {
		return false
	}
	_, offsets := channel.CalibrationOf(t.problem.Channel).(channel.Offsetting)
	if t.problem.rows.rowsEach() > 1 && (offsets || t.res.warns(GainsInSignals)) {
		return true
	}
	leavesOut := len(t.res.BrokenSensors)+len(t.res.OutlyingReadings()) > 0
	return t.res.Untrusted() != nil || leavesOut && again(t) && !amp.LikeIndependent(t.problem.W)
}

// orLikelier is an answer, or signals integrated out where these are one that is likelier: independent signals had come to no answer where they belong together, and see [try.mayBeWrong].
func (t *tries) orLikelier(first *try) (*try, error) {
	if again := t.integrated(first); again != nil {
		if err := t.run(again); err != nil {
			return nil, err
		}
		if found, err := t.withOffsets(first); found || err != nil {
			return nil, err
		}
		if again.res != nil && again.settled() && again.score() > first.score() {
			return nil, nil
		}
	}
	return first, nil
}

// run solves a try. The error is that of the context, or of the first try; others that are impossible are left out.
func (t *tries) run(a *try) error {
	if err := t.ctx.Err(); err != nil && len(t.done) > 0 {
		return err
	}
	t.count++
	return t.take(a, a.solve(t.ctx, t.count))
}

// solve solves a try, the one of that number.
func (a *try) solve(ctx context.Context, number int) (err error) {
	opt := a.opt
	if tell := opt.Progress; tell != nil {
		opt.Progress = func(it Iteration) { it.Try, it.What = number, a.name; tell(it) }
	}
	a.res, err = solveOnce(ctx, a.problem, &opt)
	return err
}

// take takes a try that was solved, and returns its error as run does.
func (t *tries) take(a *try, err error) error {
	if a.res == nil && len(t.done) > 0 && t.ctx.Err() == nil {
		return nil
	}
	a.takeBlame()
	if a.res != nil && (a.res.Iterations > 0 || len(t.done) == 0) {
		t.done = append(t.done, a)
	}
	return err
}

// sideBySide is how many runs of a problem there are threads for. Machines that share one W must exchange what they have in one order.
func (t *try) sideBySide() int {
	if operator.FarRows(t.problem.W) {
		return 1
	}
	m, n := t.problem.W.Dims()
	return max(1, amp.Threads(t.opt.Threads, math.MaxInt)/amp.Threads(t.opt.Threads, m*n))
}

// fromStarts begins at one start after another until there is an answer, side by side where a run leaves threads idle. What is solved beside an answer that comes before it is not taken,
// so that the result does not depend on their number.
func (t *tries) fromStarts(first *try) error {
	for starts := range slices.Chunk(otherStarts(first, t.done[len(t.done)-1]), first.sideBySide()) {
		if t.answered(true) {
			return nil
		}
		errs := make([]error, len(starts))
		parallel.Run(len(starts), len(starts), func(i int) {
			if i > 0 {
				starts[i].opt.Progress = nil // what is shown is one of them
			}
			errs[i] = starts[i].solve(t.ctx, t.count+1+i)
		})
		for i, a := range starts {
			if t.count++; t.answered(true) {
				return nil
			}
			if err := t.take(a, errs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	// mostRepeated is how many multiplications with entries of W further tries may take each, some seconds on a core, and
	// mostFurther how many iterations. Runs that converge at all do so in a few hundred: these are ten windows in which one may stand still, and two to settle.
	mostRepeated = 1e10
	mostFurther  = 502

	// mostFirst is the iteration limit of a first run where signals may be integrated out: of 23 field problems that it solved within 500 iterations,
	// three right ones took more, and those are solved by the second try.
	mostFirst = 250

	// mostFromStart is the same for each of several starts: vector AMP gets there within 90 where it does, AMP within 450.
	mostFromStart = 250

	// mostStarts is how many of them there are, and mostOfStarts how many multiplications with entries of W all of them may take, a
	// complex one of which is four and has its squares beside it: some seconds on a core.
	mostStarts   = 16
	mostOfStarts = 1.25e9

	// mostIntegrated is how many multiplications a step of the evidence of Gaussian signals may take, M²(M+N), where the user did not ask
	// for it: a quarter of a second on a core, for some hundred steps and as many of halves. Scenes of 32×32 pixels behind 640 masks (7e8) are off by 46 % without it, with exit code 3, and by 15 % with it.
	mostIntegrated = 2.5e9

	// mostSoon is the same for message passing to be cut short beforehand, and where message passing is right for W, whose answer is that of any prior: a thirtieth of a second.
	mostSoon = 3e8

	// mostAgain is how many multiplications a step of all snapshots together may take, P M²(M+N), where signals are integrated out once more: without what was left out, or with offsets. With
	// eighty steps of each of two priors, and as many of their halves, that is some ten seconds on a core.
	mostAgain = 3e8

	// mostComplex is the same for complex signals of all snapshots together, with two columns each: a step takes some twenty times that, a third of a second on a core.
	mostComplex = 4e8

	// mostChecked is the same where message passing came to an answer, which is only checked, and where phases are free: two starts must agree then, and above it
	// there is no time for two. The radar of experiments has 7.6e7, time for 40 steps, and a start that settles takes 42 to 49.
	mostChecked = 6.5e7
)

// tooLong reports whether further tries would take too long.
func tooLong(first *try) bool {
	_, p := first.problem.Y.Dims()
	work := operator.Work(first.problem.W)
	if network, ok := prior.NetworkOf(first.problem.Prior); ok {
		work += network.Work()
	}
	return work*float64(p)*mostFurther > mostRepeated
}

// plain is the problem without the fault finder.
func plain(a *try) (*Problem, Options) {
	p, opt := *a.problem, a.opt
	p.Channel, opt.Outliers = channel.InOrder(p.Channel), Outliers{}
	opt.MaxIter = further(opt.MaxIter)
	return &p, opt
}

// mostOfFits is the iteration limit where signals are integrated out and none was asked for: each fit comes to an end by itself, and there are up to fourteen, with one more for each round of outliers. A blurred line with photon noise, of which the mean
// noise was given, took 1134.
const mostOfFits = 3 * defaultMaxIter

// integrating is the plain problem with signals integrated out, which finds sensors that read a level of their own, and outliers, by itself.
func integrating(a *try) (*Problem, Options) {
	p, opt := plain(a)
	p.Channel, opt.Outliers = a.problem.Channel, a.opt.Outliers
	opt.Algorithm, opt.MaxIter = solver.Evidence, a.opt.MaxIter
	if opt.MaxIter == 0 || opt.MaxIter == defaultMaxIter {
		opt.MaxIter = mostOfFits
	}
	return p, opt
}

// further is the iteration limit of a further try.
func further(asked int) int {
	if asked == 0 {
		return mostFurther
	}
	return min(asked, mostFurther)
}

// nearNominal is the concentration of phases about the nominal ones, a spread of a radian, below which the start alone decides
// which of all common phases, or of all ramps of phases that are shifts of the signals, is found.
const nearNominal = 1

// freePhases is a problem with phases of which nothing is known; nil where those that were learned are near the nominal ones, or the options
// exclude it.
func freePhases(first *try) *try {
	learned, complex := channel.CalibrationOf(first.res.Channel).(channel.Turning)
	if !first.opt.Learn.PhasesOrFree || !complex || first.settled() && learned.Phases() >= nearNominal {
		return nil
	}
	p, opt := *first.problem, first.opt
	known := p.Channel.(channel.Calibrating)
	p.Channel = known.WithCalibration(known.Calibration().(channel.Turning).WithPhases(0))
	opt.Learn.Phases, opt.Learn.PhasesOrFree = false, false
	return &try{name: "free phases", problem: &p, opt: opt}
}

// foundNear reports whether complex signals that were integrated out came to a maximum of the evidence with phases near the nominal ones.
func (t *tries) foundNear() bool {
	return slices.ContainsFunc(t.done, func(a *try) bool {
		return a.integrated() && channel.ColumnsOf(a.res.Channel) > 1 && a.res.Status == NothingRecovered && !math.IsNaN(a.res.LogEvidence) && channel.PhasesOf(channel.CalibrationOf(a.res.Channel)) >= amp.SurePhases
	})
}

// otherStarts are those of a problem with free phases, by both algorithms in turn. Signals of zero are a fixed point of it, and what is
// reached from beside it is chance: of starts for the array of docs/guides/microphone-array.md a third end at the answer. Where what was tried plainly was vector AMP, its first start is that one again.
func otherStarts(first, plainly *try) (list []*try) {
	_, p := first.problem.Y.Dims()
	most := mostOfStarts / (operator.Work(first.problem.W) * float64(p) * mostFromStart)
	for draw := range uint64(min(most, mostStarts)) {
		if draw == 0 && plainly.res.Plan.Algorithm == solver.VAMP {
			continue
		}
		p, opt := plain(first)
		opt.draw, opt.Algorithm, opt.MaxIter = draw, solver.AMP, min(opt.MaxIter, mostFromStart)
		if draw%2 == 0 {
			opt.Algorithm = solver.VAMP
		}
		list = append(list, &try{name: fmt.Sprintf("%v from start %d, all sensors and readings taken for good", opt.Algorithm, draw+1), problem: p, opt: opt})
	}
	return list
}

func hasFreePhases(first *try) bool {
	return channel.PhasesFree(channel.CalibrationOf(first.problem.Channel))
}

// nearPhases takes all sensors for good where phases near the nominal ones were not found, and reports whether that finds them: the
// fault finder may have led the first run astray, and phases of which nothing is known fit nearly every reading.
func (t *tries) nearPhases(first, free *try) (found bool, err error) {
	learned := withoutFaults(first)
	if first.trusted() || learned == nil || first.opt.Algorithm != solver.AutoAlgorithm || tooLong(first) {
		return false, nil
	}
	if err := t.run(learned); err != nil || !learned.trusted() {
		return false, err
	}
	return channel.PhasesOf(channel.CalibrationOf(learned.res.Channel)) >= nearNominal && !(free.trusted() && free.score() > learned.score()), nil
}

// warnOfStart says of phases that were learned, and are spread, what is not identified.
func warnOfStart(res *Result) {
	if !res.warns(PhaseSpread) {
		kappa := channel.PhasesOf(channel.CalibrationOf(res.Channel))
		res.Warnings = append(res.Warnings, Warning{Code: PhaseSpread, Message: fmt.Sprintf(
			"the spread of phases about the nominal ones was learned as κ = %.2g, which is nearly that of free phases, and no run with free phases came to an answer; "+
				"signals and phases may be those of another common phase, or of another shift of the signals, than the true ones; known phases, or an anchor, would decide", kappa)})
	}
}

// unless is a rung that is a, where that is not the first try.
func unless(first, a *try) func(*try) *try {
	return func(*try) *try {
		if a == first {
			return nil
		}
		return a
	}
}

// withoutFaults takes all sensors and readings for good.
func withoutFaults(first *try) *try {
	if _, looks := first.problem.Channel.(channel.Contaminated); !looks && !first.opt.Outliers.Look {
		return nil
	}
	p, opt := plain(first)
	return &try{name: "all sensors and readings taken for good", problem: p, opt: opt}
}

// otherAlgorithm is vector AMP in place of AMP, or AMP in place of vector AMP, where nothing else gave an answer.
func (t *tries) otherAlgorithm(first *try) *try {
	if slices.ContainsFunc(t.done, (*try).trusted) {
		return nil
	}
	p, opt := plain(first)
	opt.Algorithm = solver.VAMP
	if first.res.Plan.Algorithm == solver.VAMP {
		opt.Algorithm = solver.AMP
	} else {
		p.mixPrior()
	}
	return &try{name: fmt.Sprintf("%v, all sensors and readings taken for good", opt.Algorithm), problem: p, opt: opt}
}

// integrable reports whether signals may be integrated out without being asked for. That has no place for a range of s, unless gains are known, or a noise variance that were given, and
// nothing of gains that belong together; it has one for what is known of each sensor, and for a normal distribution of s.
func integrable(first *try) bool {
	one, all := stepWork(first)
	var gains bool
	switch c := channel.InOrder(first.problem.Channel).(type) {
	case channel.Gain, channel.Offset:
		gains = first.opt.Joint != solver.JointOn
	case channel.ComplexGain:
		most := mostComplex
		if hasFreePhases(first) {
			most = mostChecked
		}
		gains = c.Prior.Pairs == nil && c.Prior.Lo < c.Prior.Hi && all <= most // of pairs they are
	}
	_, together := channel.SmoothOf(channel.CalibrationOf(first.problem.Channel))
	_, own := channel.DetectorOf(first.problem.Channel)
	known := first.opt.Learn.Range || channel.Stated(channel.CalibrationOf(first.problem.Channel)) || first.gainsKnown()
	return gains && known && !together && !own && len(first.opt.SensorDerivatives) == 0 && first.opt.MatrixError == 0 && !first.opt.Learn.MatrixError && first.noiseIntegrable() &&
		(one <= mostSoon || one <= mostIntegrated && !amp.WhollyIndependent(first.problem.W))
}

// noiseIntegrable reports whether the noise is learned, or known of each sensor: of complex readings it is learned, and the same for all.
func (t *try) noiseIntegrable() bool {
	own := t.opt.Learn.SensorNoise || t.problem.NoiseVar != nil
	if channel.ColumnsOf(t.problem.Channel) > 1 {
		return t.opt.Learn.Noise && !own
	}
	m, _ := t.problem.Y.Dims()
	return t.opt.Learn.Noise || own && len(t.problem.NoiseVar) <= m
}

// again reports whether signals may be integrated out more than once.
func again(first *try) bool {
	_, all := stepWork(first)
	return all <= mostAgain
}

// stepWork is how many multiplications a step takes in which signals are integrated out: M²(M+N) of one snapshot, and of all.
func stepWork(first *try) (one, all float64) {
	m, n := first.problem.W.Dims()
	_, p := first.problem.Y.Dims()
	one = float64(m) * float64(m) * float64(m+n)
	return one, float64(p) * one
}

// integrated takes signals for Gaussian and integrates them out; nil where that was done.
func (t *tries) integrated(first *try) *try {
	if t.sites || !integrable(first) {
		return nil
	}
	t.sites = true
	p, opt := integrating(first)
	if opt.untilOffsets = true; !first.blamesMany() {
		opt.outlying = first.res.OutlyingReadings()
	}
	return &try{name: evidenceOf(p), problem: p, opt: opt}
}

// evidenceOf names the evidence of signals that are integrated out.
func evidenceOf(p *Problem) string {
	if channel.ColumnsOf(p.Channel) > 1 {
		return "evidence of sparse complex signals"
	}
	return "evidence of Gaussian signals"
}

// leastOffsetScore is by how many standard deviations the evidence must rise with offsets, where sensors have none in the model, for them to be tried.
const leastOffsetScore = 5

// answered reports whether nothing further is worth a try: there is no second answer to free phases, and none that is found as surely as by integrating signals out. Of 26 field problems
// with such an answer, one had a better one by message passing.
func (t *tries) answered(free bool) bool {
	best := t.likeliest()
	return best.settled() && (!t.given || best.answers()) && (free || best.integrated()) && (t.offsets || !best.mayHaveOffsets())
}

// integrated reports whether signals were integrated out.
func (t *try) integrated() bool { return t.res.Plan.Algorithm == solver.Evidence }

// mayHaveOffsets reports whether signals were integrated out, and the evidence rises with offsets, which the model has not.
func (t *try) mayHaveOffsets() bool { return t.res != nil && t.res.offsetScore > leastOffsetScore }

// withOffsets goes on with sensors that have offsets, where the evidence asks for them, and reports whether these are likelier than none.
func (t *tries) withOffsets(first *try) (likelier bool, err error) {
	without := t.likeliest()
	if i := slices.IndexFunc(t.done, (*try).mayHaveOffsets); i >= 0 && !without.integrated() { // which alone says so
		without = t.done[i]
	}
	if t.offsets || !without.trusted() && !without.res.cut || !without.mayHaveOffsets() || !without.res.cut && !again(first) {
		return false, nil
	}
	gain, ok := channel.InOrder(first.problem.Channel).(channel.Gain)
	if !ok {
		return false, nil
	}
	if without.res.cut { // it is no answer
		t.done = slices.DeleteFunc(t.done, func(a *try) bool { return a == without })
	}
	p, opt := *without.problem, without.opt
	p.Channel = channel.WithInOrder(p.Channel, channel.Offset{Prior: channel.OffsetPrior{Gain: gain.Prior, SD: GuessOffset(p.Y, nil)}, NoiseVar: gain.NoiseVar})
	opt.Learn.Offset, opt.untilOffsets, t.offsets = true, false, true
	with := &try{name: "sensors with offsets, " + without.name, problem: &p, opt: opt, blamed: without.blamed}
	if err := t.run(with); err != nil {
		return false, err
	}
	likelier = slices.Contains(t.done, with) && with.score() > without.score()
	if likelier || !without.res.cut {
		return likelier, nil
	}
	opt = without.opt
	opt.untilOffsets = false
	return false, t.run(&try{name: without.name, problem: without.problem, opt: opt, blamed: without.blamed})
}

// warnOfOffsets says that sensors have offsets, which were not declared.
func (t *try) warnOfOffsets(asked *try) {
	known, has := channel.CalibrationOf(t.res.Channel).(channel.Offsetting)
	if _, declared := channel.CalibrationOf(asked.problem.Channel).(channel.Offsetting); !has || declared {
		return
	}
	t.res.Warnings = append(t.res.Warnings, Warning{Code: Offsets, Message: fmt.Sprintf(
		"sensors have offsets, y = z/s + o, of a standard deviation of %.2g, which were not declared: they were learned with the gains, since the evidence is larger with them; --offset auto declares them", known.OffsetSD())})
}

// integratedPhases integrates complex signals out where message passing found no phases near the nominal ones, without what the first run left out and with it, and reports whether one of them is
// the answer.
func (t *tries) integratedPhases(first *try) (found bool, err error) {
	if channel.ColumnsOf(first.res.Channel) == 1 || first.opt.Algorithm != solver.AutoAlgorithm || tooLong(first) || first.settled() && !(first.spreadPhases() && checkable(first)) {
		return false, nil
	}
	for _, next := range []func(*try) *try{t.withoutBlamed, t.integrated} {
		sites := next(first)
		if sites == nil {
			continue
		}
		if err := t.run(sites); err != nil {
			return false, err
		}
		if sites.res == nil || !sites.settled() || t.likeliest() != sites {
			continue
		}
		if sites.blamed != nil { // what was left out may be none the worse
			if err := t.run(withAll(first, sites)); err != nil {
				return false, err
			}
		}
		return true, nil
	}
	return false, nil
}

// withAll integrates signals out with all sensors and readings, begun at an answer without some of them.
func withAll(first, without *try) *try {
	p, opt := integrating(first)
	from := *without.res
	from.S = slices.Clone(from.S)
	for _, b := range from.BrokenSensors { // it had none of their readings
		from.S[b.Sensor] = math.NaN()
	}
	opt.from = &from
	return &try{name: evidenceOf(p) + ", all sensors and readings taken for good", problem: p, opt: opt}
}

// checkable reports whether complex signals may be integrated out after an answer.
func checkable(first *try) bool {
	_, all := stepWork(first)
	return all <= mostChecked
}

// integratedFrom integrates complex signals out from the gains of the best answer so far, where nothing else is one: their evidence has many maxima, and message passing may have come near the right one.
func (t *tries) integratedFrom(first *try) *try {
	best := t.likeliest()
	if !hasFreePhases(first) || !integrable(first) || best.trusted() || best.res.Status == Diverged || best.integrated() {
		return nil
	}
	p, opt := integrating(first)
	opt.from = best.res
	return &try{name: fmt.Sprintf("%s, begun at the answer of: %s", evidenceOf(p), best.name), problem: p, opt: opt}
}

// fromBest is the first try again, begun at the best answer so far.
func (t *tries) fromBest(first *try) *try {
	best := t.likeliest()
	if best == first || best.res.Status == Diverged || best.trusted() && best.integrated() || best.res.onlyNoise() >= 0 {
		return nil // of noise there is nothing to begin at
	}
	return first.begunAt(best)
}

// begunAt is a first try again, begun at that answer.
func (t *try) begunAt(best *try) *try {
	p, opt := *t.problem, t.opt
	if best.res.Plan.Algorithm != solver.Evidence {
		opt.Algorithm = best.res.Plan.Algorithm
	}
	opt.MaxIter = further(opt.MaxIter)
	p.beginAt(&opt, best.res)
	return &try{name: fmt.Sprintf("%s, begun at the answer of: %s", t.name, best.name), problem: &p, opt: opt}
}

// likelier is by how much the log-evidence of a run that goes on and on is more than that of one which hovers, for the former to be the answer: odds of twenty.
const likelier = 3

// leastOverruled is by how much the log-evidence of signals that were integrated out must be larger for each reading, for an answer by message passing not to be one: e times less noise.
// Of three positive scenes behind 0/1 masks it was 1.5 (errors of 27 % with exit 0, where the other has 0.7 %), of tomography 0.6 (wrong, too); of a random W 0.4, where message passing is right.
const leastOverruled = 0.5

// overrules reports whether signals that were integrated out speak against an answer that is trusted, though they are none themselves. Against an answer of the same kind, without what was left out,
// any more evidence does.
func (t *try) overrules(other *try) bool {
	if !other.trusted() || t.trusted() || t.res.Status == Diverged || !t.integrated() || t.blamesMany() || t.misfits() {
		return false
	}
	return other.integrated() && t.score() > other.score() || t.farLikelier(other)
}

// farLikelier reports whether the evidence is larger by leastOverruled for each reading.
func (t *try) farLikelier(other *try) bool {
	sensors, columns := t.problem.Y.Dims()
	return t.score() > other.score()+leastOverruled*float64(sensors*columns)
}

// liesOutside reports whether an answer that learned what was given contradicts it, and is far likelier than one that does not: noise took up what a range that is wrong leaves out.
func (t *try) liesOutside(other *try) bool {
	return t.trusted() && t.opt.given.bounds != nil && t.farLikelier(other)
}

// restless reports whether message passing came to no fixed point: what it states for an evidence is none then. It was 1e29 behind masks of a camera that reads text.
func (t *try) restless() bool { return !t.integrated() && t.res.Status != Converged }

// ended reports whether real signals were integrated out, with as many steps as that took: an evidence has a maximum then.
func (t *try) ended() bool {
	return t.integrated() && t.res.ColumnsPerSignal() == 1 && t.res.Iterations < t.opt.limit()
}

// likeliest is the trusted try of the largest evidence, and where none is trusted the likeliest of all.
func (t *tries) likeliest() *try {
	better := func(a, b *try) bool {
		switch {
		case a.overrules(b):
			return true
		case b.overrules(a):
			return false
		case a.trusted() != b.trusted():
			return a.trusted()
		case a.liesOutside(b):
			return true
		case b.liesOutside(a):
			return false
		case t.given && a.answers() != b.answers():
			return a.answers()
		case a.ended() && b.restless() || b.ended() && a.restless():
			return a.ended()
		case (a.res.Status == Diverged) != (b.res.Status == Diverged):
			return b.res.Status == Diverged
		case a.restless() && b.restless() && a.misfits() != b.misfits():
			return b.misfits()
		case a.res.hovered && b.res.Status == NotConverged && a.score() > b.score()-likelier:
			return true
		case b.res.hovered && a.res.Status == NotConverged && b.score() > a.score()-likelier:
			return false
		}
		return a.score() > b.score()
	}
	best := t.done[0]
	for _, a := range t.done[1:] {
		if better(a, best) {
			best = a
		}
	}
	return best
}

// score is the logarithm of the evidence of all readings. Those that were left out as outliers are counted as normal ones of the
// readings' own variance: what they are if nothing is known.
func (t *try) score() float64 {
	score := t.res.LogEvidence
	if math.IsNaN(score) {
		return math.Inf(-1)
	}
	left, problem := t.res.OutlyingReadings(), t.problem
	if t.blamed != nil {
		problem = t.blamed.problem
		for _, at := range t.blamed.leftOut() {
			if !slices.Contains(left, at) {
				left = append(left, at)
			}
		}
	}
	if len(left) == 0 {
		return score
	}
	readings := entries(problem.Y)
	typical := channel.TypicalSquare(slices.Clone(readings), problem.Y.RawMatrix().Cols)
	_, each := t.res.Residual.Dims() // readings of a sensor: of all its rows, where it has several
	for _, at := range left {
		y := readings[at[0]*each+at[1]]
		v := max(typical, y*y)
		score -= 0.5 * (math.Log(2*math.Pi*v) + y*y/v)
	}
	return score
}

// noAnswer is the end of a problem that has none, whatever is tried.
type noAnswer struct{ code, text string }

// hopeless says why a problem of which nothing is given has no answer; nil where it may have one.
func hopeless(p *Problem, opt *Options) *noAnswer {
	if !opt.Learn.Range || p == nil || p.W == nil {
		return nil
	}
	if text := diagnosis.Unmixed(p.W); text != "" {
		return &noAnswer{diagnosis.NotMixed, text}
	}
	return nil
}

// end makes a result that of a problem without an answer.
func (a *noAnswer) end(res *Result) *Result {
	if res != nil {
		res.Status, res.Reason = NothingRecovered, a.text
		res.Warnings = []Warning{{Code: WarningCode(a.code), Message: a.text}}
	}
	return res
}

// onlyNoise is the place of the warning that readings look like noise; -1 where there is none.
func (r *Result) onlyNoise() int {
	return slices.IndexFunc(r.Warnings, func(w Warning) bool { return w.Code == OnlyNoise })
}

// silent reports whether signals that were integrated out have no variance at all where the evidence is largest, and nothing else is an answer.
func (t *tries) silent() bool {
	return !slices.ContainsFunc(t.done, (*try).trusted) && slices.ContainsFunc(t.done, func(a *try) bool { return a.res.silent })
}

// onlyNoise is the first try that takes the readings for noise; nil where none does.
func (t *tries) onlyNoise() *try {
	i := slices.IndexFunc(t.done, func(a *try) bool { return a.res.onlyNoise() >= 0 })
	if i < 0 {
		return nil
	}
	return t.done[i]
}

// best is the result of the likeliest try, with what was tried in its plan. Where none has an answer because the readings look like noise, that is why.
func (t *tries) best() *Result {
	best := t.likeliest()
	if noise := t.onlyNoise(); noise != nil && !best.trusted() && best.blamesMany() {
		best = noise // which explains all readings, and not only those that were left
	}
	if i := best.res.onlyNoise(); i >= 0 && best.res.Status == NotConverged {
		best.res.Status, best.res.Reason = NothingRecovered, best.res.Warnings[i].Message
	}
	if len(t.done) == 1 {
		return best.res
	}
	best.warnOfOffsets(t.done[0])
	plan := *best.res.Plan
	plan.Parts = slices.Clone(plan.Parts)
	for _, a := range t.done {
		plan.Parts = append(plan.Parts, solver.Choice{
			Part: "try", On: a == best,
			Why: fmt.Sprintf("%s: %v after %d iterations, log evidence %.6g", a.name, a.res.Status, a.res.Iterations, a.score()),
		})
	}
	best.res.Plan = &plan
	return best.res
}

// beginAt makes a run begin at that result, with its model.
func (p *Problem) beginAt(opt *Options, res *Result) {
	p.Prior = res.Prior
	if c, ok := channel.InOrder(p.Channel).(channel.Noisy); ok {
		p.Channel = channel.WithInOrder(p.Channel, c.WithNoise(channel.NoiseOf(channel.InOrder(res.Channel))))
	}
	opt.from = res
}
