package amp

import (
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/moments"
)

// outliers leaves out single readings that nothing explains: spikes, dropped bits. Each reading is
// either what its sensor makes of the signals or, with probability r, an outlier, N(0, v). With the
// readings that the sensor has otherwise, y_-j,
//
//	odds = r N(y_j; 0, v) / ((1-r) p(y_j | y_-j)),
//
// where the channel itself says p: Z_out with and without the reading. One whose odds are above 1 is missing from
// then on, for everything that looks at readings, until they fall again. (Readings that count in part
// would need a channel that can weigh them, and the iteration is too sure of itself there:
// coverage 80 %.) It looks at the readings of a sensor in turn, the most unlikely first, since
// each wrong one spoils what the sensor says of the others. A sensor of which
// many are wrong is broken, or W is: other parts decide that.
type outliers struct {
	Idle
	given  float64 // r as given; 0: learned
	beyond []int   // places of readings that are outliers beforehand; they are missing from the first

	rate    float64
	y       []float64 // M×P, as they were read
	least   float64   // what the logarithm of the odds must be now
	settled bool      // the run has had a fixed point before
	next    int       // iteration after which readings are looked at
	off     bool      // so many would be left out that it is the model, or the run, that is wrong
	typical float64   // v, but for readings that are far larger
	odds    []float64 // M×P, logarithms
	out     []bool    // M×P
	turns   []uint8   // M×P, how often a reading was left out or taken back

	// Of the sensor that is looked at.
	block   channel.Block // of all its readings
	removed []bool        // P, those that are taken out of it
	without []float64     // P, evidence of the readings that are left without each of them, NaN where it is not known; nil where neither the channel nor covariances say it at once
}

const (
	// firstLook is the first iteration after which readings are looked at. The next look is lookEvery iterations later, or an eighth of those so
	// far where that is more: what has not converged by then would otherwise spend most of its time on looks.
	firstLook, lookEvery, lookPart = 4, 4, 8

	// early is the logarithm of the odds above which a reading is left out before the first fixed point of the run: until then
	// V may be a few times too small, behind an uneven W above all, and a residual of five of its standard deviations
	// is none.
	early = 15

	// startOutliers and MostOutliers are where the learning of r starts, and ends: with more it is the
	// model that is wrong, or the run.
	startOutliers = 0.005
	MostOutliers  = 0.2

	// A sensor is looked at where a residual is beyond Suspicious standard deviations, or it
	// is in doubt by as much as doubtful.
	Suspicious = 3
	doubtful   = 0.01

	// Of n readings at most n/outlyingPart are left out, or fewOutlying, and always less than half.
	outlyingPart = 5
	fewOutlying  = 2

	// leastOutlying is how many signals it takes.
	leastOutlying = 4

	// LeftOut is the least probability of a reading that was left out.
	LeftOut = 0.51

	// Strained is the size of residuals, in those expected, above which they tell of the
	// model, not of readings.
	Strained = 1.25

	// mostTurns is after how many changes a reading stays left out.
	mostTurns = 6

	// wildOutlier is how many times v the square of a reading may be before its own counts.
	wildOutlier = 10
)

// leavesOut is a channel that says log Z_out of a sensor without each of its readings at once (see [channel.Gain.WithoutEach]).
type leavesOut interface {
	WithoutEach(b *channel.Block, without []float64)
}

// Begin implements [Part].
func (p *outliers) Begin(s *Solver) {
	e := s.State
	p.y = append(p.y[:0], e.Y...)
	p.odds, p.out, p.turns = make([]float64, len(p.y)), make([]bool, len(p.y)), make([]uint8, len(p.y))
	for j := range p.odds {
		p.odds[j] = math.Inf(-1)
	}
	p.block, p.removed = *channel.NewBlock(e.model.Channel, 1, e.Each), make([]bool, e.Each)
	if _, leaves := channel.InOrder(e.model.Channel).(leavesOut); leaves || e.correlated != nil {
		p.without = make([]float64, e.Each)
	}
	p.typical = channel.TypicalSquare(p.y, e.Each)
	p.off, p.settled, p.next = false, false, firstLook
	if p.rate = p.given; p.rate == 0 {
		p.rate = startOutliers
	}
}

// After implements [Part].
func (p *outliers) After(s *Solver, l *Line) Verdict {
	if l.Index < p.next {
		return GoOn
	}
	p.next = l.Index + max(lookEvery, l.Index/lookPart)
	return p.lookAtAll(s, early)
}

// AtFixedPoint implements [Part].
func (p *outliers) AtFixedPoint(s *Solver) Verdict {
	if !p.settled { // what the way here made of a reading does not count
		p.settled = true
		clear(p.turns)
	}
	return p.lookAtAll(s, 0)
}

// lookAtAll leaves out readings whose odds have a logarithm above least, and takes back those below 0.
func (p *outliers) lookAtAll(s *Solver, least float64) Verdict {
	p.least = least
	if p.off || s.State.strain() > Strained {
		return GoOn
	}
	changed := false
	for mu := range s.State.M {
		if s.State.interrupted() {
			return GoOn
		}
		changed = p.look(s.State, mu) || changed
	}
	p.learn()
	if p.count() > max(MostOutliers, 2*p.given) {
		p.giveUp(s.State)
	}
	if changed {
		s.damping.jumped()
		return Disturbed
	}
	return GoOn
}

// strain is the typical size of residuals in use, in those that are expected.
func (s *State) strain() float64 {
	const enough = 1000 // readings
	step := max(1, len(s.G)/enough)
	sizes := make([]float64, 0, enough+1)
	for j := 0; j < len(s.G); j += step {
		g := s.G[j]
		if s.DG[j] < 0 && !math.IsNaN(s.Y[j]) {
			sizes = append(sizes, math.Abs(g)/math.Sqrt(-s.DG[j]))
		}
	}
	if len(sizes) == 0 {
		return 0
	}
	slices.Sort(sizes)
	return sizes[len(sizes)/2] / moments.MedianOfNormal
}

// count is which part of all readings is left out.
func (p *outliers) count() float64 {
	out, all := 0.0, 1.0
	for j, y := range p.y {
		if !math.IsNaN(y) {
			all++
		}
		if p.out[j] {
			out++
		}
	}
	return out / all
}

// giveUp takes all readings back, for good.
func (p *outliers) giveUp(s *State) {
	p.off = true
	copy(s.Y, p.y)
	clear(p.out)
	p.exonerate(0, len(p.odds))
}

// learn is r: the mean probability, with half an outlier more.
func (p *outliers) learn() {
	if p.given > 0 {
		return
	}
	total, count := 0.5, 1.0
	for j, y := range p.y {
		if !math.IsNaN(y) {
			total += p.probability(j)
			count++
		}
	}
	p.rate = min(total/count, MostOutliers)
}

// probability is that of reading j to be an outlier.
func (p *outliers) probability(j int) float64 {
	if math.IsNaN(p.y[j]) {
		return 0
	}
	return 1 / (1 + math.Exp(-p.odds[j]))
}

// look decides on the readings of sensor mu, and says whether that has changed.
func (p *outliers) look(s *State, mu int) (changed bool) {
	from, to := mu*s.Each, (mu+1)*s.Each
	if !p.suspects(s, mu) {
		p.exonerate(from, to)
		return false
	}
	clear(p.removed)
	candidates := 0
	for j := from; j < to; j++ {
		if p.candidate(s, j) {
			candidates++
		}
	}
	most := min(max(fewOutlying, candidates/outlyingPart), (candidates-1)/2)
	for out := 0; ; out++ {
		worst, all := p.judge(s, mu)
		if worst < 0 || p.odds[worst] <= p.limit(worst) {
			if out > 0 && p.outside(s, mu) {
				p.exonerate(from, to)
			} else {
				p.judgeRemoved(s, mu, all)
			}
			break
		}
		if out >= most { // it is the sensor
			p.exonerate(from, to)
			break
		}
		p.removed[worst-from] = true
	}
	for j := from; j < to; j++ {
		changed = p.turn(s, j) || changed
	}
	return changed
}

// outside reports whether the readings that are left have their likeliest s outside its range: then it is the
// sensor, or the range.
func (p *outliers) outside(s *State, mu int) bool {
	if s.calibration == nil {
		return false
	}
	p.evidence(s, mu, nil)
	return math.Abs(s.calibration.Excess(p.block.Stats)) > outsideBy
}

// candidate reports whether reading j may be left out: one that is clipped says hardly anything.
func (p *outliers) candidate(s *State, j int) bool {
	return !math.IsNaN(p.y[j]) && !channel.Clipped(p.y[j], channel.LimitOf(s.model.Channel))
}

// exonerate makes the probability of readings to be outliers 0.
func (p *outliers) exonerate(from, to int) {
	for j := from; j < to; j++ {
		p.odds[j] = math.Inf(-1)
	}
}

// turn leaves reading j out, or takes it back, as its odds say.
func (p *outliers) turn(s *State, j int) bool {
	out := p.odds[j] > p.limit(j) && !math.IsNaN(p.y[j])
	if out == p.out[j] || p.turns[j] >= mostTurns && p.out[j] {
		return false
	}
	p.out[j] = out
	p.turns[j]++
	s.Y[j] = p.y[j]
	if out {
		s.Y[j] = math.NaN()
	}
	return true
}

// limit is what the logarithm of the odds of reading j must be for it to be left out.
func (p *outliers) limit(j int) float64 {
	if p.out[j] {
		return 0
	}
	return p.least
}

// suspects reports whether the readings of a sensor are worth a look one by one.
func (p *outliers) suspects(s *State, mu int) bool {
	if s.Broken[mu] > doubtful {
		return true
	}
	for j := mu * s.Each; j < (mu+1)*s.Each; j++ {
		if p.out[j] || s.G[j]*s.G[j] > -Suspicious*Suspicious*s.DG[j] {
			return true
		}
	}
	return false
}

// plainOdds are those of a reading near what is expected of it: to be an outlier, and to be what g
// says, whose inverse variance is -∂g where the reading has no part in it.
func (p *outliers) plainOdds(s *State, j int) float64 {
	slope := -s.DG[j]
	if math.IsNaN(p.y[j]) || !(slope > 0) {
		return math.Inf(-1)
	}
	expected := math.Log(s.S[s.SensorOf(j)]) + 0.5*(math.Log(slope/(2*math.Pi))-s.G[j]*s.G[j]/slope)
	return p.logOutlier(j) - expected
}

func (p *outliers) logOutlier(j int) float64 { return LogOutlier(p.rate, p.typical, p.y[j]*p.y[j], 1) }

// LogOutlier is log r/(1-r) N(y; 0, v) for the rate r, where v is that of typical readings, or of
// one that is far larger. Of a reading of so many columns square is |y|², and v the variance in each.
func LogOutlier(rate, typical, square float64, columns int) float64 {
	each := square / float64(columns)
	v := max(typical, each/wildOutlier)
	return math.Log(rate/(1-rate)) - 0.5*float64(columns)*(math.Log(2*math.Pi*v)+each/v)
}

// judge sets the odds of the readings of sensor mu that are left. It returns the worst of these, -1 where there is none, and the evidence of all of them.
func (p *outliers) judge(s *State, mu int) (worst int, all float64) {
	worst, all = -1, p.evidence(s, mu, p.without)
	for k, removed := range p.removed {
		j := mu*s.Each + k
		if removed {
			continue
		}
		if !p.candidate(s, j) {
			p.odds[j] = math.Inf(-1)
			continue
		}
		p.odds[j] = p.logOutlier(j) - finiteOr0(all-p.other(s, mu, k))
		if worst < 0 || p.odds[j] > p.odds[worst] {
			worst = j
		}
	}
	return worst, all
}

// judgeRemoved sets the odds of those that are removed, given those that are left.
func (p *outliers) judgeRemoved(s *State, mu int, all float64) {
	for k, removed := range p.removed {
		if j := mu*s.Each + k; removed {
			p.odds[j] = p.logOutlier(j) + finiteOr0(all-p.other(s, mu, k))
		}
	}
}

// finiteOr0 is 0 for what is not a number: both of its parts are beyond double precision, by another's fault.
func finiteOr0(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// other is the evidence of sensor mu with reading k removed in place of left, or left in place of removed.
func (p *outliers) other(s *State, mu, k int) float64 {
	if p.without != nil && !p.removed[k] && !math.IsNaN(p.without[k]) {
		return p.without[k]
	}
	p.removed[k] = !p.removed[k]
	defer func() { p.removed[k] = !p.removed[k] }()
	return p.evidence(s, mu, nil)
}

// evidence is log Z_out of sensor mu without the readings that are removed. It sets without, if not nil, to those without one more.
func (p *outliers) evidence(s *State, mu int, without []float64) float64 {
	b, from, to := &p.block, mu*s.Each, (mu+1)*s.Each
	b.First = mu
	copy(b.Omega, s.Omega[from:to])
	copy(b.V, s.U[from:to])
	copy(b.Past, s.Of(s.Past.Stats, mu))
	copy(b.Y, p.y[from:to])
	for k, removed := range p.removed {
		if removed {
			b.Y[k] = math.NaN()
		}
	}
	if s.correlated != nil {
		if z := s.correlated(mu, b.Y, b.Stats, without); !math.IsNaN(z) {
			return z
		}
		return math.Inf(-1)
	}
	inOrder := channel.InOrder(s.model.Channel)
	inOrder.Output(b)
	if without != nil {
		inOrder.(leavesOut).WithoutEach(b, without)
	}
	if z := b.LogZ[0]; !math.IsNaN(z) {
		return z
	}
	return math.Inf(-1) // beyond double precision
}

// Report implements [Part]: what was not worth a look is no outlier, but has a probability.
func (p *outliers) Report(s *Solver) {
	for mu := range s.State.M {
		if !p.off && !p.suspects(s.State, mu) {
			for j := mu * s.State.Each; j < (mu+1)*s.State.Each; j++ {
				p.odds[j] = p.plainOdds(s.State, j)
			}
		}
	}
}

// Outlying is the probability of each reading (M×P) to be an outlier; nil where that was not
// looked at.
func (s *Solver) Outlying() []float64 {
	if g := s.gaussian(); g != nil {
		return g.outlying()
	}
	p, ok := PartOf[*outliers](s)
	if !ok {
		return nil
	}
	each := make([]float64, s.State.M*s.State.Each)
	for j := range p.y { // none of a run that was ended before its first iteration
		if each[j] = p.probability(j); p.out[j] {
			each[j] = max(each[j], LeftOut)
		}
	}
	for _, j := range p.beyond {
		each[j] = 1
	}
	return each
}

// AsRead are the readings (M×P), with those that were left out.
func (s *Solver) AsRead() []float64 {
	if g := s.gaussian(); g != nil && g.asRead != nil {
		return g.asRead
	}
	if p, ok := PartOf[*outliers](s); ok {
		return p.y
	}
	return s.State.Y
}
