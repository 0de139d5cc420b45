package main

import "fmt"

// A bar is what something must reach, and what it did, by round.
type bar struct {
	work    string
	asked   float64
	atLeast bool // a ratio; otherwise a time, in unit
	unit    string
	got     []float64
}

// ratioBar asks that one variant of a table of iterations take at least asked times
// as long as another.
type ratioBar struct {
	over, under string
	asked       float64
}

// numpyBest is numpy's four passes with the faster of the two layouts, by round.
const numpyBest = "best numpy f64"

var iterationBars = map[iterationTable][]ratioBar{
	{2400, 4000, 4, 1}:   {{realIteration, complexIteration, 0.222}, {numpyComplex, complexIteration, 2}, {realWhole, complexWhole, 0.222}, {numpyComplex, complexWhole, 2}},
	{1000, 1000, 1, 1}:   {{"numpy whole iteration", "iteration f32", 3}, {"numpy f64", "sweep f32", 3.8}, {"numpy f64", meanSweep, 6}, {"numpy f32", meanSweep, 2}},
	{6000, 10000, 1, 1}:  {{"numpy f64", "iteration f32", 6.5}, {"numpy f64", "iteration f64", 3}},
	{6000, 10000, 1, 2}:  {{"numpy f64", "iteration f32", 6.5}, {"numpy f64", "iteration f64", 3}, {"plain read of W, f32", "iteration f32", 0.8}, {"plain read of W, f32", meanIteration, 0.85}},
	{6000, 10000, 10, 1}: {{numpyBest, "iteration f32", 2.3}, {numpyBest, "iteration f32, scalar variance", 4}, {numpyBest, meanIteration, 5}},
	{6000, 10000, 10, 2}: {{numpyBest, "iteration f32", 2.3}, {numpyBest, "iteration f32, scalar variance", 4}},
}

// recordIteration keeps what a table of iterations says of the bars.
func (b *bench) recordIteration(t iterationTable, c *comparison) {
	for _, r := range iterationBars[t] {
		over, under := c.find(r.over), c.find(r.under)
		if r.over == numpyBest {
			over = faster(c.find("numpy f64"), c.find("numpy f64, signals first"))
		}
		if over == nil || under == nil {
			continue
		}
		b.bars = append(b.bars, bar{
			work:  fmt.Sprintf("M = %d, N = %d, P = %d, %s: %s ÷ %s", t.m, t.n, t.p, plural(t.threads, "thread"), r.over, r.under),
			asked: r.asked, atLeast: true, got: ratios(over, under),
		})
	}
}

// faster is the faster of two variants in every round.
func faster(a, b *variant) *variant {
	if a == nil || b == nil {
		return nil
	}
	best := &variant{}
	for i := range a.times {
		best.times = append(best.times, min(a.times[i], b.times[i]))
	}
	return best
}

// recordTime keeps times that must be at most asked.
func (b *bench) recordTime(work string, asked float64, unit string, got []float64) {
	b.bars = append(b.bars, bar{work: work, asked: asked, unit: unit, got: got})
}

// summary prints all bars, and whether they are met.
func (b *bench) summary() {
	if len(b.bars) == 0 {
		return
	}
	b.printf("\n## Bars\n")
	rows := [][]string{{"work", "bar", "median [quartiles]", "met"}}
	for _, r := range b.bars {
		asked, met := "≤ "+fmt.Sprint(r.asked)+" "+r.unit, median(r.got) <= r.asked
		if r.atLeast {
			asked, met = "≥ "+fmt.Sprint(r.asked)+" ×", median(r.got) >= r.asked
		}
		answer := "no"
		if met {
			answer = "yes"
		}
		rows = append(rows, []string{
			r.work, asked,
			fmt.Sprintf("%s [%s–%s]", digits(median(r.got)), digits(quantile(r.got, 0.25)), digits(quantile(r.got, 0.75))), answer,
		})
	}
	b.markdown(rows)
}
