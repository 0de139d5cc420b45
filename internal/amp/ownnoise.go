package amp

import (
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/moments"
	"github.com/calamp/calamp/solver"
)

// ownNoise is the part for noise that sensors add themselves, y = z/s + η (see [channel.Detector]). Of z it is noise of the variance
//
//	Δ_j = (Read + Photon e_j) E[s_µ²],   e_j = E[max(z, 0)]/ŝ_µ,   z ~ N(ω_j, V_j),
//
// by the present posterior of s, and what is expected of the reading from all others: the excess of a reading (see noise.go), set anew in every
// iteration. As V falls the posterior of s becomes that of the exact likelihood N(y; z/s, Read): by log s both have the same derivatives, the first and second, on average.
type ownNoise struct {
	Idle
	before       float64 // Δ of noise before the division by s
	learn        bool
	read, photon bool      // what is learned, where something is
	raised       float64   // how many times what was given the noise still is, where learning the signals starts with more (see [Learning.GivenNoise])
	each         []float64 // M×P, the variances
	expected     []float64 // M×P, e; nil where no photons make noise
	moved        float64   // of the last fit, in standard errors
	sd           float64   // of the logarithm of the level, where it is learned
}

// detects reports whether sensors add noise of their own.
func (b *planner) detects() bool { return b.own != nil }

// takeOwnNoise makes the part of a problem that has such noise, which learns what was to be learned of the channel's; nil where there is none.
func (b *planner) takeOwnNoise() error {
	d, ok := channel.DetectorOf(b.Model.Channel)
	if !ok {
		return nil
	}
	if err := b.ownNoisePossible(); err != nil {
		return err
	}
	b.own = &ownNoise{
		before: channel.NoiseOf(b.Model.Channel), learn: b.LearnNoise, read: !d.ReadGiven, photon: d.Photon > 0 && !d.PhotonGiven,
		raised: 1, each: make([]float64, b.m*b.P),
	}
	if d.Photon > 0 {
		b.own.expected = make([]float64, b.m*b.P)
	}
	b.LearnNoise = false
	return nil
}

func (b *planner) ownNoisePossible() error {
	const own = "noise of the sensors' own, at the reading, "
	return refusal([]reason{
		{b.stream() && b.LearnNoise, own + "is not learned of a stream yet: give how much it is"},
		{b.Covariance != solver.Diagonal, own + "needs diagonal covariances"},
		{b.LearnSensorNoise, own + "is one for all sensors: that of every sensor is learned at the signal"},
		{b.Noise != nil, own + "and noise variances of every sensor or reading, which are at the signal, exclude each other"},
		{b.clips(), own + "and clipped readings exclude each other yet"},
		{b.displaced() != nil, own + "and parameters of sensors exclude each other yet"},
		{b.follows(), own + "and errors of W exclude each other yet"},
		{b.Joint == solver.JointOn, own + "is for signals by themselves: leave out that they belong together"},
		{b.Algorithm == solver.Evidence, own + "does not go along with signals that are integrated out (evidence)"},
	})
}

// learns reports whether the noise is to be learned.
func (o *ownNoise) learns() bool { return o != nil && o.learn }

// ownLevel is the mean variance that the model says of the noise, as noise of z.
func (b *planner) ownLevel() float64 {
	if b.own == nil {
		return 0
	}
	d, _ := channel.DetectorOf(b.Model.Channel)
	size := channel.Size(channel.CalibrationOf(b.Model.Channel))
	return b.own.before + d.Variance(moments.Light(b.Y))*size*size
}

// startOwnNoise makes the noise large enough for learning to start, as startLearning does that at the signal; power is that of calibrated
// readings.
func (b *planner) startOwnNoise(power float64) {
	if b.own == nil {
		return
	}
	size := channel.Size(channel.CalibrationOf(b.Model.Channel))
	start := power / (1 + moments.SignalToNoise)
	d, _ := channel.DetectorOf(b.Model.Channel)
	if !b.own.learns() {
		b.own.raised = max(1, start/max(b.ownLevel(), leastNoise*power))
		return
	}
	if b.own.read {
		d.Read = max(d.Read, start/(size*size))
	} else if e := moments.Light(b.Y); e > 0 {
		d.Photon = max(d.Photon, start/(size*size*e))
	}
	b.Model.Channel = channel.WithDetector(b.Model.Channel, d)
}

// Begin implements [Part].
func (o *ownNoise) Begin(*Solver) { o.moved = math.Inf(1) }

// Before sets the noise for the present gains.
func (o *ownNoise) Before(s *Solver) {
	e := s.State
	d, _ := channel.DetectorOf(e.model.Channel)
	for j := range o.each {
		mu, expected := e.SensorOf(j), 0.0
		if o.expected != nil {
			expected = positivePart(e.Omega[j], e.V[j]) / e.S[mu]
			o.expected[j] = expected
		}
		o.each[j] = o.before + o.raised*d.Variance(expected)*e.squareOf(mu)
	}
	e.SetNoise(o.each)
}

// After re-fits what is learned of the noise, or lets it fall to what was given.
func (o *ownNoise) After(s *Solver, line *Line) Verdict {
	if !o.learns() && o.raised == 1 || line.Index < firstRefit {
		return GoOn
	}
	if line.Index%refitEvery == 0 {
		if o.learns() {
			o.refit(s.State)
		} else {
			o.fall(s.State, line.Index)
		}
	}
	if o.moved > modelTolerance && !(s.State.Standing && o.moved < creepTolerance) {
		return Disturbed
	}
	return GoOn
}

// positivePart is E[max(z, 0)] of z ~ N(mean, variance).
func positivePart(mean, variance float64) float64 {
	if !(variance > 0) {
		return max(0, mean)
	}
	sd := math.Sqrt(variance)
	t := mean / sd
	return mean*0.5*math.Erfc(-t/math.Sqrt2) + sd*math.Exp(-0.5*t*t)/math.Sqrt(2*math.Pi)
}

// squareOf is E[s²] of a sensor.
func (s *sensorState) squareOf(mu int) float64 { return s.S[mu]*s.S[mu] + s.SVar[mu] }

// ratio is by how much the level is too small, for the Bethe free energy to be stationary in it, ½ Σ E[s²] (g² + ∂g) = 0, as
// [Learning.refitNoise] has it; information is that on the logarithm of the level, ½ Σ (now E[s²] ∂g)².
func (o *ownNoise) ratio(s *State, now float64) (ratio, information float64) {
	var squares, slopes float64
	for j, y := range s.Y {
		if math.IsNaN(y) {
			continue
		}
		q := s.squareOf(s.SensorOf(j))
		squares, slopes = squares+q*s.G[j]*s.G[j], slopes-q*s.DG[j]
		share := now * q * s.DG[j]
		information += 0.5 * share * share
	}
	if !(slopes > 0) {
		return 1, 0
	}
	return min(max(squares/slopes, 1./noiseReach), noiseReach), information
}

// fall is [Learning.fall]: as if the level was learned, but not below what was given.
func (o *ownNoise) fall(s *State, t int) {
	ratio, _ := o.ratio(s, 0)
	next := max(1, o.raised*ratio)
	if o.moved = math.Inf(1); next == 1 || t >= rangePatience || math.Abs(next/o.raised-1) < modelTolerance {
		next, o.moved = 1, 0
	}
	o.raised = next
}

// refit learns the level.
func (o *ownNoise) refit(s *State) {
	d, _ := channel.DetectorOf(s.model.Channel)
	if o.expected != nil {
		o.score(s, d)
		return
	}
	ratio, information := o.ratio(s, d.Read)
	power, _ := s.Power()
	next := max(d.Read*ratio, leastNoise*power)
	o.moved, o.sd = math.Abs(math.Log(next/d.Read))*math.Sqrt(information), 1
	if information > 1 {
		o.sd = 1 / math.Sqrt(information)
	}
	d.Read = next
	s.adoptWorking(channel.InOrder(s.model.Channel).(channel.Detecting).WithDetector(d))
}

// score learns Read and Photon together, by a step of Fisher scoring: of v with variances Σ_i v_i a_i of z, where a is E[s²] and e E[s²], the
// Bethe free energy has the slopes ½ Σ a_i (g² + ∂g), and the information ½ Σ a_i a_k ∂g². Each by itself, as refit does it, would creep: where readings are
// nearly the same both explain the residuals.
func (o *ownNoise) score(s *State, d channel.Detector) {
	var slope [2]float64
	var info [2][2]float64
	count, typical, square := 0.0, 0.0, 0.0
	for j, y := range s.Y {
		if math.IsNaN(y) {
			continue
		}
		q := s.squareOf(s.SensorOf(j))
		a := [2]float64{q, q * o.expected[j]}
		for i := range a {
			slope[i] += 0.5 * a[i] * (s.G[j]*s.G[j] + s.DG[j])
			for k := range a {
				info[i][k] += 0.5 * a[i] * a[k] * s.DG[j] * s.DG[j]
			}
		}
		count, typical, square = count+1, typical+o.expected[j], square+q
	}
	typical, square = typical/max(1, count), square/max(1, count)
	power, _ := s.Power()
	least := leastNoise * power / max(square, math.SmallestNonzeroFloat64)
	now := [2]float64{d.Read, d.Photon}
	step := scoringStep(slope, info, [2]bool{o.read, o.photon}, now)
	// All variances together change by no more than a factor of noiseReach at once.
	level := d.Variance(typical)
	for i, weight := range [2]float64{1, typical} {
		now[i] = max(now[i]/noiseReach, min(now[i]+step[i], noiseReach*level/max(weight, math.SmallestNonzeroFloat64)))
	}
	if o.read {
		d.Read = max(now[0], least)
	}
	if o.photon {
		d.Photon = max(now[1], least/max(typical, math.SmallestNonzeroFloat64))
	}
	moved, information := 0.0, 0.0
	for i := range step {
		for k := range step {
			moved += step[i] * info[i][k] * step[k]
		}
	}
	for i, weight := range [2]float64{d.Read, d.Photon} {
		for k, other := range [2]float64{d.Read, d.Photon} {
			information += weight * info[i][k] * other
		}
	}
	o.moved, o.sd = math.Sqrt(max(0, moved)), 1
	if information > 1 {
		o.sd = 1 / math.Sqrt(information)
	}
	s.adoptWorking(channel.InOrder(s.model.Channel).(channel.Detecting).WithDetector(d))
}

// scoringStep solves info·step = slope for those that are free, and for the other alone where one of them would become negative.
func scoringStep(slope [2]float64, info [2][2]float64, free [2]bool, now [2]float64) (step [2]float64) {
	determinant := info[0][0]*info[1][1] - info[0][1]*info[1][0]
	if free[0] && free[1] && determinant > 1e-9*info[0][0]*info[1][1] {
		step[0] = (slope[0]*info[1][1] - slope[1]*info[0][1]) / determinant
		step[1] = (slope[1]*info[0][0] - slope[0]*info[1][0]) / determinant
		for i := range step {
			if now[i]+step[i] < 0 {
				other := 1 - i
				step[i] = -now[i]
				step[other] = (slope[other] - info[other][i]*step[i]) / info[other][other]
			}
		}
		return step
	}
	for i := range step {
		if free[i] && info[i][i] > 0 {
			step[i] = slope[i] / info[i][i]
			return step
		}
	}
	return step
}

// OwnNoise is the variance of noise before the division by s, where sensors add some of their own, and where that was learned the standard
// deviation of its logarithm; ok is false where they add none.
func (s *Solver) OwnNoise() (before, sd float64, ok bool) {
	o, ok := PartOf[*ownNoise](s)
	if !ok {
		return 0, 0, false
	}
	return o.before, o.sd, true
}
