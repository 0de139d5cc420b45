package vector

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The tolerance allows for math.Exp, which may itself be off by a unit in the last
// place, 2.2e-16.
func TestExp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	v, want := make([]float64, 4000), make([]float64, 4000)
	for i := range v {
		v[i] = -708 + 1417*rng.Float64()
		if i%2 == 0 {
			v[i] = (rng.Float64() - 0.5) * math.Exp2(-20*rng.Float64())
		}
		want[i] = math.Exp(v[i])
	}
	Exp(v)
	worst := 0.0
	for i, w := range want {
		worst = max(worst, math.Abs(v[i]/w-1))
	}
	if t.Logf("relative difference from math.Exp %.2g", worst); !(worst < 6e-16) {
		t.Errorf("relative difference %.2g", worst)
	}
}

func TestLog(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	v, want := make([]float64, 4000), make([]float64, 4000)
	for i := range v {
		v[i] = math.Exp(rng.Float64()*1400 - 700)
		if i%2 == 0 {
			v[i] = 1 + (rng.Float64()-0.5)*math.Exp2(-50*rng.Float64())
		}
		want[i] = math.Log(v[i])
	}
	Log(v)
	worst := 0.0
	for i, w := range want {
		if w != 0 || v[i] != 0 {
			worst = max(worst, math.Abs(v[i]-w)/math.Abs(w))
		}
	}
	if t.Logf("relative error %.2g", worst); !(worst < 4e-16) {
		t.Errorf("relative error %.2g", worst)
	}
}

// log(1+v) - v has full relative precision: with n = 1/|log(1+v) - v| the density at
// the offset v·mode is 1/e.
func TestLog1pTail(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x, w := make([]float64, 4), []float64{1, 0, 0, 0}
	d, scratch, out := make([]float64, GainFields*Lanes), make([]float64, 8*Lanes), make([]float64, GainResults*Lanes)
	worst := 0.0
	for range 5000 {
		var want [Lanes]float64
		for lane := range Lanes {
			v := math.Exp(-20*rng.Float64()) * (1.9*rng.Float64() - 0.9)
			want[lane] = math.Log1p(v) - v
			if math.Abs(v) < 0.3 {
				want[lane] = 0
				for k := 40; k >= 2; k-- {
					want[lane] = want[lane]*-v - 1/float64(k)
				}
				want[lane] *= v * v
			}
			d[GainInverse*Lanes+lane], d[GainMiddle*Lanes+lane] = 1, v
			d[GainCount*Lanes+lane] = -1 / want[lane]
		}
		GainIntegrals(x, w, 1, d, scratch, out)
		for lane := range Lanes {
			// Its logarithm is -1 up to the relative error.
			worst = max(worst, math.Abs(out[GainMass*Lanes+lane]*math.E-1))
		}
	}
	if t.Logf("relative error %.2g", worst); !(worst < 2e-15) {
		t.Errorf("relative error %.2g", worst)
	}
}

// GainIntegrals and GainPowers, in assembly and in plain Go, agree up to rounding for
// all parameters with which the density stays within the range of float64.
func FuzzGainIntegrals(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		nodes, groups := 4+4*rng.IntN(12), 1+rng.IntN(3)
		x, w := make([]float64, nodes), make([]float64, nodes)
		for i := range x {
			x[i], w[i] = 2*rng.Float64()-1, rng.Float64()
		}
		d := make([]float64, groups*GainFields*Lanes)
		power := rng.IntN(MostPower) - MostPower/2
		for at := range groups * Lanes {
			field := func(i int, v float64) { d[(at/Lanes*GainFields+i)*Lanes+at%Lanes] = v }
			mode, half := 0.1+2*rng.Float64(), math.Exp(-20*rng.Float64())
			half *= 0.45 * mode
			field(GainSlope, rng.NormFloat64()*20/half)
			field(GainHalfTau, rng.Float64()*40/(half*half))
			field(GainCount, []float64{0, 1, 2.5, 10, 1000}[rng.IntN(5)])
			if power >= 0 {
				field(GainCount, float64(power))
			}
			field(GainInverse, 1/mode)
			field(GainMiddle, half*rng.NormFloat64()*0.1)
			field(GainHalfWidth, half)
		}
		got, want := make([]float64, groups*GainResults*Lanes), make([]float64, groups*GainResults*Lanes)
		scratch := make([]float64, 2*nodes*Lanes)
		GainIntegrals(x, w, groups, d, scratch, got)
		plainGainIntegrals(x, w, groups, d, scratch, want)
		if power >= 0 {
			for at := range groups * Lanes {
				lane := d[at/Lanes*GainFields*Lanes+at%Lanes:]
				lane[GainSlope*Lanes] -= float64(power) * lane[GainInverse*Lanes]
			}
			GainPowers(x, w, power, groups, d, scratch, got)
		}
		for i, v := range want {
			if e := math.Abs(got[i] - v); !(e <= 3e-13*math.Abs(v)+1e-13*float64(i/Lanes%GainResults&1)) {
				t.Errorf("result %d: %g, plain Go %g", i, got[i], v)
			}
		}
	})
}

func FuzzGaussBernoulli(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		n := 1 + rng.IntN(9)
		lambda, sigma := make([]float64, n), make([]float64, n)
		for i := range lambda {
			lambda[i], sigma[i] = 3*rng.NormFloat64(), math.Exp(60*rng.Float64()-50)
			if rng.IntN(5) == 0 {
				sigma[i] = math.Inf(1)
			}
		}
		logOdds, center, power := 10*rng.NormFloat64(), rng.NormFloat64()*float64(rng.IntN(2)), math.Exp(rng.NormFloat64())
		if rng.IntN(5) == 0 {
			logOdds = math.Inf(1)
		}
		var got, want [2][]float64
		for i := range 2 {
			got[i], want[i] = make([]float64, n), make([]float64, n)
		}
		GaussBernoulli(got[0], got[1], lambda, sigma, logOdds, center, power)
		plainGaussBernoulli(want[0], want[1], lambda, sigma, logOdds, center, power)
		for i := range n {
			// The odds are a difference of terms, and their rounding error is that of the
			// terms.
			_, _, odds := Slab(lambda[i], sigma[i], center, power)
			tol := 1e-15 * (10 + math.Abs(odds) + lambda[i]*lambda[i]/sigma[i])
			for what := range 2 {
				g, w := got[what][i], want[what][i]
				if !(math.Abs(g-w) <= tol*math.Abs(w)+1e-300) {
					t.Errorf("λ=%g Σ=%g log-odds %g, %g, %g: %g, plain Go %g", lambda[i], sigma[i], logOdds, center, power, g, w)
				}
			}
		}
	})
}

func BenchmarkGaussBernoulli(b *testing.B) {
	const n = 1000
	var v [4][]float64
	for i := range v {
		v[i] = make([]float64, n)
	}
	for i := range n {
		v[2][i], v[3][i] = math.Sin(float64(i)), 1e-3
	}
	for b.Loop() {
		GaussBernoulli(v[0], v[1], v[2], v[3], -1, 0, 1)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/element")
}

func BenchmarkGainIntegrals(b *testing.B) {
	const nodes, groups = 32, 16
	x, w := make([]float64, nodes), make([]float64, nodes)
	for i := range x {
		x[i], w[i] = float64(i)/nodes, 1
	}
	d, scratch, out := make([]float64, groups*GainFields*Lanes), make([]float64, 2*nodes*Lanes), make([]float64, groups*GainResults*Lanes)
	for i := range d {
		d[i] = 0.1
	}
	for b.Loop() {
		GainIntegrals(x, w, groups, d, scratch, out)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/groups/Lanes/nodes, "ns/node")
}

func BenchmarkGainPowers(b *testing.B) {
	const nodes, groups = 32, 16
	x, w := make([]float64, nodes), make([]float64, nodes)
	for i := range x {
		x[i], w[i] = float64(i)/nodes, 1
	}
	d, scratch, out := make([]float64, groups*GainFields*Lanes), make([]float64, 2*nodes*Lanes), make([]float64, groups*GainResults*Lanes)
	for i := range d {
		d[i] = 0.1
	}
	for b.Loop() {
		GainPowers(x, w, 10, groups, d, scratch, out)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/groups/Lanes/nodes, "ns/node")
}

// Place and width of gain posteriors are those of plain Go, and so are what is narrow, the ends of the others and their rules.
func TestGainShapes(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	const sensors = 4000
	ladder := Ladder{Steep: []float64{0.5, 3, 8, 22}, Far: []float64{5, 2.5, 1.7}}
	n, tau, b := make([]float64, sensors), make([]float64, sensors), make([]float64, sensors)
	for i := range n {
		n[i] = float64(rng.IntN(60))
		if i%5 == 0 {
			n[i] = 0
		}
		tau[i] = math.Exp(40 * rng.Float64())
		b[i] = tau[i] * (0.4 + 1.2*rng.Float64())
	}
	out := make([]float64, sensors*ShapeFields)
	GainShapes(n, tau, b, 0.5, 1.5, out)
	narrow, want := 0, make([]float64, Lanes*ShapeFields)
	rules := map[float64]int{}
	for i := 0; i < sensors; i += Lanes {
		GainEnds(n[i:], tau[i:], b[i:], 0.5, 1.5, ladder, out[i*ShapeFields:])
	}
	for i := range n {
		plainGainShape(n[i], tau[i], b[i], 0.5, 1.5, want)
		plainGainEnds(n[i], tau[i], 0.5, 1.5, ladder, want)
		rules[want[ShapeRule*Lanes]]++
		for field := range ShapeFields {
			got, want := out[(i/Lanes*ShapeFields+field)*Lanes+i%Lanes], want[field*Lanes]
			tolerance := 1e-14 * math.Abs(want)
			switch field {
			case ShapeSlope, ShapeSeriesMean: // differences of the rounding of the mode
				tolerance = math.Inf(1)
			case ShapeRoom:
				tolerance = 1e-15
			case ShapeLeft, ShapeRight: // which have it, too
				tolerance = 1e-6 * math.Abs(want)
			case ShapeNarrow:
				narrow += int(got)
			case ShapeSeriesMass, ShapeSeriesVariance: // which have the slope
				tolerance = 1e-6 * math.Abs(want)
			}
			if !(math.Abs(got-want) <= tolerance) {
				t.Errorf("n = %g, τ = %g, B = %g: field %d is %g, in plain Go %g", n[i], tau[i], b[i], field, got, want)
			}
		}
	}
	if narrow < sensors/10 || narrow > sensors*9/10 {
		t.Errorf("%d of %d are narrow", narrow, sensors)
	}
	if len(rules) != len(ladder.Steep)+1 {
		t.Errorf("rules chosen: %v", rules)
	}
}
