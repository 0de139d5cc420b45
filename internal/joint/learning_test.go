package joint

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/internal/tests"
)

// A sample covariance of few rows is shrunk to what they show: independent signals to a multiple of I, those of one amplitude hardly.
func TestShrink(t *testing.T) {
	const p, n = 10, 100
	rng := rand.New(rand.NewPCG(1, 2))
	for _, common := range []float64{0, 0.9} {
		a := make([]float64, p*p)
		for range n {
			row, amplitude := make([]float64, p), rng.NormFloat64()
			for k := range row {
				row[k] = math.Sqrt(common)*amplitude + math.Sqrt(1-common)*rng.NormFloat64()
			}
			for k := range p {
				for l := range p {
					a[k*p+l] += row[k] * row[l] / n
				}
			}
		}
		before := append([]float64(nil), a...)
		(*Span)(nil).shrink(a, p, n, nil)
		for k := range p {
			for l := range k {
				if common == 0 && math.Abs(a[k*p+l]) > 0.05 || common > 0 && math.Abs(a[k*p+l]-before[k*p+l]) > 0.15 {
					t.Errorf("common %g: covariance of %d and %d from %.3f to %.3f", common, k, l, before[k*p+l], a[k*p+l])
				}
			}
		}
	}
}

// The support of rows tells signals that share it from independent ones.
func TestGainTellsSharedSupports(t *testing.T) {
	const n, p, density, sigma = 300, 6, 0.2, 0.3
	rng := rand.New(rand.NewPCG(3, 4))
	for _, shared := range []bool{false, true} {
		lambda, sigmas := make([]float64, n*p), make([]float64, n*p)
		for i := range n {
			there := rng.Float64() < density
			for k := range p {
				on := rng.Float64() < density
				if shared {
					on = there
				}
				j := k*n + i
				sigmas[j] = sigma
				if lambda[j] = math.Sqrt(sigma) * rng.NormFloat64(); on {
					lambda[j] += rng.NormFloat64()
				}
			}
		}
		one := []float64{1, 1, 1, 1, 1, 1}
		gain := Gain(n, p, 1, lambda, sigmas, make([]float64, p), one, 0.1)
		t.Logf("shared %v: %.3g", shared, gain)
		if shared != (gain > 0) || math.Abs(gain) < 10 {
			t.Errorf("shared %v: gain %.3g", shared, gain)
		}
	}
}

// Of signals that do not differ, but for a little, the covariance says so with few rows, too: what they do not differ in would be taken for what tells the gains.
func TestShrinkLeavesSignalsThatHardlyDiffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	for _, c := range []struct {
		p, n int
		own  float64 // standard deviation of what each has by itself
	}{{8, 60, 1e-3}, {40, 60, 1e-2}, {100, 60, 1e-3}} {
		a := make([]float64, c.p*c.p)
		for range c.n {
			row, amplitude := make([]float64, c.p), rng.NormFloat64()
			for k := range row {
				row[k] = amplitude*float64(1-2*(k%2)) + c.own*rng.NormFloat64() // of either sign
			}
			for k := range c.p {
				for l := range c.p {
					a[k*c.p+l] += row[k] * row[l] / float64(c.n)
				}
			}
		}
		(*Span)(nil).shrink(a, c.p, float64(c.n), nil)
		difference := a[0] + a[c.p+1] + 2*a[1] // of signals of opposite signs
		if want := 2 * c.own * c.own; !(difference > 0.3*want && difference < 3*want) {
			t.Errorf("%+v: the difference of two signals has the variance %.3g, expected %.3g", c, difference, want)
		}
	}
}

// What signals do not have in common is found where it is far below the noise, too, in a few steps, and where there is nothing it ends at the least.
func TestRefitFindsWhatIsBelowTheNoise(t *testing.T) {
	const p, n, noise = 8, 2000, 1e-5
	for _, own := range []float64{0, 1e-6} {
		rng := rand.New(rand.NewPCG(5, 6))
		r := NewRows(n, p, 1, Isotropic(p, 1, 0, 1))
		centre, size := make([]float64, n*p), make([]float64, n)
		for i := range n {
			amplitude := rng.NormFloat64()
			for k := range p {
				centre[k*n+i] = amplitude + math.Sqrt(own+noise)*rng.NormFloat64()
			}
			size[i] = p / noise
		}
		change := 0.0
		for range 60 {
			r.Update(Field{Shape: (*Span)(nil).Round(p), Size: size, Centre: centre, Onward: make([]float64, n*p)})
			change = r.Refit(Learns{}, 0.7)
		}
		found := r.Prior.Cov[0] - r.Prior.Cov[1]
		t.Logf("own %g: %.3g, change %.2g", own, found, change)
		if math.Abs(found-own) > 3e-7 || change > 1e-6 {
			t.Errorf("own variance %g found as %.3g, with a last change of %.2g", own, found, change)
		}
	}
}

// Rows of several sizes: the posterior of a row is the mixture of those with each size, and the shape of sizes is learned.
func TestSizes(t *testing.T) {
	const p, rho, a = 3, 0.3, 5.0
	q := Prior{Density: rho, Mean: []float64{0.2, -0.1, 0.3}, Cov: []float64{1, 0.8, 0.7, 0.8, 1.2, 0.6, 0.7, 0.6, 0.9}, Sizes: 0.5}
	round := (*Span)(nil).Round(p)
	field := func(onward []float64) Field {
		return Field{Shape: round, Size: []float64{a * p}, Centre: make([]float64, p), Onward: onward}
	}
	for _, onward := range [][]float64{{0.3, -0.2, 0.5}, {3, 2, 4}, {30, 20, 25}} {
		r := NewRows(1, p, 1, q)
		r.Update(field(onward))
		zero, total := 0.0, 0.0
		x, second := make([]float64, p), make([]float64, p*p)
		for j, l := range logSizes(q.Sizes) {
			one := q
			one.Sizes, one.Density, one.Cov = 0, 1, make([]float64, p*p)
			for k, v := range q.Cov {
				one.Cov[k] = gridOfSizes[j] * v
			}
			of := NewRows(1, p, 1, one)
			of.Update(field(onward))
			mass := rho * math.Exp(l+of.LogMass[0])
			total += mass
			for k := range p {
				x[k] += mass * of.X[k]
				for m := range p {
					second[k*p+m] += mass * (of.Sum[k*p+m] + of.X[k]*of.X[m])
				}
			}
		}
		for _, v := range onward {
			zero -= 0.5 * v * v / a
		}
		total += (1 - rho) * math.Exp(zero)
		if got := r.LogMass[0]; math.Abs(got-math.Log(total)) > 1e-12*math.Abs(got) {
			t.Errorf("evidence %.15g, expected %.15g", got, math.Log(total))
		}
		for k := range p {
			if want := x[k] / total; math.Abs(r.X[k]-want) > 1e-12 {
				t.Errorf("mean %.15g, expected %.15g", r.X[k], want)
			}
			if math.Abs(r.C[k]-r.Sum[k*p+k]) > 1e-12 {
				t.Errorf("variance %.15g, and %.15g in the sum", r.C[k], r.Sum[k*p+k])
			}
			for m := range p {
				if want := second[k*p+m]/total - x[k]*x[m]/total/total; math.Abs(r.Sum[k*p+m]-want) > 1e-12 {
					t.Errorf("covariance %.15g, expected %.15g", r.Sum[k*p+m], want)
				}
			}
		}
	}
}

// Rows whose values are products of two normal ones differ in size, with a shape of one half, and rows of one covariance do not.
func TestSizesAreLearned(t *testing.T) {
	tests.Long(t)
	const n, p, a = 4000, 8, 1e6
	for _, differ := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(5, 6))
		onward, size := make([]float64, n*p), make([]float64, n)
		for i := range n {
			there, factor, common := rng.Float64() < 0.2, 1.0, rng.NormFloat64()
			if size[i] = a * p; differ {
				factor = math.Abs(rng.NormFloat64())
			}
			for k := range p {
				x := factor * (common + 0.1*rng.NormFloat64())
				if !there {
					x = 0
				}
				onward[k*n+i] = a*x + math.Sqrt(a)*rng.NormFloat64()
			}
		}
		q := Isotropic(p, 0.2, 0, 1)
		r := NewRows(n, p, 1, q)
		f := Field{Shape: (*Span)(nil).Round(p), Size: size, Centre: make([]float64, n*p), Onward: onward}
		step := func() { r.Update(f); r.Refit(Learns{Density: true}, 1) }
		for range 20 {
			step()
		}
		gain, shape := r.SizesGain()
		t.Logf("sizes differ %v: a gain of %.3g, with the shape %.2g", differ, gain, shape)
		if differ != (gain > 10) {
			t.Errorf("sizes differ %v: a gain of %.3g", differ, gain)
		}
		if !differ {
			continue
		}
		r.Prior.Sizes = shape
		for range 100 {
			step()
		}
		variance := r.Prior.MeanSize() * r.Prior.Cov[0]
		t.Logf("density %.3f, shape %.3f, variance %.3f", r.Prior.Density, r.Prior.Sizes, variance)
		if math.Abs(r.Prior.Density-0.2) > 0.02 || math.Abs(r.Prior.Sizes-0.5) > 0.1 || math.Abs(variance-1.01) > 0.15 {
			t.Error("expected 0.2, 0.5 and 1.01")
		}
	}
}

// Variances of signals that are correlated are drawn to their mean by what chance gives those that are not: signals of one scene keep their brightness.
func TestShrinkKeepsBrightness(t *testing.T) {
	const p = 6
	a := make([]float64, p*p)
	bright := []float64{0.4, 0.7, 1, 1.2, 1.5, 2}
	for k, u := range bright {
		for l, v := range bright {
			a[k*p+l] = u * v
		}
		a[k*p+k] += 1e-8
	}
	(*Span)(nil).shrink(a, p, 20, nil)
	for k, u := range bright {
		if ratio := a[k*p+k] / (u * u); math.Abs(ratio-1) > 1e-6 {
			t.Errorf("signal %d: variance %g times what it was", k, ratio)
		}
	}
}

// Rows that change by a part of their brightness are few, and of many sizes: those that change most are no directions that signals have, as fields become known. By what rows of one size have 15 to 27 were kept.
func TestFewRowsHaveNoDirectionsOfTheirOwn(t *testing.T) {
	tests.Long(t)
	const p, n, least = 60, 34, 1e-4
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 4))
		r := NewRows(n, p, 1, Isotropic(p, 1, 0, 1))
		x, off := make([]float64, n*p), make([]float64, n*p)
		for i := range n {
			bright := math.Exp(0.5 * rng.NormFloat64())
			for k := range p {
				x[k*n+i], off[k*n+i] = bright*(1+0.05*rng.NormFloat64()), rng.NormFloat64()
			}
		}
		centre, size := make([]float64, n*p), make([]float64, n)
		for noise, left := 1.0, 60; left > 0; left-- {
			for j := range x {
				centre[j] = x[j] + math.Sqrt(noise)*off[j]
			}
			for i := range size {
				size[i] = p / noise
			}
			r.Update(Field{Shape: (*Span)(nil).Round(p), Size: size, Centre: centre, Onward: make([]float64, n*p)})
			r.Refit(Learns{}, 0.7)
			noise = max(least, noise/1.5)
		}
		shape, _, ok := NewShape(r.Prior.Cov, p, 1, 0)
		if !ok {
			t.Fatal("no shape")
		}
		kept := 0
		for _, v := range shape.Values {
			if v > 2*shape.Values[p/2] {
				kept++
			}
		}
		if t.Logf("seed %d: %d directions", seed, kept); kept > 2 {
			t.Errorf("seed %d: %d directions were kept, expected the common one", seed, kept)
		}
	}
}
