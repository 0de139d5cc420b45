package amp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/evidence"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// gaussian is the iteration over Gaussian signals that are integrated out (see package evidence). Its evidence never falls, whatever W
// is. It writes what it finds into the state in the words of message passing: ω and V are the mean and variance that the
// other readings of a snapshot leave to z, λ and Σ the field that gives the posterior of an entry with its own prior.
type gaussian struct {
	*State
	Idle
	stated
	round
	questions
	found
	ctx     context.Context // of the latest run
	looks   bool            // whether single readings may be left out
	asks    bool            // whether offsets that are surely there end it
	work    float64         // multiplications of a step that takes them for each snapshot
	piloted bool            // a few snapshots were asked whether they are sparse
	sites   int             // how many steps sparse priors may still take; 0 where they are not tried
}

// stated is what was given.
type stated struct {
	noise         float64           // variance; 0 where it is learned
	ofEach        []float64         // that of each sensor (M); nil where all have the same
	givenNoises   *evidence.Unequal // the same as fits have it
	factorLearned bool              // the factor that these have in common is learned
	ownNoise      bool              // that of each sensor is to be learned
	gainsKnown    bool              // s is, to a thousandth
	offsetSD      float64           // of offsets; 0 where it is learned
	middle        float64           // of s: the mean at which signals and gains are reported
	units         []float64         // of every s, in which gains are about one: middle, or what is known of the sensor by itself
	ofGains       bool              // the distribution of s was given, or what is known of each, or s itself
}

// round is the fits of the same readings, one after the other.
type round struct {
	fit        *evidence.Fit // the present one
	best       *evidence.Fit // the likeliest of those that have ended
	first      *evidence.Fit // the first of all
	free       *evidence.Fit // the likeliest with free variances
	placed     *evidence.Fit // that with a law of places begun at it; nil where there is none
	resembling bool          // whether snapshots resemble each other
	gaussian   *evidence.Fit // the likeliest of Gaussian signals
	common     *evidence.Fit // that with a column of W in common, where there is one
	mixed      *evidence.Fit // that with a mixture of entries of each snapshot, where it was tried
	drawn      *evidence.Fit // that with a mixture that is the same for all entries, where it was tried
	flat       *evidence.Fit // that with a sparse prior of entries as they are, where it converged
	convex     *evidence.Fit // that with the same prior, begun with a convex one
	tried      int           // how many of fits have been, or were not possible
	steps      int           // of the present fit
	done       bool          // nothing is left to do
}

// questions are what the readings were asked beside that.
type questions struct {
	before       *evidence.Fit         // the likeliest one, while all are tried once more; nil where they are not
	looked       bool                  // whether all single readings have been asked, or none may be left out
	left         [][2]int              // those that message passing had left out, until they are asked
	stuck        bool                  // whether sensors that read a level of their own were asked of the likeliest fit
	unequal      question              // whether noise that differs from sensor to sensor was
	even         *evidence.Fit         // the likeliest fit before that
	evenEvidence float64               // and its evidence
	misfit       *evidence.NoiseMisfit // what readings say of noise that was given of each sensor; nil where it was not asked
	score        float64               // by how many standard deviations the evidence rises with offsets, where the model has none
	cut          bool                  // offsets ended it
}

// found is what is reported beside the fit.
type found struct {
	asRead   []float64 // M×P, the readings with those that were left out; nil where none were
	widened  float64   // the factor of all variances, from halves of the snapshots, or readings drawn anew; 0 where they were not asked
	doubtful []int     // signals of which another fit has others
	unsmooth apart     // what white gains and those of which a part is smooth differ by, where either may be right
}

// apart is the squares of what gains (M) and signals (N×P) of two fits differ by, at a mean gain of one; nil where there is none.
type apart struct {
	gains   []float64
	signals *mat.Dense
}

const (
	// refits is how often the prior is fitted to the fields in the end: EM steps, from where the readings' power puts it.
	refits = 30

	// mostEvidence is how many multiplications a step may take, M²(N+M) or so: a second on a core. A mixture, whose steps
	// take that for each snapshot, is tried up to mostMixing.
	mostEvidence = 4e9
	mostMixing   = 3e8

	// mostTabled is how many entries a W that is no table may have, of which one is made: 400 MB.
	mostTabled = 5e7

	// mostTurned is the same of correlated snapshots, a fifth of a second on a core. Forty steps are usual.
	mostTurned = 4e8

	// mostOfSites is how many multiplications all steps of sparse priors may take, some four seconds on a core. One is not begun where leastSites
	// steps would take more than what is left: fewer hardly ever converge.
	mostOfSites = 5e10
	leastSites  = 20

	// mostOfPilot is the same where a few snapshots were found to be sparse: a minute. Fifty scenes of a blurred line of 600 pixels take half of it, and are given up without.
	mostOfPilot = 6e11

	// surelyOffsets is the score of offsets (see [evidence.Fit.OffsetScore]) from which a run ends: of 95 field problems three have more with Gaussian signals, 33 to 96, of which two have
	// offsets and one has outliers; others have up to 13.
	surelyOffsets = 20
)

// evidence reports whether the iteration is that of Gaussian signals.
func (b *planner) evidence() bool { return b.Algorithm == solver.Evidence }

// stepWork is how many multiplications a step over one pattern of missing readings takes.
func (b *planner) stepWork() float64 { return float64(b.m) * float64(b.m) * float64(b.m+b.n) }

// evidencePossible says why signals cannot be integrated out, if they cannot.
func (b *planner) evidencePossible() error {
	table, seen := b.W.(operator.Matrix) // of another operator one is made
	_, noisy := channel.InOrder(b.Model.Channel).(channel.Noisy)
	switch work := b.stepWork(); {
	case b.stream():
		return errors.New("the evidence of Gaussian signals is for offline problems")
	case !b.calibrates() || !noisy:
		return errors.New("the evidence of Gaussian signals is for gains that are unknown, and Gaussian noise")
	case b.offsetting() != nil && b.each() < leastForOffsets:
		return errFewForOffsets(b.each())
	case b.displaced() != nil:
		return errors.New("the evidence of Gaussian signals is for rows of W that do not move with parameters of sensors")
	case b.clips():
		return errors.New("the evidence of Gaussian signals is for readings that are not clipped")
	case b.codes():
		return errors.New("the evidence of Gaussian signals is for readings that are no codes")
	case len(b.Noise) > b.m/b.Shared.rows() || b.complex() && (b.Noise != nil || b.LearnSensorNoise):
		return errors.New("the evidence of Gaussian signals is for noise of one variance, or of real readings for one of each sensor")
	case b.complex():
		return b.complexSitesPossible()
	case seen && table.Storage() == "" || !seen && operator.FarRows(b.W):
		return errors.New("the evidence of Gaussian signals needs a W whose entries can be seen")
	case !seen && float64(b.m)*float64(b.n) > mostTabled:
		return fmt.Errorf("the evidence of Gaussian signals makes a table of W, of %.2g entries, more than %.0g", float64(b.m)*float64(b.n), float64(mostTabled))
	case work > mostEvidence:
		return fmt.Errorf("the evidence of Gaussian signals takes some M²(M+N) = %.2g multiplications a step, more than %.0g", work, float64(mostEvidence))
	}
	return nil
}

// evidenceKeeps are the lines of the plan that are asked where signals are integrated out. Of the others none is needed: gains, noise,
// the scale and the signals' variances are the iteration's own.
var evidenceKeeps = map[string]bool{"complex numbers": true, "network": true, "vector AMP": true, "watch": true, "doubt of W": true}

// insteadOf is what stands in the place of another line of the plan where signals are integrated out.
func (b *planner) insteadOf(line string) string {
	switch {
	case line == "faults" && !b.complex():
		return "not needed: signals are integrated out, and their evidence finds sensors that are stuck"
	case line == "outliers" && b.Outliers && !b.complex():
		return "not needed: signals are integrated out, and their evidence finds single readings that nothing explains"
	}
	return "not needed: signals are integrated out"
}

func newGaussian(s *State, b *planner) *gaussian {
	g := &gaussian{State: s, stated: stated{middle: channel.Middle(s.calibration), units: channel.UnitsOf(s.calibration, s.M)}}
	g.gainsKnown = !b.LearnCalibration && channel.GainsKnown(s.calibration)
	g.ofGains = g.gainsKnown || !b.LearnCalibration && channel.Stated(s.calibration)
	if !b.LearnNoise && b.Noise == nil {
		g.noise = channel.NoiseOf(s.model.Channel)
	}
	g.ofEach, g.factorLearned, g.ownNoise = b.Noise, b.LearnNoise, b.LearnSensorNoise
	if known := s.offsets(); known != nil && !b.LearnOffsets {
		g.offsetSD = known.OffsetSD()
	}
	s.ScaleLearned, g.asks, g.looks = true, b.UntilOffsets, b.Outliers && b.each() >= leastOutlying
	g.work = float64(b.P) * b.stepWork()
	g.sites = int(mostOfSites / g.work)
	if g.looks {
		for _, at := range b.Outlying { // of a sensor, and of its readings
			j := at[0]*g.Each + at[1]
			g.left = append(g.left, [2]int{j / g.P, j % g.P})
		}
	}
	return g
}

// sweepsOver implements [Iteration]: there are none.
func (g *gaussian) sweepsOver(operator.Operator) (s operator.Sweeps, err error) { return s, nil }

func (g *gaussian) use(operator.Sweeps) {}

// prepare implements [Iteration].
func (g *gaussian) prepare(ctx context.Context) error {
	g.ctx = ctx
	w := dense.New(g.Rows(), g.N)
	all := make([]int, g.N)
	for i := range all {
		all[i] = i
	}
	if err := columnsOf(w, g.W, all, g.Threads); err != nil {
		return err
	}
	y := slices.Clone(g.Y)
	for mu, unit := range g.units {
		floats.Scale(unit/g.middle, y[mu*g.Each:(mu+1)*g.Each])
	}
	fit := evidence.NewShared(mat.NewDense(w.Rows, w.Columns, w.Data), mat.NewDense(g.Rows(), g.P, y), g.Each/g.P)
	fit.GivenNoise = g.noise / (g.middle * g.middle)
	if g.gainsKnown {
		fit.GainsKnown, fit.Smooth = true, nil
	}
	if g.ofEach != nil {
		fit.WithNoises(g.inUnits(g.ofEach))
	}
	g.givenNoises = fit.Unequal
	if g.Offsets() {
		fit.WithOffsets(g.offsetSD)
	}
	g.questions = questions{looked: !g.looks, left: g.left}
	g.done, g.doubtful, g.unsmooth = false, nil, apart{}
	g.begin(fit)
	return nil
}

// inUnits are variances in units of the square of the middle of s.
func (g *gaussian) inUnits(variances []float64) []float64 {
	scaled := slices.Clone(variances)
	floats.Scale(1/(g.middle*g.middle), scaled)
	return scaled
}

// begin begins all fits anew with the first of them.
func (g *gaussian) begin(first *evidence.Fit) {
	g.fit, g.steps, g.tried, g.best, g.common, g.mixed, g.drawn, g.flat, g.convex = first, 0, 0, nil, nil, nil, nil, nil, nil
	g.piloted = false
}

// Step implements [Iteration]. Nothing is damped: each step raises the evidence.
func (g *gaussian) Step(float64) error {
	left := 0.0
	if !g.done {
		g.steps++
		risen, err := g.fit.Step(g.steps)
		switch {
		case err != nil && g.best == nil && g.before == nil:
			return err
		case err != nil: // what ended before it stays
			g.done = g.next()
		default:
			g.done = g.fit.Ended(g.steps, risen) && g.choose()
		}
		if !g.done {
			left = math.Inf(1)
		}
	}
	g.takeSignals()
	for mu, s := range g.fit.S {
		g.S[mu] = g.units[mu] * s
	}
	for k := range g.Left {
		g.Left[k] = left
	}
	return nil
}

// End implements [Part].
func (g *gaussian) End(*Solver) {
	if g.best == nil && g.steps == 0 {
		return
	}
	if g.done && !g.cut && g.unsmooth.gains == nil {
		g.unsmooth.gains, g.unsmooth.signals, _ = g.fit.Whiten(g.ctx)
	}
	g.fit.Rescale(float64(g.M) / sum(g.fit.S))
	g.fit.SetFields()
	g.fit.SetOffsets()
	g.takeSignals()
	g.takeSensors()
}

// fits are those that are tried one after the other, begun at what is known by then; nil is one that is not. Those with entries that are the same in all snapshots come first,
// begun at what all snapshots have in common, then with variances that follow columns of W, or places of entries as well, then mixtures that are the same for all entries, of which an entry is the same in all
// snapshots or not, then sparse priors, of entries as they are and in units of what all snapshots have, and where these two are far apart the latter begun at the former. Where all snapshots have a column of W in
// common, entries as they are begin with it, and at what the mixture found as well, and shifts of the likeliest are tried; units are not, which were likelier in two of ten, and worse. Of few signals that sensors read in several rows the sparse prior is begun from a convex one as well. Where no sparse prior is
// likelier than Gaussian signals, or where these have a covariance of snapshots that is worth its parameters, they are tried with correlated snapshots, and as lines of a scan.
var fits = []func(g *gaussian) *evidence.Fit{
	func(g *gaussian) *evidence.Fit {
		fit := g.best.Common()
		if fit != nil && fit.HasColumnInCommon() {
			g.common = fit
		}
		return fit
	},
	func(g *gaussian) *evidence.Fit {
		g.free = g.best
		return g.free.Sized(false)
	},
	func(g *gaussian) *evidence.Fit {
		g.placed = g.free.Sized(true)
		return g.placed
	},
	func(g *gaussian) *evidence.Fit {
		g.gaussian = g.best
		g.drawn = g.best.Mix(false)
		return g.drawn
	},
	func(g *gaussian) *evidence.Fit {
		if g.work > mostMixing || g.P == 1 {
			return nil
		}
		g.mixed = g.best.Mix(true)
		return g.mixed
	},
	func(g *gaussian) *evidence.Fit { return g.sparsely(false) },
	func(g *gaussian) *evidence.Fit {
		if g.mixed == nil || g.common == nil || g.sites < leastSites {
			return nil
		}
		return g.common.SparselyAsMixed(g.mixed, g.sites)
	},
	func(g *gaussian) *evidence.Fit {
		if g.common == nil || g.best.Sparse == nil || g.sites < leastSites {
			return nil
		}
		return g.best.Shifted(g.common, g.sites)
	},
	func(g *gaussian) *evidence.Fit {
		if g.P == 1 || g.common != nil {
			return nil
		}
		return g.sparsely(true)
	},
	func(g *gaussian) *evidence.Fit {
		if g.best.Sparse == nil || g.sites < leastSites {
			return nil
		}
		return g.start().WithTwoValues(g.best, g.sites)
	},
	func(g *gaussian) *evidence.Fit {
		if g.sites < leastSites || !g.fewOfManyRows() || g.flat == nil {
			return nil
		}
		g.convex = g.start().Convexly(g.flat, g.sites)
		return g.convex
	},
	func(g *gaussian) *evidence.Fit {
		if g.sites < leastSites || g.rival() == nil {
			return nil
		}
		return g.gaussian.SparselyAs(g.best, g.flat, g.sites)
	},
	func(g *gaussian) *evidence.Fit {
		if g.work > mostTurned {
			return nil
		}
		turned := g.gaussian.Correlate()
		g.resembling = turned != nil && turned.Correlated.Worthwhile()
		if g.best.Sparse != nil && !g.resembling {
			return nil
		}
		return turned
	},
	func(g *gaussian) *evidence.Fit { return g.scanned(false) },
	func(g *gaussian) *evidence.Fit { return g.scanned(true) },
}

// scanned is a fit of lines of a scan, where snapshots resemble each other.
func (g *gaussian) scanned(above bool) *evidence.Fit {
	if g.placed == nil || !g.resembling && g.best.Correlated == nil {
		return nil
	}
	return g.placed.Scanned(above)
}

// withLevels goes on without sensors that read a level of their own, where sensors may be broken, and reports whether there are any. It is asked again of what is left, of signals with free variances and of those with a column
// in common: with a law, or sites, more would have to be found anew.
func (g *gaussian) withLevels() bool {
	if !g.mayBeBroken() || g.fit != g.best || g.tried > 1 {
		return false
	}
	left := g.best.WithLevels()
	if left == nil {
		return false
	}
	g.steps, g.fit = 0, left
	return true
}

// mayBeBroken reports whether sensors may be.
func (g *gaussian) mayBeBroken() bool {
	_, looks := g.model.Channel.(channel.Contaminated)
	return looks
}

// sparsely is a fit with a sparse prior, where time is left for one.
func (g *gaussian) sparsely(scaled bool) *evidence.Fit {
	if g.sites < leastSites && !g.worthSites() {
		return nil
	}
	return g.start().Sparsely(scaled, g.best.S, g.sites)
}

// worthSites asks a few snapshots whether entries are sparse, where sparse priors of all take long, and gives time for them if so.
func (g *gaussian) worthSites() bool {
	most, began := int(mostOfPilot/g.work), mostOfSites/g.work >= leastSites
	if g.piloted || began || most < leastSites || g.P <= evidence.Pilots {
		return false
	}
	g.piloted = true
	if !g.start().SparseInFew(g.ctx) {
		return false
	}
	g.sites = most
	return true
}

// start is the fit with whose variances and common mode sparse priors begin.
func (g *gaussian) start() *evidence.Fit {
	if g.common != nil {
		return g.common
	}
	return g.gaussian
}

// choose goes on with the next fit once one has ended, and after the last reports that it is done. The likeliest one stays.
func (g *gaussian) choose() (done bool) {
	if sparse := g.fit.Sparse; sparse != nil {
		g.sites -= g.steps
		if g.flat == nil && !sparse.Scaled() && sparse.Settled() {
			g.flat = g.fit
		}
	}
	if dense := g.common != nil && g.fit.Sparse != nil && !g.fit.Sparse.MostlyZero(); g.best == nil || !dense && g.fit.Likelier(g.best) {
		g.best = g.fit
	}
	if g.withoutOutliers() || g.withLevels() || g.withoutLeft() {
		return false
	}
	if g.asks && g.fit == g.best {
		g.ask()
		if g.cut = g.score > surelyOffsets && g.best.Levels == nil; g.cut {
			return true
		}
	}
	if g.tried == 0 {
		if g.stuck && !g.best.Likelier(g.first) { // sensors that were left out since are not stuck
			g.best, g.tried = nil, len(fits)
		} else {
			g.first = g.best
		}
	}
	return g.next()
}

// withoutOutliers goes on without single readings that a fit does not explain, of signals with free variances and of those with a column in common, and reports whether there are any.
func (g *gaussian) withoutOutliers() bool {
	if g.looked || g.fit != g.best || g.tried > 1 {
		return false
	}
	seen, others := g.fit.OutliersSeen(g.mayBeBroken())
	if !others {
		return false
	}
	common := g.fit == g.common
	if g.steps, g.fit = 0, g.fit.LeavingOut(seen); common {
		g.common = g.fit
	}
	return true
}

// withoutLeft goes on without the readings that message passing had left out, once, and reports whether there are any.
func (g *gaussian) withoutLeft() bool {
	if len(g.left) == 0 {
		return false
	}
	left := g.best.WithoutReadings(g.left)
	if g.left = nil; left != nil {
		g.steps, g.fit = 0, left
	}
	return left != nil
}

// again tries all fits once more without the readings that the likeliest one does not explain, and with those that it does though they were left out, and reports whether there are any: a sparse prior explains spots that appear in one
// scene alone, which free variances do not.
func (g *gaussian) again() bool {
	if g.looked || g.best.Silent() {
		return false
	}
	g.looked = true
	seen, others := g.best.OutliersSeen(g.mayBeBroken())
	if others {
		g.anew(g.free.LeavingOut(seen))
	}
	return others
}

// withoutStuck tries all fits once more without sensors that read a level of their own, where the likeliest fit shows others than the first ones did, and reports whether there are any. Noise of single sensors comes first: one with much noise is not stuck.
func (g *gaussian) withoutStuck() bool {
	if g.stuck || !g.mayBeBroken() || g.best.Silent() {
		return false
	}
	g.stuck = true
	left := g.best.WithLevels()
	if left == nil {
		return false
	}
	if g.unequal, left.Unequal = unasked, g.givenNoises; g.givenNoises != nil {
		left.GivenNoise = 0
	}
	g.anew(left)
	return true
}

// next goes on with the next fit, and reports whether there is none.
func (g *gaussian) next() (done bool) {
	g.steps = 0
	for g.best != nil && g.tried < len(fits) && !g.best.Silent() {
		g.tried++
		if g.fit = fits[g.tried-1](g); g.fit != nil {
			return false
		}
	}
	if g.before != nil && (g.best == nil || !g.best.Likelier(g.before)) {
		g.best = g.before
		if g.stuck { // its noise has been asked
			g.unequal = answered
		}
	}
	g.before, g.fit = nil, g.best
	return !g.again() && !g.withUnequalNoise() && !g.withoutStuck()
}

// anew tries all fits once more, the first of them to begin with.
func (g *gaussian) anew(first *evidence.Fit) {
	g.before = g.best
	g.begin(first)
}

// asksNoise is the score of unequal noise (see [evidence.Fit.NoiseScore]) from which the evidence is asked. Of 46 field problems with signals integrated out 13 have more: 14 to 710 where noise is unequal or sensors drift, and 4 to 9 where the evidence
// then falls. Those of codes of ten bits have 71.
const asksNoise = 3

// surelyUnequal is by how much the evidence must rise with it. It rises by 7 to 4700 where noise is unequal, and by 3.5 where readings of a camera are codes of ten bits, of which sensors that see little read few.
const surelyUnequal = 5

// withUnequalNoise goes on with noise that differs from sensor to sensor, where the residuals of the likeliest fit ask for it, and without it again where the evidence has not surely risen.
func (g *gaussian) withUnequalNoise() bool {
	if g.unequal == answered {
		return false
	}
	evidence, err := g.best.LogEvidence()
	switch {
	case g.unequal == unasked && g.givenNoises != nil && !g.factorLearned:
		g.unequal = answered
		g.askGivenNoise()
		g.best.BeginGivenNoise()
	case g.unequal == unasked:
		g.askGivenNoise()
		if err != nil || g.noise > 0 || g.best.Silent() || !(g.ownNoise || g.best.NoiseScore() > asksNoise) {
			return false
		}
		fit, err := g.best.Unequally(g.start())
		if err != nil {
			return false
		}
		g.even, g.best, g.fit = g.best, fit, fit
		g.unequal, g.evenEvidence = asking, evidence
	case g.unequal == asking && !g.ownNoise && !(err == nil && evidence > g.evenEvidence+surelyUnequal):
		g.best.Unequal, g.unequal = g.givenNoises, answered
		if g.best != g.even {
			g.before = g.even
		}
	default:
		return false
	}
	g.steps = leastSites
	return true
}

// askGivenNoise asks what readings say of the noise that was given of each sensor, where there is any: while its common factor is learned.
func (g *gaussian) askGivenNoise() {
	if g.givenNoises != nil {
		misfit := g.best.MisfitOfNoise()
		g.misfit = &misfit
	}
}

// question is how far something was asked.
type question int

const (
	unasked question = iota
	asking
	answered
)

// rival is the fit with the prior of entries as they are, where the likeliest one has them in units of what all snapshots have and other signals; nil where there is none. These units come from
// Gaussian signals, and where they are worse than none, fits with them say nothing against the answer: behind masks of a camera that reads text they end with the errors of those.
func (g *gaussian) rival() *evidence.Fit {
	if g.flat != nil && g.best.Sparse != nil && g.best.Sparse.Scaled() && g.best.Apart(g.flat) {
		return g.flat
	}
	return nil
}

// otherPrior is the fit of Gaussian signals where the likeliest one has a sparse prior, and the other way round, where one sensor has several rows and there are too few snapshots for halves of them; nil elsewhere. What readings determine is the same
// for both. Of 48 tomographic images with all detectors and 24 with some dead or spikes, 60 are apart by .005 to .4 of their error bars in squares, and none of these is wrong but one; of twelve by more than one, eight are (docs/log/sensors.md).
func (g *gaussian) otherPrior() *evidence.Fit {
	switch {
	case g.best == nil || !g.fewOfManyRows():
		return nil
	case g.best.Sparse == nil:
		return g.flat
	}
	return g.drawn
}

// otherPoint is another fixed point of the prior of the likeliest fit; nil where none was found.
func (g *gaussian) otherPoint() *evidence.Fit {
	switch {
	case g.best == nil || g.convex == nil || !g.convex.Sparse.Settled():
		return nil
	case g.best == g.convex:
		return g.flat
	}
	return g.convex
}

// fewOfManyRows reports whether a sensor has several rows, and there are too few snapshots for halves of them.
func (g *gaussian) fewOfManyRows() bool { return g.Each > g.P && g.P < evidence.LeastForHalves }

// takeSignals makes the signals, and their fields, those of the fit.
func (g *gaussian) takeSignals() {
	for _, family := range g.fit.Families {
		for _, k := range family.Snapshots {
			moved, norm, along, spread := 0.0, 0.0, 0.0, 0.0
			for i := range g.N {
				j := k*g.N + i
				x, c, lambda, sigma := g.fit.Entry(i, k)
				x, c = g.middle*x, g.middle*g.middle*c
				step := x - g.X[j]
				moved, norm, along, spread = moved+step*step, norm+x*x, along+step*x, spread+c
				g.X[j], g.C[j] = x, c
				g.Lambda[j] = g.middle * lambda
				g.Sigma[j] = max(g.middle*g.middle*sigma, math.SmallestNonzeroFloat64)
			}
			norm = math.Sqrt(norm)
			g.Moved[k], g.Norm[k], g.SumC[k] = math.Sqrt(moved), norm, spread
			g.Along[k] = along / max(norm, math.SmallestNonzeroFloat64)
		}
	}
}

// takeSensors makes what is known of the sensors, and of each reading from the others, that of the fit.
func (g *gaussian) takeSensors() {
	unit := g.middle
	noise := g.fit.NoiseVariances()
	floats.Scale(unit*unit, noise)
	if g.fit.Unequal != nil {
		g.becomeUnequal()
	}
	g.SetNoise(noise)
	g.takeSpread(g.fit.Spread)
	if known := g.offsets(); known != nil {
		g.adoptCalibration(known.WithOffsetSD(g.fit.Offsets.SD))
	}
	variances, err := g.fit.Variances()
	if err != nil { // nothing is known of them but their prior
		variances = make([]float64, g.M)
		for mu := range variances {
			variances[mu] = g.fit.Spread * g.fit.Spread
		}
	}
	if left := g.fit.Levels; left != nil {
		for _, mu := range left.Sensors {
			g.Broken[mu] = 1
		}
		f := g.model.Channel.(channel.Contaminated)
		g.Adopt(Model{g.model.Prior, f.Learned(g.Broken, g.Y, g.Each)})
	}
	g.asRead = nil
	if left := g.fit.Outliers; left != nil {
		g.asRead = slices.Clone(g.Y)
		for _, at := range left.At {
			g.Y[at[0]*g.P+at[1]] = math.NaN()
		}
	}
	for mu := range g.M {
		g.S[mu], g.SVar[mu], g.LogZ[mu] = g.units[mu]*g.fit.S[mu], g.units[mu]*g.units[mu]*variances[mu], 0
		g.takeOffset(mu)
		g.calibration.SetNormal(g.Of(g.Stats, mu), g.S[mu], g.SVar[mu])
		for j := mu * g.Each; j < (mu+1)*g.Each; j++ {
			row, k := j/g.P, j%g.P
			if z, v, is := g.fit.PredictedAlone(row, k); is {
				g.G[j], g.DG[j], g.Omega[j], g.V[j] = 0, 0, unit*z, unit*unit*v
				continue
			}
			own, inverse := g.fit.Predicted(row, k)
			own, inverse = own/unit, inverse/(unit*unit)
			g.G[j], g.DG[j] = own, -inverse
			if math.IsNaN(g.Y[j]) || inverse == 0 {
				g.G[j], g.DG[j], g.Omega[j], g.V[j] = 0, 0, 0, 0
				continue
			}
			g.Omega[j], g.V[j] = g.S[mu]*g.Reading(j)-own/inverse, max(0, 1/inverse-noise[mu])
		}
	}
	g.seen(0, len(g.Y))
}

// outlying is 1 for each reading (M×P) that was left out, and 0 for others; nil where none were.
func (g *gaussian) outlying() []float64 {
	if g.asRead == nil {
		return nil
	}
	each := make([]float64, len(g.Y))
	for _, at := range g.fit.Outliers.At {
		each[at[0]*g.P+at[1]] = 1
	}
	return each
}

// statedScale is what a distribution of s that was given says of the common scale: gains have the mean that they are known to have.
func (g *gaussian) statedScale() (sd float64) {
	return math.Hypot(g.fit.Spread/math.Sqrt(float64(g.M)), channel.CommonScaleSD(g.calibration))
}

// takeSpread makes the distribution of s, where it is learned, a normal one about the middle, of that relative spread.
func (g *gaussian) takeSpread(spread float64) {
	if _, learned := g.calibration.(channel.Learnable); !learned || g.ofGains || spread == 0 {
		return
	}
	if has, ok := g.calibration.(channel.Gains); ok {
		g.adoptCalibration(has.WithGains(channel.NormalAbout(g.middle, spread*g.middle)))
	}
}

// takeOffset makes what is known of an offset that of the fit: o = b/s, where s is a fraction of itself wide.
func (g *gaussian) takeOffset(mu int) {
	if o := g.fit.Offsets; o != nil && o.Var != nil {
		s := g.fit.S[mu] * g.units[mu] / g.middle
		g.O[mu], g.OVar[mu] = o.B[mu]/s, o.Var[mu]/(s*s)
	}
}

// Integrated is the prior with which signals were integrated out: sites in place of a Gaussian prior, variances of entries that follow columns of W or places or are drawn from a mixture, snapshots that are correlated, by one covariance or as lines of a scan, or no signals at all.
type Integrated struct{ Sites, Sizes, Mixed, Correlated, Lines, Silent bool }

// FewLearned reports whether few parameters were learned of the prior: those of one distribution of all entries, or of a law of their variances.
func (i Integrated) FewLearned() bool { return i.Sites || i.Sizes || i.Mixed || i.Lines }

// Integrated is the zero value where signals were not integrated out, or are Gaussian with free variances.
func (s *Solver) Integrated() (of Integrated) {
	if i, is := s.Iteration.(integrating); is {
		of = i.integrated()
	}
	return of
}

// Heard reports whether a sensor has readings that count. Where signals are integrated out its statistics are of none: they are those of its posterior.
func (s *Solver) Heard(mu int) bool {
	if _, is := s.Iteration.(integrating); !is {
		return s.State.Calibration().Readings(s.State.Of(s.State.Stats, mu)) > 0
	}
	y := s.State.Y[mu*s.State.Each : (mu+1)*s.State.Each]
	return slices.ContainsFunc(y, func(v float64) bool { return !math.IsNaN(v) })
}

// integrating is an iteration in which signals are integrated out.
type integrating interface {
	integrated() Integrated
	widenedBy() float64
	offsetScore() (score float64, cut bool)
	apartOf() []int
	noiseMisfit() *evidence.NoiseMisfit
}

func (g *gaussian) integrated() Integrated {
	return Integrated{Sites: g.fit.Sparse != nil, Sizes: g.fit.Sizes != nil, Mixed: g.fit.Drawn(), Correlated: g.fit.Correlated != nil, Lines: g.fit.Correlated.InOrder(), Silent: g.fit.Silent()}
}

func (g *gaussian) widenedBy() float64                     { return g.widened }
func (g *gaussian) offsetScore() (score float64, cut bool) { return g.score, g.cut }
func (g *gaussian) apartOf() []int                         { return g.doubtful }
func (g *gaussian) noiseMisfit() *evidence.NoiseMisfit     { return g.misfit }

// WidenedByHalves is the factor of all variances that halves of the snapshots asked for, or what all of them have in common (see [Solver.CommonMisfit]), where signals were integrated out; 0
// elsewhere.
func (s *Solver) WidenedByHalves() float64 {
	if i, is := s.Iteration.(integrating); is {
		return i.widenedBy()
	}
	return 0
}

// Independent is how many independent snapshots know as much of variances as those that were read, where real signals were integrated out; 0 elsewhere.
func (s *Solver) Independent() float64 {
	if g := s.gaussian(); g != nil {
		return g.fit.Independent()
	}
	return 0
}

// Doubtful are signals of which two sparse fits of the same readings are far apart, where signals were integrated out.
func (s *Solver) Doubtful() []int {
	if i, is := s.Iteration.(integrating); is {
		return i.apartOf()
	}
	return nil
}

// OffsetScore is by how many standard deviations the evidence rises with offsets of sensors, where the model has none and signals were integrated out, and whether the run was cut short for that; 0 elsewhere.
func (s *Solver) OffsetScore() (score float64, cut bool) {
	if i, is := s.Iteration.(integrating); is {
		return i.offsetScore()
	}
	return 0, false
}

// Report implements [Part]: error bars are those with Γ integrated out, and wider where halves of the snapshots disagree.
func (g *gaussian) Report(*Solver) {
	if g.best == nil && g.steps == 0 || g.cut {
		return
	}
	g.ask()
	ratio, err := g.fit.Halves(g.ctx)
	if err == nil && ratio > 0 {
		g.widened = ratio
	}
	if variances, err := g.fit.Variances(); err == nil {
		g.fit.Integrate(variances)
	}
	g.takeSignals()
	if learner := prior.LearnerOf(g.model.Prior); learner != nil {
		for range refits {
			learner, _ = learner.Refit(g.Lambda, g.Sigma, 1)
		}
		g.Adopt(Model{learner, g.model.Channel})
	}
	g.doubt()
	for j, sigma := range g.Sigma {
		g.C[j] *= max(1, g.widened)
		if math.IsInf(sigma, 1) { // no reading sees it
			p := prior.At(g.model.Prior, j%g.N)
			g.X[j], g.C[j] = p.Mean(), p.Variance()
		}
	}
	widest := 0.0
	for mu, unit := range g.units {
		g.SVar[mu] *= max(1, g.widened)
		widest = max(widest, g.SVar[mu]/(unit*unit))
	}
	if widest > g.fit.Spread*g.fit.Spread { // no sensor is known less than beforehand
		g.takeSpread(math.Sqrt(widest))
	}
	for mu := range g.M {
		g.calibration.SetNormal(g.Of(g.Stats, mu), g.S[mu], g.SVar[mu])
	}
}

// ask sets by how many standard deviations the evidence rises with offsets. Of what has no precision nothing is said.
func (g *gaussian) ask() {
	if g.Offsets() || g.Each < leastForOffsets {
		return
	}
	g.score, _ = g.fit.OffsetScore()
	if g.fit.Correlated != nil { // offsets are the same in all snapshots, and a covariance of these takes them for signal
		independent, _ := g.gaussian.OffsetScore()
		g.score = max(g.score, independent)
	}
}

// doubt adds to variances what the rival is apart, and what another prior of gains would have.
func (g *gaussian) doubt() {
	if g.unsmooth.gains != nil {
		for mu, v := range g.unsmooth.gains {
			g.SVar[mu] += g.units[mu] * g.units[mu] * v
		}
		for k := range g.P {
			for i := range g.N {
				g.C[k*g.N+i] += g.middle * g.middle * g.unsmooth.signals.At(i, k)
			}
		}
	}
	for _, other := range []*evidence.Fit{g.rival(), g.otherPrior(), g.otherPoint()} {
		if other != nil {
			g.addDifferences(other)
		}
	}
}

// addDifferences adds to variances what another fit is apart.
func (g *gaussian) addDifferences(other *evidence.Fit) {
	for k := range g.P {
		off, far := g.fit.Differences(other, k)
		if !far {
			continue
		}
		g.doubtful = append(g.doubtful, k)
		for i, v := range off {
			g.C[k*g.N+i] += g.middle * g.middle * v
		}
	}
	known := g.fit.Spread * g.fit.Spread // beforehand
	for mu, v := range g.fit.DifferencesOfGains(other) {
		square := g.units[mu] * g.units[mu]
		g.SVar[mu] = min(g.SVar[mu]+square*v, max(g.SVar[mu], square*known))
	}
}

// LogEvidence implements [Iteration], with gains integrated out to second order about their maximum. It is the density of readings as they are, and not as they are corrected by what is known of sensors.
func (g *gaussian) LogEvidence() float64 {
	value, err := g.fit.LogEvidence()
	if err != nil {
		return math.NaN()
	}
	value -= g.fit.OfOutliers()
	for mu, unit := range g.units {
		value += g.present(mu) * math.Log(unit/g.middle)
	}
	return value
}

// scaleSums implements [Iteration]: the evidence does not change along the scale.
func (g *gaussian) scaleSums(quadratic, volume float64) (q, v float64) { return quadratic, volume }

// MeanV implements [Iteration].
func (g *gaussian) MeanV() (mean, off float64) { return sum(g.V) / float64(len(g.V)), 0 }
