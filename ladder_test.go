package calamp_test

import (
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// instrument is a problem like those of spectroscopy: columns of W are smooth positive spectra that overlap, and each sample has a few
// of them in positive amounts.
func instrument(t *testing.T, m, n, p int, seed uint64) (w operator.Operator, y, x0 *mat.Dense, s0 []float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	entries := make([]float64, m*n)
	for i := range n {
		for range 3 {
			centre, width, height := rng.Float64(), 0.01+0.03*rng.Float64(), rng.Float64()
			for mu := range m {
				d := (float64(mu)/float64(m) - centre) / width
				entries[mu*n+i] += height * math.Exp(-0.5*d*d)
			}
		}
	}
	dense, err := operator.NewDense(m, n, entries)
	if err != nil {
		t.Fatal(err)
	}
	x0, y = mat.NewDense(n, p, nil), mat.NewDense(m, p, nil)
	for k := range p {
		for range n / 12 {
			x0.Set(rng.IntN(n), k, 0.2+rng.Float64())
		}
	}
	y.Mul(mat.NewDense(m, n, entries), x0)
	s0 = make([]float64, m)
	for mu := range m {
		s0[mu] = 0.8 + 0.4*rng.Float64()
		for k := range p {
			y.Set(mu, k, (y.At(mu, k)+1e-3*rng.NormFloat64())/s0[mu])
		}
	}
	return dense, y, x0, s0
}

// unknown is the problem with everything learned, as the command has it.
func unknown(t *testing.T, w operator.Operator, y *mat.Dense) (*calamp.Problem, *calamp.Options) {
	t.Helper()
	nan := math.NaN()
	signal, gain, err := calamp.Guess(w, y, prior.GaussBernoulli{Density: nan, SignalMean: nan, SignalVar: nan}, channel.Gain{Prior: channel.Uniform(nan, nan), NoiseVar: nan})
	if err != nil {
		t.Fatal(err)
	}
	p := &calamp.Problem{W: w, Y: y, Prior: signal.Learning(allParameters), Channel: channel.Faulty{Working: gain}}
	return p, &calamp.Options{Learn: calamp.Learn{Noise: true, Range: true}, Outliers: calamp.Outliers{Look: true}}
}

func solveUnknown(t *testing.T, w operator.Operator, y *mat.Dense, change func(*calamp.Options)) *calamp.Result {
	t.Helper()
	p, opt := unknown(t, w, y)
	change(opt)
	res, err := calamp.Solve(context.Background(), p, opt)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestFurtherTries solves a problem of overlapping spectra, of which no run of message passing alone finds an answer.
func TestFurtherTries(t *testing.T) {
	if testing.Short() {
		t.Skip("linear algebra of others, slow with the race detector")
	}
	w, y, x0, s0 := instrument(t, 90, 72, 8, 1)
	once := solveUnknown(t, w, y, func(*calamp.Options) {})
	if once.Status == calamp.Converged {
		t.Fatal("the problem is solved at the first try: it tests nothing")
	}
	res := solveUnknown(t, w, y, func(o *calamp.Options) { o.Retry = true })
	if res.Status != calamp.Converged {
		t.Fatalf("%v: %s", res.Status, res.Reason)
	}
	score := calamp.Score(res.X, res.S, calamp.Truth{X: x0, S: s0})
	if !(score.XMSEScaled < 1e-5) { // the noise makes 1e-7
		t.Errorf("mean square error of x %.3g by %v", score.XMSEScaled, res.Plan.Algorithm)
	}
	tried := 0
	for _, c := range res.Plan.Parts {
		if c.Part == "try" {
			tried++
		}
	}
	if tried < 2 {
		t.Error("the plan does not list what was tried")
	}
}

// TestOffsetsBehindInstruments: sensors have offsets, declared or not, behind a W for which message passing finds no answer.
func TestOffsetsBehindInstruments(t *testing.T) {
	if testing.Short() {
		t.Skip("linear algebra of others, slow with the race detector")
	}
	const m, signals = 90, 8
	w, y, x0, s0 := instrument(t, m, 72, signals, 1)
	rng := rand.New(rand.NewPCG(1, 9))
	size, o := 0.1*mat.Norm(y, 2)/math.Sqrt(m*signals), make([]float64, m)
	for mu := range o {
		o[mu] = size * rng.NormFloat64()
	}
	y.Apply(func(mu, _ int, v float64) float64 { return v + o[mu] }, y)
	for _, declared := range []bool{false, true} {
		p, opt := unknown(t, w, y)
		opt.Retry = true
		if gain := channel.InOrder(p.Channel).(channel.Gain); declared {
			p.Channel = channel.Faulty{Working: channel.Offset{Prior: channel.OffsetPrior{Gain: gain.Prior, SD: calamp.GuessOffset(y, nil)}, NoiseVar: gain.NoiseVar}}
			opt.Learn.Offset = true
		}
		res, err := calamp.Solve(context.Background(), p, opt)
		if err != nil {
			t.Fatal(err)
		}
		if res.Status != calamp.Converged || res.Offset == nil || warned(res, calamp.Offsets) == declared {
			t.Fatalf("%v: %s; offsets %v, warnings %v", res.Status, res.Reason, res.Offset != nil, res.Warnings)
		}
		score := calamp.Score(res.X, res.S, calamp.Truth{X: x0, S: s0})
		if !(score.XMSEScaled < 1e-5) {
			t.Errorf("mean square error of x %.3g", score.XMSEScaled)
		}
		outside := 0
		for mu, v := range o {
			if math.Abs(res.Offset[mu]-v) > 1.96*math.Sqrt(res.OffsetVar[mu]) {
				outside++
			}
		}
		if outside > 12 {
			t.Errorf("%d of 90 offsets are outside of their 95 %% intervals", outside)
		}
	}
}

// TestEvidenceCoversGains is for the evidence of Gaussian signals alone.
func TestEvidenceCoversGains(t *testing.T) {
	if testing.Short() {
		t.Skip("linear algebra of others, slow with the race detector")
	}
	inside, count := 0, 0
	for seed := range uint64(3) {
		w, y, _, s0 := instrument(t, 60, 48, 6, seed)
		res := solveUnknown(t, w, y, func(o *calamp.Options) { o.Algorithm, o.Outliers = solver.Evidence, calamp.Outliers{} })
		if res.Status != calamp.Converged {
			t.Errorf("seed %d: %v: %s", seed, res.Status, res.Reason)
		}
		lo, hi := res.SInterval(0.95)
		factor := floats.Sum(res.S) / floats.Sum(s0)
		for mu, s := range s0 {
			count++
			if s*factor >= lo[mu] && s*factor <= hi[mu] {
				inside++
			}
		}
	}
	if covered := float64(inside) / float64(count); covered < 0.9 {
		t.Errorf("95 %% intervals of s hold %.3g", covered)
	}
}

// TestTimeLimit: a run that is out of time ends without an error, with what it has; one that has time enough is as without.
func TestTimeLimit(t *testing.T) {
	w, y, _, _ := instrument(t, 90, 72, 8, 1)
	p, opt := unknown(t, w, y)
	seen := 0
	opt.Retry, opt.TimeLimit = true, 500*time.Millisecond
	opt.Progress = func(calamp.Iteration) { // no run ends before its time
		if seen++; seen == 3 {
			time.Sleep(opt.TimeLimit + 100*time.Millisecond)
		}
	}
	res, err := calamp.Solve(context.Background(), p, opt)
	if err != nil {
		t.Fatal(err)
	}
	if res.Status != calamp.TimedOut || !strings.Contains(res.Reason, "time limit") || seen != 3 {
		t.Errorf("%v after %d iterations: %s", res.Status, seen, res.Reason)
	}
	within, stop := context.WithCancel(context.Background())
	stop()
	if res, err := calamp.Solve(within, p, opt); err == nil || res.Status != calamp.Cancelled {
		t.Errorf("cancelled: %v", err)
	}
	opt.TimeLimit = -1
	if _, err := calamp.Solve(context.Background(), p, opt); err == nil {
		t.Error("a negative limit is accepted")
	}
}

// array is 32 microphones before a plane of 81 points, of which three to five sound in each of 24 snapshots; gains have any phase.
func array(t *testing.T, seed uint64) (p *calamp.Problem, truth calamp.Truth) {
	t.Helper()
	const m, side, snapshots, noise = 32, 9, 24, 1e-4
	rng := rand.New(rand.NewPCG(seed, 11))
	entries := make([]complex128, m*side*side)
	for mu := range m {
		u, v := rng.Float64()-0.5, rng.Float64()-0.5
		for i := range side * side {
			d := math.Sqrt(1 + math.Pow(u+0.6-0.12*float64(i%side), 2) + math.Pow(v+0.6-0.12*float64(i/side), 2))
			entries[mu*side*side+i] = cmplx.Rect(1/d, 2*math.Pi*d/0.1)
		}
	}
	w, err := operator.NewComplex(m, side*side, entries)
	if err != nil {
		t.Fatal(err)
	}
	number := func(size float64) complex128 { return complex(size*rng.NormFloat64(), size*rng.NormFloat64()) }
	y := mat.NewDense(m, 2*snapshots, nil)
	truth.X = mat.NewDense(side*side, 2*snapshots, nil)
	for range m {
		truth.S, truth.Phase = append(truth.S, 0.7+0.7*rng.Float64()), append(truth.Phase, 2*math.Pi*rng.Float64())
	}
	for k := range snapshots {
		sound := make([]complex128, m)
		for _, i := range rng.Perm(side * side)[:3+rng.IntN(3)] {
			x := number(math.Sqrt(0.5))
			truth.X.Set(i, 2*k, real(x))
			truth.X.Set(i, 2*k+1, imag(x))
			for mu := range m {
				sound[mu] += entries[mu*side*side+i] * x
			}
		}
		for mu, z := range sound {
			z = (z + number(math.Sqrt(noise/2))) / cmplx.Rect(truth.S[mu], truth.Phase[mu])
			y.Set(mu, 2*k, real(z))
			y.Set(mu, 2*k+1, imag(z))
		}
	}
	return &calamp.Problem{
		W: w, Y: y, Prior: prior.ComplexGaussBernoulli{Density: 4.0 / (side * side), SignalVar: 1},
		Channel: channel.ComplexGain{Prior: channel.ComplexPrior{Lo: 0.7, Hi: 1.4}, NoiseVar: noise},
	}, truth
}

// TestFreePhasesFromOtherStarts: which fixed point is found of free phases is a matter of the start, and further ones are tried.
func TestFreePhasesFromOtherStarts(t *testing.T) {
	if testing.Short() {
		t.Skip("many runs")
	}
	p, truth := array(t, 0)
	limit := solver.Settings{MaxIter: 150}
	if once := solve(t, p, &calamp.Options{Settings: limit}); once.Status == calamp.Converged {
		t.Fatal("the first start leads to the answer: it tests nothing")
	}
	res := solve(t, p, &calamp.Options{Retry: true, Settings: limit})
	if e := res.Score(truth).XMSEScaled; res.Status != calamp.Converged || !(e < 1e-6) {
		t.Errorf("%v, mean square error of x %.3g", res.Status, e)
	}
}

// TestArrayWithDeadSensors: where phases are free, dead sensors are recognised by a constant level, before signals are integrated out.
func TestArrayWithDeadSensors(t *testing.T) {
	if testing.Short() {
		t.Skip("linear algebra of others, slow with the race detector")
	}
	p, truth := array(t, 0)
	m, columns := p.Y.Dims()
	rng, dead := rand.New(rand.NewPCG(1, 12)), map[int]bool{}
	for _, mu := range rng.Perm(m)[:4] {
		dead[mu] = true
		level := [2]float64{rng.NormFloat64(), rng.NormFloat64()}
		for k := range columns {
			p.Y.Set(mu, k, level[k%2]+0.01*rng.NormFloat64())
		}
	}
	p.Prior = prior.ComplexGaussBernoulli{Density: 0.1, SignalVar: 1, Learn: prior.Density | prior.SignalVar}
	p.Channel = channel.Faulty{Working: channel.ComplexGain{Prior: channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: 1}, NoiseVar: 0.01}}
	res := solve(t, p, &calamp.Options{Retry: true, Learn: calamp.Learn{Noise: true, Range: true, PhasesOrFree: true}})
	for _, b := range res.BrokenSensors {
		if !dead[b.Sensor] {
			t.Errorf("sensor %d is called broken", b.Sensor)
		}
	}
	if e := res.Score(truth).XMSEScaled; res.Status != calamp.Converged || len(res.BrokenSensors) != len(dead) || !(e < 1e-4) {
		t.Errorf("%v: %s, %d sensors broken, mean square error of x %.3g", res.Status, res.Reason, len(res.BrokenSensors), e)
	}
}

// TestSpreadOfPhasesThatIsNotTheirs: where nothing is an answer with the spread of phases that was given, it is learned, and the answer says so.
func TestSpreadOfPhasesThatIsNotTheirs(t *testing.T) {
	if testing.Short() {
		t.Skip("linear algebra of others, slow with the race detector")
	}
	p, truth := array(t, 1)
	p.Channel = channel.ComplexGain{Prior: channel.ComplexPrior{Lo: 0.7, Hi: 1.4, Concentration: 100}, NoiseVar: 1e-4}
	res := solve(t, p, &calamp.Options{Retry: true, Learn: calamp.Learn{Noise: true}})
	said := slices.ContainsFunc(res.Warnings, func(w calamp.Warning) bool {
		return w.Code == calamp.ToldContradicted && strings.Contains(w.Message, "phases about the nominal ones as 100")
	})
	if e := res.Score(truth).XMSEScaled; res.Status != calamp.Converged || !(e < 1e-6) || !said {
		t.Errorf("%v, mean square error of x %.3g, warnings %v", res.Status, e, res.Warnings)
	}
}

// TestUnmixed: through a W that does not mix nothing separates gains from signals, and no run that converges is an answer.
func TestUnmixed(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, rows := range []int{20, 5} { // a permutation, and blocks of one row
		entries := make([]float64, rows*20)
		for i, j := range rng.Perm(20) {
			entries[i%rows*20+j] = 0.5 + rng.Float64()
		}
		w, err := operator.NewDense(rows, 20, entries)
		if err != nil {
			t.Fatal(err)
		}
		y := mat.NewDense(rows, 6, nil)
		y.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, y)
		res := solveUnknown(t, w, y, func(o *calamp.Options) { o.Retry = true })
		if res.Status != calamp.NothingRecovered || len(res.Warnings) != 1 || res.Warnings[0].Code != calamp.NotMixed {
			t.Errorf("%d rows: %v: %s", rows, res.Status, res.Reason)
		}
		entries[1], entries[21] = 1, 1 // two sensors read entry 1
		w, err = operator.NewDense(rows, 20, entries)
		if err != nil {
			t.Fatal(err)
		}
		res = solveUnknown(t, w, y, func(o *calamp.Options) { o.Retry, o.MaxIter = true, 20 })
		for _, warning := range res.Warnings {
			if warning.Code == calamp.NotMixed {
				t.Errorf("%d rows: %s", rows, warning.Message)
			}
		}
	}
}

// TestAnchorsOfIntegratedSignals: an anchor holds the common scale where signals are integrated out, as it does with message passing.
func TestAnchorsOfIntegratedSignals(t *testing.T) {
	if testing.Short() {
		t.Skip("numbers, which take many times as long with the race detector")
	}
	w, y, _, s0 := instrument(t, 60, 40, 8, 3)
	for name, anchor := range map[string]calamp.Anchor{"mean": {Mean: floats.Sum(s0) / 60}, "sensor": {Sensors: map[int]float64{7: s0[7]}}} {
		res := solveUnknown(t, w, y, func(o *calamp.Options) {
			o.Algorithm, o.Outliers, o.Anchor = solver.Evidence, calamp.Outliers{}, anchor
		})
		for _, w := range res.Warnings {
			if w.Code == calamp.AnchorMismatch {
				t.Errorf("%s: %s", name, w.Message)
			}
		}
		if !(res.ScaleSD < 0.05) {
			t.Errorf("%s: the common scale is uncertain by %.2g", name, res.ScaleSD)
		}
		for mu, s := range s0 {
			if d := res.S[mu] - s; !(math.Abs(d) < 5*math.Hypot(math.Sqrt(res.SVar[mu]), s*res.ScaleSD)) {
				t.Errorf("%s: s of sensor %d is %.4g, expected %.4g", name, mu, res.S[mu], s)
			}
		}
	}
}

// TestOneEntryOfOneSignal: gains and small entries of one signal look like noise beside one large entry, and an answer without them is none.
func TestOneEntryOfOneSignal(t *testing.T) {
	const m, n = 60, 80
	rng := rand.New(rand.NewPCG(1, 20))
	entries, x := make([]float64, m*n), make([]float64, n)
	for i := range entries {
		entries[i] = math.Copysign(1, rng.NormFloat64())
	}
	for i := range x {
		x[i] = 0.1 * rng.NormFloat64()
	}
	x[0] = 10
	w, err := operator.NewDense(m, n, entries)
	if err != nil {
		t.Fatal(err)
	}
	y := mat.NewDense(m, 1, nil)
	for mu := range m {
		y.Set(mu, 0, (floats.Dot(entries[mu*n:(mu+1)*n], x)+0.01*rng.NormFloat64())/(1+0.1*rng.NormFloat64()))
	}
	res := solveUnknown(t, w, y, func(o *calamp.Options) { o.Retry = true })
	if !warned(res, calamp.UnrecoveredOrNoise) {
		t.Errorf("%v: %s, warnings %v", res.Status, res.Reason, res.Warnings)
	}
}
