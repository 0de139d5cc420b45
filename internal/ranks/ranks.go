// Package ranks is the processes that solve one problem together: how they move numbers (MPI, or
// goroutines in tests), how they find out that they no longer do the same, and how they end. It knows nothing of matrices.
package ranks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Transport moves bytes between ranks. All ranks call the same methods in the same order, one
// at a time.
type Transport interface {
	// Rank is the number of this process, from 0, and how many there are.
	Rank() (rank, size int)

	// Gather and Trade are those of operator.Group.
	Gather(all []byte, bounds []int) error
	Trade(got, send []byte, taken, sent []int) error

	// Abort ends all processes, with the exit code.
	Abort(code int)

	// Close says that this process will call nothing more.
	Close()
}

// Group is the ranks of one run. It implements operator.Group.
type Group struct {
	Transport

	// Stop is called, on all ranks at the same meeting, after Interrupt was on one.
	Stop func()

	interrupted atomic.Bool
	headers     []byte
	bounds      []int
}

// Of is the group whose bytes the transport moves.
func Of(t Transport) *Group {
	_, size := t.Rank()
	g := &Group{Transport: t, headers: make([]byte, size*headerSize), bounds: make([]int, size+1)}
	for r := range g.bounds {
		g.bounds[r] = r * headerSize
	}
	return g
}

// First reports whether this is the rank that prints and writes.
func (g *Group) First() bool {
	rank, _ := g.Rank()
	return rank == 0
}

// Interrupt asks for the end of the run, from any goroutine of any rank. All ranks then stop at
// the same place.
func (g *Group) Interrupt() { g.interrupted.Store(true) }

// A header is what a rank tells the others when they meet: its value, whether it was interrupted,
// and where it is.
const (
	headerSize = 64
	placeSize  = headerSize - 16
	theEnd     = "the end"
)

// Gone is the error of a meeting to which a rank did not come: it has ended, and says why
// itself.
type Gone struct{ Rank int }

func (e *Gone) Error() string { return fmt.Sprintf("rank %d has ended", e.Rank) }

// Differs is the error of ranks that do not agree.
type Differs struct{ text string }

func (e *Differs) Error() string { return e.text }

// Meet implements operator.Group.
func (g *Group) Meet(place string, value uint64) error {
	if err := g.announce(place, value); err != nil {
		return err
	}
	_, size := g.Rank()
	here, first, _ := g.heard(0)
	var other []string
	for r := range size {
		switch there, v, stop := g.heard(r); {
		case there == theEnd:
			return &Gone{r}
		case there != here:
			return &Differs{fmt.Sprintf("ranks do different things: rank 0 is at %s, rank %d at %s", here, r, there)}
		case stop && g.Stop != nil:
			g.Stop()
			fallthrough
		default:
			if v != first {
				other = append(other, strconv.Itoa(r))
			}
		}
	}
	switch len(other) {
	case 0:
		return nil
	case 1:
		return &Differs{fmt.Sprintf("ranks do not agree on %s: rank %s has another than rank 0", place, other[0])}
	}
	return &Differs{fmt.Sprintf("ranks do not agree on %s: ranks %s have others than rank 0", place, strings.Join(other, ", "))}
}

// announce tells all ranks where this one is, and hears from all.
func (g *Group) announce(place string, value uint64) error {
	rank, _ := g.Rank()
	mine := g.headers[rank*headerSize:][:headerSize]
	clear(mine)
	binary.LittleEndian.PutUint64(mine, value)
	if g.interrupted.Load() {
		mine[8] = 1
	}
	copy(mine[16:], place)
	return g.Gather(g.headers, g.bounds)
}

func (g *Group) heard(rank int) (place string, value uint64, stop bool) {
	h := g.headers[rank*headerSize:][:headerSize]
	return string(bytes.TrimRight(h[16:], "\x00")), binary.LittleEndian.Uint64(h), h[8] == 1
}

// Agree is a meeting on a text.
func (g *Group) Agree(place, text string) error { return g.Meet(place, hash(text)) }

func hash(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

// All returns what every rank says, in order.
func (g *Group) All(place, mine string) ([]string, error) {
	if err := g.Meet(place, 0); err != nil {
		return nil, err
	}
	rank, size := g.Rank()
	lengths, bounds := make([]byte, 8*size), make([]int, size+1)
	for r := range bounds {
		bounds[r] = 8 * r
	}
	binary.LittleEndian.PutUint64(lengths[8*rank:], uint64(len(mine)))
	if err := g.Gather(lengths, bounds); err != nil {
		return nil, err
	}
	for r := range size {
		bounds[r+1] = bounds[r] + int(binary.LittleEndian.Uint64(lengths[8*r:]))
	}
	texts := make([]byte, bounds[size])
	copy(texts[bounds[rank]:], mine)
	if err := g.Gather(texts, bounds); err != nil {
		return nil, err
	}
	all := make([]string, size)
	for r := range all {
		all[r] = string(texts[bounds[r]:bounds[r+1]])
	}
	return all, nil
}

const (
	// waitAtEnd is how long a rank that failed waits for the others, which may have
	// failed for the same reason: then one message is enough.
	waitAtEnd = 2 * time.Second

	// waitForAbort is how long a rank waits to be ended by one that failed.
	waitForAbort = 8 * time.Second
)

// End ends this rank's part of the run, and returns err. Where all ranks ended in the same way the first
// one tells, and only then any of them returns: mpirun ends all when one does with an error.
// Otherwise a rank whose failure is its own tells, and ends all.
func (g *Group) End(err error, tell func(err error, alone bool)) error {
	if _, gone := errors.AsType[*Gone](err); gone {
		time.Sleep(waitForAbort)
		return err
	}
	met := make(chan bool, 1)
	go func() { met <- g.sameEnd(err) }()
	limit := waitAtEnd
	if err == nil {
		limit = 1 << 62 // others may still write, or be slower
	}
	select {
	case same := <-met:
		if same {
			if err != nil && g.First() {
				tell(err, false)
			}
			g.announce(theEnd, 0)
			g.Close()
			return err
		}
	case <-time.After(limit):
	}
	if err == nil {
		time.Sleep(waitForAbort)
		return errors.New("another rank failed")
	}
	tell(err, true)
	g.Abort(1)
	return err
}

// sameEnd reports whether all ranks ended, and with the same words.
func (g *Group) sameEnd(err error) bool {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if g.announce(theEnd, hash(text)) != nil {
		return false
	}
	_, size := g.Rank()
	for r := range size {
		if place, value, _ := g.heard(r); place != theEnd || value != hash(text) {
			return false
		}
	}
	return true
}
