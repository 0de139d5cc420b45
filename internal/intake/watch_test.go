package intake

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// heard are the samples and notices of a source until its end, each as one word or more.
func heard(t *testing.T, s Source) []string {
	t.Helper()
	var all []string
	for {
		sample, err := s.Next(t.Context())
		var notice *Notice
		switch {
		case errors.As(err, &notice):
			all = append(all, fmt.Sprintf("[%s, %d missing]", notice.Place, notice.Missing))
		case err != nil:
			if err != io.EOF {
				all = append(all, err.Error())
			}
			return all
		default:
			all = append(all, fmt.Sprint(sample.Sequence))
			if err := sample.Done(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func expectHeard(t *testing.T, got []string, want string) {
	t.Helper()
	if words := strings.Join(got, " "); words != want {
		t.Errorf("heard %s, expected %s", words, want)
	}
}

// taker takes so many messages of a consumer for itself.
func taker(t *testing.T, e *Embedded, stream, consumer string, count int) {
	t.Helper()
	c, err := e.js.Consumer(t.Context(), stream, consumer)
	if err != nil {
		t.Fatal(err)
	}
	for range count {
		m, err := c.Next(jetstream.FetchMaxWait(5 * time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.DoubleAck(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// next takes samples in.
func next(t *testing.T, s Source, count int) {
	t.Helper()
	for range count {
		sample, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := sample.Done(); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(20 * time.Millisecond) // acknowledgements arrive
}

// TestMessagesThatNeverCame: what somebody else takes, deletes or purges is reported, with its numbers, in the middle and at the
// end, and across a restart.
func TestMessagesThatNeverCame(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(t *testing.T, e *Embedded, s jetstream.Stream)
		want string
	}{
		"taken":            {func(t *testing.T, e *Embedded, _ jetstream.Stream) { taker(t, e, "S", "d", 4) }, "[messages 3 to 6, 4 missing] 7 8 9 10"},
		"taken at the end": {func(t *testing.T, e *Embedded, _ jetstream.Stream) { taker(t, e, "S", "d", 8) }, "[messages 3 to 10, 8 missing]"},
		"one deleted": {func(t *testing.T, _ *Embedded, s jetstream.Stream) {
			if err := s.DeleteMsg(t.Context(), 5); err != nil {
				t.Fatal(err)
			}
		}, "3 4 [message 5, 1 missing] 6 7 8 9 10"},
		"purged": {func(t *testing.T, _ *Embedded, s jetstream.Stream) {
			if err := s.Purge(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, "[messages 3 to 10, 8 missing]"},
		"all there": {func(*testing.T, *Embedded, jetstream.Stream) {}, "3 4 5 6 7 8 9 10"},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", name, restart), func(t *testing.T) {
				t.Parallel()
				e, err := StartEmbedded(EmbeddedOptions{Folder: t.TempDir(), Address: "127.0.0.1:0", Shared: true})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				stream, err := e.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.y"}})
				if err != nil {
					t.Fatal(err)
				}
				publish(t, e.Broker, 1, 10)
				s := openStream(t, e.Broker, -1, nil)
				next(t, s, 2)
				if !restart {
					c.do(t, e, stream)
					expectHeard(t, heard(t, s), c.want)
					return
				}
				s.Close()
				if strings.HasPrefix(name, "taken") {
					return // a consumer made anew delivers them all
				}
				c.do(t, e, stream)
				expectHeard(t, heard(t, openStream(t, e.Broker, 2, nil)), c.want)
			})
		}
	}
}

// TestMissingOfOneSubject: messages of other subjects are none of the consumer's, and their numbers are not missing.
func TestMissingOfOneSubject(t *testing.T) {
	for _, end := range []bool{false, true} {
		e := startServer(t, t.TempDir())
		if _, err := e.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "Q", Subjects: []string{"q.*"}}); err != nil {
			t.Fatal(err)
		}
		for k := range 12 {
			if _, err := e.js.Publish(t.Context(), []string{"q.a", "q.b"}[k%2], []byte(`{"y":[1,1]}`)); err != nil {
				t.Fatal(err)
			}
		}
		filtered := func(o *StreamOptions) { o.Stream, o.Filter = "Q", "q.a" }
		expectHeard(t, heard(t, openStream(t, e.Broker, -1, filtered)), "1 3 5 7 9 11")
		s := openStream(t, e.Broker, 0, filtered)
		next(t, s, 1)
		if end {
			taker(t, e, "Q", "d", 5)
			expectHeard(t, heard(t, s), "[messages 2 to 11, 5 missing]")
			continue
		}
		taker(t, e, "Q", "d", 2)
		m, err := s.(*messageSource).messages.Next() // delivered and not acknowledged: it comes again, and is not missing
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Nak(); err != nil {
			t.Fatal(err)
		}
		expectHeard(t, heard(t, s), "[messages 2 to 6, 2 missing] 7 9 11")
	}
}

// TestPausedConsumer: a consumer that is paused is reported, once, and so is the end of a source whose stream was made anew
// meanwhile, or whose consumer another process has taken.
func TestPausedConsumer(t *testing.T) {
	e := startServer(t, t.TempDir())
	publish(t, e.Broker, 1, 3)
	owned := func(o *StreamOptions) {
		o.Drain, o.SequenceHeader, o.Owner = false, "", Owner{State: "1", Place: "S.calamp"}
	}
	s := openStream(t, e.Broker, -1, owned)
	s.(*messageSource).quiet = 50 * time.Millisecond
	next(t, s, 3)
	if _, err := e.js.PauseConsumer(t.Context(), "S", "d", time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	_, err := s.Next(t.Context())
	var notice *Notice
	if !errors.As(err, &notice) || !strings.Contains(err.Error(), "paused until 2090-01-01") || notice.Missing != 0 {
		t.Fatal(err)
	}
	if _, err := e.js.ResumeConsumer(t.Context(), "S", "d"); err != nil {
		t.Fatal(err)
	}
	publish(t, e.Broker, 4, 4)
	next(t, s, 1)
	// Another process of the same state.
	stream, err := e.js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	c, err := stream.Consumer(t.Context(), "d")
	if err != nil {
		t.Fatal(err)
	}
	config := c.CachedInfo().Config
	config.Metadata[runMark] = "another"
	if _, err := stream.UpdateConsumer(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "taken over by another process, of state S.calamp") {
		t.Error(err)
	}
}

// TestStreamMadeAnew: one of the same name is not the one whose messages the state has counted.
func TestStreamMadeAnew(t *testing.T) {
	e := startServer(t, t.TempDir())
	publish(t, e.Broker, 1, 5)
	s := openStream(t, e.Broker, -1, func(o *StreamOptions) { o.Drain = false })
	next(t, s, 5)
	origin := s.(Dated).Origin()
	s.(*messageSource).quiet = 50 * time.Millisecond
	if err := e.js.DeleteStream(t.Context(), "S"); err != nil {
		t.Fatal(err)
	}
	committed := time.Now()
	if err := e.EnsureStream(t.Context(), "S", "s.y", StreamLimits{}); err != nil {
		t.Fatal(err)
	}
	publish(t, e.Broker, 1, 9)
	if _, err := s.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "was deleted") {
		t.Errorf("under a running source: %v", err)
	}
	forgotten := &jetstream.StreamInfo{Created: committed.Add(time.Hour), State: jetstream.StreamState{Msgs: 9, LastSeq: 9, FirstTime: committed}}
	for _, o := range []StreamOptions{{Numbering: Numbering{After: 5}, Origin: origin}, {Numbering: Numbering{After: 5}, Committed: committed}} {
		if err := checkStream(forgotten, o); err != nil {
			t.Errorf("a stream with messages from before it was made: %v", err)
		}
	}
	for what, c := range map[string]struct {
		o    StreamOptions
		want string
	}{
		"known origin":          {StreamOptions{Numbering: Numbering{After: 5}, Origin: origin, Committed: committed}, "was deleted and made anew; its first 5 messages"},
		"a state from before":   {StreamOptions{Numbering: Numbering{After: 5}, Committed: committed}, "after the last number of the state"},
		"one set by hand":       {StreamOptions{Numbering: Numbering{After: 5}, Committed: time.Now().Add(time.Second)}, ""},
		"from the first on":     {StreamOptions{Numbering: Numbering{After: 0}, Origin: origin}, ""},
		"nothing was taken in":  {StreamOptions{Numbering: Numbering{After: -1}}, ""},
		"numbers from a header": {StreamOptions{Numbering: Numbering{After: 5}, Origin: origin, SequenceHeader: "N"}, ""},
	} {
		c.o.Stream, c.o.Durable, c.o.Form = "S", "d", Form{Sensors: 2}
		source, err := e.Source(t.Context(), c.o)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, expected %q", what, err, c.want)
		}
		if err == nil {
			source.Close()
			e.js.DeleteConsumer(t.Context(), "S", "d")
		}
	}
}

// TestOneOwner: two states on one durable consumer would share its messages. The second is refused, whether the
// consumer is kept or made anew, and also where the first was made by hand; the same state goes on.
func TestOneOwner(t *testing.T) {
	e := startServer(t, t.TempDir())
	publish(t, e.Broker, 1, 4)
	for _, change := range []func(*StreamOptions){
		func(*StreamOptions) {},
		func(o *StreamOptions) { o.SequenceHeader, o.Durable = "N", "kept" },
		func(o *StreamOptions) { o.Frozen, o.Durable = true, "d-frozen" },
	} {
		of := func(state string) StreamOptions {
			o := StreamOptions{Stream: "S", Durable: "d", Form: Form{Sensors: 2}, Numbering: Numbering{After: -1}, Owner: Owner{State: state, Place: state + ".calamp"}}
			change(&o)
			return o
		}
		if of("").Durable == "kept" {
			stream, err := e.js.Stream(t.Context(), "S")
			if err != nil {
				t.Fatal(err)
			}
			byHand := jetstream.ConsumerConfig{Durable: "kept", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 1, Metadata: map[string]string{"of": "us"}}
			if _, err := stream.CreateConsumer(t.Context(), byHand); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			first, err := e.Source(t.Context(), of("first"))
			if err != nil {
				t.Fatal(err)
			}
			defer first.Close()
			if _, err := e.Source(t.Context(), of("second")); err == nil || !strings.Contains(err.Error(), "that of another state, first.calamp") {
				t.Errorf("%s: %v", of("").Durable, err)
			}
		}
		c, err := e.js.Consumer(t.Context(), "S", of("").Durable)
		if err != nil {
			t.Fatal(err)
		}
		if marks := c.CachedInfo().Config.Metadata; marks[stateMark] != "first" || of("").Durable == "kept" && marks["of"] != "us" {
			t.Errorf("%v", marks)
		}
	}
}
