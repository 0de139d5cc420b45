package sweep

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Plan says what a sweep will take.
type Plan struct {
	Points int
	Memory Size          // of the largest point
	Probes []Probe       // what the estimate comes from
	Work   time.Duration // of all points together, on one worker
	Parts  []PlannedPart // by algorithm
}

// PlannedPart is a plan's part of one algorithm.
type PlannedPart struct {
	Algorithm Algorithm
	Points    int
	Work      time.Duration
}

// Probe is a point that was run to see how long it takes.
type Probe struct {
	Point Point
	Row   Row
}

// NewPlan estimates what points will take. For every algorithm it runs the
// cheapest, and then costlier ones while they promise to end within the budget
// (default 20 s). Rows of probes are as good as any, and can be kept.
func NewPlan(ctx context.Context, r *Runner, points []Point, budget time.Duration) (*Plan, error) {
	plan := &Plan{Points: len(points)}
	var order []Algorithm
	groups := make(map[Algorithm][]Point)
	for _, p := range points {
		if groups[p.Algorithm] == nil {
			order = append(order, p.Algorithm)
		}
		groups[p.Algorithm] = append(groups[p.Algorithm], p)
		if m := p.Memory(); m <= r.Limits.memory() {
			plan.Memory = max(plan.Memory, m)
		}
	}
	budget = cmp.Or(budget, 20*time.Second) / time.Duration(max(1, len(order)))
	for _, a := range order {
		probes, err := probe(ctx, r, groups[a], budget)
		if err != nil {
			return nil, err
		}
		work := extrapolate(probes, groups[a])
		plan.Probes = append(plan.Probes, probes...)
		plan.Parts = append(plan.Parts, PlannedPart{a, len(groups[a]), work})
		plan.Work += work
	}
	return plan, nil
}

// quantiles of cost at which points are probed, the cheapest first. Many in the
// middle: how long a run takes depends more on which side of a threshold it is
// than on its size.
var quantiles = []float64{0, 0.35, 0.65, 1, 0.5, 0.8, 0.2, 0.9, 0.1, 0.95, 0.75, 0.55, 0.45, 0.25, 0.85, 0.7}

func probe(ctx context.Context, r *Runner, points []Point, budget time.Duration) ([]Probe, error) {
	sorted := slices.Clone(points)
	slices.SortStableFunc(sorted, func(a, b Point) int { return cmp.Compare(a.Cost(), b.Cost()) })
	var out []Probe
	end := time.Now().Add(budget)
	for i, q := range quantiles {
		p := sorted[int(q*float64(len(sorted)-1))]
		if i > 0 && time.Now().Add(extrapolate(out, []Point{p})).After(end) {
			break
		}
		if slices.ContainsFunc(out, func(o Probe) bool { return o.Point.Key() == p.Key() }) {
			continue
		}
		row, ok := r.Run(ctx, p)
		if !ok {
			return nil, ctx.Err()
		}
		out = append(out, Probe{p, row})
	}
	return out, nil
}

// extrapolate is how long points take at the pace of the probes.
func extrapolate(probes []Probe, points []Point) time.Duration {
	var wall, probed, cost float64
	for _, p := range probes {
		wall += p.Row.WallS
		probed += p.Point.Cost()
	}
	for _, p := range points {
		cost += p.Cost()
	}
	return time.Duration(wall / max(probed, 1e-300) * cost * float64(time.Second))
}

// batchTime is the work that is worth a message of its own.
const batchTime = time.Second

// BatchSize is how many points to hand out together, so that a message is worth
// a second of work.
func (p *Plan) BatchSize() int {
	mean := p.Work / time.Duration(max(1, p.Points))
	return max(1, min(int(batchTime/max(mean, time.Microsecond)), 1000))
}
