package baseline_test

import (
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/baseline"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

const (
	arraySensors, arraySide, arraySnapshots = 40, 11, 200
	arraySources                            = 4
	arrayRelativeNoise                      = 0.01
)

// drawArray is the microphone array of docs/guides/microphone-array.md with four sources a snapshot: s has amplitudes of 1/1.4 to 1/0.7 and
// phases of up to spread. Noise is of so much of the power of a reading.
func drawArray(seed uint64, spread float64) (w, y, x baseline.Parts, s []complex128, noise float64) {
	r := rand.New(rand.NewPCG(seed, 41))
	n := arraySide * arraySide
	w, x = baseline.NewParts(arraySensors, n, true), baseline.NewParts(n, arraySnapshots, true)
	for mu := range arraySensors {
		right, up := r.Float64()-0.5, r.Float64()-0.5
		for i := range n {
			across, along := 1.2*(float64(i%arraySide)/(arraySide-1)-0.5)-right, 1.2*(float64(i/arraySide)/(arraySide-1)-0.5)-up
			d := math.Sqrt(1 + across*across + along*along)
			w.Set(mu, i, cmplx.Rect(1/d, 2*math.Pi*d/0.1))
		}
		s = append(s, cmplx.Rect(1/(0.7+0.7*r.Float64()), spread*(2*r.Float64()-1)))
	}
	for k := range arraySnapshots {
		for _, i := range r.Perm(n)[:arraySources] {
			x.Set(i, k, complex(r.NormFloat64(), r.NormFloat64()))
		}
	}
	y = w.Mul(x)
	power := mat.Norm(y.Re, 2)*mat.Norm(y.Re, 2) + mat.Norm(y.Im, 2)*mat.Norm(y.Im, 2)
	noise = arrayRelativeNoise * arrayRelativeNoise * power / (arraySensors * arraySnapshots)
	sd := math.Sqrt(noise / 2)
	y.Apply(func(mu, _ int, z complex128) complex128 {
		return (z + complex(sd*r.NormFloat64(), sd*r.NormFloat64())) / s[mu]
	})
	return w, y, x, s, noise
}

// found is the part of the sources that are among the four largest entries of their snapshot.
func found(x, truth baseline.Parts) float64 {
	n, p := truth.Dims()
	right := 0.0
	for k := range p {
		sizes := make([]float64, n)
		for i := range sizes {
			sizes[i] = cmplx.Abs(x.At(i, k))
		}
		least := slices.Sorted(slices.Values(sizes))[n-arraySources]
		for i, size := range sizes {
			if truth.At(i, k) != 0 && size > 0 && size >= least {
				right++
			}
		}
	}
	return right / float64(arraySources*p)
}

// solveArray is given the model, and how widely phases are spread.
func solveArray(t *testing.T, w, y baseline.Parts, noise, spread float64) (x baseline.Parts, s []complex128, status calamp.Status) {
	m, n := w.Dims()
	values := make([]complex128, 0, m*n)
	for mu := range m {
		for i := range n {
			values = append(values, w.At(mu, i))
		}
	}
	op, err := operator.NewComplex(m, n, values)
	if err != nil {
		t.Fatal(err)
	}
	concentration := 0.0 // phases may be anywhere
	if spread < math.Pi {
		concentration = 3 / (spread * spread)
	}
	readings := mat.NewCDense(m, arraySnapshots, nil)
	for mu := range m {
		for k := range arraySnapshots {
			readings.Set(mu, k, y.At(mu, k))
		}
	}
	res, err := calamp.Solve(context.Background(), &calamp.Problem{
		W: op, Y: calamp.Pairs(readings), Prior: prior.ComplexGaussBernoulli{Density: float64(arraySources) / float64(n), SignalVar: 2},
		Channel: channel.ComplexGain{Prior: channel.ComplexPrior{Lo: 1 / 1.4, Hi: 1 / 0.7, Concentration: concentration}, NoiseVar: noise},
	}, &calamp.Options{Retry: true})
	if err != nil {
		t.Fatal(err)
	}
	got := calamp.FromPairs(res.X)
	x = baseline.NewParts(n, arraySnapshots, true).Apply(func(i, k int, _ complex128) complex128 { return got.At(i, k) })
	return x, res.ComplexS(), res.Status
}

// An array with hundreds of snapshots, by how far its phases are off: the spectral method, begun at gains of one, beside calamp, which is
// given the model with how widely phases are spread, and pursuit with the gains known.
func TestLongSpectralOfAnArray(t *testing.T) {
	if !*tables.Long {
		t.Skip("a long measurement")
	}
	ctx := context.Background()
	table := tables.New(t, "", "phases within", "seed", "spectral: gains off by", "sources in place", "calamp: gains off by", "sources in place", "status", "gains known, pursuit: sources in place")
	for _, spread := range []float64{0.1, 0.5, 1, math.Pi} {
		for seed := range uint64(2) {
			w, y, x, s, noise := drawArray(seed, spread)
			got, gains, err := baseline.Spectral(ctx, w, y, arraySources, 1000, nil)
			if err != nil {
				t.Fatal(err)
			}
			known, err := baseline.Pursuit(ctx, w, y.Clone().Apply(func(mu, _ int, v complex128) complex128 { return s[mu] * v }), noise)
			if err != nil {
				t.Fatal(err)
			}
			ours, ourGains, status := solveArray(t, w, y, noise, spread)
			table.Row("| ±%.3g | %d | %.2g | %.3f | %.2g | %.3f | %v | %.3f |",
				spread, seed, apart(gains, s), found(got, x), apart(ourGains, s), found(ours, x), status, found(known, x))
		}
	}
}
