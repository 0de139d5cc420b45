package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// ratios are later ÷ earlier, one a round.
type ratios []float64

func (r ratios) quantile(rank int) float64 {
	return slices.Sorted(slices.Values(r))[min(max(rank, 0), len(r)-1)]
}

func (r ratios) median() float64 {
	return (r.quantile((len(r)-1)/2) + r.quantile(len(r)/2)) / 2
}

// String is the median, with the interval that holds it with a probability of
// 95 %: the median lies between two of the sorted ratios, about √n from the middle.
func (r ratios) String() string {
	half := 0.98 * math.Sqrt(float64(len(r)))
	middle := float64(len(r)-1) / 2
	low, high := int(math.Floor(middle-half)), int(math.Ceil(middle+half))
	return fmt.Sprintf("%.3f (%.3f to %.3f)", r.median(), r.quantile(low), r.quantile(high))
}

// timing has the three clocks' ratios.
type timing struct{ solver, process, processor, iteration ratios }

func (t *timing) String() string {
	return fmt.Sprintf("%v, of the process %v, processor time %v", t.solver, t.process, t.processor)
}

func (t *timing) add(o *timing) {
	t.solver = append(t.solver, o.solver...)
	t.process = append(t.process, o.process...)
	t.processor = append(t.processor, o.processor...)
	t.iteration = append(t.iteration, o.iteration...)
}

// bar says whether a problem became as much faster as it was to.
func (t *timing) bar(p *problem) string {
	got := 1 / t.solver.median()
	if p.each {
		got = 1 / t.iteration.median()
	}
	switch {
	case p.faster == 0:
		return ""
	case got >= p.faster:
		return fmt.Sprintf("  %.2f × as fast, bar %.2g: yes", got, p.faster)
	}
	return fmt.Sprintf("  %.2f × as fast, bar %.2g: no", got, p.faster)
}

// timeAll times the larger problems and prints a table. It is nil where there
// is nothing to time.
func (b *pair) timeAll(ctx context.Context, chosen []*problem, rounds int) (*timing, error) {
	chosen = slices.DeleteFunc(slices.Clone(chosen), func(p *problem) bool { return !p.timed })
	if rounds == 0 || len(chosen) == 0 {
		return nil, nil
	}
	fmt.Printf("\n%-34s %9s  %-26s %-9s %s\n", "later ÷ earlier, medians", "s before", "solver", "process", "processor")
	all := &timing{}
	for _, p := range chosen {
		t, seconds, err := b.time(ctx, p, rounds)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Printf("%-34s %9.3f  %-26v %-9.3f %.3f%s\n", p.name, seconds, t.solver, t.process.median(), t.processor.median(), t.bar(p))
		all.add(t)
	}
	return all, nil
}

// time runs both commands in turn, and says how long the earlier one's solver takes.
func (b *pair) time(ctx context.Context, p *problem, rounds int) (*timing, float64, error) {
	folder := filepath.Join(b.folder(p), "timed")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, 0, err
	}
	t := &timing{}
	var seconds ratios
	for round := range rounds {
		binaries := []string{b.before, b.after}
		took := [2][4]float64{}
		for turn := range binaries {
			i := (turn + round) % 2
			clocks, err := clocked(ctx, binaries[i], folder, p)
			if err != nil {
				return nil, 0, err
			}
			took[i] = clocks
		}
		seconds = append(seconds, took[0][0])
		t.solver = append(t.solver, took[1][0]/took[0][0])
		t.process = append(t.process, took[1][1]/took[0][1])
		t.processor = append(t.processor, took[1][2]/took[0][2])
		t.iteration = append(t.iteration, took[1][3]/took[0][3])
	}
	return t, seconds.median(), nil
}

// clocked solves a problem once: seconds of the solver, the process, the processor, and of the solver in each iteration.
func clocked(ctx context.Context, binary, folder string, p *problem) (clocks [4]float64, err error) {
	if err := os.RemoveAll(filepath.Join(folder, stateFile)); err != nil {
		return clocks, err
	}
	f, err := execute(ctx, binary, folder, p.input, p.runs[0])
	if err != nil {
		return clocks, err
	}
	var printed struct {
		WallS      float64 `json:"wall_s"`
		Iterations float64 `json:"iterations"` // none of streams
	}
	if err := json.Unmarshal(f.stdout, &printed); err != nil {
		return clocks, errors.Join(err, fmt.Errorf("%s", f.stderr))
	}
	return [4]float64{printed.WallS, f.wall.Seconds(), f.cpu.Seconds(), printed.WallS / max(1, printed.Iterations)}, nil
}
