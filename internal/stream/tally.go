package stream

import (
	"github.com/calamp/calamp/online"
)

// Tally counts what happened to the samples. The zero value is ready.
type Tally struct {
	// Unconverged says which samples count as not converged; nil for none.
	Unconverged func(e *online.Estimate) bool

	Samples, Committed  int
	Weight              float64        // of those that were learned from (see [online.Estimate])
	Together            int            // blocks that were solved
	Rejected            map[string]int // by reason
	Changes             int            // found in what is measured
	LeftOut             int            // single readings
	Disturbed           int            // samples, by a common mode of all sensors
	Refused             int            // were no samples
	Missing             int64          // messages that never came
	Duplicates, Skipped int
	NotConverged        int
	Iterations          int

	solving, saving quantiles
}

// Put counts.
func (t *Tally) Put(e *Event) error {
	switch e.Fate {
	case Refused:
		t.Refused++
	case Duplicate:
		t.Duplicates++
	case Skipped:
		t.Skipped++
	case Noticed:
		t.Missing += e.Missing
	default:
		t.sample(e)
	}
	return nil
}

// Settle takes back that samples were not solved, where they were together with others.
func (t *Tally) Settle(together *online.Together) {
	if together != nil {
		t.Together++
		t.NotConverged = max(0, t.NotConverged-together.Unsolved)
	}
}

func (t *Tally) sample(e *Event) {
	t.Samples++
	t.Iterations += e.Estimate.Iterations
	t.solving.add(e.Solving)
	t.saving.add(e.Saving)
	if e.Estimate.Change != nil {
		t.Changes++
	}
	if e.Estimate.Disturbed != nil {
		t.Disturbed++
	}
	t.LeftOut += len(e.Estimate.Masked)
	if e.Estimate.Committed {
		t.Committed++
		t.Weight += e.Estimate.Weight
	} else {
		if t.Rejected == nil {
			t.Rejected = map[string]int{}
		}
		t.Rejected[e.Estimate.Reject.String()]++
	}
	if t.Unconverged != nil && t.Unconverged(e.Estimate) {
		t.NotConverged++
	}
	t.Settle(e.Estimate.Together)
}

// Percentiles are the median and the 99th percentile of durations, in
// milliseconds.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// Solving is how long samples took to be solved.
func (t *Tally) Solving() Percentiles { return t.solving.percentiles() }

// Saving is how long they took to be published, committed and acknowledged.
func (t *Tally) Saving() Percentiles { return t.saving.percentiles() }

func (q *quantiles) percentiles() Percentiles { return Percentiles{q.at(0.5), q.at(0.99)} }
