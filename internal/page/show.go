package page

import (
	"math"

	"github.com/calamp/calamp/internal/report"
)

// Head is the head of a board: what is being solved or streamed.
type Head struct {
	Name    string   `json:"name"`
	M       int      `json:"m"`
	N       int      `json:"n"`
	P       int      `json:"p"` // 0 for a stream
	Columns []string `json:"columns"`
	Complex bool     `json:"complex,omitempty"` // signals and s are shown by their sizes
	Rows    int      `json:"rows"`              // of the pictures that signals are; 0 where they are none
	Cols    int      `json:"cols"`

	Signals []Signal `json:"signals"` // the truth of those shown, where it is known
	S       Numbers  `json:"s"`       // likewise, of all sensors
}

// Frame is a board's frame: the estimates at one moment. Arrays have M numbers, or are
// null.
type Frame struct {
	At      int      `json:"at"`      // iteration, or number of the sample
	Signals []Signal `json:"signals"` // the first ones of a problem, the latest one of a stream
	S       Numbers  `json:"s"`
	SD      Numbers  `json:"sd"`
	Phase   Numbers  `json:"phase,omitempty"` // of s, in radians, where it is complex
	Lo      Numbers  `json:"lo"`              // s lies between these, at a fixed common scale, with probability 0.95
	Hi      Numbers  `json:"hi"`
	Z       Numbers  `json:"z"`      // how far readings are off, in standard deviations: 1 under the model
	Broken  Numbers  `json:"broken"` // probability
	Noise   Numbers  `json:"noise"`  // its variance, where sensors differ
	Offset  Numbers  `json:"offset"` // of y = z/s + o, where there are offsets
	Count   Numbers  `json:"count"`  // readings that count
	Age     Numbers  `json:"age"`    // samples since the latest of them
	Flagged []Flag   `json:"flagged"`
}

// Flag is a sensor that is not used, and why.
type Flag struct {
	Sensor int    `json:"sensor"`
	Reason string `json:"reason"`
}

// Signal is what is shown of one signal: the entries At, or where that is null all of
// them, of a picture Rows×Cols of [Head].
type Signal struct {
	V  Coarse `json:"v"`
	At Coarse `json:"at"`
}

const (
	mostPictures, mostStems = 10, 4
	mostSide                = 128  // pixels of a shown picture
	mostEntries             = 1024 // stems of a shown signal
)

// View chooses what is shown of signals of n entries.
type View struct {
	n, rows, cols, step int
}

// NewView takes signals for pictures where a report does.
func NewView(n int) View {
	v := View{n: n, step: 1}
	v.rows, v.cols = report.ImageShape(n)
	if side := max(v.rows, v.cols); side > mostSide {
		v.step = (side + mostSide - 1) / mostSide
	}
	return v
}

// Pictures are the rows and columns of shown pictures, 0×0 where signals are none.
func (v View) Pictures() (rows, cols int) {
	return (v.rows + v.step - 1) / v.step, (v.cols + v.step - 1) / v.step
}

// Signals shows the first ones of p signals, entry i of signal k being at(i, k).
func (v View) Signals(p int, at func(i, k int) float64) []Signal {
	most := mostStems
	if v.rows > 0 {
		most = mostPictures
	}
	list := make([]Signal, min(p, most))
	for k := range list {
		entry := func(i int) float64 { return at(i, k) }
		if v.rows > 0 {
			list[k] = v.picture(entry)
		} else {
			list[k] = v.stems(entry)
		}
	}
	return list
}

func (v View) picture(at func(int) float64) Signal {
	rows, cols := v.Pictures()
	s := Signal{V: make(Coarse, 0, rows*cols)}
	for r := 0; r < v.rows; r += v.step {
		for c := 0; c < v.cols; c += v.step {
			s.V = append(s.V, float32(at(r*v.cols+c)))
		}
	}
	return s
}

// stems keeps the largest entry of each stretch of a long signal.
func (v View) stems(at func(int) float64) Signal {
	var s Signal
	if v.n <= mostEntries {
		for i := range v.n {
			s.V = append(s.V, float32(at(i)))
		}
		return s
	}
	for g := range mostEntries {
		largest := g * v.n / mostEntries
		for i := largest; i < (g+1)*v.n/mostEntries; i++ {
			if math.Abs(at(i)) > math.Abs(at(largest)) {
				largest = i
			}
		}
		s.V, s.At = append(s.V, float32(at(largest))), append(s.At, float32(largest))
	}
	return s
}

// Coarse is numbers for pictures: in JSON the base64 of single precision, little endian.
type Coarse []float32

// MarshalJSON implements json.Marshaler.
func (n Coarse) MarshalJSON() ([]byte, error) {
	if n == nil {
		return []byte("null"), nil
	}
	return littleEndian([]float32(n))
}
