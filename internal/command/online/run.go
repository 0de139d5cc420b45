package online

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/command/state"
	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/internal/stream"
	"github.com/calamp/calamp/internal/watch"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
)

// onlineRun is a stream being taken in.
type onlineRun struct {
	*calibration
	in     *material
	stated option.Model // before anything was learned
	signal prior.Prior  // with what was learned

	statedSignal prior.Prior
	loop         stream.Loop
	store        *online.Store  // nil without --state
	saved        online.Saved   // what the store had in the beginning, but for its state
	broker       *intake.Broker // nil without --nats
	watch        *watch.Server  // nil without --http
	closers      []io.Closer
	bar          *console.Progress

	firstColumn int64 // number of the first column
	earlier     int   // samples that earlier runs learned from
	results     results
	tally       stream.Tally
	noticed     int // events about the stream itself
	start       time.Time
}

// sensors is the channel of sensors with a gain, and with an offset where they have any.
func (c *calibration) sensors(gain channel.Gain) channel.Calibrating {
	return c.shift.Channel(gain, nil, nil).(channel.Calibrating)
}

// known is the model as it is given: NaN where something is to be learned.
func (c *calibration) known() (prior.Prior, channel.Calibrating, error) {
	if c.complex {
		signal, sensors := c.model.KnownComplex(&c.phases)
		return c.persisting(signal), sensors, nil
	}
	g, gain := c.model.Known()
	signal, err := c.groups.Signal(&c.model, c.model.Signal(c.prior.OfEntries(g)))
	if err == nil && c.prior.Entries() > 0 {
		signal = c.prior.OfLatents(signal)
	}
	return c.persisting(signal), c.sensors(gain), err
}

// persisting is a prior of entries that stay from sample to sample, where they do.
func (c *calibration) persisting(p prior.Prior) prior.Prior {
	if !c.persist {
		return p
	}
	return prior.Persisting(c.entries, p)
}

func (c *calibration) newRun(in *material) (*onlineRun, error) {
	signal, sensors, err := c.known()
	if err != nil {
		return nil, err
	}
	calibrator, err := online.NewCalibrator(in.w, signal, sensors, c.options())
	if err != nil {
		return nil, &console.Exit{Code: console.WrongUsage, Err: err}
	}
	c.block = blockSize(calibrator.Block())
	if calibrator.Plan().Has("mean removal") {
		c.Note("%s", facts.MeansRemoved)
	}
	r := &onlineRun{calibration: c, in: in, stated: c.model, statedSignal: signal, start: time.Now()}
	r.loop = stream.Loop{Calibrator: calibrator, Last: online.NoSequence, From: c.from, Limit: c.limit, Frozen: c.freeze}
	r.tally.Unconverged = c.fell
	r.results.limit = c.last
	if c.last == 0 && c.sourceKind != columnSource {
		r.results.limit = 1000
	}
	return r, nil
}

// all opens everything, takes in the stream, and writes what there is at the end.
func (r *onlineRun) all() (err error) {
	defer func() { err = errors.Join(err, closeAll(r.closers)) }()
	ctx, stop := console.Interruptible()
	defer stop()
	if err := r.openState(); err != nil {
		return err
	}
	if err := r.checkBatch(ctx); err != nil {
		return console.Interruption(ctx, err, "nothing was taken in")
	}
	if err := r.ranks.OfFirst(r.openWatch); err != nil {
		return err
	}
	if err := r.openSource(ctx); err != nil {
		return err
	}
	r.closers = append(r.closers, r.loop.Source)
	r.openBar()
	r.openSinks()
	ending := r.loop.Run(ctx)
	r.bar.Done()
	return r.finish(ending)
}

// openBar shows progress where the number of samples is known, and lines do not
// go to the same terminal.
func (r *onlineRun) openBar() {
	if r.sourceKind == columnSource && (r.json || !console.IsTerminal(r.Stdout)) {
		r.bar = r.Progress()
	}
}

// openSinks opens what samples are reported to, in this order.
func (r *onlineRun) openSinks() {
	n := &r.nats
	if n.results != "" {
		r.loop.Publish = stream.Publisher{
			Broker: r.broker, Subject: n.results, Prefix: n.stream + "-" + n.durable, Signals: r.emitX,
		}
	}
	add := func(s stream.Sink) { r.loop.Sinks = append(r.loop.Sinks, s) }
	r.loop.Ended = func(t *online.Together) {
		r.tally.Settle(t)
		r.results.putTogether(t)
	}
	add(&r.tally)
	add(stream.SinkFunc(r.warnOfRefused))
	add(stream.SinkFunc(r.noteDuplicates))
	add(stream.SinkFunc(r.warnOfStream))
	if r.watch != nil {
		add(stream.Watch{Server: r.watch, Calibrator: r.loop.Calibrator})
	}
	if r.out != "" || r.in.truth.X != nil {
		add(&r.results)
	}
	if r.in.y != nil {
		add(stream.SinkFunc(r.showProgress))
	}
	if !r.json && r.out != "-" {
		add(stream.Lines{W: r.Stdout, Signals: r.emitX})
	}
	if n.Address == option.Embedded && !r.freeze {
		m, _ := r.in.w.Dims()
		add(&stream.Trim{Broker: r.broker, Stream: n.stream, Keep: n.keep, Every: stream.TrimEvery(m, int64(n.disk))})
	}
}

// mostWarnings bounds what a stream of rubbish prints.
const mostWarnings = 20

// warnOfRefused comes after the tally.
func (r *onlineRun) warnOfRefused(e *stream.Event) error {
	if e.Fate != stream.Refused {
		return nil
	}
	if r.tally.Refused <= mostWarnings {
		r.Warn("%s: %v; not taken in", e.Place, e.Err)
	}
	if r.tally.Refused == mostWarnings {
		r.Warn("further ones are counted without a warning each")
	}
	return nil
}

// warnOfStream says what was noticed of the stream itself.
func (r *onlineRun) warnOfStream(e *stream.Event) error {
	if e.Fate != stream.Noticed {
		return nil
	}
	if r.noticed++; r.noticed <= mostWarnings {
		r.Warn("stream %s, %s: %v", r.nats.stream, e.Place, e.Err)
	}
	if r.noticed == mostWarnings {
		r.Warn("no more warnings of this kind")
	}
	return nil
}

// manyDuplicates is how many dropped samples in a row are worth a note.
const manyDuplicates = 100

// noteDuplicates comes after the tally, too.
func (r *onlineRun) noteDuplicates(e *stream.Event) error {
	if e.Fate == stream.Duplicate && r.tally.Samples == 0 && r.tally.Duplicates == manyDuplicates {
		r.Note("%d samples dropped so far, none taken in: the last number taken in is %d", manyDuplicates, r.loop.Last)
	}
	return nil
}

func (r *onlineRun) showProgress(e *stream.Event) error {
	if e.Fate == stream.Taken {
		_, p := r.in.y.Dims()
		p /= r.columns()
		done := int(e.Sequence-r.firstColumn) + 1
		r.bar.Show(fmt.Sprintf("sample %d of %d", done, p), float64(done)/float64(p))
	}
	return nil
}

// finish writes what there is, and turns what happened into an exit code.
func (r *onlineRun) finish(ending error) error {
	interrupted := errors.Is(ending, context.Canceled)
	if _, failed := errors.AsType[*stream.CommitError](ending); failed {
		e := &console.Exit{Code: console.Failed, Err: ending}
		ending = e.WithHint("the state in the file is that of the sample before, intact; go on from there")
	}
	lost := errors.Is(ending, online.ErrStateLost)
	if lost {
		e := &console.Exit{Code: console.Failed, Err: ending}
		ending = e.WithHint("nothing is learned without the state; go on with the copy, under the name of the state")
	}
	err := r.goBack()
	if err == nil {
		err = r.writeResults()
	}
	err = errors.Join(err, r.spectrum.Err())
	if r.store != nil && !lost && r.loop.Last != online.NoSequence {
		err = errors.Join(err, r.keep.After(r.store))
	}
	if !interrupted {
		err = errors.Join(ending, err)
	}
	r.warnOfRejected()
	r.warnOfRepeats()
	if err = errors.Join(err, r.summarise(r.status(interrupted, err != nil))); err != nil {
		return err
	}
	return r.verdict(interrupted)
}

// leastToJudge is how many samples it takes to say that most were rejected.
const leastToJudge = 20

// leastWeight is the number of snapshots that tell gains from signals at least: of one signal each gain may be another. 120 samples of a scene that does not change count as 1 to 1.5, of amplitudes correlated by .999 as 2.5 to 7, by .99 as 14 to 17.
const leastWeight = 2

// warnOfRejected is for a run most of whose samples taught nothing, whatever the exit code: samples may converge, and be rejected all the same.
func (r *onlineRun) warnOfRejected() {
	t, lost := &r.tally, 0
	for reason, count := range t.Rejected {
		if reason != online.Frozen.String() && reason != online.WarmingUp.String() {
			lost += count
		}
	}
	if t.Samples >= leastToJudge && 2*lost > t.Samples {
		r.Warn("%d of %d samples were rejected, and taught nothing: their lines say why", lost, t.Samples)
	}
}

// warnOfRepeats is for a run whose samples are of scenes that hardly change: gains and signals that are wrong together explain all of them.
func (r *onlineRun) warnOfRepeats() {
	t := &r.tally
	if t.Together == 0 && t.Committed >= leastToJudge && t.Weight < leastWeight {
		r.Warn("%d samples count as %.2g: the scene hardly changes, and of one scene gains and signals that are wrong together explain all samples; let it change", t.Committed, t.Weight)
	}
}

// verdict is the error of a run that ended in good order.
func (r *onlineRun) verdict(interrupted bool) error {
	t := &r.tally
	switch {
	case interrupted:
		err := fmt.Errorf("interrupted after %s%s", console.Plural(t.Samples, "sample"), r.onlyDuplicates())
		return &console.Exit{Code: console.Interrupted, Err: err}
	case r.onlyDuplicates() != "":
		return r.allDropped()
	case t.Refused > 0:
		return console.Usage("%d of the input's samples were refused", t.Refused).WithHint("all others were taken in")
	case t.Missing > 0:
		return console.Usage("%s of stream %s never came", console.Plural(int(t.Missing), "message"), r.nats.stream).WithHint("all others were taken in")
	case t.Samples == 0 && t.Skipped > 0:
		return console.Usage("no sample was taken in: the numbers of all %d are below --from %d", t.Skipped, r.from)
	case t.NotConverged > 0:
		e := &console.Exit{Code: console.NotConverged, Err: fmt.Errorf("%d of %s did not converge", t.NotConverged, console.Plural(t.Samples, "sample"))}
		return e.WithHint("their lines say so; the posterior has not learned from those with committed false")
	}
	return nil
}

// onlyDuplicates says so where every sample was dropped because of its number; it
// is empty where one was taken in. A broker brings the last sample of a process
// that was killed again, so one message is nothing to speak of.
func (r *onlineRun) onlyDuplicates() string {
	t := &r.tally
	ordinary := 0
	if r.sourceKind == natsSource {
		ordinary = 1
	}
	if t.Samples > 0 || t.Duplicates <= ordinary {
		return ""
	}
	return fmt.Sprintf("; %s dropped, whose numbers are not above %d, the last one taken in", console.Plural(t.Duplicates, "sample"), r.loop.Last)
}

// allDropped is the error of an input that was dropped whole: it may be the same
// one again, but also another one whose numbers begin anew.
func (r *onlineRun) allDropped() error {
	refused := ""
	if r.tally.Refused > 0 {
		refused = fmt.Sprintf("; %d refused", r.tally.Refused)
	}
	e := console.Usage("no sample was taken in%s%s", refused, r.onlyDuplicates())
	restart := state.RestartHint(r.keep.Path)
	if r.sourceKind == columnSource || r.sourceKind == stdinSource && r.width() > 0 {
		return e.WithHint("the same input again has nothing new; "+
			"another one needs numbers of its own: --after %d, or --after last; %s", r.loop.Last, restart)
	}
	return e.WithHint("the same input again has nothing new; %s", restart)
}

// goBack leaves the calibrator with what is in the file where it has learned from
// a sample that could not be committed: what is written at the end is then what a
// later run begins with.
func (r *onlineRun) goBack() error {
	if !r.loop.Ahead || r.store == nil {
		return nil
	}
	_, err := stream.Resume(r.store, r.loop.Calibrator)
	return err
}

// status is what became of the run, in a word or two.
func (r *onlineRun) status(interrupted, failed bool) string {
	switch {
	case failed:
		return "failed"
	case interrupted:
		return calamp.Cancelled.String()
	case r.tally.Samples == 0:
		return "no samples"
	case r.tally.NotConverged > 0:
		return calamp.NotConverged.String()
	}
	return calamp.Converged.String()
}

// openState opens the state file and lets the calibrator go on from it.
func (r *onlineRun) openState() error {
	if r.keep.Path == "" {
		return nil
	}
	id, err := r.fingerprintOf(r.in.w) // takes all ranks
	if err != nil {
		return err
	}
	if err := r.ranks.OfFirst(func() error { return r.openStore(id) }); err != nil || !r.ranks.On() {
		return err
	}
	if !r.freeze {
		r.loop.Store = sharedStore{&r.ranks, r.loop.Store}
	}
	return r.shareState()
}

// openStore opens the file itself.
func (r *onlineRun) openStore(id online.Identity) error {
	store, err := online.OpenStore(r.keep.Path, &id, &online.StoreOptions{ReadOnly: r.freeze, Repair: r.keep.Repairs()})
	if err != nil {
		return facts.StateFault(err)
	}
	r.store, r.loop.Store, r.closers = store, store, append(r.closers, store)
	if err := r.keep.Before(store); err != nil {
		return err
	}
	saved, err := stream.Resume(store, r.loop.Calibrator)
	if err != nil {
		return facts.StateFault(err)
	}
	if saved.State == nil {
		return nil
	}
	r.saved = online.Saved{Sequence: saved.Sequence, Time: saved.Time, Origin: saved.Origin}
	if err := r.takeAnchor(saved.State.Anchor); err != nil {
		return err
	}
	if r.freeze {
		return nil // every sample is reconstructed, whatever was taken in
	}
	r.loop.Last, r.earlier = saved.Sequence, int(saved.State.Samples)
	r.Note("%s: going on after sample %d; %s learned from so far", r.keep.Path, saved.Sequence, console.Plural(int(saved.State.Samples), "sample"))
	return nil
}

// takeAnchor says where the scale is not held as it was, or as the command line says.
func (r *onlineRun) takeAnchor(before calamp.Anchor) error {
	now, c := r.anchor.Anchor, r.loop.Calibrator
	r.notePhase(before, now)
	switch {
	case r.anchor.Off:
		if before.Set() {
			r.Note("%s: the scale was held by %v, and is that of the model now", r.keep.Path, before)
		}
		return c.SetAnchor(calamp.Anchor{})
	case before.Set() && !now.Set():
		r.Note("%s: the scale is held by %v, as before; --anchor off lets go of it", r.keep.Path, before)
	case before.Set() && (before.Mean != now.Mean || !maps.Equal(before.Sensors, now.Sensors)):
		r.Warn("%s: the scale was held by %v, and is by %v now: x and s are on another scale than before", r.keep.Path, before, now)
	case !before.Set() && now.Set():
		r.Warn("%s: the scale was that of the model, and is held by %v now: x and s are on another scale than before", r.keep.Path, now)
	}
	return nil
}

// notePhase says where phases are not counted as they were, or as the command line says.
func (r *onlineRun) notePhase(before, now calamp.Anchor) {
	was, held := before.PhaseSensor()
	is, asked := now.PhaseSensor()
	switch {
	case held && !asked && !r.anchor.Off:
		r.Note("%s: phases are counted from that of sensor %d, as before; --anchor off lets go of it", r.keep.Path, was)
	case asked && (!held || was != is):
		r.Warn("%s: phases are counted from that of sensor %d now, and were not before", r.keep.Path, is)
	}
}
