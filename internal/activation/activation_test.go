package activation

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"
)

// moment is a row of testdata/layers_moments.json: the ReLU's factor, computed with 50 digits.
type moment struct {
	Lam, Sigma, Omega, V float64
	LogZ                 float64 `json:"log_z"`
	X                    float64
	XVar                 float64 `json:"x_var"`
	U                    float64
	UVar                 float64 `json:"u_var"`
}

func TestReLUFollowsGoldenMoments(t *testing.T) {
	data, err := os.ReadFile("testdata/layers_moments.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []moment
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for i, m := range list {
		got := ReLU.Factor(m.Lam, 1/m.Sigma, m.Omega, m.V)
		x, u := math.Abs(got.X-m.X)/math.Sqrt(m.XVar), math.Abs(got.U-m.U)/math.Sqrt(m.UVar)
		xv, uv := math.Abs(got.XVar/m.XVar-1), math.Abs(got.UVar/m.UVar-1)
		if m.XVar == 0 { // below the range of float64
			x, xv = got.X*1e150, got.XVar*1e150
		}
		log := math.Abs(got.LogMass-0.5*math.Log(2*math.Pi*m.Sigma)-m.LogZ) / (1 + math.Abs(m.LogZ))
		off := max(x, u, xv, uv, log)
		worst = max(worst, off)
		if !(off < 1e-10) {
			t.Errorf("row %d (%+v): x %.2g and u %.2g of the sd, variances %.2g and %.2g, log mass %.2g", i, m, x, u, xv, uv, log)
		}
	}
	t.Logf("%d rows: %.2g at worst", len(list), worst)
}

// brute integrates the factor on a fine grid.
func brute(f Function, lambda, a, omega, v float64) (m Moments) {
	const cells = 100000
	sd := math.Sqrt(v)
	lo, hi := omega-14*sd, omega+14*sd
	log := func(u float64) float64 {
		d, x := u-omega, f.Of(u)-lambda
		return -0.5*d*d/v - 0.5*a*x*x
	}
	top := math.Inf(-1)
	step := (hi - lo) / cells
	for i := range cells {
		top = max(top, log(lo+(float64(i)+0.5)*step))
	}
	var mass, u1, x1, u2, x2 float64
	for i := range cells {
		u := lo + (float64(i)+0.5)*step
		w := math.Exp(log(u) - top)
		x := f.Of(u)
		mass, u1, x1, u2, x2 = mass+w, u1+w*u, x1+w*x, u2+w*u*u, x2+w*x*x
	}
	m.U, m.X = u1/mass, x1/mass
	m.UVar, m.XVar = u2/mass-m.U*m.U, x2/mass-m.X*m.X
	m.LogMass = top + math.Log(mass*step) - 0.5*math.Log(2*math.Pi*v)
	return m
}

func TestFactorsAreIntegrals(t *testing.T) {
	for _, f := range []Function{Identity, ReLU, Leaky(0.01), Leaky(0.3), HardTanh, Sign, Sigmoid} {
		for _, c := range [][4]float64{ // λ, a, ω, V
			{0.3, 0, 0.2, 1},
			{0.3, 2, -0.4, 1.5},
			{0.97, 400, -0.3, 0.8},
			{-0.5, 50, 0.4, 1.2},
			{1.4, 30, 0.5, 0.5},
			{-2, 20, 1, 0.3},
			{0.5, 3000, 4, 2},
			{0.02, 1e4, -2, 1},
			{0.9, 4, 9, 1},
			{-0.9, 4, -9, 1},
			{0.5, 9, 0, 100},
			{1.02, 100, -6, 9},
		} {
			got, want := f.Factor(c[0], c[1], c[2], c[3]), brute(f, c[0], c[1], c[2], c[3])
			u, x := math.Abs(got.U-want.U)/math.Sqrt(want.UVar), math.Abs(got.X-want.X)/math.Sqrt(max(want.XVar, 1e-6))
			uv, xv := math.Abs(got.UVar/want.UVar-1), math.Abs(got.XVar-want.XVar)/max(want.XVar, 1e-6)
			if off := max(u, x, uv, xv, math.Abs(got.LogMass-want.LogMass), math.Abs(got.Off-(got.U-c[2]))); !(off < 1e-3) {
				t.Errorf("%v at λ=%g a=%g ω=%g V=%g: %+v, expected %+v", f, c[0], c[1], c[2], c[3], got, want)
			}
		}
	}
}

// The derivative of the log-mass by ω is (û-ω)/V, and that of λ is a(x̂-λ)·(-1): both by differences.
func TestLogMassHasTheMomentsAsSlopes(t *testing.T) {
	for _, f := range []Function{Identity, ReLU, Leaky(0.01), HardTanh, Sign, Sigmoid} {
		for _, c := range [][4]float64{{0.3, 2, -0.4, 1.5}, {0.97, 4e4, -0.3, 0.8}, {0.4, 1e6, 0.1, 1e-3}, {5, 1e3, 0.1, 1e-2}, {0.999, 1e8, 9, 0.1}, {0.5, 1e2, 40, 10}} {
			m := f.Factor(c[0], c[1], c[2], c[3])
			step := 1e-4 * math.Sqrt(c[3])
			slope := (f.Factor(c[0], c[1], c[2]+step, c[3]).LogMass - f.Factor(c[0], c[1], c[2]-step, c[3]).LogMass) / (2 * step)
			if g := m.Off / c[3]; !(math.Abs(g-slope) < 1e-4*(1/math.Sqrt(c[3])+math.Abs(g))) {
				t.Errorf("%v at %v: slope by ω %g, expected %g", f, c, slope, g)
			}
			step = 1e-4 / math.Sqrt(c[1])
			slope = (f.Factor(c[0]+step, c[1], c[2], c[3]).LogMass - f.Factor(c[0]-step, c[1], c[2], c[3]).LogMass) / (2 * step)
			if g := c[1] * (m.X - c[0]); !(math.Abs(g-slope) < 1e-4*(math.Sqrt(c[1])+math.Abs(g))) {
				t.Errorf("%v at %v: slope by λ %g, expected %g", f, c, slope, g)
			}
			if m.XVar < 0 || m.UVar < 0 || math.IsNaN(m.X+m.U+m.XVar+m.UVar+m.LogMass) {
				t.Errorf("%v at %v: %+v", f, c, m)
			}
		}
	}
}

func TestSlopes(t *testing.T) {
	for _, f := range []Function{Identity, ReLU, Leaky(0.3), HardTanh, Sign, Sigmoid} {
		for _, u := range []float64{-30, -1.5, -0.3, 0.4, 1.5, 30} {
			const step = 1e-5
			if got, want := f.Slope(u), (f.Of(u+step)-f.Of(u-step))/(2*step); !(math.Abs(got-want) < 1e-9) {
				t.Errorf("%v: slope %g at %g, expected %g", f, got, u, want)
			}
		}
	}
}

// Means over a Gaussian are those of a grid.
func TestOver(t *testing.T) {
	for _, f := range []Function{Identity, ReLU, Leaky(0.3), HardTanh} {
		for _, c := range [][2]float64{{0.3, 1}, {-2, 0.5}, {0.9, 0.1}, {1, 4}, {-0.2, 0}} {
			value, slope := f.Over(c[0], c[1])
			wantValue, wantSlope := f.Of(c[0]), f.Slope(c[0])
			if c[1] > 0 {
				wantValue, wantSlope = 0, 0
				const cells = 20000
				for i := range cells {
					z := -9 + 18*(float64(i)+0.5)/cells
					w := 18 / float64(cells) * math.Exp(-0.5*z*z) / math.Sqrt(2*math.Pi)
					u := c[0] + z*math.Sqrt(c[1])
					wantValue, wantSlope = wantValue+w*f.Of(u), wantSlope+w*f.Slope(u)
				}
			}
			if math.Abs(value-wantValue) > 1e-6 || math.Abs(slope-wantSlope) > 1e-3 {
				t.Errorf("%v over N(%g, %g): %g and slope %g, expected %g and %g", f, c[0], c[1], value, slope, wantValue, wantSlope)
			}
		}
	}
}

// The rule for a narrow peak agrees with the trapezoidal one, to all digits that are asked for.
func TestNarrowPeaks(t *testing.T) {
	for _, c := range [][4]float64{{0.5, 1e4, 0.3, 1}, {0.9, 1.6e5, 0.5, 2}, {0.2, 1e6, -3, 0.1}, {0.7, 10, 0.4, 0.002}, {1.1, 20, 2, 0.0024}} {
		d := tilted{lambda: c[0], a: c[1], omega: c[2], v: c[3]}
		peaks := d.peaks()
		d.about(peaks[0])
		got, ok := d.narrow(peaks)
		want, _ := d.even(peaks)
		sdX, sdU := math.Sqrt(want.XVar), math.Sqrt(want.UVar)
		off := max(math.Abs(got.X-want.X)/sdX, math.Abs(got.U-want.U)/sdU, math.Abs(got.XVar/want.XVar-1), math.Abs(got.UVar/want.UVar-1), math.Abs(got.LogMass-want.LogMass))
		if !ok || !(off < 1e-10) {
			t.Errorf("%v: %v, off by %.2g", c, ok, off)
		}
	}
}

func TestParse(t *testing.T) {
	for _, name := range []string{"identity", "relu", "leaky", "leaky:0.2", "tanh-hard", "sigmoid", "sign"} {
		if f, err := Parse(name); err != nil || f.String() != name {
			t.Errorf("%q: %v, %v", name, f, err)
		}
	}
	for _, name := range []string{"", "ReLU", "tanh", "leaky:", "leaky:2"} {
		if _, err := Parse(name); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
}

// The trapezoidal rule agrees with a fine one over all, where adaptive panels miss a hundredth of the mass, too.
func TestEvenNodes(t *testing.T) {
	for _, c := range [][4]float64{{0.43817, 46.4239, -2.6564, 132.03}, {0.12391, 627.53, -4.923, 72.276}, {0.3, 3, 0.2, 1}, {0.97, 400, -0.3, 0.8}, {0.9, 30, -6, 9}} {
		d := tilted{lambda: c[0], a: c[1], omega: c[2], v: c[3]}
		peaks := d.peaks()
		d.about(peaks[0])
		got, ok := d.even(peaks)
		want := brute(Sigmoid, c[0], c[1], c[2], c[3])
		sdX, sdU := math.Sqrt(want.XVar), math.Sqrt(want.UVar)
		off := max(math.Abs(got.X-want.X)/sdX, math.Abs(got.U-want.U)/sdU, math.Abs(got.XVar/want.XVar-1), math.Abs(got.UVar/want.UVar-1), math.Abs(got.LogMass-want.LogMass))
		if !ok || !(off < 1e-9) {
			t.Errorf("%v: %v, off by %.2g", c, ok, off)
		}
	}
}

// Entries that are treated together are those of one alone, with slack and without, where V is 0, and where nothing was measured.
func TestEntriesAreThoseOfOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, f := range []Function{Identity, ReLU, Leaky(0.01), Leaky(0.3), HardTanh, Sign, Sigmoid} {
		for round := range 300 {
			count := 1 + rng.IntN(AtOnce)
			var lambda, sigma, omega, v [AtOnce]float64
			slack := []float64{0, 1e-3}[round%2]
			for i := range count {
				sigma[i], v[i] = math.Exp(14*rng.Float64()-13), math.Exp(14*rng.Float64()-13)
				u := rng.NormFloat64()
				lambda[i], omega[i] = f.Of(u)+4*math.Sqrt(sigma[i]+slack)*rng.NormFloat64(), u+4*math.Sqrt(v[i])*rng.NormFloat64()
				switch rng.IntN(20) {
				case 0:
					v[i] = 0
				case 1:
					sigma[i] = math.Inf(1)
				case 2: // far from both
					omega[i], lambda[i] = 1e3*math.Sqrt(v[i]), -1e3*math.Sqrt(sigma[i]+slack)
				}
			}
			var got [AtOnce]Moments
			f.Entries(got[:count], lambda[:], sigma[:], omega[:], v[:], slack)
			for i, m := range got[:count] {
				want := f.Entry(lambda[i], sigma[i], omega[i], v[i], slack)
				x, u := math.Sqrt(want.XVar), math.Sqrt(want.UVar)
				off := max(math.Abs(m.X-want.X)-1e-10*x-1e-15*math.Abs(want.X)-1e-250, math.Abs(m.XVar-want.XVar)-1e-10*x*x-1e-250,
					math.Abs(m.Off-want.Off)-1e-10*u-1e-15*math.Abs(want.Off)-1e-250, math.Abs(m.UVar-want.UVar)-1e-10*u*u, math.Abs(m.LogMass-want.LogMass)-1e-12*(1+math.Abs(want.LogMass)))
				if !(off <= 0) {
					t.Fatalf("%v at λ=%g Σ=%g ω=%g V=%g slack %g: %+v, alone %+v", f, lambda[i], sigma[i], omega[i], v[i], slack, m, want)
				}
			}
		}
	}
}
