//go:build !small

package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ackWait is how long the broker waits before it delivers a message again. While
// a sample is being solved the broker hears of it every third of it.
const ackWait = 30 * time.Second

// Broker is a connection to a JetStream.
type Broker struct {
	nc *nats.Conn
	js jetstream.JetStream
}

// Connect connects to a NATS server. A lost connection is taken up again for as
// long as it takes.
func Connect(address string, a Access) (*Broker, error) {
	options := []nats.Option{nats.Name("calamp"), nats.MaxReconnects(-1), nats.Timeout(5 * time.Second)}
	if a.Credentials != "" {
		options = append(options, nats.UserCredentials(a.Credentials))
	}
	if a.Token != "" {
		options = append(options, nats.Token(a.Token))
	}
	nc, err := nats.Connect(address, options...)
	if parse, ok := errors.AsType[*url.Error](err); ok { // which quotes the address, with what is secret in it
		err = fmt.Errorf("not an address: %s", withoutQuotes(parse.Err))
	}
	if err != nil {
		return nil, fmt.Errorf("NATS server %s: %w", Redact(address), err)
	}
	return newBroker(nc)
}

// withoutQuotes is an error of net/url without the part of the address that it
// quotes.
func withoutQuotes(err error) string {
	text, _, _ := strings.Cut(err.Error(), ` "`)
	return text
}

func newBroker(nc *nats.Conn) (*Broker, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &Broker{nc: nc, js: js}, nil
}

// JetStream is the connection for streams that hold no samples.
func (b *Broker) JetStream() jetstream.JetStream { return b.js }

// Close sends what is still to be sent, acknowledgements above all.
func (b *Broker) Close() error {
	err := b.nc.FlushTimeout(2 * time.Second)
	b.nc.Close()
	if errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrConnectionClosed) {
		return nil // what was not acknowledged comes again, and is dropped
	}
	return err
}

// Source takes the messages of a stream, one at a time and in order: the next is
// delivered when the one before was acknowledged. A message is acknowledged by
// its sample's Done; one that is not, because the process died, comes again.
func (b *Broker) Source(ctx context.Context, o StreamOptions) (Source, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stream, err := b.js.Stream(ctx, o.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("there is no stream %q on this server%s", o.Stream, b.streamNames(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", o.Stream, err)
	}
	info := stream.CachedInfo()
	if err := checkStream(info, o); err != nil {
		return nil, err
	}
	s := &messageSource{o: o, accepted: o.Numbering, stream: stream, run: newToken()}
	if s.consumer, err = s.openConsumer(ctx); err == nil {
		s.messages, err = s.consumer.Messages(jetstream.PullMaxMessages(1))
	}
	if err != nil {
		return nil, fmt.Errorf("stream %s, consumer %s: %w", o.Stream, o.Durable, err)
	}
	s.watch = newWatch(info, s.consumer.CachedInfo(), o)
	return s, nil
}

func (b *Broker) streamNames(ctx context.Context) string {
	var names []string
	list := b.js.StreamNames(ctx)
	for name := range list.Name() {
		names = append(names, name)
	}
	if len(names) == 0 {
		return ", nor any other"
	}
	return ", there are " + strings.Join(names, ", ")
}

// checkStream refuses a stream whose messages are not those that After counts, because it ends before, or was made later:
// its first ones would be taken for duplicates.
func checkStream(info *jetstream.StreamInfo, o StreamOptions) error {
	const another = "its first %d messages would be taken for those; calamp state restart-at S.calamp 1 begins with the first, and keeps what was learned; " +
		"where it is the same stream, calamp state restart-at S.calamp %d goes on"
	switch {
	case !o.counts() || o.After <= 0:
		return nil
	case o.After > int64(info.State.LastSeq):
		return fmt.Errorf("stream %s ends at message %d, but the state has taken in message %d: it was made from another stream", o.Stream, info.State.LastSeq, o.After)
	case !madeAfter(info, o):
		return nil
	case !o.Origin.IsZero():
		return fmt.Errorf("stream %s was made on %s, but the state has taken in messages of one made on %s: it was deleted and made anew; "+another,
			o.Stream, moment(info.Created), moment(o.Origin), o.After, o.After+1)
	}
	return fmt.Errorf("stream %s was made on %s, after the last number of the state, of %s: that is of something else; "+another,
		o.Stream, moment(info.Created), moment(o.Committed), o.After, o.After+1)
}

// madeAfter says whether a stream was made after the one of After, or where that is not known after After was set.
func madeAfter(info *jetstream.StreamInfo, o StreamOptions) bool {
	if !o.Origin.IsZero() {
		return madeAnew(info, o.Origin)
	}
	return !o.Committed.IsZero() && o.Committed.Before(info.Created) && madeAnew(info, o.Committed)
}

// madeAnew says whether a stream was made at another time than then. A server that is killed while it starts can forget when a stream was made
// and say that it was now; such a stream has messages from before.
func madeAnew(info *jetstream.StreamInfo, then time.Time) bool {
	return !info.Created.Equal(then) && (info.State.Msgs == 0 || !info.State.FirstTime.Before(info.Created))
}

// counts says whether the stream's own numbers are those of the samples, and the state's.
func (o *StreamOptions) counts() bool { return o.SequenceHeader == "" && !o.Frozen }

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }

// openConsumer makes the state's own record of what was taken in decide where the
// consumer begins, not the broker's: the state may be older than the broker
// thinks (a rollback, a restored copy), and messages acknowledged since would be
// lost to it. Where the stream keeps its messages whoever acknowledges them, the
// consumer is therefore made anew, which also brings back at once the message
// that a killed process had not acknowledged. Otherwise it must be kept, since
// without it the stream would drop messages. Either way it is this state's own.
func (s *messageSource) openConsumer(ctx context.Context) (jetstream.Consumer, error) {
	stream, o := s.stream, s.o
	config := jetstream.ConsumerConfig{
		Durable: o.Durable, Description: "calamp online",
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxAckPending: 1, MaxDeliver: -1, Metadata: s.marks(),
		FilterSubject: o.Filter, DeliverPolicy: jetstream.DeliverAllPolicy,
	}
	kept := stream.CachedInfo().Config.Retention != jetstream.LimitsPolicy || !o.counts()
	old, err := stream.Consumer(ctx, o.Durable)
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, err
	}
	if old != nil {
		if err := o.Owner.check(old.CachedInfo().Config.Metadata); err != nil {
			return nil, err
		}
	}
	if old != nil && kept {
		floor := int64(old.CachedInfo().AckFloor.Stream)
		if o.counts() && floor > o.After && floor > 0 {
			return nil, fmt.Errorf("messages up to %d were acknowledged and removed, but the state has taken in only those up to %d: --from %d goes on without them", floor, o.After, floor+1)
		}
		if c := old.CachedInfo().Config; c.AckPolicy != jetstream.AckExplicitPolicy || c.MaxAckPending != 1 {
			return nil, errors.New("it is there, but not made for this: samples can come out of order unless acknowledgements are explicit and MaxAckPending is 1")
		}
		return s.mark(ctx, old), nil
	}
	if old != nil {
		if err := stream.DeleteConsumer(ctx, o.Durable); err != nil {
			return nil, err
		}
	}
	if !kept && o.After >= 0 {
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, uint64(o.After)+1
	}
	return stream.CreateConsumer(ctx, config)
}

type messageSource struct {
	o        StreamOptions
	accepted Numbering // by the messages so far
	stream   jetstream.Stream
	consumer jetstream.Consumer
	messages jetstream.MessagesContext
	run      string  // marks the consumer as this process's
	marked   bool    // it does
	notice   *Notice // to be said first
	watch
	held    jetstream.Msg // delivered, to be returned after a notice
	empty   bool          // the last message was the last that there was
	started bool
}

func (s *messageSource) Close() error {
	s.messages.Stop()
	return nil
}

func (s *messageSource) Next(ctx context.Context) (*Sample, error) {
	for {
		if m := s.held; m != nil {
			s.held = nil
			return s.sample(m)
		}
		if n := s.notice; n != nil {
			s.notice = nil
			return nil, n
		}
		if err := s.look(ctx); err != nil {
			return nil, err
		}
		message, err := s.wait(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err() // a message that came with it comes again
		case errors.Is(err, jetstream.ErrNoHeartbeat), errors.Is(err, context.DeadlineExceeded):
			s.looked = time.Time{} // the connection is being taken up again, or see wait
			continue
		case errors.Is(err, jetstream.ErrConsumerDeleted):
			return nil, fmt.Errorf("stream %s: consumer %s was deleted; another process may use the same name", s.o.Stream, s.o.Durable)
		case err != nil:
			return nil, fmt.Errorf("stream %s: %w", s.o.Stream, err)
		}
		meta, err := message.Metadata()
		if err != nil {
			return nil, fmt.Errorf("stream %s: %w", s.o.Stream, err)
		}
		s.empty = meta.NumPending == 0
		if n := s.delivered(meta); n != nil {
			s.held = message
			return nil, n
		}
		return s.sample(message)
	}
}

// wait waits for a message, until it is time to look, to be drained not for long: the last acknowledgement
// may be under way.
func (s *messageSource) wait(ctx context.Context) (jetstream.Msg, error) {
	patience := s.quiet
	switch {
	case s.o.Drain && s.empty:
		patience = 100 * time.Millisecond
	case s.o.Drain:
		patience = min(patience, time.Second)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.messages.Next(jetstream.NextContext(ctx))
}

// look asks for the stream and its consumer now and then, to be drained as long as there may be no more. The error is
// io.EOF at the end, a *Notice of what is not as it should be, or one that ends the source. A server that does
// not answer is waited for.
func (s *messageSource) look(ctx context.Context) error {
	ending := s.o.Drain && (!s.started || s.empty)
	if !ending && time.Since(s.looked) < s.quiet {
		return nil
	}
	s.looked = time.Now()
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	stream, err := s.stream.Info(limited)
	var consumer *jetstream.ConsumerInfo
	if err == nil { // what it has now, the consumer has delivered when nothing is pending afterwards
		consumer, err = s.consumer.Info(limited)
	}
	switch {
	case ctx.Err() != nil:
		return nil // Next says so
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("stream %s was deleted", s.o.Stream)
	case errors.Is(err, jetstream.ErrConsumerNotFound):
		return fmt.Errorf("stream %s: consumer %s was deleted; another process may use the same name", s.o.Stream, s.o.Durable)
	case err != nil && ending:
		return fmt.Errorf("stream %s: %w", s.o.Stream, err)
	case err != nil:
		return nil
	case madeAnew(stream, s.made):
		return fmt.Errorf("stream %s was deleted and made anew, on %s", s.o.Stream, moment(stream.Created))
	}
	if run := consumer.Config.Metadata[runMark]; run != s.run && s.marked {
		return fmt.Errorf("stream %s: consumer %s is taken over by another process, of state %s", s.o.Stream, s.o.Durable, consumer.Config.Metadata[placeMark])
	}
	s.empty, s.started = consumer.NumPending == 0, true
	atEnd := s.empty && consumer.NumAckPending == 0
	if n := s.state(stream, consumer, atEnd); n != nil {
		return n
	}
	if atEnd && s.o.Drain {
		return io.EOF
	}
	return nil
}

// sample reads a message. One that is refused never comes again.
func (s *messageSource) sample(message jetstream.Msg) (*Sample, error) {
	meta, err := message.Metadata()
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", s.o.Stream, err)
	}
	place := fmt.Sprintf("message %d", meta.Sequence.Stream)
	sequence, y, matrix, err := s.decode(message, int64(meta.Sequence.Stream))
	if err != nil {
		if e := message.TermWithReason("calamp: not readable"); e != nil {
			return nil, fmt.Errorf("stream %s: %w", s.o.Stream, e)
		}
		return nil, &Refused{Place: place, Sequence: sequence, Err: err, Stored: int64(meta.Sequence.Stream)}
	}
	stop := KeepAlive(message, ackWait/3)
	return &Sample{Sequence: sequence, Y: y, Matrix: matrix, Place: place, Stored: int64(meta.Sequence.Stream), done: func() error {
		stop()
		return message.Ack()
	}}, nil
}

// KeepAlive tells the broker, until stopped, that the message is in good hands.
func KeepAlive(message jetstream.Msg, every time.Duration) (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				message.InProgress()
			case <-done:
				return
			}
		}
	}()
	return sync.OnceFunc(func() { close(done) })
}

func (s *messageSource) decode(message jetstream.Msg, sequence int64) (number int64, y, matrix []float64, err error) {
	if s.o.SequenceHeader != "" {
		text := message.Headers().Get(s.o.SequenceHeader)
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < 0 {
			return -1, nil, nil, fmt.Errorf("header %s is %q, expected the sample's number", s.o.SequenceHeader, text)
		}
		if err := s.accepted.check(v); err != nil {
			return v, nil, nil, fmt.Errorf("header %s: %w", s.o.SequenceHeader, err)
		}
		sequence = v
	}
	y, matrix, err = s.readings(message.Data())
	if err == nil {
		s.accepted.After = max(s.accepted.After, sequence)
	}
	return sequence, y, matrix, err
}

func (s *messageSource) readings(raw []byte) (y, matrix []float64, err error) {
	form := s.o.Form
	if form.Width == 0 {
		_, y, matrix, err = decodeObject(raw, form)
		return y, matrix, err
	}
	if len(raw) != form.numbers()*form.Width {
		return nil, nil, fmt.Errorf("%d bytes, expected %d readings of %d%s", len(raw), form.Sensors, form.Width*form.columns(), form.andMatrix())
	}
	y, matrix = decodeFrame(raw, form)
	return y, matrix, form.check(y)
}
