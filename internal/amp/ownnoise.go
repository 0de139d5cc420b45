package amp

import (
	"errors"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/moments"
	"github.com/calamp/calamp/solver"
)

// ownNoise is the part for noise that sensors add themselves, y = z/s + η (see [channel.Detector]). Of z it is noise of the variance
//
//	Δ_µk = Read E[s_µ²] + Photon ŝ_µ max(ω_µk, 0),
//
// by the present posterior of s and of z before the reading: the excess of a reading (see noise.go), set anew in every iteration. As V falls
// the posterior of s becomes the one of the exact likelihood N(y; z/s, Read): in log s both have the same first derivative on average, and the
// same curvature.
type ownNoise struct {
	Idle
	before float64    // Δ of noise before the division by s
	learn  [2]bool    // Read, Photon
	raised float64    // how many times what was told the noise still is, where learning the signals starts with more (see [Learning.Told])
	each   []float64  // M×P, the variances
	moved  float64    // of the last fit, in standard errors
	sd     [2]float64 // of the logarithms of Read and Photon, where they are learned
}

// detects reports whether sensors add noise of their own.
func (b *planner) detects() bool { return b.own != nil }

// takeOwnNoise makes the part of a problem that has such noise, which learns what was to be learned of the channel's; nil where there is none.
func (b *planner) takeOwnNoise() error {
	if _, ok := channel.DetectorOf(b.Model.Channel); !ok {
		if b.LearnPhoton {
			return errors.New("photon noise is learned of sensors that add noise of their own, from a reading of one photon above 0 to start with")
		}
		return nil
	}
	if err := b.ownNoisePossible(); err != nil {
		return err
	}
	b.own = &ownNoise{before: channel.NoiseOf(b.Model.Channel), learn: [2]bool{b.LearnNoise, b.LearnPhoton}, raised: 1, each: make([]float64, len(b.Y))}
	b.LearnNoise = false
	return nil
}

func (b *planner) ownNoisePossible() error {
	const own = "noise of the sensors' own, at the reading, "
	switch {
	case b.stream() || b.Batch:
		return errors.New(own + "is for offline problems yet: a stream takes noise before the division by s (noise at the signal)")
	case b.Covariance != solver.Diagonal:
		return errors.New(own + "needs diagonal covariances")
	case b.LearnSensorNoise:
		return errors.New(own + "is one for all sensors: that of every sensor is learned at the signal")
	case b.Noise != nil:
		return errors.New(own + "and noise variances of every sensor or reading, which are at the signal, exclude each other")
	case channel.LimitOf(b.Model.Channel) > 0:
		return errors.New(own + "and clipped readings exclude each other yet")
	case b.follows():
		return errors.New(own + "and errors of W exclude each other yet")
	case b.Joint == solver.JointOn:
		return errors.New(own + "is for signals by themselves: leave out that they belong together")
	case b.Algorithm == solver.Evidence:
		return errors.New(own + "does not go along with signals that are integrated out (evidence)")
	}
	return nil
}

// learns reports whether the noise is to be learned.
func (o *ownNoise) learns() bool { return o != nil && (o.learn[0] || o.learn[1]) }

// ownLevel is the mean variance that the model says of the noise, as noise of z.
func (b *planner) ownLevel() float64 {
	if b.own == nil {
		return 0
	}
	d, _ := channel.DetectorOf(b.Model.Channel)
	size := channel.Size(channel.CalibrationOf(b.Model.Channel))
	return b.own.before + d.Variance(size, size*size, b.meanSignal(size))
}

// meanSignal is the mean of the calibrated readings above 0: of z, where noise is smaller.
func (b *planner) meanSignal(size float64) float64 {
	total, count := 0.0, 0.0
	for _, y := range b.Y {
		if !math.IsNaN(y) {
			total, count = total+size*max(y, 0), count+1
		}
	}
	return total / max(count, 1)
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
	if b.own.learn[0] && b.own.learn[1] {
		start *= 0.5
	}
	if b.own.learn[0] {
		d.Read = max(d.Read, start/(size*size))
	}
	if mean := b.meanSignal(size); b.own.learn[1] && mean > 0 {
		d.Photon = max(d.Photon, start/(size*mean))
	}
	b.Model.Channel = channel.WithDetector(b.Model.Channel, d)
}

// Begin implements [Part].
func (o *ownNoise) Begin(*Solver) { o.moved = math.Inf(1) }

// Before sets the noise for the present signals and gains.
func (o *ownNoise) Before(s *Solver) {
	e := s.State
	d, _ := channel.DetectorOf(e.model.Channel)
	for j := range o.each {
		mu := e.SensorOf(j)
		size, omega := e.S[mu], e.Omega[j]
		if s.Iterations <= 1 && !math.IsNaN(e.Y[j]) {
			omega = size * e.Y[j] // no signal predicts anything yet
		}
		o.each[j] = o.before + o.raised*d.Variance(size, size*size+e.SVar[mu], omega)
	}
	e.SetNoise(o.each)
	if e.Added > 0 {
		working := channel.InOrder(e.model.Channel).(channel.Noisy)
		e.adoptWorking(working.WithNoise(working.Noise() + e.Added))
	}
}

// After re-fits what is learned of the noise, or lets it fall to what was told.
func (o *ownNoise) After(s *Solver, line *Line) Verdict {
	if !o.learns() && o.raised == 1 || line.Index < firstRefit || s.State.Added > 0 {
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

// fall is [Learning.fall]: as if the level was learned, but not below what was told.
func (o *ownNoise) fall(s *State, t int) {
	var squares, slopes float64
	for j, y := range s.Y {
		if !math.IsNaN(y) {
			squares, slopes = squares+o.each[j]*s.G[j]*s.G[j], slopes-o.each[j]*s.DG[j]
		}
	}
	next := 1.0
	if slopes > 0 && t < rangePatience {
		next = max(1, o.raised*min(max(squares/slopes, 1./noiseReach), noiseReach))
	}
	if o.moved = math.Inf(1); next == 1 || math.Abs(next/o.raised-1) < modelTolerance {
		next, o.moved = 1, 0
	}
	o.raised = next
}

// refit is a step of Fisher's scoring towards the stationarity of the Bethe free energy, ½ Σ q (g² + ∂g) = 0 with q the derivatives of a
// reading's noise by Read and Photon, whose information is ½ Σ q qᵀ (∂g)².
func (o *ownNoise) refit(s *State) {
	d, _ := channel.DetectorOf(s.model.Channel)
	var score [2]float64
	var information [2][2]float64
	for j, y := range s.Y {
		if math.IsNaN(y) {
			continue
		}
		mu := s.SensorOf(j)
		var q [2]float64
		q[0], q[1] = d.Derivatives(s.S[mu], s.S[mu]*s.S[mu]+s.SVar[mu], s.Omega[j])
		for a := range q {
			if !o.learn[a] {
				continue
			}
			score[a] += 0.5 * q[a] * (s.G[j]*s.G[j] + s.DG[j])
			for b := range q {
				if o.learn[b] {
					information[a][b] += 0.5 * q[a] * q[b] * s.DG[j] * s.DG[j]
				}
			}
		}
	}
	now := [2]float64{d.Read, d.Photon}
	step := scoring(score, information)
	power, _ := s.Power()
	least := [2]float64{leastNoise * power, leastNoise * math.Sqrt(power)}
	o.moved = 0
	for a, level := range now {
		if !o.learn[a] {
			continue
		}
		next := max(min(max(level+step[a], level/noiseReach), level*noiseReach), least[a])
		// Where the other one explains the readings this one falls for ever; its logarithm is then no matter.
		o.moved = max(o.moved, math.Abs(next-level)*math.Sqrt(information[a][a]))
		if o.sd[a] = 1; information[a][a] > 0 {
			o.sd[a] = min(1, 1/(next*math.Sqrt(information[a][a])))
		}
		now[a] = next
	}
	s.adoptWorking(channel.InOrder(s.model.Channel).(channel.Detecting).WithDetector(channel.Detector{Read: now[0], Photon: now[1]}))
}

// scoring is information⁻¹ score, of one or of both numbers.
func scoring(score [2]float64, information [2][2]float64) (step [2]float64) {
	a, b, c := information[0][0], information[1][1], information[0][1]
	switch det := a*b - c*c; {
	case a > 0 && b > 0 && det > 1e-12*a*b:
		step[0], step[1] = (b*score[0]-c*score[1])/det, (a*score[1]-c*score[0])/det
	case a > 0:
		step[0] = score[0] / a
	case b > 0:
		step[1] = score[1] / b
	}
	return step
}

// OwnNoise is the noise that sensors add themselves, told or learned, with the variance of that before the division by s beside it, and where it
// was learned the standard deviations of the logarithms of Read and Photon; ok is false where there is none.
func (s *Solver) OwnNoise() (d channel.Detector, before float64, sd [2]float64, ok bool) {
	o, ok := PartOf[*ownNoise](s)
	if !ok {
		return d, 0, sd, false
	}
	d, _ = channel.DetectorOf(s.State.model.Channel)
	return d, o.before, o.sd, true
}
