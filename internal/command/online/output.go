package online

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/stream"
	"github.com/calamp/calamp/internal/watch"
	"github.com/calamp/calamp/internal/web"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
)

// results are the last samples' signals, for -o and for comparing with a truth.
type results struct {
	limit    int // 0 for none
	sequence []int64
	x, xVar  [][]float64

	latent, latentVar [][]float64 // empty where signals come out of no network, or some were solved together
	outlier           [][]float64 // empty where they are not looked for
	converged         []bool
}

// Put keeps copies, in the place of the oldest ones where there is a limit.
func (s *results) Put(event *stream.Event) error {
	if event.Fate != stream.Taken {
		return nil
	}
	e := event.Estimate
	defer s.putTogether(e.Together)
	var x, xVar, outlier, latent, latentVar []float64
	if s.limit > 0 && len(s.x) == s.limit {
		x, xVar = s.x[0], s.xVar[0]
		s.x, s.xVar = shift(s.x), shift(s.xVar)
		if e.Outlier != nil {
			outlier, s.outlier = s.outlier[0], shift(s.outlier)
		}
		if len(s.latent) > 0 {
			latent, latentVar = s.latent[0], s.latentVar[0]
			s.latent, s.latentVar = shift(s.latent), shift(s.latentVar)
		}
		s.sequence, s.converged = shift(s.sequence), shift(s.converged)
	}
	s.sequence = append(s.sequence, event.Sequence)
	s.x, s.xVar = append(s.x, append(x[:0], e.X...)), append(s.xVar, append(xVar[:0], e.XVar...))
	s.converged = append(s.converged, e.Status == calamp.Converged)
	if e.Outlier != nil {
		s.outlier = append(s.outlier, append(outlier[:0], e.Outlier...))
	}
	if e.Latent != nil {
		s.latent, s.latentVar = append(s.latent, append(latent[:0], e.Latent...)), append(s.latentVar, append(latentVar[:0], e.LatentVar...))
	}
	return nil
}

// putTogether puts the samples that were kept to be solved together in their places.
func (s *results) putTogether(t *online.Together) {
	if t == nil || len(s.x) == 0 {
		return
	}
	s.latent, s.latentVar = nil, nil // those of samples that were kept are not reported
	n, p := t.X.Dims()
	columns := len(s.x[len(s.x)-1]) / n
	p /= columns
	for k := range p {
		at := len(s.x) - p + k
		if t.Ago != nil {
			at = len(s.x) - 1 - t.Ago[k]
		}
		if at < 0 {
			continue
		}
		for j := range columns {
			mat.Col(s.x[at][j*n:(j+1)*n], k*columns+j, t.X)
			mat.Col(s.xVar[at][j*n:(j+1)*n], k*columns+j, t.XVar)
		}
		if t.Outlier != nil {
			mat.Col(s.outlier[at], k, t.Outlier)
		}
		s.converged[at] = true
	}
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
	p := r.loop.Calibrator.Posterior()
	r.takeModel(p)
	res := &calamp.Result{
		Prior: r.signal, Channel: r.model.Channel(), Sensors: r.ids,
		X: columnsOf(r.results.x, r.columns()), XVar: columnsOf(r.results.xVar, r.columns()),
		S: p.S, SVar: p.SVar, Gain: p.Gain, ScaleSD: p.ScaleSD, Calibration: p.Calibration,
		Offset: p.Offset, OffsetVar: p.OffsetVar,
		Phase: p.Phase, PhaseSD: p.PhaseSD, PhaseFree: p.PhaseFree,
	}
	res.NoiseVar = p.NoiseVar
	if len(r.results.latent) == len(r.results.x) {
		res.Latent, res.LatentVar = columnsOf(r.results.latent, 1), columnsOf(r.results.latentVar, 1)
	}
	if len(r.results.outlier) > 0 {
		res.Outlier = columnsOf(r.results.outlier, 1)
	}
	if r.complex {
		res.Channel = r.model.ComplexChannel(&r.phases)
	}
	for _, done := range r.results.converged {
		for range r.columns() {
			res.Converged = append(res.Converged, done)
		}
	}
	return res
}

// takeModel takes what was learned of signals, noise and the distribution of s, and brings
// what was given to the scale of an anchor.
func (r *onlineRun) takeModel(p *online.Posterior) {
	if p.Model != nil || p.Range != nil || p.Factor != 1 {
		r.takeLearned(p)
	}
	r.takeSignal(p)
}

func (r *onlineRun) takeLearned(p *online.Posterior) {
	if r.complex {
		r.takeComplexModel(p)
		return
	}
	g, c, f := r.stated.Prior(), r.stated.Channel(), p.Factor
	g, c.NoiseVar, c.Prior = g.Times(f), c.NoiseVar*f*f, c.Prior.Times(f)
	if learned := p.Model; learned != nil {
		c.NoiseVar = learned.NoiseVar
		if signal, ok := learned.GaussBernoulli(); ok {
			g = signal
		}
	}
	if p.Range != nil {
		c.Prior = p.Range.Prior.Between(c.Prior.Range())
	}
	if r.model.AtReading() {
		c.NoiseVar = c.Own.Read // in units of readings, whatever the scale
	}
	r.model.Take(g, c)
	if each := p.NoiseVar; each != nil {
		r.model.Noise.Lo, r.model.Noise.Hi = slices.Min(each), slices.Max(each)
	}
}

// takeSignal takes what was learned of the signals' prior.
func (r *onlineRun) takeSignal(p *online.Posterior) {
	stated, grouped := r.statedSignal.(interface {
		prior.Scalable
		prior.Parametric
		prior.Varied
	})
	switch {
	case r.complex && !grouped:
		r.signal = r.model.ComplexPrior()
		return
	case r.prior.Entries() > 0 || !grouped:
		r.signal = r.prior.Of(&r.model)
		return
	case p.Model == nil:
		r.signal = stated.Scaled(p.Factor)
	default:
		r.signal, _ = stated.WithValues(p.Model.Values) // which the calibrator has, so they are valid
	}
	signal := r.signal
	switch p := signal.(type) {
	case prior.ComplexPersistent:
		r.model.Density, r.model.SignalVar = p.Entry.Density, p.Entry.SignalVar
		return
	case prior.Persistent:
		kinds := p.Kinds.Average(p.Kinds.Values())
		r.model.Density, r.model.SignalMean, r.model.SignalVar = kinds.Density, kinds.SignalMean, kinds.SignalVar
		signal = p.Kinds
	}
	r.groups.TakeResult(&r.model, signal)
}

// stays is the probability that an entry stays from sample to sample; nil where that is not followed.
func (r *onlineRun) stays() *float64 {
	if p, is := r.signal.(interface{ Stays() float64 }); is {
		if stay := p.Stays(); !math.IsNaN(stay) {
			return &stay
		}
	}
	return nil
}

// columnsOf are lists as a matrix, each as so many columns: those of complex signals are real and imaginary parts.
func columnsOf(lists [][]float64, each int) *mat.Dense {
	n := len(lists[0]) / each
	m := mat.NewDense(n, len(lists)*each, nil)
	for k, x := range lists {
		for j := range each {
			m.SetCol(k*each+j, x[j*n:(j+1)*n])
		}
	}
	return m
}

func (r *onlineRun) writeResults() error {
	if r.out == "" {
		return nil
	}
	res := r.result()
	if res == nil {
		r.Warn("no sample was taken in by this run, so %s was not written", r.out)
		return nil
	}
	from, err := facts.Provenance("online", r.given, r.in.w, r.in.y, r.model)
	if err != nil {
		return fmt.Errorf("%s: provenance: %w", r.out, err)
	}
	if !r.ranks.Only() { // the hash of W took all ranks
		return nil
	}
	further, err := r.parts.Basis.Extra(res.X)
	if err != nil {
		return err
	}
	further = append(append(further, r.groups.Extra()...), r.results.numbers())
	further = append(further, ofSensors(r.loop.Calibrator.Posterior())...)
	if err := dataset.SaveResult(r.out, res, from, further...); err != nil {
		return err
	}
	if r.earlier > 0 {
		r.Note("%s has the signals that this run took in, and their numbers in seq; the %s before went through earlier runs", r.out, console.Plural(r.earlier, "sample"))
	}
	return nil
}

// ofSensors are the arrays of parameters that every sensor has of its own.
func ofSensors(p *online.Posterior) []dataset.Extra {
	if p.Theta == nil {
		return nil
	}
	return []dataset.Extra{{Name: "theta", Matrix: p.Theta}, {Name: "theta_sd", Matrix: p.ThetaSD()}, {Name: "theta_spread", Vector: p.Spread}}
}

// numbers are those of the samples whose signals are kept, as an array of the result.
func (s *results) numbers() dataset.Extra {
	v := make([]float64, len(s.sequence))
	for k, sequence := range s.sequence {
		v[k] = float64(sequence)
	}
	return dataset.Extra{Name: "seq", Vector: v}
}

// bearing says whether a flag is one that the arrays of a result depend on.
func bearing(name string) bool {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	c := calibration{}
	c.model.RegisterLearnable(flags)
	c.solver.Register(flags)
	c.phases.Register(flags)
	return name != "threads" && flags.Lookup(name) != nil ||
		slices.Contains([]string{"anchor", "basis", "prior", "groups", "commit", "memory", "max-chi2", "max-chi", "max-faulty", "outliers", "freeze", "offset", "sensors", "sensor-derivatives", "warm-up", "block", "persistent"}, name)
}

// truth is that of the samples in the results, where it is known.
func (r *onlineRun) truth() calamp.Truth {
	t := calamp.Truth{S: r.in.truth.S, O: r.in.truth.O, Phase: r.in.truth.Phase}
	if r.in.truth.X == nil {
		return t
	}
	n, _ := r.in.truth.X.Dims()
	columns := r.columns()
	t.X = mat.NewDense(n, len(r.results.sequence)*columns, nil)
	for k, sequence := range r.results.sequence {
		for j := range columns {
			t.X.SetCol(k*columns+j, mat.Col(nil, int(sequence-r.firstColumn)*columns+j, r.in.truth.X))
		}
	}
	return t
}

func (r *onlineRun) metrics() facts.Metrics {
	res := r.result()
	if res == nil || r.sourceKind != columnSource || r.in.truth.X == nil && r.in.truth.S == nil {
		return nil
	}
	res.Iterations = r.tally.Iterations
	var err error
	if res.X, err = r.parts.Basis.Signals(res.X); err != nil {
		return nil
	}
	return facts.MetricsOf(res, r.truth())
}

func flaggedOf(p *online.Posterior) []facts.FlaggedSensor {
	list := []facts.FlaggedSensor{}
	for _, f := range p.Flagged {
		list = append(list, facts.FlaggedSensor{Sensor: f.Sensor, Reason: f.Reason.String()})
	}
	return list
}

// summarise tells how the run went, as JSON or in words.
func (r *onlineRun) summarise(status string) error {
	p := r.loop.Calibrator.Posterior()
	gainSD := facts.TypicalGainSD(&calamp.Result{S: p.S, SVar: p.SVar})
	r.takeModel(p)
	r.shift.Take(p.OffsetSD)
	if !r.json {
		r.noteSummary(p, gainSD)
		return nil
	}
	return r.PrintJSON(r.object(status, p, gainSD))
}

// object is what online prints with --json.
func (r *onlineRun) object(status string, p *online.Posterior, gainSD float64) console.Object {
	t := &r.tally
	m, n := r.in.w.Dims()
	phase, written := "", []string{}
	var last *int64
	var phaseSD *float64 // none where it is a convention
	if r.complex {
		phase = r.phases.String()
		if !p.PhaseFree {
			phaseSD = console.Known(p.PhaseSD)
		}
	}
	if r.loop.Last != online.NoSequence {
		last = &r.loop.Last
	}
	if r.out != "" && r.out != "-" && len(r.results.x) > 0 {
		written = append(written, r.out)
	}
	return console.Object{
		"status", status, "samples", t.Samples, "committed", t.Committed, "rejected", orNone(t.Rejected), "refused", t.Refused, "duplicates", t.Duplicates,
		"missing?", t.Missing, "skipped", t.Skipped, "last_seq?", last, "learned_samples", p.Samples, "iterations", t.Iterations, "wall_s", time.Since(r.start).Seconds(),
		"solve_ms", t.Solving(), "commit_ms", t.Saving(), "m", m, "n", n, "complex?", r.complex, "phase?", phase, "phase_sd?", phaseSD,
		"model", r.model, "groups?", r.groups.Found(), "options", r.solver.JSON(), "commit", r.commit.String(), "memory", &r.memory, "drift?", p.Drift, "changes?", t.Changes,
		"scale_sd?", console.Known(p.ScaleSD), "gain_sd?", console.Known(gainSD), "flagged", flaggedOf(p), "warnings", console.OrEmpty(p.Warnings),
		"", r.shift.JSON(), "theta_spread?", p.Spread, "warm_up?", r.warmUp, "block?", r.block.stated(), "stay?", r.stays(),
		"outliers", r.outliers.String(), "outlier_rate?", p.OutlierRate, "left_out", t.LeftOut, "disturbed?", t.Disturbed,
		"metrics?", r.metrics(), "state?", r.keep.Path, "written", written,
	}
}

func (r *onlineRun) noteSummary(p *online.Posterior, gainSD float64) {
	t := &r.tally
	var words []string
	add := func(n int, what string) {
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(t.Committed, "learned from")
	for _, reason := range slices.Sorted(maps.Keys(t.Rejected)) {
		add(t.Rejected[reason], reason)
	}
	add(t.Refused, "refused")
	add(t.Duplicates, "taken in before")
	add(t.Skipped, "below --from")
	add(t.LeftOut, "of their readings left out")
	add(t.Disturbed, "disturbed in all sensors")
	if len(words) > 0 {
		words = append([]string{""}, words...)
	}
	r.Note("%s%s", console.Plural(t.Samples, "sample"), strings.Join(words, ", "))
	if t.Samples == 0 {
		return
	}
	solving, saving := t.Solving(), t.Saving()
	r.Note("%.3g iterations a sample; solved in %.3g ms (median), %.3g ms (p99); committed in %.3g ms, %.3g ms",
		float64(t.Iterations)/float64(t.Samples), solving.P50, solving.P99, saving.P50, saving.P99)
	if p.Model != nil {
		r.Note("model: %s, %s; %s learned", r.prior.Words(&r.model), r.model.ChannelWords(), strings.Join(r.model.Learned, ", "))
	}
	r.Note("gains: typical uncertainty ±%s; scale ±%s; %s flagged", console.Percent(gainSD), console.Percent(p.ScaleSD), console.Plural(len(p.Flagged), "sensor"))
	for j, spread := range p.Spread {
		r.Note("theta %d of every sensor: spread over them by %s (%s)", j, console.Short(spread), r.ofSensors[j].Name)
	}
	switch {
	case p.PhaseFree:
		r.Note("phase: common to signals and gains, a convention: nothing is known of it")
	case r.complex:
		r.Note("phase: common to signals and gains, uncertainty ±%s rad", console.Short(p.PhaseSD))
	}
	if p.Drift > 0 {
		r.Warn("the gains drift, by %s a sample: they are followed; --memory K forgets over K samples", console.Percent(p.Drift))
	}
	for _, w := range p.Warnings {
		r.Warn("%s: %s", w.Code, w.Message)
	}
	for _, f := range p.Flagged {
		r.Warn("sensor %d is not used: %s", f.Sensor, f.Reason)
	}
	if m := r.metrics(); m != nil {
		var text console.Summary
		facts.TruthLines(&text, m)
		for line := range strings.Lines(text.String()) {
			r.Note("%s", strings.TrimSpace(line))
		}
	}
}

// openWatch starts the HTTP side.
func (r *onlineRun) openWatch() error {
	if r.http == "" {
		if r.token != "" {
			return console.Usage("--http-token needs --http with it")
		}
		return nil
	}
	token, err := web.Token(r.token)
	if err != nil {
		return console.Usage("--http-token: %w", err)
	}
	server, err := watch.Listen(r.http, token)
	switch {
	case errors.Is(err, web.ErrAddress):
		return console.Usage("--http %w", err)
	case errors.Is(err, web.ErrToken):
		return console.Usage("--http-token: %w", err)
	case err != nil:
		return fmt.Errorf("--http: %w", err)
	}
	r.watch, r.closers = server, append(r.closers, server)
	r.watch.Show(watch.View{Sequence: r.loop.Last, Posterior: r.loop.Calibrator.Posterior()})
	r.Note("http://%s/healthz /metrics /posterior", server.Address())
	return nil
}

// orNone makes a table that JSON shows as {}.
func orNone(counts map[string]int) map[string]int {
	if counts == nil {
		return map[string]int{}
	}
	return counts
}
