// Package intake brings samples in, one vector of readings at a time, with the
// numbers by which a calibration identifies what it has taken in already: from the
// columns of a matrix, from lines or frames of a pipe, from a NATS JetStream; and
// puts results out to a JetStream.
package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/crash"
)

// Sample is one vector of readings.
type Sample struct {
	Sequence int64     // larger than that of the sample before
	Y        []float64 // M, NaN where a reading is missing; of complex readings 2M, each a real and an imaginary part
	Matrix   []float64 // which W it has, as [operator.Choice] says; nil where that is the same for all
	Place    string    // where it comes from, as in "line 17"
	Stored   int64     // number of its message in the JetStream it comes from, 0 elsewhere

	done func() error
}

// Form is what a sample consists of.
type Form struct {
	Sensors int
	Complex bool // each reading is two numbers, its real and its imaginary part
	Width   int  // bytes of a number in a frame: 4 or 8; 0 for JSON
	Matrix  int  // how many numbers say which W a sample has: 0 where it is the same for all, 1 where it is one of several, else its entries
}

// columns is how many numbers a reading is.
func (f Form) columns() int {
	if f.Complex {
		return 2
	}
	return 1
}

// readings is how many numbers the readings of a sample are, and numbers how many it has.
func (f Form) readings() int { return f.Sensors * f.columns() }

func (f Form) numbers() int { return f.readings() + f.Matrix }

// andMatrix says what follows the readings in a frame.
func (f Form) andMatrix() string {
	switch f.Matrix {
	case 0:
		return ""
	case 1:
		return ", and the number of its matrix"
	}
	return fmt.Sprintf(", and %d numbers of its matrix", f.Matrix)
}

// example is a reading as JSON.
func (f Form) example() string {
	if f.Complex {
		return "[0.1, -0.2]"
	}
	return "0.1"
}

// check refuses what is no vector of readings.
func (f Form) check(y []float64) error {
	if len(y) != f.readings() {
		return fmt.Errorf("%d readings, expected one for each of %d sensors", len(y)/f.columns(), f.Sensors)
	}
	for j, v := range y {
		if math.IsInf(v, 0) {
			return fmt.Errorf("sensor %d reads %g, expected a finite number, or a missing reading", j/f.columns(), v)
		}
	}
	return nil
}

// NewSample is a sample of a source outside of this package; done is called by
// Done, and can be nil.
func NewSample(sequence int64, y []float64, place string, done func() error) *Sample {
	return &Sample{Sequence: sequence, Y: y, Place: place, done: done}
}

// Done tells the source that the sample need not be kept: it is committed, or
// was dropped.
func (s *Sample) Done() error {
	if s.done == nil {
		return nil
	}
	return s.done()
}

// Source gives samples in order.
type Source interface {
	// Next waits for the next sample, which stays valid until the next call. At
	// the end the error is io.EOF. A *Refused is a sample that cannot be used, a *Notice is about no sample;
	// the stream goes on after both. When ctx is cancelled the error is ctx.Err().
	Next(ctx context.Context) (*Sample, error)

	Close() error
}

// Dated is a source of a stream that was made at a time, by which it is distinguished from another one of its name.
type Dated interface{ Origin() time.Time }

// Refused is the error of a sample that cannot be used.
type Refused struct {
	Place    string
	Sequence int64 // -1 where not known
	Err      error
	Stored   int64 // as in Sample
}

// Error names the place.
func (r *Refused) Error() string { return r.Place + ": " + r.Err.Error() }

// Unwrap returns the fault without its place.
func (r *Refused) Unwrap() error { return r.Err }

// Notice is the error of a source that has something to say of the stream itself, in place of a sample. The stream goes on after
// it.
type Notice struct {
	Place   string // the messages it is about, or what of the stream
	Missing int64  // messages that never came and will not; 0 where none is known to be missing
	Err     error
}

// Error names the place.
func (n *Notice) Error() string { return n.Place + ": " + n.Err.Error() }

// Unwrap returns what there is to say without its place.
func (n *Notice) Unwrap() error { return n.Err }

// MaxSequence is the largest number that a sample may have. It leaves room to
// count on from there without overflow.
const MaxSequence int64 = 1 << 62

// Numbering says which of the numbers that come with samples are accepted. One
// corrupt number that is far too large, once taken in, would make every later
// sample look like one that was there before.
type Numbering struct {
	// After is the last number that was taken in, -1 for none.
	After int64

	// MaxGap is how far above the last number the next one may be; 0 is any
	// distance. A first number with nothing before it is always accepted.
	MaxGap int64
}

// check refuses a number that is not accepted.
func (n Numbering) check(sequence int64) error {
	switch {
	case sequence > MaxSequence:
		return fmt.Errorf("sequence number %d, expected at most %d", sequence, MaxSequence)
	case n.MaxGap > 0 && n.After >= 0 && sequence-n.After > n.MaxGap:
		return fmt.Errorf("sequence number %d is %d above the last one, %d, and a gap of more than %d is refused (--max-gap)",
			sequence, sequence-n.After, n.After, n.MaxGap)
	}
	return nil
}

// Columns are the columns of y, the first with the number offset+1; of complex readings a sample is two of them, real and
// imaginary parts. Where W is one of several, sample k has matrix of[k].
func Columns(y *mat.Dense, f Form, offset int64, of []int) Source {
	return &columns{y: y, each: f.columns(), offset: offset, of: of}
}

type columns struct {
	y      *mat.Dense
	each   int // columns of a sample
	of     []int
	next   int
	offset int64
	sample Sample
}

func (c *columns) Next(ctx context.Context) (*Sample, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m, p := c.y.Dims()
	if c.next == p/c.each {
		return nil, io.EOF
	}
	c.sample.Y = c.sample.Y[:0]
	for mu := range m {
		row := c.y.RawRowView(mu)
		c.sample.Y = append(c.sample.Y, row[c.next*c.each:(c.next+1)*c.each]...)
	}
	if c.of != nil {
		c.sample.Matrix = append(c.sample.Matrix[:0], float64(c.of[c.next]))
	}
	c.next++
	c.sample.Sequence = c.offset + int64(c.next)
	c.sample.Place = fmt.Sprintf("sample %d", c.next)
	return &c.sample, nil
}

func (c *columns) Close() error { return nil }

// pump reads ahead by one sample, so that waiting for input can be given up, and
// the next sample is decoded while one is solved. A read that blocks for ever
// keeps its goroutine, until the process ends.
type pump struct {
	items  chan item
	closed chan struct{}
}

type item struct {
	sample *Sample
	err    error
}

// newPump calls read until it returns an error other than a *Refused.
func newPump(read func() (*Sample, error)) *pump {
	p := &pump{items: make(chan item), closed: make(chan struct{})}
	go p.run(read)
	return p
}

func (p *pump) run(read func() (*Sample, error)) {
	for {
		s, err := crash.Try(read)
		select {
		case p.items <- item{s, err}:
		case <-p.closed:
			return
		}
		if _, refused := errors.AsType[*Refused](err); err != nil && !refused {
			close(p.items)
			return
		}
	}
}

func (p *pump) Next(ctx context.Context) (*Sample, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case i, ok := <-p.items:
		if !ok {
			return nil, io.EOF
		}
		return i.sample, i.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pump) Close() error {
	close(p.closed)
	return nil
}
