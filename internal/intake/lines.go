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
// sensor, null where one is missing; a complex one is [0.1, -0.2], its real and its imaginary part. Where W is another for every sample, "matrix" is the number
// of one of several, or the rows of its own. Other fields are ignored, and so are empty
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
			return nil, &Refused{Place: place, Sequence: -1, Err: fmt.Errorf("longer than %d bytes, which %d readings%s need at most", l.limit, l.form.Sensors, l.form.andMatrix())}
		}
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		sequence, y, matrix, err := decodeObject(raw, l.form)
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
		return &Sample{Sequence: sequence, Y: y, Matrix: matrix, Place: place}, nil
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
func decodeObject(raw []byte, form Form) (sequence int64, y, matrix []float64, err error) {
	sequence, y = -1, make([]float64, 0, form.readings())
	var of json.RawMessage
	if form.Complex {
		var pairs []complexReading
		if pairs, err = decodeReadings[complexReading](raw, form, &sequence, &of); err == nil {
			for _, v := range pairs {
				y = append(y, float64(v[0]), float64(v[1]))
			}
		}
	} else {
		var numbers []reading
		if numbers, err = decodeReadings[reading](raw, form, &sequence, &of); err == nil {
			for _, v := range numbers {
				y = append(y, float64(v))
			}
		}
	}
	if err == nil {
		err = form.check(y)
	}
	if err == nil && form.Matrix > 0 {
		matrix, err = form.decodeMatrix(of)
	}
	return sequence, y, matrix, err
}

// decodeMatrix reads which W a sample has: the number of one of several, or the rows of its own.
func (f Form) decodeMatrix(raw json.RawMessage) ([]float64, error) {
	n := f.Matrix / max(1, f.readings())
	expected := fmt.Sprintf(`expected its %d rows of %d entries, "matrix": [[%s, …], …]`, f.Sensors, n, f.example())
	if f.Matrix == 1 {
		expected = `expected which one it is, "matrix": 0`
	}
	if len(raw) == 0 || string(raw) == "null" {
		return nil, errors.New(`no "matrix", and W is another for every sample: ` + expected)
	}
	var matrix []float64
	var err error
	switch {
	case f.Matrix == 1:
		var number float64
		err = json.Unmarshal(raw, &number)
		matrix = []float64{number}
	case f.Complex:
		var rows [][]complexReading
		err = json.Unmarshal(raw, &rows)
		matrix = flat(rows, f.Sensors, n, func(to []float64, v complexReading) []float64 { return append(to, float64(v[0]), float64(v[1])) })
	default:
		var rows [][]reading
		err = json.Unmarshal(raw, &rows)
		matrix = flat(rows, f.Sensors, n, func(to []float64, v reading) []float64 { return append(to, float64(v)) })
	}
	if err != nil || len(matrix) != f.Matrix {
		return nil, fmt.Errorf(`"matrix" is %s: %s`, short(raw), expected)
	}
	return matrix, nil
}

// flat are the numbers of M rows of N entries; nil of rows of other lengths.
func flat[T any](rows [][]T, m, n int, entry func(to []float64, v T) []float64) (all []float64) {
	if len(rows) != m {
		return nil
	}
	for _, row := range rows {
		if len(row) != n {
			return nil
		}
		for _, v := range row {
			all = entry(all, v)
		}
	}
	return all
}

func decodeReadings[T reading | complexReading](raw []byte, form Form, sequence *int64, matrix *json.RawMessage) ([]T, error) {
	object := struct {
		Seq *int64 `json:"seq"`
		Y   []T    `json:"y"`

		Matrix json.RawMessage `json:"matrix"`
	}{Y: make([]T, 0, form.Sensors)}
	err := json.Unmarshal(raw, &object)
	*matrix = object.Matrix
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
