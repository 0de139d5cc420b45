package online

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// Samples that resemble each other have errors in common, and each of them counts for little (see weigh). What they have in common can be learned, and then they tell of the gains what
// separates it from these: so they are kept, and solved once more together, as joint rows, from what was known before the first of them. Where that answer is
// trusted it takes the place of what they taught one by one; elsewhere nothing has happened.

// Block are such samples, and what was known before them.
type Block struct {
	Samples [][]float64 // as in [State.Warm]; without readings where a sample taught nothing

	Stats             []float64
	Quadratic, Volume float64
	Signals           amp.SignalSums
	Scenes            []scene
	Scale             float64 // product of the scale steps since
	Learned           uint64  // samples learned from before
	Novel             float64 // sum over the samples of the part of each that scenes before the block do not have
}

func (b *Block) clone() *Block {
	if b == nil {
		return nil
	}
	k := *b
	k.Samples, k.Stats, k.Scenes = cloneAll(b.Samples), slices.Clone(b.Stats), nil
	for i := range b.Scenes {
		k.Scenes = append(k.Scenes, b.Scenes[i].clone())
	}
	return &k
}

func (b *Block) validate(s *State) error {
	if b == nil {
		return nil
	}
	if len(b.Samples) == 0 || len(b.Samples) > mostWarmUp || len(s.Warm) > 0 || len(b.Stats) != len(s.Stats) || !amp.AllFinite(b.Stats) || b.Learned > s.Samples || len(b.Scenes) > mostScenes ||
		!amp.AllFinite([]float64{b.Quadratic, b.Volume, b.Signals.Active, b.Signals.Pull, b.Novel}) || !(b.Scale > 0) || math.IsInf(b.Scale, 1) {
		return fmt.Errorf("state: no block of %d samples", len(b.Samples))
	}
	for i := range b.Scenes {
		if err := b.Scenes[i].validate(s.Sensors() * s.columns()); err != nil {
			return err
		}
	}
	return nil
}

// AutoBlock, for [Options.Block], ends a block where a sample looks like none before it, or after autoBlock samples: as many as a warm-up of one scene takes to leave a half of its error
// (docs/log/validation.md).
const (
	AutoBlock = -1
	autoBlock = 30
)

// checkBlock reports options that exclude blocks.
func checkBlock(o *Options, p prior.Prior, g channel.Calibrating) error {
	_, offsets := channel.CalibrationOf(g).(channel.Offsetting)
	switch {
	case o.Block < AutoBlock || o.Block > mostWarmUp:
		return fmt.Errorf("a block has at most %d samples, found %d", mostWarmUp, o.Block)
	case o.Block == 0 || o.Block == 1:
		return nil
	case o.Commit != Sane || o.Memory > 0 || o.Still:
		return errors.New("blocks are for streams that look for drifts, with commit sane: leave out the memory")
	case offsets:
		return errors.New("blocks are for sensors without offsets")
	case len(o.SensorDerivatives) > 0:
		return errors.New("parameters of sensors are learned from single samples: leave out the block")
	case o.LearnSensorNoise:
		return errors.New("blocks take one noise for all sensors, or one that is given")
	case !amp.HasSlab(drawn(p)):
		return fmt.Errorf("blocks need a Gauss–Bernoulli prior, and a %T is none", p)
	}
	return nil
}

// Block is [Options.Block] as it is followed: 1 where samples are solved one by one.
func (c *instrument) Block() int { return cmp.Or(c.opt.Block, 1) }

func (c *instrument) blocks() bool { return c.blockSize() > 1 }

func (c *instrument) blockSize() int {
	if c.opt.Block == AutoBlock {
		return autoBlock
	}
	return c.opt.Block
}

// beginBlock keeps what is known before the sample, where that begins a block.
func (c *Calibrator) beginBlock() {
	s := &c.state
	if !c.blocks() || s.Block != nil || s.Drift.Since > 0 || s.Drift.Parts[0] < 0.5 || s.Alert.Left > 0 || c.opt.Freeze {
		return
	}
	b := &Block{Stats: slices.Clone(s.Stats), Quadratic: s.Quadratic, Volume: s.Volume, Signals: s.Signals, Scale: 1, Learned: s.Samples}
	for i := range s.Scenes {
		b.Scenes = append(b.Scenes, s.Scenes[i].clone())
	}
	s.Block = b
}

// moveBlock takes a scale step into account, and gives a block up where what came in it was more than signals.
func (c *Calibrator) moveBlock(scale float64) {
	s := &c.state
	if s.Block == nil {
		return
	}
	s.Block.Scale *= scale
	if s.Drift.Since > 0 || !slices.Equal(c.bank.before, s.Flag) {
		s.Block = nil
	}
}

// lengthenBlock adds the sample, which was absorbed, to its block, and solves that where it is complete. A sample that by itself has no solution may have one with the others.
func (c *Calibrator) lengthenBlock(ctx context.Context) (*Together, error) {
	b := c.state.Block
	if b == nil {
		return nil, nil
	}
	if c.change != nil {
		c.state.Block = nil
		return nil, nil
	}
	unsolved := c.estimate.Reject.contradicts()
	if unsolved {
		b.Novel += 1
		if c.pattern() {
			b.Novel += c.novelTo(b.Scenes) - 1
		}
	}
	y := make([]float64, len(c.y))
	for mu := range c.m {
		for j, v := range c.row(c.y, mu) {
			if !c.estimate.Committed && !unsolved || !c.uses(mu) {
				v = math.NaN()
			}
			y[mu*c.columns+j] = v
		}
	}
	b.Samples = append(b.Samples, slices.Concat(y, c.matrix))
	if len(b.Samples) < c.blockSize() {
		return nil, nil
	}
	return c.endBlock(ctx, 0)
}

// pattern makes c.scene that of the sample with gains as they are known before it, up to a common phase; false where it has none.
func (c *Calibrator) pattern() bool {
	if c.used() == 0 {
		return false
	}
	c.predict(unmoved)
	clear(c.scene)
	for j := range len(c.y) / c.parts {
		y, mu := c.number(c.y, j), j/c.rows
		switch {
		case !c.uses(mu) || cmplx.IsNaN(y):
		case c.parts == 1:
			c.scene[j] = c.pastS[mu] * real(y)
		default:
			z := c.pastMean[mu] * y
			c.scene[complexColumns*j], c.scene[complexColumns*j+1] = real(z), imag(z)
		}
	}
	return normalise(c.scene)
}

// resembles reports whether the sample, which was taken, is of a scene before it, or says nothing of that.
func (c *Calibrator) resembles() bool {
	scenes := c.state.Scenes
	if c.latest != nil {
		scenes = c.latest
	}
	return len(scenes) == 0 || !c.pattern() || c.novelTo(scenes) < 1-sameScene
}

// endAtChange solves a block to which the sample, which was taken, does not belong: it resembles none before it.
func (c *Calibrator) endAtChange(ctx context.Context) (*Together, error) {
	if c.state.Block == nil || c.opt.Block != AutoBlock || c.resembles() {
		return nil, nil
	}
	together, err := c.endBlock(ctx, 1)
	c.begin()
	return together, err
}

// Finish solves the samples of a block that is not complete, where the stream ends. It returns nil where there was none, or nothing was learned from it that
// the samples have not taught one by one.
func (c *Calibrator) Finish(ctx context.Context) (*Together, error) {
	if c.state.Block == nil || c.opt.Freeze {
		return nil, nil
	}
	return c.endBlock(ctx, 0)
}

// endBlock solves the samples of the block, after which so many others came, and learns from them in place of what they taught one by one.
func (c *Calibrator) endBlock(ctx context.Context, after int) (*Together, error) {
	s, block := &c.state, c.state.Block
	s.Block = nil
	var kept [][]float64
	var ago []int
	for k, y := range block.Samples {
		if slices.ContainsFunc(y[:c.m*c.columns], func(v float64) bool { return !math.IsNaN(v) }) {
			kept, ago = append(kept, y), append(ago, after+len(block.Samples)-1-k)
		}
	}
	if len(kept) < leastBlock {
		return nil, nil
	}
	b, err := c.blockSolver(kept, block)
	if err != nil {
		return nil, fmt.Errorf("a block of %d samples: %w", len(kept), err)
	}
	outcome, err := b.Run(ctx, c.opt.MaxIter)
	if own, there := b.OwnRows(); err != nil || outcome != amp.Converged || b.OneScene() != nil || !(b.JointGain() > 0) || float64(own) > mostOwn*there || unrecovered(b.State) || !c.allExplained(b.State) {
		return nil, err
	}
	unsolved := uint64(len(kept)) - (s.Samples - block.Learned)
	c.learnBlock(b, block, min(1, block.Novel/float64(len(kept))))
	s.Samples += unsolved
	n, p := c.n, b.State.P
	t := &Together{X: mat.NewDense(n, p, nil), XVar: mat.NewDense(n, p, nil), Ago: ago, Unsolved: int(unsolved)}
	for k := range p {
		t.X.SetCol(k, b.State.X[k*n:(k+1)*n])
		t.XVar.SetCol(k, b.State.C[k*n:(k+1)*n])
	}
	if c.anchor.Set() {
		if held := c.anchorNow(); held.Holds() {
			t.rescale(held.Factor)
		}
	}
	if c.free() {
		t.turn(-c.commonPhase(c.meanOf))
	}
	return t, nil
}

// allExplained reports whether what was known of the gains before explains each sample of a block, as it has to explain one by itself (see [Sanity]).
func (c *Calibrator) allExplained(e *amp.State) bool {
	if c.parts > 1 {
		return true // phases have turned meanwhile
	}
	known := e.Calibration()
	known.Posteriors(c.means, c.variances, e.Past.Stats)
	for k := range e.P {
		total, count := 0.0, 0.0
		for j := k; j < len(e.Y); j += e.P {
			if y, mu := e.Y[j], j/e.P/c.rows; !math.IsNaN(y) {
				r := c.means[mu]*y - e.Omega[j]
				total += r * r / (e.V[j] + e.Noise(j) + c.variances[mu]*y*y)
				count++
			}
		}
		if total > c.opt.Sanity.ChiSquare*(count+4*math.Sqrt(2*count)) {
			return false
		}
	}
	return true
}

const (
	// leastBlock is the least number of samples that are solved together.
	leastBlock = 4

	// mostOwn is the part of the entries that may be there in some of the samples only, as in [calamp.Solve].
	mostOwn = 0.1
)

// blockSolver begins where the block began, with noise as it is known by now.
func (c *Calibrator) blockSolver(kept [][]float64, block *Block) (*amp.Solver, error) {
	w, err := c.matrixTogether(kept)
	if err != nil {
		return nil, err
	}
	y, model := c.readingsOf(kept), c.sample.Model()
	model.Prior = drawn(model.Prior)
	if c.learner != nil && c.state.Model == nil {
		if model, err = c.startTogether(y); err != nil {
			return nil, err
		}
	}
	b, err := c.rowsSolver(w, model, y)
	if err != nil {
		return nil, err
	}
	e := b.State
	copy(e.Past.Stats, block.Stats)
	for mu, flag := range c.state.Flag {
		if flag != Healthy {
			clear(e.Of(e.Past.Stats, mu))
		}
	}
	e.Past.Quadratic, e.Past.Volume = block.Quadratic, block.Volume
	return b, nil
}

// rowsSolver solves samples with the readings y as joint rows.
func (c *Calibrator) rowsSolver(w operator.Operator, model amp.Model, y *mat.Dense) (*amp.Solver, error) {
	settings := c.opt.Settings
	settings.SPrior = solver.UniformS // the range is tested after every sample
	b, _, _, err := amp.NewSolver(amp.Problem{
		W: w, Model: model, P: y.RawMatrix().Cols, Shared: c.shared(), Y: y.RawMatrix().Data,
		Noise: c.opt.NoiseVar, LearnNoise: c.opt.LearnNoise, Joint: solver.JointOn,
	}, settings)
	return b, err
}

// checkRows reports what excludes joint rows, of which some readings may be missing: a stream should not end with its first block.
func (c *Calibrator) checkRows() error {
	if c.choice != nil {
		return errors.New("the samples of a block have one W: leave out the block, or the matrices of samples")
	}
	ones := slices.Repeat([]float64{1}, c.m*c.columns)
	y, model := c.readingsOf(slices.Repeat([][]float64{ones}, leastBlock)), c.sample.Model()
	for part := range c.parts {
		y.Set(0, part, math.NaN())
	}
	model.Prior = drawn(model.Prior)
	_, err := c.rowsSolver(c.sample.W, model, y)
	return err
}

// learnBlock makes what the samples taught together, with a weight for what they have in common with scenes before them, the past in place of what they taught one by one.
func (c *Calibrator) learnBlock(b *amp.Solver, block *Block, novel float64) {
	s, e, known := &c.state, b.State, c.sample.Calibration()
	weight := novel / (2 - novel)
	by := b.Scale / block.Scale
	quadratic, volume := b.Sums()
	s.Quadratic, s.Volume = e.Past.Quadratic+weight*quadratic, e.Past.Volume+weight*volume
	ratios := make([]float64, len(walks))
	for mu, flag := range s.Flag {
		if flag != Healthy {
			continue
		}
		own, past := c.statsOf(mu), e.Of(e.Past.Stats, mu)
		was := known.Information(own)
		for l, stats := range s.Drift.Stats {
			ratios[l] = known.Information(e.Of(stats, mu)) / was
		}
		copy(own, e.Of(e.Stats, mu))
		if weight < 1 {
			channel.Remove(known, own, past)
			known.Carry(own, weight, 1)
			channel.Merge(known, own, past)
		}
		for l, stats := range s.Drift.Stats {
			copy(e.Of(stats, mu), own)
			if r := ratios[l]; l > 0 && r < 1 {
				known.Carry(e.Of(stats, mu), r, 1)
			}
		}
	}
	if s.Drift != nil {
		s.Drift.Quadratic, s.Drift.Volume = s.Quadratic, s.Volume
	}
	s.Signals.Pull *= by * by
	s.Forks = nil
	if c.learner != nil {
		if s.Model == nil {
			s.Model = c.modelTogether(b)
		} else {
			c.rescaleModel(s.Model, by)
			c.takeNoise(b, block)
		}
		c.takeSupport(b)
		if err := c.setModel(s.Model); err != nil {
			panic("calamp: a rescaled model that is none: " + err.Error())
		}
	}
	if s.Range != nil {
		s.Range.Prior = s.Range.Prior.Times(by)
		c.refitRange()
	}
}

// takeNoise makes the noise variance that of the block, as far as samples are of it. Samples whose signals were not found take them for noise: learned from seven of these, of 60 sensors, it was a hundred times what it is, and signals that
// were found by the support of the block looked like noise in the 112 samples that followed. The number of readings 2IΔ² for which it counts stays what it is.
func (c *Calibrator) takeNoise(b *amp.Solver, block *Block) {
	m, samples := c.state.Model, float64(len(block.Samples))
	if !c.opt.LearnNoise || !(m.NoiseVar > 0) {
		return
	}
	to := m.NoiseVar + samples/(float64(block.Learned)+samples)*(channel.NoiseOf(b.State.Model().Channel)-m.NoiseVar)
	if ratio := m.NoiseVar / to; to > 0 && !math.IsInf(ratio*ratio, 1) {
		m.NoiseVar, m.NoiseInformation = to, m.NoiseInformation*ratio*ratio
	}
}

// takeSupport makes the support of the block, which is that of its last sample, what the next one begins with. What says how long entries stay are samples that are solved one by one.
func (c *Calibrator) takeSupport(b *amp.Solver) {
	p, is := c.sample.Model().Prior.(following)
	if !is {
		return
	}
	m := c.state.Model
	was, err := p.WithValues(m.Values)
	if err != nil {
		panic("calamp: a learned model that is none: " + err.Error())
	}
	_, support := b.Joint()
	m.Values = was.(following).After(support).(following).Values()
}
