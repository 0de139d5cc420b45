package online

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/tables"
)

// TestLongOffsetsInStreams: what a stream with offsets reaches, and whether its error bars hold.
func TestLongOffsetsInStreams(t *testing.T) {
	if !*tables.Long {
		t.Skip("long: -long runs it")
	}
	table := tables.New(t, "", "offsets, relative to the readings", "sample", "seeds", "error of x, the last ten samples", "squared error of offsets / stated variance", "offsets within their intervals", "s", "not learned from", "flagged")
	before := offsetStream
	defer func() { offsetStream = before }()
	const seeds, samples = 5, 100
	offsetStream.N, offsetStream.M, offsetStream.P = 200, 160, samples
	for _, relative := range []float64{0.1, 0.5} {
		offsetStream.Offset = 0.45 * relative
		type row struct{ x, count, square, stated, o, s, sensors, rejected, flagged float64 }
		rows := map[int]*row{20: {}, 50: {}, 100: {}}
		for seed := range seeds {
			in, err := offsetStream.Draw(uint64(seed + 1))
			if err != nil {
				t.Fatal(err)
			}
			c, rejected := offsetCalibrator(t, in, true), 0.0
			var last []float64
			for k := range samples {
				e, err := c.Absorb(context.Background(), mat.Col(nil, k, in.Y))
				if err != nil {
					t.Fatal(err)
				}
				if !e.Committed && e.Reject != WarmingUp {
					rejected++
				}
				x0 := mat.NewDense(len(e.X), 1, mat.Col(nil, k, in.Truth.X))
				last = append(last, calamp.Score(mat.NewDense(len(e.X), 1, e.X), nil, calamp.Truth{X: x0}).XMSEScaled)
				r, ok := rows[k+1]
				if !ok {
					continue
				}
				for _, v := range last[len(last)-10:] {
					r.x += v
					r.count++
				}
				p := c.Posterior()
				lo, hi := p.Calibration.Interval(0.95)
				scale := calamp.Score(nil, p.S, calamp.Truth{S: in.Truth.S}).Scale
				for mu, o := range in.Truth.O {
					r.sensors++
					d := p.Offset[mu] - o
					r.square += d * d
					r.stated += p.OffsetVar[mu]
					if math.Abs(d) < 1.96*math.Sqrt(p.OffsetVar[mu]) {
						r.o++
					}
					if s := in.Truth.S[mu] / scale; lo[mu] <= s && s <= hi[mu] {
						r.s++
					}
				}
				r.rejected += rejected
				r.flagged += float64(len(p.Flagged))
			}
		}
		for _, k := range []int{20, 50, 100} {
			r := rows[k]
			table.Row("| %g | %d | %d | %.2g | %.2f | %.1f %% | %.1f %% | %.0f | %.0f |", relative, k, seeds, r.x/r.count, r.square/r.stated, 100*r.o/r.sensors, 100*r.s/r.sensors, r.rejected, r.flagged)
			if covered := r.o / r.sensors; covered < 0.9 || covered > 0.98 {
				t.Errorf("offsets of %g, sample %d: %.1f %% of the offsets within their intervals", relative, k, 100*covered)
			}
		}
	}
}
