//go:build !small

package intake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// watch follows the numbers of what a consumer delivers, so that no message is passed over in silence.
type watch struct {
	made     time.Time // when the stream was
	filtered bool      // messages of other subjects are between those of this consumer

	// Of the last message that came. Of a stream without filter each number that follows is that of a message. With one the
	// consumer's count of deliveries tells.
	last, deliveries uint64

	looked time.Time     // when stream and consumer were last asked for
	quiet  time.Duration // after which they are again
	paused bool          // that was said
}

// lookEvery is after how long a silent stream is asked whether it is still there, and the consumer its own.
const lookEvery = ackWait

// Origin implements [Dated].
func (w *watch) Origin() time.Time { return w.made }

// newWatch begins at the last message that was taken in, where that is known, and else with the first that there is.
func newWatch(stream *jetstream.StreamInfo, consumer *jetstream.ConsumerInfo, o StreamOptions) watch {
	w := watch{
		made: stream.Created, quiet: lookEvery, looked: time.Now(),
		filtered:   o.Filter != "" && !slices.Equal(stream.Config.Subjects, []string{o.Filter}),
		last:       max(stream.State.FirstSeq, 1) - 1,
		deliveries: consumer.Delivered.Consumer,
	}
	switch {
	case o.counts() && o.After >= 0:
		w.last = uint64(o.After)
	case consumer.AckFloor.Stream > 0:
		w.last = consumer.AckFloor.Stream
	}
	return w
}

// delivered follows a message, and tells of those before it that never came.
func (w *watch) delivered(m *jetstream.MsgMetadata) *Notice {
	before := *w
	w.deliveries = max(w.deliveries, m.Sequence.Consumer)
	if m.Sequence.Stream <= before.last {
		return nil // once more
	}
	w.last = m.Sequence.Stream
	if before.filtered {
		// Each message is delivered as often as it says. All other deliveries were to somebody else.
		return missing(before.last+1, m.Sequence.Stream-1, int64(m.Sequence.Consumer)-int64(before.deliveries)-int64(m.NumDelivered))
	}
	return missing(before.last+1, m.Sequence.Stream-1, int64(m.Sequence.Stream-before.last)-1)
}

// state tells what is wrong with a stream that is silent: where its end was delivered, all of it came.
func (w *watch) state(stream *jetstream.StreamInfo, consumer *jetstream.ConsumerInfo, atEnd bool) *Notice {
	if was := w.paused; consumer.Paused != was {
		if w.paused = consumer.Paused; w.paused {
			until := moment(consumer.TimeStamp.Add(consumer.PauseRemaining).Round(time.Second))
			return &Notice{Place: "consumer " + consumer.Name, Err: fmt.Errorf("it was paused until %s, and delivers nothing", until)}
		}
	}
	if !atEnd {
		return nil
	}
	end, count := stream.State.LastSeq, int64(stream.State.LastSeq)-int64(w.last)
	if w.filtered {
		end, count = consumer.Delivered.Stream, int64(consumer.Delivered.Consumer)-int64(w.deliveries)
	}
	if end <= w.last {
		return nil
	}
	first := w.last + 1
	w.last, w.deliveries = end, max(w.deliveries, consumer.Delivered.Consumer)
	return missing(first, end, count)
}

// missing tells that so many messages, of those from first to last, never came.
func missing(first, last uint64, count int64) *Notice {
	if count <= 0 {
		return nil
	}
	n := &Notice{Place: fmt.Sprintf("messages %d to %d", first, last), Missing: count}
	if first == last {
		n.Place = fmt.Sprintf("message %d", first)
	}
	n.Err = errors.New("never delivered to this process: deleted or expired before, or another client took it")
	if count > 1 {
		n.Err = fmt.Errorf("%d were never delivered to this process: deleted or expired before, or another client took them", count)
	}
	return n
}

// The marks of a consumer, in its metadata: whose messages it has, and who took it last.
const (
	stateMark = "calamp-state"
	placeMark = "calamp-place"
	runMark   = "calamp-run"
)

func (s *messageSource) marks() map[string]string {
	if s.o.Owner == (Owner{}) {
		return nil
	}
	s.marked = true
	return map[string]string{stateMark: s.o.Owner.State, placeMark: s.o.Owner.Place, runMark: s.run}
}

// check refuses the consumer of another state.
func (o Owner) check(marks map[string]string) error {
	if of := marks[stateMark]; o.State != "" && of != "" && of != o.State {
		return fmt.Errorf("it is that of another state, %s, and two would share its messages: take a name of this one's own, --durable NAME, "+
			"or remove the consumer if that state is gone", marks[placeMark])
	}
	return nil
}

// mark makes a consumer that is there this process's. Where that is not allowed the source goes on, and says so.
func (s *messageSource) mark(ctx context.Context, old jetstream.Consumer) jetstream.Consumer {
	marks := s.marks()
	if marks == nil {
		return old
	}
	config := old.CachedInfo().Config
	config.Metadata = maps.Clone(config.Metadata) // others may be there
	if config.Metadata == nil {
		config.Metadata = map[string]string{}
	}
	maps.Copy(config.Metadata, marks)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	made, err := s.stream.UpdateConsumer(ctx, config)
	if err == nil {
		return made
	}
	s.marked = false
	s.notice = &Notice{
		Place: "consumer " + s.o.Durable,
		Err:   fmt.Errorf("it could not be marked as this state's own, so another one that takes its messages is not noticed: %w", err),
	}
	return old
}
