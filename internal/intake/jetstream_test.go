package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func startServer(t *testing.T, folder string) *Embedded {
	t.Helper()
	e, err := StartEmbedded(EmbeddedOptions{Folder: folder, Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	if err := e.EnsureStream(t.Context(), "S", "s.y", StreamLimits{}); err != nil {
		t.Fatal(err)
	}
	return e
}

func publish(t *testing.T, b *Broker, from, to int) {
	t.Helper()
	for k := from; k <= to; k++ {
		if _, err := b.js.Publish(t.Context(), "s.y", fmt.Appendf(nil, `{"y":[%d,null]}`, k)); err != nil {
			t.Fatal(err)
		}
	}
}

func openStream(t *testing.T, b *Broker, after int64, change func(*StreamOptions)) Source {
	t.Helper()
	o := StreamOptions{Stream: "S", Durable: "d", Form: Form{Sensors: 2}, Numbering: Numbering{After: after}, Drain: true}
	if change != nil {
		change(&o)
	}
	s, err := b.Source(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func expectSequences(t *testing.T, got taken, from, to int64) {
	t.Helper()
	var want []int64
	for k := from; k <= to; k++ {
		want = append(want, k)
	}
	if got.err != io.EOF || !slices.Equal(got.sequences, want) {
		t.Errorf("found %v, expected %v; %v", got.sequences, want, got.err)
	}
	if len(got.notices) > 0 {
		t.Errorf("noticed %q", got.notices)
	}
}

func TestStreamInOrder(t *testing.T) {
	e := startServer(t, t.TempDir())
	publish(t, e.Broker, 1, 20)
	got := takeAll(openStream(t, e.Broker, -1, nil))
	expectSequences(t, got, 1, 20)
	if got.y[6][0] != 7 {
		t.Errorf("sample 7 is %v", got.y[6])
	}
	expectSequences(t, takeAll(openStream(t, e.Broker, 20, nil)), 1, 0)
	publish(t, e.Broker, 21, 25)
	expectSequences(t, takeAll(openStream(t, e.Broker, 20, nil)), 21, 25)
}

// TestStateDecides: where a source begins follows from what the state has taken
// in, whatever the broker believes was acknowledged.
func TestStateDecides(t *testing.T) {
	e := startServer(t, t.TempDir())
	publish(t, e.Broker, 1, 9)
	takeAll(openStream(t, e.Broker, -1, nil))
	expectSequences(t, takeAll(openStream(t, e.Broker, 4, nil)), 5, 9)
	_, err := e.Source(t.Context(), StreamOptions{Stream: "S", Durable: "d", Form: Form{Sensors: 2}, Numbering: Numbering{After: 10}})
	if err == nil || !strings.Contains(err.Error(), "ends at message 9") {
		t.Errorf("another stream: %v", err)
	}
	_, err = e.Source(t.Context(), StreamOptions{Stream: "T", Durable: "d", Form: Form{Sensors: 2}})
	if err == nil || !strings.Contains(err.Error(), `no stream "T" on this server, there are S`) {
		t.Errorf("no such stream: %v", err)
	}
}

// TestNotAcknowledgedComesAgain: a process that dies between delivery and
// acknowledgement.
func TestNotAcknowledgedComesAgain(t *testing.T) {
	e := startServer(t, t.TempDir())
	publish(t, e.Broker, 1, 3)
	s := openStream(t, e.Broker, -1, nil)
	if _, err := s.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Close()
	expectSequences(t, takeAll(openStream(t, e.Broker, -1, nil)), 1, 3)
}

// TestRedelivery: without an acknowledgement in time the broker delivers a
// message again, to the same process.
func TestRedelivery(t *testing.T) {
	e := startServer(t, t.TempDir())
	publish(t, e.Broker, 1, 3)
	s := openStream(t, e.Broker, -1, nil).(*messageSource)
	first, err := s.messages.Next()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Nak(); err != nil { // the broker's view of a timeout
		t.Fatal(err)
	}
	expectSequences(t, takeAll(s), 1, 3)
}

func TestUnreadableMessages(t *testing.T) {
	e := startServer(t, t.TempDir())
	for _, data := range []string{`{"y":[1,2]}`, `{"y":[1]}`, `x`, `{"y":[3,4]}`} {
		if _, err := e.js.Publish(t.Context(), "s.y", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	got := takeAll(openStream(t, e.Broker, -1, nil))
	if fmt.Sprint(got.sequences, got.err) != "[1 4] EOF" || len(got.refused) != 2 || !strings.HasPrefix(got.refused[0], "message 2: 1 readings") {
		t.Errorf("%+v", got)
	}
}

func TestSequenceHeaderAndFrames(t *testing.T) {
	e := startServer(t, t.TempDir())
	for k, header := range []string{"100", "102", "x", ""} {
		m := nats.NewMsg("s.y")
		m.Header.Set("Number", header)
		m.Data = frameBytes(4, float64(k), 1)
		if _, err := e.js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	got := takeAll(openStream(t, e.Broker, -1, func(o *StreamOptions) { o.SequenceHeader, o.Width = "Number", 4 }))
	if fmt.Sprint(got.sequences, got.y, got.err) != "[100 102] [[0 1] [1 1]] EOF" || len(got.refused) != 2 {
		t.Errorf("%+v", got)
	}
}

// TestWorkQueue: a stream that removes what was acknowledged keeps its consumer,
// and what is gone is not passed over in silence.
func TestWorkQueue(t *testing.T) {
	e := startServer(t, t.TempDir())
	kept, err := e.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "Q", Subjects: []string{"q"}, Retention: jetstream.WorkQueuePolicy})
	if err != nil {
		t.Fatal(err)
	}
	for k := range 6 {
		if _, err := e.js.Publish(t.Context(), "q", fmt.Appendf(nil, `{"y":[%d,1]}`, k)); err != nil {
			t.Fatal(err)
		}
	}
	queue := func(o *StreamOptions) { o.Stream = "Q" }
	s := openStream(t, e.Broker, -1, queue)
	for range 3 {
		sample, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := sample.Done(); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	// The server removes what was acknowledged in its own time.
	for first := uint64(0); first < 4; {
		info, err := kept.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		first = info.State.FirstSeq
	}
	_, err = e.Source(t.Context(), StreamOptions{Stream: "Q", Durable: "d", Form: Form{Sensors: 2}, Numbering: Numbering{After: 1}})
	if err == nil || !strings.Contains(err.Error(), "--from 4") {
		t.Errorf("lost messages: %v", err)
	}
	expectSequences(t, takeAll(openStream(t, e.Broker, 3, queue)), 4, 6)
}

func TestWaitingForMessages(t *testing.T) {
	e := startServer(t, t.TempDir())
	s := openStream(t, e.Broker, -1, func(o *StreamOptions) { o.Drain = false })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	publish(t, e.Broker, 1, 1)
	if sample, err := s.Next(t.Context()); err != nil || sample.Sequence != 1 {
		t.Error(sample, err)
	}
}

func TestResultsOnce(t *testing.T) {
	e := startServer(t, t.TempDir())
	if err := e.EnsureStream(t.Context(), "R", "r", StreamLimits{}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := e.Publish(t.Context(), "r", "S-1", []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := e.js.Stream(t.Context(), "R")
	if err != nil || stream.CachedInfo().State.Msgs != 1 {
		t.Errorf("%d results stored, %v", stream.CachedInfo().State.Msgs, err)
	}
	if err := e.Publish(t.Context(), "nowhere", "S-1", nil); err == nil || !strings.Contains(err.Error(), "no stream of the server takes this subject") {
		t.Error(err)
	}
}

func TestEmbeddedSurvivesRestart(t *testing.T) {
	folder := t.TempDir()
	e := startServer(t, folder)
	publish(t, e.Broker, 1, 5)
	e.Close()
	e = startServer(t, folder)
	expectSequences(t, takeAll(openStream(t, e.Broker, 2, nil)), 3, 5)
}

func TestEmbeddedAddresses(t *testing.T) {
	for _, address := range []string{"0.0.0.0:4222", ":4222", "10.0.0.1:4222", "example.com:1", "127.0.0.1:x", "127.0.0.1"} {
		if e, err := StartEmbedded(EmbeddedOptions{Folder: t.TempDir(), Address: address}); err == nil {
			e.Close()
			t.Errorf("%s was accepted", address)
		}
	}
	e := startServer(t, t.TempDir())
	taken := strings.TrimPrefix(e.URL(), "nats://")
	if _, err := StartEmbedded(EmbeddedOptions{Folder: t.TempDir(), Address: taken}); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a port that is taken: %v", err)
	}
}

// A stream of results, which drops its oldest by itself, refuses to be purged even by its
// owner; one that comes in is trimmed by purging.
func TestResultsCannotBePurged(t *testing.T) {
	e := startServer(t, t.TempDir())
	if err := e.EnsureStream(t.Context(), "R", "results", StreamLimits{Messages: 10}); err != nil {
		t.Fatal(err)
	}
	results, err := e.js.Stream(t.Context(), "R")
	if err != nil {
		t.Fatal(err)
	}
	if err := results.Purge(t.Context()); err == nil {
		t.Error("results were purged")
	}
	publish(t, e.Broker, 1, 5)
	if err := e.Trim(t.Context(), "S", 5, 2); err != nil {
		t.Error(err)
	}
}

// TestGuests: no client comes in without the token, and who has it publishes and
// reads, but takes nothing away.
func TestGuests(t *testing.T) {
	folder := t.TempDir()
	e := startServer(t, folder)
	for _, a := range []Access{{}, {Token: "wrong"}, {Token: e.Token() + "x"}} {
		if b, err := Connect(e.URL(), a); err == nil {
			b.Close()
			t.Errorf("came in with %+v", a)
		}
	}
	stat, err := os.Stat(e.TokenFile())
	if err != nil || stat.Mode().Perm()&0o077 != 0 {
		t.Errorf("the token's file: %v, %v", stat.Mode(), err)
	}
	b, err := Connect(strings.Replace(e.URL(), "nats://", "nats://"+e.Token()+"@", 1), Access{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	publish(t, b, 1, 3)
	stream, err := b.js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	config := stream.CachedInfo().Config
	for what, err := range map[string]error{
		"purge": stream.Purge(ctx), "delete a message": stream.DeleteMsg(ctx, 1), "delete": b.js.DeleteStream(ctx, "S"),
		"update": func() error { config.MaxMsgs = 1; _, err := b.js.UpdateStream(ctx, config); return err }(),
		"create": func() error {
			_, err := b.js.CreateStream(ctx, jetstream.StreamConfig{Name: "T", Subjects: []string{"t"}})
			return err
		}(),
	} {
		if err == nil {
			t.Errorf("a guest could %s", what)
		}
	}
	expectSequences(t, takeAll(openStream(t, e.Broker, -1, nil)), 1, 3)
	own, err := e.js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	if err := own.DeleteMsg(t.Context(), 1); err == nil {
		t.Error("a single message could be deleted")
	}
	token := e.Token()
	e.Close()
	if again := startServer(t, folder); again.Token() != token {
		t.Error("another token after a restart")
	}
	if e, err := StartEmbedded(EmbeddedOptions{Folder: t.TempDir(), Address: "127.0.0.1:0", Token: "short"}); err == nil {
		e.Close()
		t.Error("a short token was accepted")
	}
}

// TestFullDisk: what does not fit is refused, and what was not taken in yet stays.
// Where what was taken in fills half of the space, it goes.
func TestFullDisk(t *testing.T) {
	e := startServer(t, t.TempDir())
	if err := e.EnsureStream(t.Context(), "S", "s.y", StreamLimits{Bytes: 4096}); err != nil {
		t.Fatal(err)
	}
	published := int64(0)
	for ; published < 1000; published++ {
		if _, err := e.js.Publish(t.Context(), "s.y", fmt.Appendf(nil, `{"y":[%d,null]}`, published+1)); err != nil {
			break
		}
	}
	if published == 0 || published == 1000 {
		t.Fatalf("%d messages in 4 KiB", published)
	}
	expectSequences(t, takeAll(openStream(t, e.Broker, -1, nil)), 1, published)
	if err := e.Trim(t.Context(), "S", published, 1000); err != nil {
		t.Fatal(err)
	}
	publish(t, e.Broker, int(published)+1, int(published)+1)
	kept := takeAll(openStream(t, e.Broker, 0, nil)).sequences
	if n := int64(len(kept)); n < published/3 || n > published/2+2 {
		t.Errorf("%d of %d messages are kept", n, published)
	}
}

func TestRedact(t *testing.T) {
	for address, want := range map[string]string{
		"nats://h:1":                           "nats://h:1",
		"nats://user:secret@h:1":               "nats://user:xxxxx@h:1",
		"nats://secret@h:1":                    "nats://xxxxx@h:1",
		"nats://u:secret@h:1, nats://secret@i": "nats://u:xxxxx@h:1,nats://xxxxx@i",
		"nats://u:se%cret@h:1":                 "nats://xxxxx@h:1",
		"nats://u:secret@h:port":               "nats://xxxxx@h:port",
		"nats://u:sec,ret@h:1":                 "nats://xxxxx@h:1",
		"u:secret@h:1":                         "xxxxx@h:1",
		"secret@h":                             "xxxxx@h",
		"h:1":                                  "h:1",
	} {
		if got := Redact(address); got != want {
			t.Errorf("%s: %s, expected %s", address, got, want)
		}
		if _, err := Connect(strings.ReplaceAll(address, "h:1", "127.0.0.1:1"), Access{}); err == nil || strings.Contains(err.Error(), "ret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestOtherPeoplesConsumers(t *testing.T) {
	e := startServer(t, t.TempDir())
	stream, err := e.js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "d", AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
		t.Fatal(err)
	}
	_, err = e.Source(t.Context(), StreamOptions{Stream: "S", Durable: "d", Form: Form{Sensors: 2}, Numbering: Numbering{After: -1}, SequenceHeader: "Number"})
	if err == nil || !strings.Contains(err.Error(), "MaxAckPending is 1") {
		t.Error(err)
	}
	if err := e.EnsureStream(t.Context(), "S", "other", StreamLimits{}); err == nil || !strings.Contains(err.Error(), `takes ["s.y"]`) {
		t.Error(err)
	}
}

func TestTrim(t *testing.T) {
	e := startServer(t, t.TempDir())
	publish(t, e.Broker, 1, 9)
	takeAll(openStream(t, e.Broker, -1, nil))
	if err := e.Trim(t.Context(), "S", 9, 6); err != nil {
		t.Fatal(err)
	}
	kept := takeAll(openStream(t, e.Broker, 0, nil))
	if len(kept.notices) != 1 || !strings.HasPrefix(kept.notices[0], "messages 1 to 3: ") {
		t.Errorf("noticed %q by a state from before", kept.notices)
	}
	kept.notices = nil
	expectSequences(t, kept, 4, 9)
	publish(t, e.Broker, 10, 10)
	expectSequences(t, takeAll(openStream(t, e.Broker, 9, nil)), 10, 10)
}
