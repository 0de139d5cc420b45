package online_test

import (
	"testing"

	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
)

// disturb multiplies and adds to all readings.
func disturb(y []float64, factor, constant float64) {
	for mu := range y {
		y[mu] = factor*y[mu] + constant
	}
}

// A common mode of all sensors in one sample is reported, and what is learned stays right.
func TestDisturbedSamplesAreNamed(t *testing.T) {
	tests.Long(t)
	w, c := smallWorld(t, 7)
	for _, d := range []struct{ factor, constant float64 }{{1, 0.02}, {1, 0}, {1, 0.5}, {1, 0}, {4, 0}, {1, 0}} {
		y := w.draw()
		disturb(y, d.factor, d.constant)
		e := absorb(t, c, y)
		switch named := e.Disturbed; {
		case d.constant != 0 && (named == nil || !(named.Constant > 0)),
			d.factor != 1 && (named == nil || !(named.Factor > 2)),
			d.constant == 0 && d.factor == 1 && named != nil:
			t.Errorf("a sample × %g + %g, and %+v is named", d.factor, d.constant, named)
		}
	}
	if _, covered := w.calibration(c); covered < 0.9 {
		t.Errorf("%.0f %% of s within intervals", 100*covered)
	}
}

// Constants from the noise's size on are named, factors where they are beyond what signals differ by; no healthy sample of 1000 is.
func TestLongCommonModeInStreams(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "every tenth sample is read", "samples", "named", "rejected", "others named, of", "s inside 95 %")
	count := seedCount(2)
	for _, d := range []struct {
		name             string
		factor, constant float64
		samples          int
		least            float64
	}{
		{"as it is", 1, 0, 500, 0},
		{"+ 0.01 (the noise)", 1, 0.01, 100, 0.9},
		{"+ 0.03", 1, 0.03, 100, 0.9},
		{"+ 0.1", 1, 0.1, 100, 0.9},
		{"+ 1", 1, 1, 100, 0.9},
		{"- 100", 1, -100, 100, 0.9},
		{"× 3", 3, 0, 100, 0.9},
		{"× 1/3", 1.0 / 3, 0, 100, 0.8},
	} {
		var hit, all, rejected, others, rest int
		inside := 0.0
		for seed := range count {
			w := newWorld(t, 240, 300, uint64(seed))
			c := w.calibrator(t, online.Options{})
			for k := range d.samples {
				y, struck := w.draw(), k%10 == 9 && k > 10 && d.least > 0
				if struck {
					disturb(y, d.factor, d.constant)
				}
				e := absorb(t, c, y)
				switch named := e.Disturbed != nil; {
				case !struck:
					rest++
					others += int(b2f(named))
				default:
					all++
					hit += int(b2f(named))
					rejected += int(b2f(!e.Committed))
				}
			}
			_, covered := w.calibration(c)
			inside += covered / float64(count)
		}
		table.Row("| %s | %d | %d | %d | %d, %d | %.1f %% |", d.name, all, hit, rejected, others, rest, 100*inside)
		if others > 0 || float64(hit) < d.least*float64(all) || inside < 0.9 {
			t.Errorf("%s: %d of %d named, %d others; %.0f %% of s within intervals", d.name, hit, all, others, 100*inside)
		}
	}
}

func b2f(v bool) float64 {
	if v {
		return 1
	}
	return 0
}
