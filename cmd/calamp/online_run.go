package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/internal/watch"
	"github.com/calamp/calamp/online"
)

// onlineRun is a stream being taken in.
type onlineRun struct {
	*calibration
	in         *material
	calibrator *online.Calibrator
	store      *online.Store  // nil without --state
	source     intake.Source  // of samples
	broker     *intake.Broker // nil without --nats
	watch      *watch.Server  // nil without --http
	closers    []io.Closer
	bar        *progress

	last        int64 // number of the last sample taken in
	trimmed     int64 // number of the message after which the stream was trimmed last
	ahead       bool  // a commit failed: the calibrator has learned more than its state
	firstColumn int64 // number of the first column
	results     results
	tally       tally
}

// tally counts what happened to the samples.
type tally struct {
	samples, committed  int
	rejected            map[string]int
	refused             int // were no samples
	duplicates, skipped int
	unconverged         int
	iterations          int
	solving, saving     quantiles
	start               time.Time
}

func (c *calibration) newRun(in *material) (*onlineRun, error) {
	signal, gain := c.model.known()
	calibrator, err := online.NewCalibrator(in.w, c.model.signal(signal), gain, c.options())
	if err != nil {
		return nil, &exit{code: exitUsage, err: err}
	}
	if calibrator.MeansRemoved() {
		c.note("%s", meansRemoved)
	}
	r := &onlineRun{calibration: c, in: in, calibrator: calibrator}
	r.tally.rejected, r.tally.start = map[string]int{}, time.Now()
	r.results.limit = c.keep
	if c.keep == 0 && c.sourceKind != columnSource {
		r.results.limit = 1000
	}
	return r, nil
}

// all opens everything, takes in the stream, and writes what there is at the end.
func (r *onlineRun) all() (err error) {
	defer func() { err = errors.Join(err, closeAll(r.closers)) }()
	ctx, stop := interruptible()
	defer stop()
	if err := r.openState(); err != nil {
		return err
	}
	if err := r.openWatch(); err != nil {
		return err
	}
	if err := r.openSource(ctx); err != nil {
		return err
	}
	r.closers = append(r.closers, r.source)
	r.openBar()
	ending := r.stream(ctx)
	r.bar.done()
	return r.finish(ending)
}

// openBar shows progress where the number of samples is known, and lines do not
// go to the same terminal.
func (r *onlineRun) openBar() {
	if r.sourceKind == columnSource && (r.json || !isTerminal(r.stdout)) {
		r.bar = r.progress()
	}
}

// stream takes samples in until there are no more: then the error is nil.
func (r *onlineRun) stream(ctx context.Context) error {
	for r.limit == 0 || r.tally.samples < r.limit {
		sample, err := r.source.Next(ctx)
		refused, isRefused := errors.AsType[*intake.Refused](err)
		stored := int64(0)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case isRefused:
			err, stored = r.refuse(refused), refused.Stored
		case err != nil:
			return err
		default:
			err, stored = r.take(sample), sample.Stored
		}
		if err == nil {
			err = r.trim(stored)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mostWarnings bounds what a stream of rubbish prints.
const mostWarnings = 20

// refuse reports what is no sample.
func (r *onlineRun) refuse(refused *intake.Refused) error {
	r.tally.refused++
	r.watch.Refused()
	if r.tally.refused <= mostWarnings {
		r.warn("%v; not taken in", refused)
	}
	if r.tally.refused == mostWarnings {
		r.warn("further ones are counted without a warning each")
	}
	return r.printLine(refusedLine(refused))
}

// manyDuplicates is how many dropped samples in a row are worth a note.
const manyDuplicates = 100

// take takes in one sample: solve, publish, commit, acknowledge, print. When the
// process dies before the commit, the sample comes again, and the result is
// published again under the same id; when it dies after it, the sample is dropped
// when it comes again. What is printed is safe.
func (r *onlineRun) take(s *intake.Sample) error {
	if s.Sequence < r.from {
		r.tally.skipped++
		return s.Done()
	}
	if s.Sequence <= r.last {
		r.tally.duplicates++
		r.watch.Duplicate()
		if r.tally.samples == 0 && r.tally.duplicates == manyDuplicates {
			r.note("%d samples dropped so far, none taken in: the last number taken in is %d", manyDuplicates, r.last)
		}
		return s.Done()
	}
	start := time.Now()
	// A signal does not disturb a sample: solving is what a stream waits for
	// anyway, and an estimate cut short would be of no use.
	e, err := r.calibrator.Absorb(context.Background(), s.Y)
	if err != nil {
		return errors.Join(s.Done(), r.refuse(&intake.Refused{Place: s.Place, Sequence: s.Sequence, Err: err}))
	}
	line := r.line(s.Sequence, e)
	solved := time.Now()
	if err := r.publish(s.Sequence, line); err != nil {
		return err
	}
	if err := r.save(s.Sequence); err != nil {
		return err
	}
	if err := s.Done(); err != nil {
		return fmt.Errorf("%s: %w", s.Place, err)
	}
	r.count(e, solved.Sub(start), time.Since(solved))
	r.observe(s.Sequence, line, solved.Sub(start), time.Since(solved))
	r.results.add(s.Sequence, e, r.out != "" || r.in.truth.X != nil)
	if r.in.y != nil {
		_, p := r.in.y.Dims()
		r.bar.samples(int(s.Sequence-r.firstColumn)+1, p)
	}
	return r.printLine(line)
}

// save commits the state with the number of the sample.
func (r *onlineRun) save(sequence int64) error {
	if r.freeze {
		return nil
	}
	if r.store != nil {
		if err := r.store.Commit(r.calibrator.Snapshot(), sequence); err != nil {
			r.ahead = true
			e := &exit{code: exitFailed, err: fmt.Errorf("sample %d could not be committed: %w", sequence, err)}
			return e.withHint("the state in the file is that of the sample before, intact; go on from there")
		}
	}
	r.last = sequence
	return nil
}

// publish puts the line out to the subject of --results.
func (r *onlineRun) publish(sequence int64, line *sampleLine) error {
	if r.nats.results == "" {
		return nil
	}
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	id := fmt.Sprintf("%s-%s-%d", r.nats.stream, r.nats.durable, sequence)
	return r.broker.Publish(context.Background(), r.nats.results, id, data)
}

func (r *onlineRun) count(e *online.Estimate, solving, saving time.Duration) {
	t := &r.tally
	t.samples++
	t.iterations += e.Iterations
	t.solving.add(solving)
	t.saving.add(saving)
	if e.Committed {
		t.committed++
	} else {
		t.rejected[e.Reject.String()]++
	}
	if r.fell(e) {
		t.unconverged++
	}
}

// finish writes what there is, and turns what happened into an exit code.
func (r *onlineRun) finish(ending error) error {
	interrupted := errors.Is(ending, context.Canceled)
	var err error
	if !r.ahead {
		err = r.writeResults()
	}
	if r.checkpoint != "" && r.store != nil && r.last != online.NoSequence {
		err = errors.Join(err, r.keepCheckpoint(r.store))
	}
	err = errors.Join(err, r.summarise(interrupted))
	t := &r.tally
	switch {
	case ending != nil && !interrupted:
		return errors.Join(ending, err)
	case err != nil:
		return err
	case interrupted:
		return &exit{code: exitInterrupted, err: fmt.Errorf("interrupted after %s%s", plural(t.samples, "sample"), r.onlyDuplicates())}
	case t.refused > 0 && r.onlyDuplicates() == "":
		return usage("%d of the input's samples were refused", t.refused).withHint("all others were taken in")
	case r.onlyDuplicates() != "":
		return r.allDropped()
	case t.samples == 0 && t.skipped > 0:
		return usage("no sample was taken in: the numbers of all %d are below --from %d", t.skipped, r.from)
	case t.unconverged > 0:
		e := &exit{code: exitNotConverged, err: fmt.Errorf("%d of %s did not converge", t.unconverged, plural(t.samples, "sample"))}
		return e.withHint("their lines say so; the posterior has not learned from those with committed false")
	}
	return nil
}

// onlyDuplicates says so where every sample was dropped because of its number; it
// is empty where one was taken in. A broker brings the last sample
// of a process that was killed again, so one message is nothing to speak of.
func (r *onlineRun) onlyDuplicates() string {
	t := &r.tally
	ordinary := 0
	if r.sourceKind == natsSource {
		ordinary = 1
	}
	if t.samples > 0 || t.duplicates <= ordinary {
		return ""
	}
	return fmt.Sprintf("; %s dropped, whose numbers are not above %d, the last one taken in", plural(t.duplicates, "sample"), r.last)
}

// allDropped is the error of an input that was dropped whole: it may be the same
// one again, but also another one whose numbers begin anew.
func (r *onlineRun) allDropped() error {
	refused := ""
	if r.tally.refused > 0 {
		refused = fmt.Sprintf("; %d refused", r.tally.refused)
	}
	e := usage("no sample was taken in%s%s", refused, r.onlyDuplicates())
	restart := fmt.Sprintf(restartHint, r.state)
	switch {
	case r.sourceKind == columnSource || r.sourceKind == stdinSource && r.width() > 0:
		return e.withHint("the same input again has nothing new; "+
			"another one needs numbers of its own: --offset %d, or --offset last; %s", r.last, restart)
	default:
		return e.withHint("the same input again has nothing new; %s", restart)
	}
}

// status is one word for the run.
func (t *tally) status(interrupted bool) calamp.Status {
	switch {
	case interrupted:
		return calamp.Cancelled
	case t.unconverged > 0:
		return calamp.NotConverged
	}
	return calamp.Converged
}

// samples shows how many of a known number of samples are done.
func (p *progress) samples(done, total int) {
	if p != nil {
		p.bar.Describe(fmt.Sprintf("sample %d of %d", done, total))
		p.bar.Set(100 * done / total)
	}
}
