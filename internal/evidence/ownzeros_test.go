package evidence

import (
	"math"
	"math/rand/v2"
	"testing"
)

// draw has entries that are zero with the probability w: all snapshots together, or each by itself.
func draw(n, p int, w float64, together bool) *ownZeros {
	r := rand.New(rand.NewPCG(1, 2))
	zeros := newOwnZeros(n, p)
	for i := range n {
		zero := r.Float64() < w
		for k := range p {
			if !together {
				zero = r.Float64() < w
			}
			zeros.r[zeros.at(i, k)] = 0
			if zero {
				zeros.r[zeros.at(i, k)] = 1
			}
		}
	}
	return zeros
}

// TestOwnZeros: the strength is small where snapshots have the same support, and large where supports have nothing in common; an entry has the probability of the other snapshots, or that of all.
func TestOwnZeros(t *testing.T) {
	for _, c := range []struct {
		together    bool
		least, most float64 // of κ
		near        float64 // how far an entry's probability may be from what is expected
	}{{true, 0, 0.5, 0.03}, {false, 50, math.Inf(1), 0.15}} {
		const w, p = 0.7, 20
		zeros := draw(200, p, w, c.together)
		for range 20 {
			zeros.learn(w)
		}
		if !(zeros.strength >= c.least && zeros.strength <= c.most) {
			t.Errorf("same support %v: κ = %.3g, expected %g to %g", c.together, zeros.strength, c.least, c.most)
		}
		for i := range 200 {
			expected := w
			if c.together {
				expected = zeros.r[zeros.at(i, 0)]
			}
			if got := zeros.of(i, 3, w); math.Abs(got-expected) > c.near {
				t.Errorf("same support %v: entry %d is zero with probability %.3f, expected %.3f", c.together, i, got, expected)
			}
		}
	}
}

// TestEvidenceOfZeros: of entries that are zero for certain, the evidence is the product of what the snapshots before each one say of it (Pólya's urn), and the likelihood rises in each step of κ.
func TestEvidenceOfZeros(t *testing.T) {
	const w, n, p = 0.6, 30, 7
	zeros := draw(n, p, w, false)
	zeros.r[zeros.at(4, 2)] = math.NaN() // without a cavity
	zeros.add()
	expected := 0.0
	for i := range n {
		sum, count := 0.0, 0.0
		for k := range p {
			zero := zeros.r[zeros.at(i, k)]
			if math.IsNaN(zero) {
				continue
			}
			one := (zeros.strength*w + sum) / (zeros.strength + count)
			expected += zero*math.Log(one) + (1-zero)*math.Log(1-one)
			sum, count = sum+zero, count+1
		}
	}
	if got := zeros.evidence(w); math.Abs(got-expected) > 1e-10*math.Abs(expected) {
		t.Errorf("evidence %.14g, expected %.14g", got, expected)
	}
	for range 5 {
		before := zeros.evidence(w)
		zeros.learn(w)
		if after := zeros.evidence(w); after < before {
			t.Errorf("evidence %.14g after a step of κ, %.14g before", after, before)
		}
	}
}
