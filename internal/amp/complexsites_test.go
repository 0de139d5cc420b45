package amp

import (
	"testing"

	"github.com/calamp/calamp/internal/evidence"
)

// TestFlatStart: a start whose evidence rises no more is given up where another one ended higher, and never where none has.
func TestFlatStart(t *testing.T) {
	one := func(size float64) *evidence.Complex {
		return evidence.NewComplex(3, 2, 2, func(mu, i int) complex128 { return complex(float64(1+mu), float64(i-mu)) },
			func(mu, k int) complex128 { return complex(size*float64(1+mu+k), 0) }, 0)
	}
	higher := one(1e-6) // readings of small numbers have a large density
	if _, err := higher.Step(); err != nil {
		t.Fatal(err)
	}
	lower := one(1) // no step yet: an evidence of zero, that stays
	if !(higher.LogEvidence() > lower.LogEvidence()) {
		t.Fatalf("evidence %g, and %g of the start that is flat", higher.LogEvidence(), lower.LogEvidence())
	}
	for _, c := range []struct {
		fit, best *evidence.Complex
		flat      bool
	}{{lower, higher, true}, {lower, nil, false}, {higher, lower, false}} {
		g := &complexSites{fit: c.fit, best: c.best}
		flat := false
		for calls := range mostFlat + 1 {
			if flat = g.flat(); flat && calls < mostFlat {
				t.Fatalf("given up after %d steps", calls)
			}
		}
		if flat != c.flat {
			t.Errorf("flat %v, want %v", flat, c.flat)
		}
	}
}
