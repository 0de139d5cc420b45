package intake

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Lines reads JSON lines {"seq": 17, "y": [0.1, null, …]}: the number of the
// sample, which must increase from line to line, and one reading for each of m
// sensors, null where one is missing. Other fields are ignored, and so are empty
// lines. A line that is something else, or whose number is not believed, is
// refused, and the stream goes on.
func Lines(r io.Reader, m int, believed Numbering) Source {
	l := &lines{r: bufio.NewReaderSize(r, 1<<16), m: m, limit: 4096 + 64*m, last: -1, believed: believed}
	return newPump(l.read)
}

type lines struct {
	r        *bufio.Reader
	m        int
	limit    int // longest line, in bytes
	line     int64
	last     int64 // number in this stream
	believed Numbering
	raw      []byte
}

func (l *lines) read() (*Sample, error) {
	for {
		raw, tooLong, err := l.next()
		if len(raw) == 0 && !tooLong && err != nil {
			return nil, err
		}
		l.line++
		place := fmt.Sprintf("line %d", l.line)
		if tooLong {
			return nil, &Refused{Place: place, Sequence: -1, Err: fmt.Errorf("longer than %d bytes, which %d readings need at most", l.limit, l.m)}
		}
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		sequence, y, err := decodeObject(raw, l.m)
		if err == nil && sequence < 0 {
			err = errors.New(`no sequence number "seq"`)
		} else if err == nil && sequence <= l.last {
			err = fmt.Errorf("sequence number %d after %d: numbers must increase", sequence, l.last)
		} else if err == nil {
			err = l.believed.check(sequence)
		}
		if err != nil {
			return nil, &Refused{Place: place, Sequence: sequence, Err: err}
		}
		l.last = sequence
		l.believed.After = max(l.believed.After, sequence)
		return &Sample{Sequence: sequence, Y: y, Place: place}, nil
	}
}

// next returns the next line, or says that it was too long. At the end what is
// left is a line as well.
func (l *lines) next() (raw []byte, tooLong bool, err error) {
	l.raw = l.raw[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.raw)+len(part) > l.limit {
			tooLong = true
			l.raw = l.raw[:0]
		} else if !tooLong {
			l.raw = append(l.raw, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.raw, tooLong, err
		}
	}
}

// reading is a number, or null.
type reading float64

func (r *reading) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*r = reading(math.NaN())
		return nil
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		if len(b) > 24 {
			b = append(b[:20:20], "…"...)
		}
		return fmt.Errorf("reading %s, expected a finite number, or null for a missing one", b)
	}
	*r = reading(v)
	return nil
}

// decodeObject reads one object. The number is -1 where there is none.
func decodeObject(raw []byte, m int) (sequence int64, y []float64, err error) {
	object := struct {
		Seq *int64    `json:"seq"`
		Y   []reading `json:"y"`
	}{Y: make([]reading, 0, m)}
	sequence = -1
	err = json.Unmarshal(raw, &object)
	if object.Seq != nil {
		sequence = *object.Seq
	}
	switch {
	case err != nil:
		return sequence, nil, fmt.Errorf(`not of the form {"seq": 1, "y": [0.1, null, …]}: %w`, err)
	case sequence < -1 || sequence == -1 && object.Seq != nil:
		return -1, nil, fmt.Errorf("sequence number %d, expected 0 or more", sequence)
	}
	y = make([]float64, len(object.Y))
	for mu, v := range object.Y {
		y[mu] = float64(v)
	}
	return sequence, y, checkReadings(y, m)
}
