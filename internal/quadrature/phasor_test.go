package quadrature

import (
	"encoding/json"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/internal/vector"
	"pgregory.net/rapid"
)

// phasorRow is one case of testdata/complex_moments.json, computed with 60 digits.
type phasorRow struct {
	Prior struct {
		A, B  float64
		Phase string
		Mu0   float64
		Kappa float64
		P0    float64
		Eta   float64
		Vr    *float64
	}
	N       float64
	Tau     json.Number
	BRe     json.Number `json:"B_re"`
	BIm     json.Number `json:"B_im"`
	LogNorm json.Number `json:"log_norm"`
	MeanRe  json.Number `json:"mean_re"`
	MeanIm  json.Number `json:"mean_im"`
	Var     json.Number
}

func phasorRows(t testing.TB) []phasorRow {
	t.Helper()
	raw, err := os.ReadFile("testdata/complex_moments.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Rows []phasorRow }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Rows) == 0 {
		t.Fatal("no golden rows")
	}
	return file.Rows
}

// density is the row's; where its phase is known, with phases counted from that.
func (r *phasorRow) density(t testing.TB) Phasor {
	p := Phasor{
		Power: 2*r.N + r.Prior.P0, Linear: r.Prior.Eta, Tau: number(t, r.Tau),
		B:  complex(number(t, r.BRe), number(t, r.BIm)),
		Lo: r.Prior.A, Hi: r.Prior.B,
	}
	if r.Prior.Vr != nil {
		p.Tau += 0.5 / *r.Prior.Vr
	}
	switch r.Prior.Phase {
	case "known":
		p.Known = true
		p.B *= cmplx.Rect(1, -r.Prior.Mu0)
	case "vonmises":
		p.K = cmplx.Rect(r.Prior.Kappa, r.Prior.Mu0)
	}
	return p
}

func TestPhasorMomentsGolden(t *testing.T) {
	var worstVar, worstEdge, worstMean, worstLog float64
	for i, r := range phasorRows(t) {
		p := r.density(t)
		m := p.Moments()
		mean, size := m.Mean, cmplx.Abs(m.Mean)
		if p.Known {
			mean *= cmplx.Rect(1, r.Prior.Mu0)
		}
		if size < 1e-300 { // no direction is preferred
			size = p.Hi
		}
		meanErr := math.Hypot(difference(t, real(mean), r.MeanRe), difference(t, imag(mean), r.MeanIm)) / size / 0x1p-52
		worstMean = max(worstMean, meanErr)
		if meanErr > 8 {
			t.Errorf("row %d %+v: mean %v, want %s %s: off by %.2g ε", i, r.Prior, mean, r.MeanRe, r.MeanIm, meanErr)
		}
		wantVar := number(t, r.Var)
		varErr := math.Abs(difference(t, m.Var, r.Var)) / max(wantVar, 1e-300)
		// At a clipped edge the slope 2τr - 2|B| cancels (golden/complex-offset.md).
		edge := 8 * 0x1p-52 * p.Tau * size * math.Sqrt(wantVar)
		if varErr > 1e-11 {
			worstEdge = max(worstEdge, varErr)
			t.Logf("row %d: variance off by %.2g, where its slope has %.2g", i, varErr, edge)
		} else {
			worstVar = max(worstVar, varErr)
		}
		if varErr > 1e-11 && (varErr > edge || varErr > 5e-9) {
			t.Errorf("row %d %+v n=%g τ=%g B=%v: variance %.17g, want %s: relative error %.2g", i, r.Prior, r.N, p.Tau, p.B, m.Var, r.Var, varErr)
		}
		logNorm := m.LogMass + p.exponent(m.Peak) - logI0(cmplx.Abs(p.K))
		scale := 1 + p.Tau*size*size + 2*cmplx.Abs(p.B)*size + p.Power + cmplx.Abs(p.K)
		logErr := math.Abs(difference(t, logNorm, r.LogNorm)) / scale
		worstLog = max(worstLog, logErr)
		if logErr > 5e-15 {
			t.Errorf("row %d: log-normaliser %.17g, want %s", i, logNorm, r.LogNorm)
		}
	}
	t.Logf("worst: variance %.2g relative (%.2g at edges), mean %.2g ε, log-normaliser %.2g of its terms", worstVar, worstEdge, worstMean, worstLog)
}

func logI0(k float64) float64 { return math.Log(newCircular(k).scaled) + k }

// TestPhasorAlong: the derivative of E s along B is twice the variance along it.
func TestPhasorAlong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Phasor{
			Power: 2 * rapid.Float64Range(0, 10).Draw(t, "n"), Tau: rapid.Float64Range(0.1, 300).Draw(t, "tau"),
			K:  complex(rapid.SampledFrom([]float64{0, 0.5, 5, 300}).Draw(t, "kappa"), 0),
			Lo: 0.5, Hi: rapid.SampledFrom([]float64{0.5, 0.7, 3}).Draw(t, "hi"),
		}
		b := cmplx.Rect(rapid.Float64Range(0.1, 300).Draw(t, "b"), rapid.Float64Range(-3, 3).Draw(t, "phase"))
		const step = 1e-6
		at := func(c float64) float64 {
			q := p
			q.B = complex(c, 0) * b
			return real(q.Moments().Mean * cmplx.Conj(b))
		}
		p.B = b
		m := p.Moments()
		numeric := (at(1+step) - at(1-step)) / (2 * step)
		want := 2 * m.Along * real(b*cmplx.Conj(b))
		if math.Abs(numeric-want) > 1e-5*(1+math.Abs(want)+cmplx.Abs(b)) {
			t.Fatalf("%+v: the slope of E s along B is %.9g, by the variance %.9g", p, numeric, want)
		}
	})
}

func TestPhasorMomentsAreAlwaysPossible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 10), rapid.Float64Range(0, 1e20))
		lo := rapid.Float64Range(1e-3, 10).Draw(t, "lo")
		p := Phasor{
			Power: rapid.Float64Range(0, 1e6).Draw(t, "power"), Tau: size.Draw(t, "tau"),
			B:     cmplx.Rect(size.Draw(t, "b"), rapid.Float64Range(-4, 4).Draw(t, "phase")),
			K:     complex(rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1e8)).Draw(t, "kappa"), 0),
			Known: rapid.Bool().Draw(t, "known"),
			Lo:    lo, Hi: lo * (1 + rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(1e-6, 10)).Draw(t, "width")),
		}
		m := p.Moments()
		size2 := cmplx.Abs(m.Mean)
		if !(size2 <= p.Hi*(1+1e-12)) || !(m.Var >= 0) || !(m.Var <= p.Hi*p.Hi*(1+1e-12)) || math.IsNaN(m.LogMass) || !(m.Along <= m.Var*(1+1e-6)+1e-9*p.Hi*p.Hi) || !(m.Along >= 0) {
			t.Fatalf("%+v: %+v", p, m)
		}
	})
}

// TestPhasorSeveralMaxima compares densities in which B opposes K, which may have several maxima, with sums over a grid that is
// fine at both ends and at the turn.
func TestPhasorSeveralMaxima(t *testing.T) {
	tests.Long(t)
	densities := []Phasor{
		// The turn is just beyond Hi, where h has a second maximum, e^689 below that at Lo.
		{Power: 1, Tau: 1, B: cmplx.Rect(4.0231825e+06, 1.75), K: 176366.5, Lo: 0.001953125, Hi: 0.00390625},
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		kappa := math.Exp(8 * rng.Float64())
		away := math.Exp(6*rng.Float64() - 6)
		p := Phasor{Power: 40 * rng.Float64(), Tau: math.Exp(8*rng.Float64() - 2), K: complex(kappa, 0), Lo: 0.5, Hi: 1.5}
		turn := 0.3 + 1.5*rng.Float64()
		p.B = cmplx.Rect(0.5*kappa*math.Cos(away)/turn, math.Pi-away)
		densities = append(densities, p)
	}
	several := 0
	for _, p := range densities {
		q := p.field()
		var room [mostStretches]stretch
		parts := q.stretches(&room)
		turn := -real(p.K / (2 * p.B))
		if len(parts) > 2 || len(parts) == 2 && parts[0].hi != turn {
			several++
		}
		h := func(r float64) float64 {
			_, big := p.radius(r)
			return p.Power*math.Log(r) - p.Tau*r*r + big + math.Log(newCircular(big).scaled)
		}
		ends := []float64{p.Lo, p.Hi}
		for away := 1.0; away > 1e-6; away *= 0.7 {
			for _, r := range []float64{p.Lo + away*(p.Hi-p.Lo), p.Hi - away*(p.Hi-p.Lo), turn + away*p.Hi, turn - away*p.Hi} {
				if r > p.Lo && r < p.Hi {
					ends = append(ends, r)
				}
			}
		}
		slices.Sort(ends)
		top, mass, below := math.Inf(-1), 0.0, 0.0
		var first complex128
		median := p.AmplitudeQuantile(0.5)
		for i, lo := range ends[:len(ends)-1] {
			const cells = 100
			width := (ends[i+1] - lo) / cells
			for j := range cells {
				r := lo + (float64(j)+0.5)*width
				log := h(r)
				if log > top {
					less := math.Exp(top - log)
					mass, below, first, top = mass*less, below*less, first*complex(less, 0), log
				}
				w := width * math.Exp(log-top)
				mass += w
				below += w * min(1, max(0, (median-r)/width+0.5))
				z, big := p.radius(r)
				first += complex(w*newCircular(big).ratio*r/big, 0) * z
			}
		}
		m := p.Moments()
		log, wantLog := m.LogMass+p.exponent(m.Peak), math.Log(mass)+top
		mean := first / complex(mass, 0)
		if !(math.Abs(log-wantLog) < 1e-3+1e-14*math.Abs(wantLog)) {
			t.Errorf("%+v: log-mass %.9g, by a grid %.9g", p, log, wantLog)
		}
		if off := cmplx.Abs(m.Mean - mean); !(off < 1e-3*math.Sqrt(m.Var)) {
			t.Errorf("%+v: mean %.9g ± %.2g, by a grid %.9g", p, m.Mean, math.Sqrt(m.Var), mean)
		}
		if part := below / mass; math.Abs(part-0.5) > 1e-3 {
			t.Errorf("%+v: %.4g of the mass is below the median", p, part)
		}
	}
	t.Logf("%d of %d have a minimum beside the turn", several, len(densities))
}

// TestPhasorIntervals compares quantiles and intervals with sums over a grid of r and φ.
func TestPhasorIntervals(t *testing.T) {
	for _, p := range []Phasor{
		{Power: 6, Tau: 4, B: 3 + 2i, Lo: 0.2, Hi: 3},
		{Power: 6, Tau: 4, B: -1 + 0.2i, K: 3, Lo: 0.2, Hi: 3},
		{Power: 6, Tau: 40, B: 30 + 20i, K: 5, Lo: 0.5, Hi: 1.4},
		{Power: 6, Tau: 4, B: 3 + 2i, Lo: 0.7, Hi: 0.7},
		{Power: 2, Tau: 1, B: 0, Lo: 0.5, Hi: 1.5},
	} {
		mean := cmplx.Phase(p.Moments().Mean)
		lo, hi := p.AmplitudeQuantile(0.1), p.AmplitudeQuantile(0.7)
		_, half := p.PhaseInterval(0.8)
		const cells, angles = 300, 1800
		var total, below, between, inside float64
		for i := range cells {
			r := p.Lo + (p.Hi-p.Lo)*(float64(i)+0.5)/cells
			for j := range angles {
				away := math.Pi * (2*(float64(j)+0.5)/angles - 1)
				w := math.Exp(p.exponent(cmplx.Rect(r, mean+away)) - p.exponent(cmplx.Rect(0.5*(p.Lo+p.Hi), mean)))
				total += w
				if r < lo {
					below += w
				}
				if r < hi {
					between += w
				}
				if math.Abs(away) < half {
					inside += w
				}
			}
		}
		if p.Lo < p.Hi && (math.Abs(below/total-0.1) > 0.01 || math.Abs(between/total-0.7) > 0.01) {
			t.Errorf("%+v: quantiles 0.1 and 0.7 have %.4g and %.4g below them", p, below/total, between/total)
		}
		if math.Abs(inside/total-0.8) > 0.01 {
			t.Errorf("%+v: interval of probability 0.8 has %.4g", p, inside/total)
		}
		if c := p.AmplitudeCDF(hi); p.Lo < p.Hi && math.Abs(c-0.7) > 1e-9 {
			t.Errorf("%+v: CDF at the quantile 0.7 is %g", p, c)
		}
	}
}

// TestPhasorLogNormal: with a log-normal factor on the amplitude the moments are those of a sum over a fine grid.
func TestPhasorLogNormal(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 12 {
		p := Phasor{
			Power: 10 * rng.Float64(), Tau: 50 * rng.Float64(),
			B:  cmplx.Rect(50*rng.Float64(), 6*rng.Float64()-3),
			K:  complex([]float64{0, 0.5, 5}[i%3], 0),
			Lo: 0.3, Hi: 3, LogCenter: 0.5 + 1.5*rng.Float64(), LogPrecision: 1 + 99*rng.Float64(),
			Known: i%2 == 0,
		}
		const cells, turns = 1000, 120
		top := math.Inf(-1)
		log := func(r, phi float64) float64 { return p.exponent(cmplx.Rect(r, phi)) }
		for i := range 60 {
			for j := range 60 {
				top = max(top, log(0.3+2.7*float64(i)/60, 2*math.Pi*float64(j)/60))
			}
		}
		angles := turns
		if p.Known {
			angles = 1
			top = math.Inf(-1)
			for i := range cells {
				top = max(top, log(0.3+2.7*float64(i)/cells, 0))
			}
		}
		var mass, square float64
		var first complex128
		for i := range cells {
			r := 0.3 + 2.7*(float64(i)+0.5)/cells
			for j := range angles {
				phi := 2 * math.Pi * float64(j) / float64(angles)
				w := math.Exp(log(r, phi) - top)
				mass += w
				square += w * r * r
				first += complex(w, 0) * cmplx.Rect(r, phi)
			}
		}
		mean := first / complex(mass, 0)
		variance := square/mass - real(mean)*real(mean) - imag(mean)*imag(mean)
		m := p.Moments()
		if cmplx.Abs(m.Mean-mean) > 2e-4 || math.Abs(m.Var-variance) > 2e-4+1e-2*variance {
			t.Fatalf("%+v: moments %v ± %g, by a grid %v ± %g", p, m.Mean, m.Var, mean, variance)
		}
		logMass := m.LogMass + p.exponent(m.Peak)
		grid := math.Log(mass*2.7/cells/float64(angles)) + top
		if math.Abs(logMass-grid) > 1e-2 {
			t.Fatalf("%+v: log-mass %g, by a grid %g", p, logMass, grid)
		}
		if at := p.AmplitudeQuantile(0.3); math.Abs(p.AmplitudeCDF(at)-0.3) > 1e-8 {
			t.Fatalf("%+v: the distribution at its quantile 0.3 is %g", p, p.AmplitudeCDF(at))
		}
	}
}

// TestCircular compares with the series, summed term by term until nothing is added.
func TestCircular(t *testing.T) {
	for r := 0.01; r < 1e5; r *= 1.003 {
		zero, one, far := 1.0, 1.0, r >= besselFar
		if far {
			one = 0 // of I₀ - I₁
			for k, a, b := 1.0, 1.0, -1.0; k <= besselTerms; k++ {
				a *= (2*k - 1) * (2*k - 1) / (8 * k * r)
				b *= ((2*k-1)*(2*k-1) - 4) / (8 * k * r)
				zero, one = zero+a, one+(a+b)
			}
		} else {
			for k, a := 1.0, 1.0; a > 1e-19*zero; k++ {
				a *= 0.25 * r * r / (k * k)
				zero, one = zero+a, one+a/(k+1)
			}
		}
		c := newCircular(r)
		scaled, complement := zero*math.Exp(-r), 1-0.5*r*one/zero
		if far {
			scaled, complement = zero/math.Sqrt(2*math.Pi*r), one/zero
		}
		if math.Abs(c.scaled/scaled-1) > 2e-15 || math.Abs(c.complement-complement) > 2e-15 || far && math.Abs(c.complement/complement-1) > 2e-15 {
			t.Fatalf("R = %g: %+v, want I₀e^{-R} = %.17g and 1-A = %.17g", r, c, scaled, complement)
		}
	}
}

// TestPhasorRulesSuffice compares with the largest rule, between the same ends.
func TestPhasorRulesSuffice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...float64) float64 { return of[rng.IntN(len(of))] }
	var worstMean, worstVar, worstLog float64
	for range 20000 {
		tau := math.Exp(20*rng.Float64() - 4)
		p := Phasor{
			Power: 2 * float64(rng.IntN(12)), Tau: tau,
			B:     cmplx.Rect(tau*(0.3+2*rng.Float64())*math.Exp(0.3*rng.NormFloat64()), 6*rng.Float64()-3),
			K:     complex(pick(0, 0, 1, 20, 300, 1e4), 0),
			Known: rng.IntN(7) == 0,
		}
		ends := [][2]float64{{0.5, 1.5}, {0.95, 1.05}, {0.01, 100}}[rng.IntN(3)]
		p.Lo, p.Hi = ends[0], ends[1]
		switch rng.IntN(5) {
		case 0:
			p.Linear = 100 * rng.Float64()
			p.Tau += 50
		case 1:
			p.LogCenter, p.LogPrecision = 1, math.Exp(8*rng.Float64())
		}
		q := p.field()
		largest := func(on stretch) PhasorMoments {
			s := q.newSide(on.lo, on.hi)
			left, right := s.extent(on.lo, on.hi)
			half, rule := 0.5*(right-left), rules[len(rules)-1]
			return s.integrate(rule.x, rule.w, half, 0.5*(right+left), 0, half)
		}
		got := p.Moments()
		var room [mostStretches]stretch
		parts := q.stretches(&room)
		want := largest(parts[0])
		for _, part := range parts[1:] {
			want = q.combine(want, largest(part))
		}
		meanErr := (cmplx.Abs(got.Mean-want.Mean) - 3e-15*cmplx.Abs(want.Mean)) / math.Sqrt(want.Var)
		varErr, logErr := math.Abs(got.Var/want.Var-1), math.Abs(got.LogMass-want.LogMass)
		worstMean, worstVar, worstLog = max(worstMean, meanErr), max(worstVar, varErr), max(worstLog, logErr)
		if meanErr > 1e-12 || varErr > 1e-11 || logErr > 1e-12 {
			t.Fatalf("%+v: %+v, want %+v: mean off by %.2g standard deviations, variance by %.2g, log-mass by %.2g", p, got, want, meanErr, varErr, logErr)
		}
	}
	t.Logf("worst: mean %.2g standard deviations, variance %.2g, log-mass %.2g", worstMean, worstVar, worstLog)
}

func BenchmarkPhasorMoments(b *testing.B) {
	for name, precision := range map[string]float64{"wide": 10, "middle": 100, "narrow": 1e6} {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				tau := precision * (1 + 0.05*float64(i%20))
				p := Phasor{Power: 8, Tau: tau, B: complex(tau, float64(i%7)), K: 20, Lo: 0.5, Hi: 1.5}
				p.Moments()
			}
		})
	}
}

// TestPhasorNodes compares the nodes four at a time with one by one.
func TestPhasorNodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	together := 0
	for range 5000 {
		tau := math.Exp(12 * rng.Float64())
		p := Phasor{
			Power: 2 * float64(rng.IntN(12)), Tau: tau, Linear: 10 * rng.Float64(),
			B: cmplx.Rect(tau*(0.3+2*rng.Float64()), 6*rng.Float64()-3), K: complex(300*rng.Float64(), 0), Lo: 0.5, Hi: 1.5,
		}
		if rng.IntN(2) == 0 {
			p.LogCenter, p.LogPrecision = 0.8+0.4*rng.Float64(), math.Exp(8*rng.Float64())
		}
		q := p.field()
		var room [mostStretches]stretch
		on := q.stretches(&room)[0]
		s := q.newSide(on.lo, on.hi)
		left, right := s.extent(on.lo, on.hi)
		half, mid := 0.5*(right-left), 0.5*(right+left)
		rule := s.legendre(left, right)
		at := func() *vector.PhasorResults {
			room := func() []float64 { return make([]float64, mostNodes) }
			return &vector.PhasorResults{Weight: room(), Re: room(), Im: room(), Scatter: room(), Along: room()}
		}
		got, want := at(), at()
		if !s.farNodes(rule.x, rule.w, half, mid, 0, got) {
			continue
		}
		together++
		s.nodes(rule.x, rule.w, half, mid, 0, want)
		for i := range rule.x {
			u := mid + half*rule.x[i]
			// The rounding of βr + K, of which both may oppose each other.
			off := 4e-16 * (math.Sqrt(s.square)*s.r0 + real(p.K)) / s.big0
			for name, v := range map[string][3]float64{
				"weight":  {got.Weight[i], want.Weight[i], 200*off*want.Weight[i] + 1e-300},
				"re":      {got.Re[i], want.Re[i], 2*off*(half+math.Abs(want.Re[i])) + 0.2*off*s.r0},
				"im":      {got.Im[i], want.Im[i], 2 * off * (half + math.Abs(want.Im[i]))},
				"scatter": {got.Scatter[i], want.Scatter[i], 10 * off * want.Scatter[i]},
				"along":   {got.Along[i], want.Along[i], 10 * off * want.Scatter[i]},
			} {
				if !(math.Abs(v[0]-v[1]) <= v[2]) {
					t.Fatalf("%+v: %s at node %d of %d, u = %g, is %.17g, one by one %.17g", p, name, i, len(rule.x), u, v[0], v[1])
				}
			}
		}
	}
	t.Logf("%d of 5000 together", together)
}

// TestPhasorOpposed: readings that say the very opposite of what is known of the phase leave no digits of R where it is zero; the
// moments are those of readings that are a little off.
func TestPhasorOpposed(t *testing.T) {
	for _, p := range []Phasor{
		{Power: 1, Tau: 0.00325, B: 0.2075i, K: -18.83i, Lo: 1e-4, Hi: 4e4},
		{Power: 3, Tau: 2, B: -4, K: 5, Lo: 0.3, Hi: 2},
		{Power: 11, Tau: 2, B: 94i, K: -1i, Lo: 1e-9, Hi: 1e10},
	} {
		near := p
		near.B *= complex(1, 1e-9)
		got, want := p.Moments(), near.Moments()
		if cmplx.Abs(got.Mean-want.Mean) > 1e-6*cmplx.Abs(want.Mean) || !(math.Abs(got.Var/want.Var-1) < 1e-6) || !(math.Abs(got.LogMass-want.LogMass) < 1e-6) {
			t.Errorf("%+v: %+v, a little off %+v", p, got, want)
		}
	}
}
