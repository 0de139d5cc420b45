package online

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/operator"
)

// Parameters of every sensor along a stream: statistics of s and θ add up over samples (see [channel.DisplacedPrior]), and the spread of θ over
// the sensors is learned from what all samples said of them.

// moves is what the past says of the parameters of all sensors: means (M×J), covariances (M×J×J), and covariances with s (M×J).
type moves struct {
	theta, cov, withS []float64

	first []float64 // J, spreads where nothing was learned yet
}

func newMoves(m, js int) moves {
	return moves{theta: make([]float64, m*js), cov: make([]float64, m*js*js), withS: make([]float64, m*js)}
}

// moved is W, whose rows move where sensors have parameters.
func (o *Options) moved(w operator.Operator) (operator.Operator, error) {
	if len(o.SensorDerivatives) == 0 {
		return w, nil
	}
	if o.SensorSpread != nil && len(o.SensorSpread) != len(o.SensorDerivatives) {
		return nil, fmt.Errorf("%d spreads of parameters of sensors for %d derivatives, expected one for each", len(o.SensorSpread), len(o.SensorDerivatives))
	}
	return calamp.MovedMatrix(w, o.SensorDerivatives)
}

// displaced is the part of the solver that moves rows; nil where none do.
func (c *solvers) displaced() *channel.Displacements {
	if len(c.opt.SensorDerivatives) == 0 {
		return nil
	}
	part, _ := amp.PartOf[*amp.Displacements](c.solver)
	return part.Known
}

// inheritSpread begins a sample with the spreads of the samples before.
func (c *Calibrator) inheritSpread() {
	d := c.displaced()
	if d == nil {
		return
	}
	copy(d.Spread, c.moves.first)
	copy(d.Spread, c.state.Spread)
}

// spreadNow are the spreads as the sample has moved them; nil where sensors have no parameters.
func (c *solvers) spreadNow() []float64 {
	if d := c.displaced(); d != nil {
		return slices.Clone(d.Spread)
	}
	return nil
}

// predictMoves computes what the past, whose statistics are in c.stats, says of θ, after what it says of s.
func (c *Calibrator) predictMoves() {
	if known, ok := c.sample.Calibration().(channel.Parametric); ok {
		known.Parameters(c.moves.theta, c.moves.cov, c.moves.withS, c.pastS, c.pastSVar, c.stats)
	}
}

// ofMoves adds to the innovation of a sensor's reading, s y - ω with the row at the present θ, and to its variance, what the past says of θ:
//
//	r = s y - ω - Σ_j (θ_j - θ_j at present) ω_j.
func (c *Calibrator) ofMoves(mu int, r, variance float64) (float64, float64) {
	d := c.displaced()
	if d == nil {
		return r, variance
	}
	js := len(d.Spread)
	along := d.Along[mu*js : (mu+1)*js]
	for j, w := range along {
		r -= (c.moves.theta[mu*js+j] - d.At[mu*js+j]) * w
		variance += w * (floats.Dot(c.moves.cov[(mu*js+j)*js:(mu*js+j+1)*js], along) - 2*c.y[mu]*c.moves.withS[mu*js+j])
	}
	return r, variance
}

// ThetaSD (M×J) are the posterior standard deviations of the parameters of the sensors; nil where there are none.
func (p *Posterior) ThetaSD() *mat.Dense {
	if p.ThetaVar == nil {
		return nil
	}
	sd := mat.DenseCopyOf(p.ThetaVar)
	sd.Apply(func(_, _ int, v float64) float64 { return math.Sqrt(v) }, sd)
	return sd
}

// placeMoves reports what has been learned of θ.
func (c *Calibrator) placeMoves(p *Posterior) {
	known, ok := c.sample.Calibration().(channel.DisplacedPrior)
	if !ok {
		return
	}
	spread := slices.Clone(known.By.Spread)
	if c.state.Spread != nil {
		copy(spread, c.state.Spread)
	}
	known.By = &channel.Displacements{Spread: spread}
	p.Calibration.Prior = known
	js := len(spread)
	m, s, sVar := newMoves(c.m, js), make([]float64, c.m), make([]float64, c.m)
	known.Posteriors(s, sVar, c.state.Stats) // what drifts of gains blend says nothing of θ
	known.Parameters(m.theta, m.cov, m.withS, s, sVar, c.state.Stats)
	p.Spread = slices.Clone(spread)
	p.Theta, p.ThetaVar = mat.NewDense(c.m, js, m.theta), mat.NewDense(c.m, js, nil)
	for i := range m.theta {
		p.ThetaVar.Set(i/js, i%js, m.cov[i*js+i%js])
	}
}

// watchBent takes in whether residuals of a sample that was learned from grow with parameters of sensors. What one sample says is little, and the same of all that look similar.
func (c *Calibrator) watchBent() {
	b := c.solver.Bent()
	c.bent.Score += c.weight * b.Score
	c.bent.Information += c.weight * b.Information
}
