package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/crash"
	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// bench is a stream of samples, and the file in which a calibration of it is kept.
type bench struct {
	*testing.T
	w    *operator.Dense
	y    *mat.Dense
	path string
}

const samples = 6

func newBench(t *testing.T) *bench {
	t.Helper()
	in, err := teacher.Teacher{
		N: 40, M: 32, P: samples, Signal: prior.GaussBernoulli{Density: 0.1, SignalVar: 1},
		Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-6,
	}.Draw(5)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{T: t, w: in.W, y: in.Y, path: filepath.Join(t.TempDir(), "S.calamp")}
}

// open is what a process does when it starts: a fresh calibrator goes on from the
// file. Every sample takes the same few iterations: the bookkeeping is tested
// here.
func (b *bench) open(source intake.Source) (*Loop, *online.Store) {
	b.Helper()
	signal := prior.GaussBernoulli{Density: 0.1, SignalVar: 1}
	gain := channel.Gain{Prior: channel.Uniform(0.9, 1.1), NoiseVar: 1e-6}
	opt := &online.Options{Settings: solver.Settings{MaxIter: 30, Tol: -1, Threads: 1}}
	calibrator, err := online.NewCalibrator(b.w, signal, gain, opt)
	if err != nil {
		b.Fatal(err)
	}
	id, err := online.Identify(b.w, signal, gain, opt)
	if err != nil {
		b.Fatal(err)
	}
	store, err := online.OpenStore(b.path, &id, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	saved, err := Resume(store, calibrator)
	if err != nil {
		b.Fatal(err)
	}
	return &Loop{Source: source, Calibrator: calibrator, Store: store, Last: saved.Sequence}, store
}

func (b *bench) columns() intake.Source { return intake.Columns(b.y, intake.Form{Sensors: 32}, 0, nil) }

// saved is what the file holds, in bytes, and its number.
func (b *bench) saved(s *online.Store) ([]byte, int64) {
	b.Helper()
	saved, err := s.Load()
	if err != nil {
		b.Fatal(err)
	}
	if saved.State == nil {
		return nil, saved.Sequence
	}
	raw, err := saved.State.MarshalBinary()
	if err != nil {
		b.Fatal(err)
	}
	return raw, saved.Sequence
}

// undisturbed is the state of a run in which nothing went wrong.
func (b *bench) undisturbed() []byte {
	b.Helper()
	other := *b
	other.path = filepath.Join(b.TempDir(), "undisturbed.calamp")
	loop, store := other.open(b.columns())
	if err := loop.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	raw, last := b.saved(store)
	if last != samples {
		b.Fatalf("the undisturbed run ends at sample %d", last)
	}
	return raw
}

// expectWhole requires the file to hold what an undisturbed run learned.
func (b *bench) expectWhole(s *online.Store) {
	b.Helper()
	raw, last := b.saved(s)
	if last != samples || !bytes.Equal(raw, b.undisturbed()) {
		b.Errorf("after sample %d the state is not that of an undisturbed run", last)
	}
}

// fates collects what became of the items.
type fates struct{ list []string }

func (f *fates) Put(e *Event) error {
	name := map[Fate]string{Taken: "taken", Refused: "refused", Duplicate: "duplicate", Skipped: "skipped"}[e.Fate]
	f.list = append(f.list, fmt.Sprint(name, " ", e.Sequence))
	return nil
}

func (f *fates) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(f.list, want) {
		t.Errorf("%q, expected %q", f.list, want)
	}
}

// given is a source of these columns of y, under these numbers. It notes when a
// sample is acknowledged.
func (b *bench) given(numbers []int64, columns []int, note func(string)) intake.Source {
	return &scripted{bench: b, numbers: numbers, columns: columns, note: note}
}

type scripted struct {
	*bench
	numbers []int64
	columns []int
	note    func(string)
	next    int
}

func (s *scripted) Next(ctx context.Context) (*intake.Sample, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.next == len(s.numbers) {
		return nil, io.EOF
	}
	number, column := s.numbers[s.next], s.columns[s.next]
	s.next++
	return intake.NewSample(number, mat.Col(nil, column, s.y), fmt.Sprint("message ", number), func() error {
		s.note(fmt.Sprint("acknowledged ", number))
		return nil
	}), nil
}

func (s *scripted) Close() error { return nil }

// noting is a store that notes its commits, and fails from the one that is given.
type noting struct {
	*online.Store
	note func(string)
	fail int64 // 0 never
}

var errDisk = errors.New("no space left on device")

func (n *noting) Commit(state *online.State, sequence int64) error {
	if n.fail != 0 && sequence >= n.fail {
		return errDisk
	}
	n.note(fmt.Sprint("committed ", sequence))
	return n.Store.Commit(state, sequence)
}

func TestOrder(t *testing.T) {
	b := newBench(t)
	var log []string
	note := func(text string) { log = append(log, text) }
	loop, store := b.open(b.given([]int64{1, 2}, []int{0, 1}, note))
	loop.Store = &noting{Store: store, note: note}
	loop.Publish = SinkFunc(func(e *Event) error { note(fmt.Sprint("published ", e.Sequence)); return nil })
	loop.Sinks = []Sink{SinkFunc(func(e *Event) error { note(fmt.Sprint("shown ", e.Sequence)); return nil })}
	if err := loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"published 1", "committed 1", "acknowledged 1", "shown 1",
		"published 2", "committed 2", "acknowledged 2", "shown 2",
	}
	if !slices.Equal(log, want) {
		t.Errorf("%q", log)
	}
}

// TestResume stops after every sample, and starts again with the whole input.
func TestResume(t *testing.T) {
	b := newBench(t)
	for k := range samples {
		var seen fates
		loop, store := b.open(b.columns())
		loop.Limit, loop.Sinks = 1, []Sink{&seen}
		if err := loop.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(seen.list) != k+1 || seen.list[k] != fmt.Sprint("taken ", k+1) {
			t.Errorf("start %d: %q", k+1, seen.list)
		}
		if k == samples-1 {
			b.expectWhole(store)
		}
		store.Close()
	}
}

// TestPublishFails: the sample is neither committed nor acknowledged, and counts
// once when it comes again.
func TestPublishFails(t *testing.T) {
	b := newBench(t)
	var log []string
	note := func(text string) { log = append(log, text) }
	numbers, columns := []int64{1, 2, 3, 4, 5, 6}, []int{0, 1, 2, 3, 4, 5}
	loop, store := b.open(b.given(numbers, columns, note))
	broken := errors.New("no broker")
	loop.Publish = SinkFunc(func(e *Event) error {
		if e.Sequence == 4 {
			return broken
		}
		return nil
	})
	err := loop.Run(t.Context())
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "sample 4 could not be published") {
		t.Fatal(err)
	}
	if want := []string{"acknowledged 1", "acknowledged 2", "acknowledged 3"}; !slices.Equal(log, want) {
		t.Errorf("%q", log)
	}
	if _, last := b.saved(store); last != 3 || loop.Last != 3 || !loop.Ahead {
		t.Errorf("last number %d, in the file %d, ahead %t", loop.Last, last, loop.Ahead)
	}
	store.Close()
	loop, store = b.open(b.given(numbers[3:], columns[3:], note))
	if err := loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.expectWhole(store)
}

// TestCommitFails: the file keeps the sample before, nothing is acknowledged, and
// the calibrator can go back.
func TestCommitFails(t *testing.T) {
	b := newBench(t)
	var log []string
	note := func(text string) { log = append(log, text) }
	loop, store := b.open(b.given([]int64{1, 2, 3}, []int{0, 1, 2}, note))
	loop.Store = &noting{Store: store, note: note, fail: 3}
	err := loop.Run(t.Context())
	if failed, ok := errors.AsType[*CommitError](err); !ok || failed.Sequence != 3 || !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
	if want := []string{"committed 1", "acknowledged 1", "committed 2", "acknowledged 2"}; !slices.Equal(log, want) {
		t.Errorf("%q", log)
	}
	raw, last := b.saved(store)
	if last != 2 || !loop.Ahead {
		t.Errorf("last number %d, ahead %t", last, loop.Ahead)
	}
	if _, err := Resume(store, loop.Calibrator); err != nil {
		t.Fatal(err)
	}
	if back, err := loop.Calibrator.Snapshot().MarshalBinary(); err != nil || !bytes.Equal(back, raw) {
		t.Error("the calibrator did not go back to what is in the file; ", err)
	}
	store.Close()
	loop, store = b.open(b.columns())
	if err := loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.expectWhole(store)
}

// TestAcknowledgeFails: the sample counts, and is dropped when it comes again.
func TestAcknowledgeFails(t *testing.T) {
	b := newBench(t)
	var seen fates
	lost := errors.New("connection lost")
	loop, store := b.open(b.columns())
	loop.Sinks = []Sink{&seen}
	loop.Source = once{intake.NewSample(1, mat.Col(nil, 0, b.y), "message 1", func() error { return lost })}
	if err := loop.Run(t.Context()); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	if _, last := b.saved(store); last != 1 || loop.Ahead {
		t.Errorf("last number %d, ahead %t", last, loop.Ahead)
	}
	store.Close()
	loop, store = b.open(b.columns())
	loop.Sinks = []Sink{&seen}
	if err := loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen.expect(t, "taken 1", "duplicate 1", "taken 2", "taken 3", "taken 4", "taken 5", "taken 6")
	b.expectWhole(store)
}

// once is a source of one sample, for ever.
type once struct{ sample *intake.Sample }

func (o once) Next(context.Context) (*intake.Sample, error) { return o.sample, nil }
func (o once) Close() error                                 { return nil }

// TestSinkFails: what was committed stays, and all other sinks are called.
func TestSinkFails(t *testing.T) {
	b := newBench(t)
	var seen fates
	full := errors.New("broken pipe")
	loop, store := b.open(b.columns())
	loop.Sinks = []Sink{SinkFunc(func(e *Event) error {
		if e.Sequence == 2 {
			return full
		}
		return nil
	}), &seen}
	if err := loop.Run(t.Context()); !errors.Is(err, full) {
		t.Fatal(err)
	}
	seen.expect(t, "taken 1", "taken 2")
	if _, last := b.saved(store); last != 2 || loop.Ahead {
		t.Errorf("last number %d, ahead %t", last, loop.Ahead)
	}
	store.Close()
	loop, store = b.open(b.columns())
	if err := loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.expectWhole(store)
}

// TestCancelled: the sample at hand is finished, and none is begun.
func TestCancelled(t *testing.T) {
	b := newBench(t)
	var seen fates
	ctx, cancel := context.WithCancel(t.Context())
	loop, store := b.open(b.columns())
	loop.Publish = SinkFunc(func(e *Event) error { // in the middle of sample 3
		if e.Sequence == 3 {
			cancel()
		}
		return nil
	})
	loop.Sinks = []Sink{&seen}
	if err := loop.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	seen.expect(t, "taken 1", "taken 2", "taken 3")
	store.Close()
	loop, store = b.open(b.columns())
	if err := loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.expectWhole(store)
}

// TestDuplicatesAndGaps: what comes again is acknowledged and dropped; numbers may
// be left out.
func TestDuplicatesAndGaps(t *testing.T) {
	b := newBench(t)
	var seen fates
	var log []string
	numbers, columns := []int64{1, 1, 2, 5, 3, 5, 9, 12, 20}, []int{0, 0, 1, 2, 5, 2, 3, 4, 5}
	loop, store := b.open(b.given(numbers, columns, func(text string) { log = append(log, text) }))
	loop.Sinks = []Sink{&seen}
	if err := loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen.expect(t, "taken 1", "duplicate 1", "taken 2", "taken 5", "duplicate 3", "duplicate 5",
		"taken 9", "taken 12", "taken 20")
	if len(log) != 9 {
		t.Errorf("%q", log)
	}
	raw, last := b.saved(store)
	if last != 20 || !bytes.Equal(raw, b.undisturbed()) {
		t.Errorf("last number %d, or not what the six samples teach", last)
	}
}

// TestFromAndRefused: what is below the first number, and what is no sample, is
// reported and not learned from; the stream goes on.
func TestFromAndRefused(t *testing.T) {
	b := newBench(t)
	var seen fates
	var tally Tally
	var lines bytes.Buffer
	input := `{"seq":1,"y":[1]}` + "\n" + sampleText(b, 1) + sampleText(b, 2) + "no JSON\n" + sampleText(b, 3)
	loop, store := b.open(intake.Lines(strings.NewReader(input), intake.Form{Sensors: 32}, intake.Numbering{After: online.NoSequence}))
	loop.From, loop.Sinks = 2, []Sink{&tally, &seen, Lines{W: &lines, Signals: true}}
	if err := loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen.expect(t, "refused 1", "skipped 1", "taken 2", "refused -1", "taken 3")
	if tally.Samples != 2 || tally.Refused != 2 || tally.Skipped != 1 || tally.Duplicates != 0 {
		t.Errorf("%+v", tally)
	}
	if _, last := b.saved(store); last != 3 {
		t.Errorf("last number %d", last)
	}
	b.checkLines(lines.Bytes())
}

func sampleText(b *bench, number int) string {
	text, err := json.Marshal(map[string]any{"seq": number, "y": mat.Col(nil, number-1, b.y)})
	if err != nil {
		b.Fatal(err)
	}
	return string(text) + "\n"
}

// checkLines requires the lines of TestFromAndRefused.
func (b *bench) checkLines(raw []byte) {
	b.Helper()
	all := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	if len(all) != 4 {
		b.Fatalf("%d lines: %s", len(all), raw)
	}
	for k, text := range all {
		var l Line
		if err := json.Unmarshal(text, &l); err != nil {
			b.Fatal(err)
		}
		taken := k == 1 || k == 3
		x, _ := l.X.([]any)
		if taken != (l.Status != refusedStatus && l.ScaleStep != nil && len(x) == 40) || taken == (l.Place != "") {
			b.Errorf("line %d: %s", k+1, text)
		}
	}
}

// TestFrozen: every sample is reconstructed, whatever was taken in, and the file
// stays as it is.
func TestFrozen(t *testing.T) {
	b := newBench(t)
	loop, store := b.open(b.columns())
	if err := loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var seen fates
	loop.Source, loop.Frozen, loop.Sinks = b.columns(), true, []Sink{&seen}
	loop.Calibrator.Freeze(true)
	if err := loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(seen.list) != samples || seen.list[0] != "taken 1" {
		t.Errorf("%q", seen.list)
	}
	b.expectWhole(store)
}

// TestPanic: a panic while a sample is solved ends the stream with an error that
// names the sample; what was committed stays.
func TestPanic(t *testing.T) {
	b := newBench(t)
	loop, store := b.open(b.columns())
	calibrator := loop.Calibrator
	loop.Sinks = []Sink{SinkFunc(func(e *Event) error {
		if e.Sequence == 2 {
			loop.Calibrator = nil // the next sample panics
		}
		return nil
	})}
	err := loop.Run(t.Context())
	_, panicked := errors.AsType[*crash.Error](err)
	if !panicked || !strings.Contains(err.Error(), "sample 3: internal error: ") {
		t.Fatal(err)
	}
	if _, last := b.saved(store); last != 2 || !loop.Ahead {
		t.Errorf("last number %d, ahead %t", last, loop.Ahead)
	}
	if _, err := Resume(store, calibrator); err != nil {
		t.Error(err)
	}
}

// TestTrim: a stream is trimmed by its own numbers, whatever the samples' are and
// became of them.
func TestTrim(t *testing.T) {
	e, err := intake.StartEmbedded(intake.EmbeddedOptions{Folder: t.TempDir(), Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.EnsureStream(t.Context(), "S", "s.y", intake.StreamLimits{}); err != nil {
		t.Fatal(err)
	}
	for k := range 12 {
		if err := e.Publish(t.Context(), "s.y", fmt.Sprint(k), []byte(`{"y":[1]}`)); err != nil {
			t.Fatal(err)
		}
	}
	trim := &Trim{Broker: e.Broker, Stream: "S", Keep: 2, Every: 4}
	fates := []Fate{Taken, Taken, Taken, Taken, Refused, Refused, Refused, Duplicate, Taken, Skipped, Taken, Skipped}
	firsts := []uint64{1, 1, 1, 3, 3, 3, 3, 7, 7, 7, 7, 11} // after each
	for k, fate := range fates {
		if err := trim.Put(&Event{Fate: fate, Sequence: int64(1000 + k), Stored: int64(k + 1)}); err != nil {
			t.Fatal(err)
		}
		s, err := e.JetStream().Stream(t.Context(), "S")
		if err != nil {
			t.Fatal(err)
		}
		if first := s.CachedInfo().State.FirstSeq; first != firsts[k] {
			t.Errorf("after message %d the stream begins with %d, expected %d", k+1, first, firsts[k])
		}
	}
	for _, c := range []struct {
		readings int
		disk     int64
		want     int64
	}{{100, 10 << 30, 256}, {1_000_000, 128 << 20, 1}, {10_000, 512 << 20, 104}} {
		if got := TrimEvery(c.readings, c.disk); got != c.want {
			t.Errorf("%d readings on %d bytes: every %d messages, expected %d", c.readings, c.disk, got, c.want)
		}
	}
}
