package intake

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Frames reads frames of numbers of 4 or 8 bytes, float32 or float64,
// little endian, one after the other, of complex readings real and imaginary part beside each other; NaN is a missing reading. The first frame
// has the number offset+1. Numbers that say which W a sample has follow its readings. A frame with an infinite reading is refused; one that
// is cut short is an error of the stream, since nothing after it can be trusted.
func Frames(r io.Reader, form Form, offset int64) Source {
	f := &frames{r: bufio.NewReaderSize(r, 1<<16), raw: make([]byte, form.numbers()*form.Width), form: form, offset: offset}
	return newPump(f.read)
}

type frames struct {
	r      io.Reader
	raw    []byte
	form   Form
	frame  int64
	offset int64
}

func (f *frames) read() (*Sample, error) {
	n, err := io.ReadFull(f.r, f.raw)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("frame %d is cut short: %d of %d bytes (%d readings of %d%s)", f.frame+1, n, len(f.raw), f.form.Sensors, f.form.Width*f.form.columns(), f.form.andMatrix())
	}
	if err != nil {
		return nil, err
	}
	f.frame++
	s := &Sample{Sequence: f.offset + f.frame, Place: fmt.Sprintf("frame %d", f.frame)}
	s.Y, s.Matrix = decodeFrame(f.raw, f.form)
	if err := f.form.check(s.Y); err != nil {
		return nil, &Refused{Place: s.Place, Sequence: s.Sequence, Err: err}
	}
	return s, nil
}

func decodeFrame(raw []byte, form Form) (readings, matrix []float64) {
	width := form.Width
	y := make([]float64, len(raw)/width)
	for mu := range y {
		if width == 4 {
			y[mu] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*mu:])))
		} else {
			y[mu] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*mu:]))
		}
	}
	return y[:form.readings()], y[form.readings():]
}
