package amp

import (
	"context"
	"math"
	"math/cmplx"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/evidence"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// complexSites is the iteration over complex signals with sites, and complex gains (see [evidence.Complex]). What is found may depend on where phases begin, since the evidence
// is not concave in them. So there are several starts, the likeliest answer is kept, and where phases are not near the nominal ones it is an answer only if two starts
// have come to it: wrong ones are many, and hardly ever the same.
type complexSites struct {
	*State
	Idle
	ctx      context.Context
	fit      *evidence.Complex
	best     *evidence.Complex // the likeliest of those that have ended
	others   []*evidence.Complex
	starts   int
	work     float64   // of all starts, in multiplications
	course   []float64 // the evidence of the present start in each step
	ends     bool      // the present fit is that of all snapshots as they are, at the end of all starts
	ended    bool      // the present start, and another one is to follow
	done     bool
	refused  bool // no answer was found twice
	noise    float64
	middle   float64
	learns   bool // the concentration of phases
	widened  float64
	misfit   float64 // see [evidence.Complex.CommonMisfit]
	entry    func(mu, i int) complex128
	pairs    *channel.ComplexPairs
	joint    solver.Joint
	from     []complex128      // gains at which starts begin; nil where nothing is known of them
	fromReal bool              // signals were real there
	before   *evidence.Complex // the fit that the present one began at, if it has entries between columns of W
	spanned  [][]complex128    // gains at which the first starts begin, of signals that have entries in common (see [evidence.Complex.SubspaceStarts])
}

const (
	// mostPhaseStarts is how many starts there are. The right answer is found from half of them where there is much room, and from two of eight of a spiral microphone array.
	mostPhaseStarts = 12

	// mostPairStarts is the same of pairs of sensors, for which there is no other way. Of 20 problems of 8 antennas, 20 of 200 entries and 30 snapshots with phases of a radian the worst one had its second right
	// start as the eighth of those with joint signals.
	mostPairStarts = 24

	// mostSpanned is how many starts are taken from entries that signals have in common.
	mostSpanned = 4

	// surelyBetween is how much the evidence rises at least where entries lie between columns of W. Of sixteen arrays whose sources do it was 900 to 4200, and of sixteen whose sources do not less than one.
	surelyBetween = 10

	// mostFlat is over how many steps the evidence rises by leastRise of what it lacks at least, where another start has ended higher: at that pace it would take fifty steps to get there. Right ones of
	// microphone arrays settle within twenty steps; wrong ones wander for up to eighty.
	mostFlat, leastRise = 10, 0.2

	// SurePhases is the concentration of phases, a spread of half a radian, above which s = 1 is the start that they are near, and which few sensors with phases that are anywhere have by chance.
	SurePhases = 4

	// mostOfStarts is how many times P M²(M+N) multiplications all steps of all starts may take, some three seconds on a core, and mostOfReal the same where signals are real: with 8e9, a law of sizes, and then complex
	// signals, left independent real ones of Fourier masks 1 untried.
	mostOfStarts, mostOfReal = 3e9, 1.2e10

	// narrowedAfter is after how many steps a concentration of phases that was given is held. Before, it is learned. Two lines of 32 and 48 antennas with phases of 0.1 radian had 14 times and twice the
	// error when it was held from the first one.
	narrowedAfter = 15

	// nearBy is after how many steps real signals have phases near the nominal ones, where they have them: those behind Fourier masks do within ten. Of free phases two starts in twelve came to such an
	// answer, too few to be sure of it.
	nearBy = 15
)

// complexSitesPossible says why complex signals cannot have sites, if they cannot.
func (b *planner) complexSitesPossible() error {
	known, gains := complexPriorOf(b.Model)
	return refusal([]reason{
		{!gains || known.Lo == known.Hi, "the evidence of complex signals is for gains whose amplitudes are unknown"},
		{operator.RowReader(b.W, mostTabled) == nil, "the evidence of complex signals needs a W whose entries can be seen"},
	})
}

func newComplexSites(s *State, b *planner) *complexSites {
	known, _ := complexPriorOf(b.Model)
	g := &complexSites{State: s, middle: channel.Middle(s.calibration), learns: b.LearnPhases, pairs: known.Pairs, joint: b.Joint}
	if b.Start != nil && g.pairs == nil {
		g.from, g.fromReal = b.Start.S, b.Start.real(s.N)
	}
	if !b.LearnNoise {
		g.noise = 2 * channel.NoiseOf(s.model.Channel)
	}
	s.ScaleLearned = true
	return g
}

// sweepsOver implements [Iteration]: there are none.
func (g *complexSites) sweepsOver(operator.Operator) (s operator.Sweeps, err error) { return s, nil }

func (g *complexSites) use(operator.Sweeps) {}

// prepare implements [Iteration].
func (g *complexSites) prepare(ctx context.Context) error {
	g.ctx = ctx
	re, im := make([]float64, g.Rows()*g.N), make([]float64, g.Rows()*g.N)
	row := operator.RowReader(g.W, mostTabled)
	for mu := range g.Rows() {
		if err := row(re[mu*g.N:][:g.N], im[mu*g.N:][:g.N], mu); err != nil {
			return err
		}
	}
	g.entry = func(mu, i int) complex128 { return complex(re[mu*g.N+i], im[mu*g.N+i]) }
	g.starts, g.work, g.best, g.others, g.before, g.ends, g.done, g.refused, g.misfit = 0, 0, nil, nil, nil, false, false, false, 0
	g.begin()
	if g.from == nil && g.joint != solver.JointOff && g.fit.Kappa < SurePhases {
		if g.spanned = g.fit.SubspaceStarts(mostSpanned); len(g.spanned) > 0 {
			g.starts = 0
			g.begin()
		}
	}
	return nil
}

// begin begins the next fit.
func (g *complexSites) begin() {
	kind, draw := g.kind()
	var units *evidence.Units
	if g.best != nil && g.best.Kappa >= SurePhases { // elsewhere a second start is to find the same by itself
		units = g.best.Units
	}
	g.fit = evidence.NewComplex(g.Rows(), g.N, g.P/2, units.Columns(g.entry), func(mu, k int) complex128 {
		j := mu*g.P + 2*k
		return complex(g.Y[j], g.Y[j+1])
	}, draw)
	g.fit.Units = units
	g.fit.Joint, g.fit.Real = kind.joint, kind.real
	if of, count := g.readers(); of != nil {
		g.fit.ReadBy(of, count, draw)
	}
	g.fit = g.fit.Turned()
	if g.best != nil && (g.pairs != nil && g.joint == solver.AutoJoint && kind.joint != g.best.Joint || g.pairs == nil && g.best.Kappa >= SurePhases) {
		g.fit.BeginAtGains(g.best)
	}
	g.fit.GivenNoise = g.noise / (g.middle * g.middle)
	g.fit.LearnKappa = g.learns || g.narrows()
	switch {
	case g.from != nil:
		g.fit.BeginAt(g.from)
	case g.starts < len(g.spanned):
		g.fit.BeginAt(g.spanned[g.starts])
	}
	g.course, g.ended = nil, false
	if !g.fit.LearnKappa {
		g.fit.Kappa = channel.PhasesOf(g.calibration)
	}
	g.starts++
}

// narrows reports whether phases have a concentration that was given and begins as one that is learned: held from the first step, it would leave signals of a wrong maximum with wrong gains.
func (g *complexSites) narrows() bool {
	kappa := channel.PhasesOf(g.calibration)
	return !g.learns && g.pairs == nil && kappa > 0 && !math.IsInf(kappa, 1)
}

// narrow holds the concentration that was given once signals have taken shape.
func (g *complexSites) narrow() {
	if g.fit.LearnKappa && !g.learns && len(g.course) >= narrowedAfter {
		g.fit.LearnKappa, g.fit.Kappa = false, channel.PhasesOf(g.calibration)
	}
}

// signalKind is a model of signals.
type signalKind struct{ joint, real bool }

// kinds are the models of which starts take turns. Scenes behind a Fourier transform are real, as those of an interferometer are, and calibration has half as many unknowns then: of such
// problems with masks none was solved by complex signals.
func (g *complexSites) kinds() (of []signalKind) {
	if g.joint != solver.JointOn {
		of = append(of, signalKind{})
	}
	if g.joint != solver.JointOff {
		of = append(of, signalKind{joint: true})
	}
	switch {
	case g.from != nil && !g.fromReal:
		return of[:1]
	case g.pairs != nil || !g.learns && channel.PhasesOf(g.calibration) == 0: // of free phases real signals are never an answer, see [complexSites.astray]
		return of
	case g.from != nil:
		for i := range of {
			of[i].real = true
		}
		return of
	case g.joint == solver.AutoJoint:
		return []signalKind{{joint: true, real: true}, {}, {real: true}}
	}
	return append(of, signalKind{joint: of[0].joint, real: true})
}

// kind is the model of signals of the present start, and the draw of its phases. The first starts may be from entries that all signals have in common.
func (g *complexSites) kind() (kind signalKind, draw uint64) {
	if g.starts < len(g.spanned) && g.from == nil {
		return signalKind{joint: true}, uint64(g.starts)
	}
	kinds, at := g.kinds(), g.starts-len(g.spanned)
	if g.pairs != nil && g.joint == solver.AutoJoint { // two of three are joint
		if at%3 == 2 {
			return kinds[0], uint64(at / 3)
		}
		return kinds[1], uint64(at)
	}
	if at >= len(kinds) { // signals that are real have been tried where phases begin at zero
		return signalKind{joint: g.joint == solver.JointOn}, uint64(at - len(kinds) + 1)
	}
	return kinds[at], 0
}

// readers are the sensors that each row is read with, and how many they are; nil where each is its own.
func (g *complexSites) readers() (of [][]int, count int) {
	switch {
	case g.pairs != nil:
		for _, pair := range g.pairs.Of {
			of = append(of, pair[:])
		}
		return of, g.pairs.Count
	case g.Each > g.P:
		for row := range g.Rows() {
			of = append(of, []int{g.SensorOf(row * g.P)})
		}
	}
	return of, g.M
}

// rowOf is a row of sensor mu: its first, which may be its only one.
func (g *complexSites) rowOf(mu int) int { return g.reading(mu) / g.P }

// Step implements [Iteration].
func (g *complexSites) Step(float64) error {
	left := 0.0
	if !g.done {
		if g.ended {
			g.begin()
		}
		m := float64(g.Rows())
		work := float64(len(g.fit.Snapshots)) * m * m * (m + float64(g.N))
		if g.fit.Joint {
			work /= 2 // matrices of all snapshots are the same
		}
		g.work += work
		g.narrow()
		done, err := g.fit.Step()
		switch {
		case g.ends && err == nil && done:
			g.done, g.best = true, g.fit
		case g.ends:
			g.done = err != nil
		case (done || err != nil || g.flat() || g.astray() || g.spent()) && !g.goesOn(err == nil):
			g.choose(err == nil || g.fit.Settled())
		}
	}
	if !g.done || g.refused {
		left = math.Inf(1)
	}
	g.takeSignals()
	for mu := range g.S {
		s := g.fit.S[g.rowOf(mu)]
		g.S[mu], g.Phase[mu] = g.middle*cmplx.Abs(s), cmplx.Phase(s)
	}
	for k := range g.Left {
		g.Left[k] = left
	}
	return nil
}

// TogetherInSites reports whether signals were integrated out whose entries are there in all of them or in none.
func (s *Solver) TogetherInSites() bool {
	g := s.sites()
	return g != nil && g.fit != nil && g.fit.Joint
}

// RealSignals reports whether signals behind a complex W were found to be real, and by how much the logarithm of the evidence is larger than that of complex ones; +Inf where these came to no fixed point.
func (s *Solver) RealSignals() (found bool, likelier float64) {
	g := s.sites()
	if g == nil || g.best == nil || g.fit != g.best || !g.fit.Real {
		return false, 0
	}
	likelier = math.Inf(1)
	for _, other := range g.others {
		if !other.Real {
			likelier = min(likelier, g.fit.LogEvidence()-other.LogEvidence())
		}
	}
	return true, likelier
}

// ColumnShifts are where entries lie between columns of W, in columns from their own, and the standard deviations of these (N); nil where there are none.
func (s *Solver) ColumnShifts() (at, sd []float64) {
	g := s.sites()
	if g == nil || g.fit == nil || g.fit != g.best {
		return nil, nil
	}
	return g.fit.Places()
}

// CommonMisfit is by what factor what all snapshots have in common fits W worse than noise explains; one or less where it does not.
func (s *Solver) CommonMisfit() float64 {
	if g := s.sites(); g != nil {
		return g.misfit
	}
	return 0
}

// flat reports whether the present start is below the end of another one, and hardly rises.
func (g *complexSites) flat() bool {
	g.course = append(g.course, g.fit.LogEvidence())
	above := g.best
	if g.before != nil {
		above = g.before
	}
	if len(g.course) <= mostFlat || above == nil || g.pairs != nil { // right starts of pairs hardly rise for some fifteen steps: all but the first were given up, and no answer was found twice
		return false
	}
	latest, before := g.course[len(g.course)-1], g.course[len(g.course)-1-mostFlat]
	lacks, risen := above.LogEvidence()-latest, latest-before
	return lacks > 0 && risen < leastRise*lacks
}

// astray reports whether signals are taken for real ones, and phases are not near the nominal ones.
func (g *complexSites) astray() bool {
	return g.fit.Real && len(g.course) >= nearBy && g.fit.Kappa < SurePhases
}

// spent reports whether steps have taken as long as they may: with pairs of sensors, for which there is no other way, as long as it takes.
func (g *complexSites) spent() bool {
	most := float64(mostOfStarts)
	if g.fit.Real || g.best != nil && g.best.Real {
		most = mostOfReal
	}
	return g.pairs == nil && g.work > most
}

// choose is called when a fit has ended, and goes on with the next one where that is needed.
func (g *complexSites) choose(usable bool) {
	if usable && g.fit.Settled() {
		if g.best == nil || g.fit.LogEvidence() > g.best.LogEvidence() {
			g.best = g.fit
		}
		g.others = append(g.others, g.fit)
	}
	g.fit.Release()
	found := 0
	for _, other := range g.others {
		if other == g.best || g.best.Same(other) {
			found++
		}
	}
	near := g.best != nil && g.best.Kappa >= SurePhases && !(g.pairs != nil && g.learns) // few sensors may be near anything
	sure := found > 1 || found == 1 && (near || g.from != nil && g.best.StayedAt(g.from))
	kinds := len(g.kinds())
	sure = sure && g.starts >= len(g.spanned)+kinds
	most := len(g.spanned) + kinds - 1 + mostPhaseStarts
	if g.pairs != nil {
		most = mostPairStarts
		sure = sure && (kinds == 1 || g.starts > kinds) // both kinds of signals have been tried
	}
	if !sure && (g.from == nil || g.starts < kinds) && g.starts < most && !g.spent() {
		g.ended = true // the next start begins with the next step, so that there is a fit if there is none
		return
	}
	g.done, g.refused = true, !sure
	if g.best == nil {
		return
	}
	g.fit = g.best
	if whole := g.best.Whole(); whole != nil {
		g.misfit = g.best.CommonMisfit()
		g.fit, g.done, g.ends = whole, false, true
	}
}

// goesOn goes on from a fit that has settled, with entries that may lie between columns of W, and reports whether there is such a fit; from that to the likelier one of both.
func (g *complexSites) goesOn(usable bool) bool {
	settled := usable && g.fit.Settled()
	if g.before != nil {
		if !settled || g.fit.LogEvidence() < g.before.LogEvidence()+surelyBetween {
			g.fit = g.before
		}
		g.before = nil
		return false
	}
	if !usable {
		return false
	}
	next := g.fit.Between(g.entry)
	if next == nil {
		next = g.fit.Scaled()
	}
	if next == nil {
		return false
	}
	g.before, g.fit = g.fit, next
	g.course = nil
	return true
}

// After implements [Part]: nothing is gained by waiting for an answer that was not found.
func (g *complexSites) After(s *Solver, l *Line) Verdict {
	if g.refused {
		s.limit = l.Index
	}
	if g.refused || !g.done {
		return Unfinished
	}
	return GoOn
}

// End implements [Part].
func (g *complexSites) End(*Solver) {
	if g.fit == nil {
		return
	}
	if g.best != nil { // where the limit ended a further start
		g.fit = g.best
	}
	if whole := g.fit.Whole(); whole != nil {
		if _, err := whole.Step(); err == nil {
			if g.fit == g.best {
				g.best = whole
			}
			g.fit = whole
		}
	}
	sum := 0.0
	for mu := range g.M {
		sum += cmplx.Abs(g.fit.S[g.rowOf(mu)])
	}
	g.fit.Rescale(complex(float64(g.M)/sum, 0))
	g.takeSignals()
	g.takeSensors()
}

// takeSignals makes the signals, and their fields, those of the fit. Each part of a number has half of its variance.
func (g *complexSites) takeSignals() {
	if g.fit.IsTurned() { // signals are not those that are asked for
		for k := range g.Moved {
			g.Moved[k], g.Norm[k] = 1, 1
		}
		return
	}
	unit := g.middle
	for k, s := range g.fit.Snapshots {
		moved, norm, along, spread := 0.0, 0.0, 0.0, 0.0
		for i, x := range s.X {
			re, im := 2*k*g.N+i, (2*k+1)*g.N+i
			unit := unit * g.fit.Units.Of(i)
			x *= complex(unit, 0)
			step := x - complex(g.X[re], g.X[im])
			moved, norm = moved+real(step)*real(step)+imag(step)*imag(step), norm+real(x)*real(x)+imag(x)*imag(x)
			along += real(step)*real(x) + imag(step)*imag(x)
			c := 0.5 * unit * unit * s.C[i]
			spread += c
			g.X[re], g.X[im], g.C[re], g.C[im] = real(x), imag(x), c, c
			if g.fit.Real {
				g.C[im] = 0
			}
			lambda, sigma := g.fit.Field(s, i)
			lambda, sigma = complex(unit, 0)*lambda, max(0.5*unit*unit*sigma, math.SmallestNonzeroFloat64)
			g.Lambda[re], g.Lambda[im], g.Sigma[re], g.Sigma[im] = real(lambda), imag(lambda), sigma, sigma
		}
		for _, j := range []int{2 * k, 2*k + 1} { // root mean squares over both columns
			g.Moved[j], g.Norm[j], g.SumC[j] = math.Sqrt(0.5*min(moved, norm)), math.Sqrt(0.5*norm), spread // of another start all is new
			g.Along[j] = 0.5 * along / max(g.Norm[j], math.SmallestNonzeroFloat64)
		}
	}
}

// takeSensors makes what is known of the sensors, and of each reading from the others, that of the fit.
func (g *complexSites) takeSensors() {
	unit := g.middle
	noise := 0.5 * g.fit.Noise * unit * unit // of a part
	g.adoptWorking(channel.InOrder(g.model.Channel).(channel.Noisy).WithNoise(noise))
	known, _ := complexPriorOf(g.model)
	if _, _, normal := channel.NormalOf(known.Amplitude()); !normal {
		known = known.WithAmplitude(channel.NormalAbout(unit, g.fit.Spread*unit))
	}
	if g.learns {
		known.Concentration = g.fit.Kappa
	}
	if g.pairs != nil {
		s, log, phase := g.fit.Gains()
		for i, v := range s {
			s[i] = complex(math.Sqrt(unit), 0) * v
		}
		known.Pairs = g.pairs.Found(s, log, phase)
	}
	g.adoptCalibration(known)
	both, log := g.fit.Variances()
	for mu := range g.M {
		row := g.rowOf(mu)
		s := g.fit.S[row]
		g.S[mu], g.Phase[mu], g.LogZ[mu] = unit*cmplx.Abs(s), cmplx.Phase(s), 0
		g.setSensor(mu, unit*unit*max(both[row], 2*g.fit.AmplitudeVariance(row, log)))
	}
	for row, s := range g.fit.S {
		for k, snapshot := range g.fit.Snapshots {
			j := row*g.P + 2*k
			inverse, own := snapshot.Inverse[row]/(unit*unit), snapshot.G[row]/complex(unit, 0)
			if inverse == 0 {
				for l := j; l < j+2; l++ {
					g.G[l], g.DG[l], g.Omega[l], g.V[l] = 0, 0, 0, 0
				}
				continue
			}
			omega := complex(unit, 0)*s*complex(g.Y[j], g.Y[j+1]) - own/complex(inverse, 0)
			g.Omega[j], g.Omega[j+1] = real(omega), imag(omega)
			g.G[j], g.G[j+1] = 2*real(own), 2*imag(own)
			g.DG[j], g.DG[j+1] = -2*inverse, -2*inverse
			g.V[j] = max(0, 0.5/inverse-noise)
			g.V[j+1] = g.V[j]
		}
	}
}

// setSensor sets what is known of a sensor.
func (g *complexSites) setSensor(mu int, variance float64) {
	g.SVar[mu] = variance
	g.calibration.(channel.Turning).SetPosterior(g.Of(g.Stats, mu), cmplx.Rect(g.S[mu], g.Phase[mu]), variance)
}

func (g *complexSites) integrated() Integrated { return Integrated{Sites: true} }
func (g *complexSites) widenedBy() float64     { return g.widened }

// offsetScore implements [integrating]: complex sensors have no offsets.
func (g *complexSites) offsetScore() (score float64, cut bool) { return 0, false }

// apartOf implements [integrating]: there is one prior alone.
func (g *complexSites) apartOf() []int { return nil }

func (g *complexSites) noiseMisfit() *evidence.NoiseMisfit { return nil }

// Report implements [Part]: error bars are wider where halves of the snapshots disagree.
func (g *complexSites) Report(*Solver) {
	if g.best == nil {
		return
	}
	if ratio, err := g.fit.Halves(g.ctx); err == nil && ratio > 0 {
		g.widened = ratio
	}
	g.widened = max(g.widened, g.misfit)
	if learner := prior.LearnerOf(g.model.Prior); learner != nil {
		for range refits {
			learner, _ = learner.Refit(g.Lambda, g.Sigma, 1)
		}
		g.Adopt(Model{learner, g.model.Channel})
	}
	for j := range g.C {
		g.C[j] *= max(1, g.widened)
	}
	for mu := range g.M {
		g.setSensor(mu, g.SVar[mu]*max(1, g.widened))
	}
}

// LogEvidence implements [Iteration].
func (g *complexSites) LogEvidence() float64 {
	if g.best == nil || g.fit != g.best {
		return math.NaN()
	}
	return g.fit.LogEvidence()
}

// scaleSums implements [Iteration]: the evidence does not change along the scale.
func (g *complexSites) scaleSums(quadratic, volume float64) (q, v float64) {
	return quadratic, volume
}

// MeanV implements [Iteration].
func (g *complexSites) MeanV() (mean, off float64) { return Mean(g.V), 0 }
