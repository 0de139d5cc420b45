package online

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/prior"
)

// Model is what a stream has taught of its signals and its noise.
type Model struct {
	Values   []float64 // parameters of the signals' prior (see [prior.Parametric]); nil where it has none
	NoiseVar float64   // of complex readings that of either part

	NoiseInformation float64 // inverse variance of NoiseVar, with forgetting; 0 when it is not learned

	// Sensors is what is known of the noise of every sensor; nil where one noise is taken for all, and before the
	// third sample. When it says enough, NoiseVar is their harmonic mean.
	Sensors *sensorNoise
}

// GaussBernoulli is the signals' prior, where it is of that family.
func (m *Model) GaussBernoulli() (g prior.GaussBernoulli, ok bool) {
	if len(m.Values) != gaussValues {
		return g, false
	}
	return prior.GaussBernoulli{Density: m.Values[0], SignalMean: m.Values[1], SignalVar: m.Values[2]}, true
}

// ComplexGaussBernoulli is the prior of complex signals, where it is of that family.
func (m *Model) ComplexGaussBernoulli() (g prior.ComplexGaussBernoulli, ok bool) {
	if len(m.Values) != len(g.Values()) {
		return g, false
	}
	return prior.ComplexGaussBernoulli{Density: m.Values[0], SignalVar: m.Values[1]}, true
}

// Power is the mean square of an entry of the signals, where the prior is of that
// family.
func (m *Model) Power() (power float64, ok bool) {
	if g, ok := m.ComplexGaussBernoulli(); ok {
		return g.Density * g.SignalVar, true
	}
	g, ok := m.GaussBernoulli()
	return g.Variance() + g.Mean()*g.Mean(), ok
}

// Validate reports what is no model, whatever the prior.
func (m *Model) Validate() error {
	if !amp.AllFinite(m.Values) {
		return fmt.Errorf("the prior's parameters must be finite, found %v", m.Values)
	}
	if g, ok := m.GaussBernoulli(); ok {
		if err := g.Validate(); err != nil {
			return err
		}
	}
	if !(m.NoiseVar >= 0) || math.IsInf(m.NoiseVar, 1) {
		return fmt.Errorf("noise variance must be finite and not negative, found %g", m.NoiseVar)
	}
	if !(m.NoiseInformation >= 0) || math.IsInf(m.NoiseInformation, 1) {
		return fmt.Errorf("information on the noise must be finite and not negative, found %g", m.NoiseInformation)
	}
	return nil
}

func (m *Model) clone() *Model {
	if m == nil {
		return nil
	}
	c := *m
	c.Values, c.Sensors = slices.Clone(m.Values), m.Sensors.clone()
	return &c
}

// learner learns the model along a stream.
type learner struct {
	*amp.Learning
	start Model // NaN where the first sample says where to start
}

// newLearner returns what learns the prior's parameters and the noise, or nil where
// nothing is to be learned, and the model without NaN.
func newLearner(m amp.Model, opt *Options) (*learner, amp.Model, error) {
	learned := prior.LearnerOf(m.Prior) != nil
	if !learned && !opt.LearnNoise {
		return nil, m, nil
	}
	l := &learner{}
	noisy, ok := m.Channel.(channel.Noisy)
	if opt.LearnNoise && !ok {
		return nil, m, fmt.Errorf("the noise variance of a %T cannot be learned: it is no channel.Noisy", m.Channel)
	}
	if ok {
		l.start.NoiseVar = noisy.Noise()
		if opt.LearnNoise && math.IsNaN(l.start.NoiseVar) {
			m.Channel = noisy.WithNoise(1)
		}
	}
	if p, ok := m.Prior.(prior.Parametric); ok {
		l.start.Values = p.Values()
		if learned && !amp.AllFinite(l.start.Values) {
			something := slices.Clone(l.start.Values)
			for i, v := range something {
				if math.IsNaN(v) {
					something[i] = 1
				}
			}
			to, err := p.WithValues(something)
			if err != nil {
				return nil, m, fmt.Errorf("the signal prior: %w", err)
			}
			m.Prior = to
		}
	}
	return l, m, nil
}

// attach finds the part that learns.
func (l *learner) attach(s *amp.Solver) {
	part, ok := amp.PartOf[*amp.Learning](s)
	if !ok {
		panic("calamp: a stream that learns without its part")
	}
	l.Learning = part
}

// startModel takes up the model where the samples learned from have brought it.
// The k-th of them moves the prior by the fraction 2/(k+1) of the way to what it says
// itself: an average in which what the first ones got wrong fades. With
// forgetting it is no less than what is forgotten.
func (c *Calibrator) startModel() error {
	l := c.learner
	if l == nil {
		return nil
	}
	l.PastInformation = 0
	m := c.state.Model
	if m != nil {
		l.PastInformation = c.opt.nominalRetention() * m.NoiseInformation
	} else {
		var err error
		if m, err = l.guess(c, c.present()); err != nil {
			return err
		}
	}
	if err := c.setModel(m); err != nil {
		return err
	}
	if c.opt.Freeze && c.followed != nil {
		c.sample.Adopt(amp.Model{Prior: c.followed, Channel: c.sample.Model().Channel})
	}
	if c.newScene {
		of := c.sample.Model()
		c.sample.Adopt(amp.Model{Prior: of.Prior.(following).Anew(), Channel: of.Channel})
	}
	c.startSensorNoise(m)
	a := c.state.Alert
	l.Off = c.opt.Freeze || a.Left > 0 && !a.Model // it is the gains that have changed
	l.Information = 0
	l.Step = max(2/float64(c.state.Samples+2), 1-c.opt.nominalRetention())
	if a.Left > 0 {
		l.Step = max(l.Step, 2/float64(alertSamples+2-a.Left))
	}
	return nil
}

// present is the sample being absorbed, M×columns, without the sensors' offsets as far as they are known.
func (c *Calibrator) present() *mat.Dense {
	y := mat.NewDense(c.m*c.rows, c.parts, slices.Clone(c.y))
	if offsets := c.offsets(); offsets != nil && c.state.Samples > 0 {
		offsets.Offsets(c.means, c.variances, c.state.Stats)
		for j := range c.y {
			y.Set(j, 0, c.y[j]-c.means[j/c.rows])
		}
	}
	return y
}

// guess is where learning starts: what was given, or the moments of the samples y.
func (l *learner) guess(c *Calibrator, y *mat.Dense) (*Model, error) {
	m := l.start.clone()
	if known, ok := c.sample.Calibration().(channel.ComplexPrior); ok {
		signal, _ := m.ComplexGaussBernoulli()
		_, persistent := c.sample.Model().Prior.(prior.ComplexPersistent)
		if persistent {
			signal = prior.ComplexGaussBernoulli{Density: m.Values[0], SignalVar: m.Values[1]}
		}
		signal, gain, err := calamp.GuessComplex(c.sample.W, y, signal, channel.ComplexGain{Prior: known, NoiseVar: complexColumns * m.NoiseVar})
		switch {
		case persistent:
			m.Values = prior.Persisting(c.n, signal).(prior.Parametric).Values()
		case len(m.Values) > 0:
			m.Values = signal.Values()
		}
		m.NoiseVar = gain.Noise()
		return m, err
	}
	lo, hi := c.sample.Calibration().Range()
	signal, family := m.GaussBernoulli()
	groups, grouped := c.sample.Model().Prior.(prior.Groups)
	follows, persistent := c.sample.Model().Prior.(prior.Persistent)
	if persistent {
		groups, m.Values = follows.Kinds, m.Values[:len(follows.Kinds.Values())]
	}
	network, deep := prior.NetworkOf(c.sample.Model().Prior)
	grouped, deep = grouped && groups.Learns() || persistent, deep && network.Learns()
	switch {
	case deep: // whose latents have the parameters
		signal = prior.GaussBernoulli{Density: math.NaN(), SignalMean: math.NaN(), SignalVar: math.NaN()}
	case grouped:
		signal = groups.Average(m.Values)
	case !family:
		signal = prior.Gaussian(0, 1) // plays no part in the noise
	}
	signal, gain, err := calamp.Guess(c.sample.W, y, signal, channel.Gain{Prior: channel.Uniform(lo, hi), NoiseVar: m.NoiseVar})
	switch {
	case grouped:
		for j, v := range m.Values {
			if math.IsNaN(v) {
				m.Values[j] = signal.Values()[j%len(signal.Values())]
			}
		}
	case deep && err == nil:
		m.Values, err = latentsOf(network, m.Values, signal)
	case family:
		m.Values = signal.Values()
	}
	if persistent && err == nil {
		var kinds prior.Prior
		if kinds, err = groups.WithValues(m.Values); err == nil {
			m.Values = prior.Persisting(c.n, kinds).(prior.Parametric).Values()
		}
	}
	m.NoiseVar = gain.NoiseVar
	return m, err
}

// latentsOf are the parameters of latents where those of signals that come out of them were guessed: of the same density, of mean zero, and of the
// variance that gives signals of this mean square.
func latentsOf(n prior.Network, given []float64, signal prior.GaussBernoulli) ([]float64, error) {
	values, open := slices.Clone(given), false
	for j, v := range values { // of each group
		if math.IsNaN(v) {
			values[j], open = [...]float64{signal.Density, 0, 1}[j%3], true
		}
	}
	if !open {
		return values, nil
	}
	p, err := n.WithValues(values)
	if err != nil {
		return nil, err
	}
	balanced := p.(prior.Learner).Balanced(prior.Square(signal)).Values()
	for j, v := range given {
		if !math.IsNaN(v) {
			balanced[j] = v
		}
	}
	return balanced, nil
}

func (c *solvers) setModel(m *Model) error {
	to := c.sample.Model()
	if p, ok := to.Prior.(prior.Parametric); ok && len(m.Values) > 0 {
		var err error
		if to.Prior, err = p.WithValues(m.Values); err != nil {
			return err
		}
	}
	if noisy, ok := to.Channel.(channel.Noisy); ok {
		to.Channel = noisy.WithNoise(m.NoiseVar)
	}
	c.sample.Adopt(to)
	return nil
}

// following is a prior of which each sample says what the next one has: [prior.Persistent], or [prior.ComplexPersistent].
type following interface {
	prior.Parametric
	Next(lambda, sigma []float64, step, weight float64) prior.Prior
	Passed() prior.Prior
	Anew() prior.Prior
	After(support []float64) prior.Prior
	Drawn() prior.Prior
	Begun(drawn prior.Prior) prior.Prior
}

// newSupport is how many times more a sample that resembles those before it (see [Calibrator.weigh]) tells of the support than of gains. The entries that W leaves in doubt are in doubt in each sample of a scene, by the same
// errors; counted as new each time, of a scene that does not change 44 % of 95 % intervals of x cover with 60 sensors, of 69 % one by one. Counted as the gains are, a support is learned too late where amplitudes are correlated by
// .9 and have new entries at every 40th sample: errors of s are .042, for .012 with all of it and .013 with three times as much, with which 75 % cover of the scene that does not change, as one by one (docs/log/joint.md).
const newSupport = 3

// drawn is the prior of an entry whatever the samples before it are.
func drawn(p prior.Prior) prior.Prior {
	if p, is := p.(following); is {
		return p.Drawn()
	}
	return p
}

// learned is the model as the present sample has moved it; nil where none is learned.
func (c *Calibrator) learned() *Model {
	if c.learner == nil {
		return nil
	}
	now := c.sample.Model()
	if p, ok := now.Prior.(following); ok {
		now.Prior = p.Next(c.sample.Lambda, c.sample.Sigma, c.learner.Step, min(1, newSupport*c.weight))
	}
	m := modelOf(now)
	if c.learner.Noise {
		m.NoiseInformation = c.learner.PastInformation + c.weight*c.learner.Information
	}
	if c.state.Model.unequal() {
		m.NoiseVar, m.NoiseInformation = c.state.Model.NoiseVar, c.learner.PastInformation
	}
	c.learnSensorNoise(m)
	return m
}

// carryOn takes the support on to the next sample where nothing was learned of this one: where nothing is to be learned, from what it shows; of one that was refused nothing is known.
func (c *Calibrator) carryOn(reject Reject) {
	now, ok := c.sample.Model().Prior.(following)
	if !ok || c.learner == nil || c.state.Model == nil {
		return
	}
	if reject == Frozen {
		c.followed = now.Next(c.sample.Lambda, c.sample.Sigma, 0, 1)
		if c.novelReadings(c.scene); normalise(c.scene) {
			c.latest = []scene{{Pattern: slices.Clone(c.scene), Samples: 1}}
		}
		return
	}
	before := c.followed // what the sample began with
	if before == nil {
		var err error
		if before, err = now.WithValues(c.state.Model.Values); err != nil {
			panic("calamp: a learned model that is none: " + err.Error())
		}
	}
	if next := before.(following).Passed(); c.opt.Freeze {
		c.followed = next
	} else {
		c.state.Model.Values = next.(following).Values()
	}
}
