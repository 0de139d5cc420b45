package intake

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Frames reads frames of m numbers of width 4 or 8 bytes, float32 or float64,
// little endian, one after the other; NaN is a missing reading. The first frame
// has the number offset+1. A frame with an infinite reading is refused; one that
// is cut short is an error of the stream, since nothing after it can be trusted.
func Frames(r io.Reader, m, width int, offset int64) Source {
	f := &frames{r: bufio.NewReaderSize(r, 1<<16), raw: make([]byte, m*width), m: m, width: width, offset: offset}
	return newPump(f.read)
}

type frames struct {
	r        io.Reader
	raw      []byte
	m, width int
	frame    int64
	offset   int64
}

func (f *frames) read() (*Sample, error) {
	n, err := io.ReadFull(f.r, f.raw)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("frame %d is cut short: %d of %d bytes (%d readings of %d)", f.frame+1, n, len(f.raw), f.m, f.width)
	}
	if err != nil {
		return nil, err
	}
	f.frame++
	s := &Sample{Sequence: f.offset + f.frame, Place: fmt.Sprintf("frame %d", f.frame), Y: decodeFrame(f.raw, f.width)}
	if err := checkReadings(s.Y, f.m); err != nil {
		return nil, &Refused{Place: s.Place, Sequence: s.Sequence, Err: err}
	}
	return s, nil
}

func decodeFrame(raw []byte, width int) []float64 {
	y := make([]float64, len(raw)/width)
	for mu := range y {
		if width == 4 {
			y[mu] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*mu:])))
		} else {
			y[mu] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*mu:]))
		}
	}
	return y
}
