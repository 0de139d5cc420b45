package page

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"sync"
	"time"
)

// Board is what a page shows of something that goes on, a run or a stream: a head that
// says what it is, rows of numbers, the latest frame, and how it ended. It takes a
// bounded amount of memory however long that is: where rows become many every second
// one is left out, and a visitor who is slow misses frames. It can be written and read
// at the same time; what is handed to it is turned into JSON at once.
type Board struct {
	mu       sync.Mutex
	head     []byte
	frame    []byte
	end      []byte
	heads    int // how many there have been
	frames   int
	ends     int
	rows     [][]float64 // of those so far every stride-th, the first one among them
	last     []float64   // the latest, in rows or not
	stride   int
	total    int
	epoch    int // how often rows were thinned
	framedAt time.Time
	visitors map[chan struct{}]bool
	closed   bool
}

const (
	// mostRows is more than a picture has pixels.
	mostRows = 2048

	// framePause is between frames that somebody sees, seldomPause between those that
	// are kept for who comes next.
	framePause, seldomPause = 100 * time.Millisecond, time.Second
)

// NewBoard returns an empty board.
func NewBoard() *Board { return &Board{stride: 1, visitors: make(map[chan struct{}]bool)} }

// Head says what is shown; it may change.
func (b *Board) Head(v any) {
	text := encode(v)
	b.change(func() { b.head, b.heads = text, b.heads+1 })
}

// Row adds a row of numbers; one that is not finite is shown as missing.
func (b *Board) Row(values ...float64) {
	b.change(func() {
		b.last = values
		if b.total%b.stride == 0 {
			b.rows = append(b.rows, values)
		}
		b.total++
		if len(b.rows) > mostRows {
			for i := range (len(b.rows) + 1) / 2 {
				b.rows[i] = b.rows[2*i]
			}
			clear(b.rows[(len(b.rows)+1)/2:])
			b.rows = b.rows[:(len(b.rows)+1)/2]
			b.stride *= 2
			b.epoch++
		}
	})
}

// Wanted says whether a frame would be seen; making one can be costly.
func (b *Board) Wanted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	pause := seldomPause
	if len(b.visitors) > 0 {
		pause = framePause
	}
	return time.Since(b.framedAt) >= pause
}

// Frame replaces the latest frame.
func (b *Board) Frame(v any) {
	text := encode(v)
	b.change(func() { b.frame, b.frames, b.framedAt = text, b.frames+1, time.Now() })
}

// End says how it ended, or stands.
func (b *Board) End(v any) {
	text := encode(v)
	b.change(func() { b.end, b.ends = text, b.ends+1 })
}

// Close sends visitors away.
func (b *Board) Close() { b.change(func() { b.closed = true }) }

// change does something to the board, and tells visitors, who may be busy.
func (b *Board) change(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do()
	for bell := range b.visitors {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
}

// visit has a bell rung after every change, until it is called again.
func (b *Board) visit(bell chan struct{}) (leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.visitors[bell] = true
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.visitors, bell)
	}
}

// seen is what a visitor has seen of a board.
type seen struct{ heads, frames, ends, rows, total, epoch int }

// news is what there is beyond that, as events; closed says that nothing more comes.
func (b *Board) news(s *seen) (events []event, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.heads != s.heads {
		events, s.heads = append(events, event{"head", b.head}), b.heads
	}
	if b.total != s.total {
		events = append(events, event{"rows", b.rowsSince(s)})
		s.rows, s.total, s.epoch = len(b.rows), b.total, b.epoch
	}
	if b.frames != s.frames {
		events, s.frames = append(events, event{"frame", b.frame}), b.frames
	}
	if b.ends != s.ends {
		events, s.ends = append(events, event{"end", b.end}), b.ends
	}
	return events, b.closed
}

// rowsSince is {"fresh": all rows come anew, "rows": [[…], …], "last": […]}.
func (b *Board) rowsSince(s *seen) []byte {
	fresh, from := s.epoch != b.epoch || s.total == 0, s.rows
	if fresh {
		from = 0
	}
	text := append([]byte(`{"fresh":`), strconv.FormatBool(fresh)...)
	text = append(text, `,"rows":[`...)
	for k, row := range b.rows[from:] {
		if k > 0 {
			text = append(text, ',')
		}
		text = appendRow(text, row)
	}
	text = append(text, `],"last":`...)
	return append(appendRow(text, b.last), '}')
}

func appendRow(text []byte, row []float64) []byte {
	text = append(text, '[')
	for k, v := range row {
		if k > 0 {
			text = append(text, ',')
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			text = append(text, "null"...)
		} else {
			text = strconv.AppendFloat(text, v, 'g', 10, 64)
		}
	}
	return append(text, ']')
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil { // a programming mistake: what is shown has no NaN outside of Numbers
		text, _ = json.Marshal(map[string]string{"error": err.Error()})
	}
	return text
}

// Numbers are shown as they are, NaN included: in JSON they are the base64 of doubles,
// little endian.
type Numbers []float64

// MarshalJSON implements json.Marshaler.
func (n Numbers) MarshalJSON() ([]byte, error) {
	if n == nil {
		return []byte("null"), nil
	}
	return littleEndian([]float64(n))
}

// littleEndian is the base64 of the bytes of a slice of numbers, in JSON.
func littleEndian(numbers any) ([]byte, error) {
	raw, err := binary.Append(nil, binary.LittleEndian, numbers)
	if err != nil {
		return nil, err
	}
	return json.Marshal(base64.StdEncoding.EncodeToString(raw))
}
