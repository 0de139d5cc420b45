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
// sample, which must increase from line to line, and one reading for each
// sensor, null where one is missing; a complex one is [0.1, -0.2], its real and its imaginary part. Other fields are ignored, and so are empty
// lines. A line that is something else, or whose number is not accepted, is
// refused, and the stream goes on.
func Lines(r io.Reader, form Form, accepted Numbering) Source {
	l := &lines{r: bufio.NewReaderSize(r, 1<<16), form: form, limit: 4096 + 64*form.numbers(), last: -1, accepted: accepted}
	return newPump(l.read)
}

type lines struct {
	r        *bufio.Reader
	form     Form
	limit    int // longest line, in bytes
	line     int64
	last     int64 // number in this stream
	accepted Numbering
	raw      []byte
	inside   bool // of a line that was too long, and has been refused
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
			return nil, &Refused{Place: place, Sequence: -1, Err: fmt.Errorf("longer than %d bytes, which %d readings need at most", l.limit, l.form.Sensors)}
		}
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		sequence, y, err := decodeObject(raw, l.form)
		if err == nil && sequence < 0 {
			err = errors.New(`no sequence number "seq"`)
		} else if err == nil && sequence <= l.last {
			err = fmt.Errorf("sequence number %d after %d: numbers must increase", sequence, l.last)
		} else if err == nil {
			err = l.accepted.check(sequence)
		}
		if err != nil {
			return nil, &Refused{Place: place, Sequence: sequence, Err: err}
		}
		l.last = sequence
		l.accepted.After = max(l.accepted.After, sequence)
		return &Sample{Sequence: sequence, Y: y, Place: place}, nil
	}
}

// next returns the next line, or says as soon as it is known that it is too long: its end may never come. At
// the end what is left is a line as well.
func (l *lines) next() (raw []byte, tooLong bool, err error) {
	l.raw = l.raw[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		skip := l.inside
		l.inside = errors.Is(err, bufio.ErrBufferFull) && (skip || len(l.raw)+len(part) > l.limit)
		switch {
		case skip && err == nil: // the end of one that was refused
			continue
		case skip && !l.inside:
			return nil, false, err
		case skip:
		case len(l.raw)+len(part) > l.limit:
			return nil, true, err
		default:
			l.raw = append(l.raw, part...)
			if !errors.Is(err, bufio.ErrBufferFull) {
				return l.raw, false, err
			}
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
		if b[0] == '[' {
			return fmt.Errorf("reading %s is complex, and the stream is of real ones", short(b))
		}
		return fmt.Errorf("reading %s, expected a finite number, or null for a missing one", short(b))
	}
	*r = reading(v)
	return nil
}

// complexReading is a pair of numbers, or null.
type complexReading [2]reading

func (r *complexReading) UnmarshalJSON(b []byte) error {
	var parts []reading
	switch {
	case string(b) == "null":
		*r = complexReading{reading(math.NaN()), reading(math.NaN())}
		return nil
	case b[0] == '[' && json.Unmarshal(b, &parts) == nil && len(parts) == 2:
		*r = complexReading(parts)
		return nil
	}
	return fmt.Errorf("reading %s, expected [re, im] of finite numbers, since the stream is of complex ones, or null for a missing one", short(b))
}

// short is the beginning of what was found.
func short(b []byte) string {
	if len(b) > 24 {
		return string(b[:20]) + "…"
	}
	return string(b)
}

// decodeObject reads one object. The number is -1 where there is none.
func decodeObject(raw []byte, form Form) (sequence int64, y []float64, err error) {
	sequence, y = -1, make([]float64, 0, form.numbers())
	if form.Complex {
		var pairs []complexReading
		if pairs, err = decodeReadings[complexReading](raw, form, &sequence); err == nil {
			for _, v := range pairs {
				y = append(y, float64(v[0]), float64(v[1]))
			}
		}
	} else {
		var numbers []reading
		if numbers, err = decodeReadings[reading](raw, form, &sequence); err == nil {
			for _, v := range numbers {
				y = append(y, float64(v))
			}
		}
	}
	if err != nil {
		return sequence, nil, err
	}
	return sequence, y, form.check(y)
}

func decodeReadings[T reading | complexReading](raw []byte, form Form, sequence *int64) ([]T, error) {
	object := struct {
		Seq *int64 `json:"seq"`
		Y   []T    `json:"y"`
	}{Y: make([]T, 0, form.Sensors)}
	err := json.Unmarshal(raw, &object)
	if object.Seq != nil {
		*sequence = *object.Seq
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf(`not of the form {"seq": 1, "y": [%s, null, …]}: %w`, form.example(), err)
	case *sequence < -1 || *sequence == -1 && object.Seq != nil:
		err := fmt.Errorf("sequence number %d, expected 0 or more", *sequence)
		*sequence = -1
		return nil, err
	}
	return object.Y, nil
}
