package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/dataset"
	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/internal/watch"
	"github.com/calamp/calamp/online"
)

// sampleLine is the JSON line of a sample.
type sampleLine struct {
	Seq        *int64        `json:"seq,omitempty"` // none where a line was refused that had no number
	Place      string        `json:"place,omitempty"`
	Status     string        `json:"status"` // of calamp.Status, or refused
	Iterations int           `json:"iterations"`
	Committed  bool          `json:"committed"`
	Reject     string        `json:"reject,omitempty"` // why not committed
	Reason     string        `json:"reason,omitempty"` // the same in a sentence
	Chi2       *float64      `json:"chi2,omitempty"`   // mean χ² of the readings used
	Used       int           `json:"used"`             // readings
	Worst      []sensorChi   `json:"worst,omitempty"`
	Masked     []int         `json:"masked,omitempty"`
	Flagged    []int         `json:"flagged"`
	Scale      *float64      `json:"scale,omitempty"`
	ScaleSD    *float64      `json:"scale_sd,omitempty"`
	X          []float64     `json:"x,omitempty"`
	status     calamp.Status // as a number
}

type sensorChi struct {
	Sensor int     `json:"sensor"` // row of W, from 0
	Chi    float64 `json:"chi"`
}

func (r *onlineRun) line(sequence int64, e *online.Estimate) *sampleLine {
	l := &sampleLine{
		Seq: &sequence, Status: e.Status.String(), Iterations: e.Iterations,
		Committed: e.Committed, Reject: e.Reject.String(), Used: e.Used,
		Masked: e.Masked, Flagged: orEmpty(e.Flagged),
		Scale: known(e.Scale), ScaleSD: known(e.ScaleSD()),
		status: e.Status,
	}
	if !e.Committed {
		l.Reason = e.Reason()
	}
	if e.Used > 0 {
		l.Chi2 = known(e.ChiSquare)
	}
	for _, w := range e.Worst {
		if known(w.Chi) != nil {
			l.Worst = append(l.Worst, sensorChi{w.Sensor, w.Chi})
		}
	}
	if r.emitX {
		l.X = e.X
	}
	return l
}

func refusedLine(refused *intake.Refused) *sampleLine {
	l := &sampleLine{Place: refused.Place, Status: "refused", Reject: "refused", Reason: refused.Err.Error(), Flagged: []int{}}
	if refused.Sequence >= 0 {
		l.Seq = &refused.Sequence
	}
	return l
}

// printLine prints a line at once: whoever reads them wants to know now.
func (r *onlineRun) printLine(l *sampleLine) error {
	if r.json || r.out == "-" {
		return nil
	}
	b, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("line of sample %d: %w", *l.Seq, err)
	}
	if _, err := r.stdout.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// results are the last samples' signals, for -o and for comparing with a truth.
type results struct {
	limit     int // 0 for none
	sequence  []int64
	x, xVar   [][]float64
	converged []bool
}

// add keeps copies, in the place of the oldest ones where there is a limit.
func (s *results) add(sequence int64, e *online.Estimate, wanted bool) {
	if !wanted {
		return
	}
	var x, xVar []float64
	if s.limit > 0 && len(s.x) == s.limit {
		x, xVar = s.x[0], s.xVar[0]
		s.x, s.xVar = shift(s.x), shift(s.xVar)
		s.sequence, s.converged = shift(s.sequence), shift(s.converged)
	}
	s.sequence = append(s.sequence, sequence)
	s.x, s.xVar = append(s.x, append(x[:0], e.X...)), append(s.xVar, append(xVar[:0], e.XVar...))
	s.converged = append(s.converged, e.Status == calamp.Converged)
}

// shift drops the first element, in place.
func shift[T any](list []T) []T {
	copy(list, list[1:])
	return list[:len(list)-1]
}

// result is the last samples with the present posterior; nil without samples.
func (r *onlineRun) result() *calamp.Result {
	if len(r.results.x) == 0 {
		return nil
	}
	p := r.calibrator.Posterior()
	r.takeModel(p)
	return &calamp.Result{
		Prior: r.model.prior(), Channel: r.model.channel(),
		X: columnsOf(r.results.x), XVar: columnsOf(r.results.xVar),
		S: p.S, SVar: p.SVar, Gain: p.Gain, ScaleSD: p.ScaleSD, Calibration: p.Calibration,
		Converged: r.results.converged,
	}
}

// takeModel takes what was learned of signals and noise.
func (r *onlineRun) takeModel(p *online.Posterior) {
	if learned := p.Model; learned != nil {
		c := r.model.channel()
		c.NoiseVar = learned.NoiseVar
		r.model.take(learned.Signal, c)
	}
}

func columnsOf(signals [][]float64) *mat.Dense {
	m := mat.NewDense(len(signals[0]), len(signals), nil)
	for k, x := range signals {
		m.SetCol(k, x)
	}
	return m
}

func (r *onlineRun) writeResults() error {
	if r.out == "" {
		return nil
	}
	res := r.result()
	if res == nil {
		r.warn("no sample was taken in by this run, so %s was not written", r.out)
		return nil
	}
	return dataset.SaveResult(r.out, res)
}

// truth is that of the samples in the results, where it is known.
func (r *onlineRun) truth() calamp.Truth {
	t := calamp.Truth{S: r.in.truth.S}
	if r.in.truth.X == nil {
		return t
	}
	n, _ := r.in.truth.X.Dims()
	t.X = mat.NewDense(n, len(r.results.sequence), nil)
	for k, sequence := range r.results.sequence {
		t.X.SetCol(k, mat.Col(nil, int(sequence-r.firstColumn), r.in.truth.X))
	}
	return t
}

func (r *onlineRun) metrics() *metrics {
	res := r.result()
	if res == nil || r.sourceKind != columnSource || r.in.truth.X == nil && r.in.truth.S == nil {
		return nil
	}
	res.Iterations = r.tally.iterations
	return metricsOf(res, r.truth())
}

// runJSON is what online prints with --json.
type runJSON struct {
	Status     calamp.Status   `json:"status"`
	Samples    int             `json:"samples"`
	Committed  int             `json:"committed"`
	Rejected   map[string]int  `json:"rejected"`
	Refused    int             `json:"refused"`
	Duplicates int             `json:"duplicates"`
	Skipped    int             `json:"skipped"`
	LastSeq    *int64          `json:"last_seq,omitempty"`
	Learned    uint64          `json:"learned_samples"` // in the posterior
	Iterations int             `json:"iterations"`
	WallS      float64         `json:"wall_s"`
	SolveMS    percentiles     `json:"solve_ms"`
	CommitMS   percentiles     `json:"commit_ms"`
	M          int             `json:"m"`
	N          int             `json:"n"`
	Model      model           `json:"model"`
	Options    optionsJSON     `json:"options"`
	Commit     string          `json:"commit"`
	Memory     float64         `json:"memory"`
	ScaleSD    *float64        `json:"scale_sd,omitempty"`
	GainSD     *float64        `json:"gain_sd,omitempty"` // median, relative
	Flagged    []flaggedSensor `json:"flagged"`
	Metrics    *metrics        `json:"metrics,omitempty"`
	State      string          `json:"state,omitempty"`
	Written    []string        `json:"written"`
}

type percentiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

type flaggedSensor struct {
	Sensor int    `json:"sensor"`
	Reason string `json:"reason"`
}

func flaggedOf(p *online.Posterior) []flaggedSensor {
	list := []flaggedSensor{}
	for _, f := range p.Flagged {
		list = append(list, flaggedSensor{f.Sensor, f.Reason.String()})
	}
	return list
}

// summarise tells how the run went, as JSON or in words.
func (r *onlineRun) summarise(interrupted bool) error {
	t := &r.tally
	p := r.calibrator.Posterior()
	gainSD := typicalGainSD(&calamp.Result{S: p.S, SVar: p.SVar})
	r.takeModel(p)
	if !r.json {
		r.noteSummary(p, gainSD)
		return nil
	}
	m, n := r.in.w.Dims()
	j := runJSON{
		Status: t.status(interrupted), Samples: t.samples, Committed: t.committed, Rejected: t.rejected,
		Refused: t.refused, Duplicates: t.duplicates, Skipped: t.skipped,
		Learned: p.Samples, Iterations: t.iterations, WallS: time.Since(t.start).Seconds(),
		SolveMS: percentiles{t.solving.at(0.5), t.solving.at(0.99)}, CommitMS: percentiles{t.saving.at(0.5), t.saving.at(0.99)},
		M: m, N: n, Model: r.model, Options: r.solver.json(), Commit: r.commit.String(), Memory: r.memory,
		ScaleSD: known(p.ScaleSD), GainSD: known(gainSD), Flagged: flaggedOf(p),
		Metrics: r.metrics(), State: r.state, Written: []string{},
	}
	if r.last != online.NoSequence {
		j.LastSeq = &r.last
	}
	if r.out != "" && r.out != "-" && len(r.results.x) > 0 {
		j.Written = append(j.Written, r.out)
	}
	return r.printJSON(j)
}

func (r *onlineRun) noteSummary(p *online.Posterior, gainSD float64) {
	t := &r.tally
	var words []string
	add := func(n int, what string) {
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(t.committed, "learned from")
	for _, reason := range slices.Sorted(maps.Keys(t.rejected)) {
		add(t.rejected[reason], reason)
	}
	add(t.refused, "refused")
	add(t.duplicates, "taken in before")
	add(t.skipped, "below --from")
	if len(words) > 0 {
		words = append([]string{""}, words...)
	}
	r.note("%s%s", plural(t.samples, "sample"), strings.Join(words, ", "))
	if t.samples == 0 {
		return
	}
	r.note("%.3g iterations a sample; solved in %.3g ms (median), %.3g ms (p99); committed in %.3g ms, %.3g ms",
		float64(t.iterations)/float64(t.samples), t.solving.at(0.5), t.solving.at(0.99), t.saving.at(0.5), t.saving.at(0.99))
	if p.Model != nil {
		r.note("model: %v; %s learned", &r.model, strings.Join(r.model.Learned, ", "))
	}
	r.note("gains: typical uncertainty ±%s; scale ±%s; %s flagged", percent(gainSD), percent(p.ScaleSD), plural(len(p.Flagged), "sensor"))
	for _, f := range p.Flagged {
		r.warn("sensor %d is not used: %s", f.Sensor, f.Reason)
	}
	if m := r.metrics(); m != nil {
		var text summary
		text.truth(m)
		for line := range strings.Lines(text.String()) {
			r.note("%s", strings.TrimSpace(line))
		}
	}
}

// openWatch starts the HTTP side.
func (r *onlineRun) openWatch() error {
	if r.http == "" {
		if r.token != "" {
			return usage("--http-token needs --http with it")
		}
		return nil
	}
	token, err := watch.Token(r.token)
	if err != nil {
		return usage("--http-token: %w", err)
	}
	server, err := watch.Listen(r.http, token)
	switch {
	case errors.Is(err, watch.ErrAddress):
		return usage("--http %w", err)
	case errors.Is(err, watch.ErrToken):
		return usage("--http-token: %w", err)
	}
	if err != nil {
		return fmt.Errorf("--http: %w", err)
	}
	r.watch, r.closers = server, append(r.closers, server)
	r.watch.Show(watch.View{Sequence: r.last, Posterior: r.calibrator.Posterior()})
	r.note("http://%s/healthz /metrics /posterior", server.Address())
	return nil
}

// observe shows a sample to the outside.
func (r *onlineRun) observe(sequence int64, l *sampleLine, solving, saving time.Duration) {
	if r.watch == nil {
		return
	}
	r.watch.Show(watch.View{Sequence: sequence, Posterior: r.calibrator.Posterior()})
	r.watch.Sample(watch.Sample{
		Committed: l.Committed, Reject: l.Reject, Iterations: l.Iterations, Scale: or(l.Scale, 1),
		Solving: solving, Saving: saving,
	})
}

func or(v *float64, other float64) float64 {
	if v == nil || math.IsNaN(*v) {
		return other
	}
	return *v
}
