package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func startServer(t *testing.T, folder string) *Embedded {
	t.Helper()
	e, err := StartEmbedded(folder, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	if err := e.EnsureStream(t.Context(), "S", "s.y", 0); err != nil {
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
	o := StreamOptions{Stream: "S", Durable: "d", Sensors: 2, Numbering: Numbering{After: after}, Drain: true}
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
	_, err := e.Source(t.Context(), StreamOptions{Stream: "S", Durable: "d", Sensors: 2, Numbering: Numbering{After: 10}})
	if err == nil || !strings.Contains(err.Error(), "ends at message 9") {
		t.Errorf("another stream: %v", err)
	}
	_, err = e.Source(t.Context(), StreamOptions{Stream: "T", Durable: "d", Sensors: 2})
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
	_, err := e.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "Q", Subjects: []string{"q"}, Retention: jetstream.WorkQueuePolicy})
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
	e.nc.Flush()
	_, err = e.Source(t.Context(), StreamOptions{Stream: "Q", Durable: "d", Sensors: 2, Numbering: Numbering{After: 1}})
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
	if err := e.EnsureStream(t.Context(), "R", "r", 0); err != nil {
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
		if e, err := StartEmbedded(t.TempDir(), address); err == nil {
			e.Close()
			t.Errorf("%s was accepted", address)
		}
	}
	e := startServer(t, t.TempDir())
	taken := strings.TrimPrefix(e.URL(), "nats://")
	if _, err := StartEmbedded(t.TempDir(), taken); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a port that is taken: %v", err)
	}
	b, err := Connect(e.URL(), "")
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	if _, err := Connect("nats://user:secret@127.0.0.1:1", ""); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
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
	_, err = e.Source(t.Context(), StreamOptions{Stream: "S", Durable: "d", Sensors: 2, Numbering: Numbering{After: -1}, SequenceHeader: "Number"})
	if err == nil || !strings.Contains(err.Error(), "MaxAckPending is 1") {
		t.Error(err)
	}
	if err := e.EnsureStream(t.Context(), "S", "other", 0); err == nil || !strings.Contains(err.Error(), `takes ["s.y"]`) {
		t.Error(err)
	}
}

func TestTrim(t *testing.T) {
	e := startServer(t, t.TempDir())
	publish(t, e.Broker, 1, 9)
	takeAll(openStream(t, e.Broker, -1, nil))
	if err := e.Trim(t.Context(), "S", 4); err != nil {
		t.Fatal(err)
	}
	expectSequences(t, takeAll(openStream(t, e.Broker, 0, nil)), 4, 9)
	publish(t, e.Broker, 10, 10)
	expectSequences(t, takeAll(openStream(t, e.Broker, 9, nil)), 10, 10)
}
