package operator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/calamp/calamp/internal/transform"
)

// Convolution is a circular convolution with a kernel, seen at some places,
//
//	W_µi = kernel[(place_µ - i) mod N],
//
// as a blur or an echo makes it; a convolution that does not wrap around is one with
// zeros behind the signals. Products are Fourier transforms, and so are those with the
// squared entries, which are the convolution with kernel².
type Convolution struct {
	kernel         []float64 // N
	places         []int32   // M
	seen           []int32   // N: the µ of a place, or -1
	plan           *transform.Fourier
	linear, square []float64 // N×2, transforms of the kernel and of its square, over N
	meanSquare     float64
	memory
}

// NewConvolution copies the kernel (N values) and the places (M, all different, 0 … N-1;
// nil for all).
func NewConvolution(kernel []float64, places []int) (*Convolution, error) {
	n := len(kernel)
	if n == 0 || n > most {
		return nil, fmt.Errorf("the kernel has %d values, expected 1 to %d", n, most)
	}
	w := &Convolution{kernel: append([]float64(nil), kernel...), seen: make([]int32, n), plan: transform.NewFourier(n)}
	for i, v := range kernel {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("kernel %d (counting from 0) is %g, expected a finite number", i, v)
		}
	}
	if w.meanSquare = sumSquares(kernel) / float64(n); w.meanSquare == 0 {
		return nil, errors.New("the kernel is zero")
	}
	if places == nil {
		for i := range n {
			places = append(places, i)
		}
	}
	if err := distinct("places", places, n); err != nil {
		return nil, err
	}
	for i := range w.seen {
		w.seen[i] = -1
	}
	for mu, place := range places {
		w.places = append(w.places, int32(place))
		w.seen[place] = int32(mu)
	}
	spectrum := func(power int) []float64 {
		out := make([]float64, 2*n)
		w.plan.Into(out, 1, 1, func(j int, re, im []float64) {
			re[0], im[0] = kernel[j]/float64(n), 0
			if power == 2 {
				re[0] *= kernel[j]
			}
		})
		return out
	}
	w.linear, w.square = spectrum(1), spectrum(2)
	return w, nil
}

// Dims implements [Operator].
func (w *Convolution) Dims() (m, n int) { return len(w.places), len(w.kernel) }

// MeanSquare implements [Operator].
func (w *Convolution) MeanSquare() float64 { return w.meanSquare }

// HasSquares implements [Squares].
func (w *Convolution) HasSquares() bool { return true }

// String says what it is.
func (w *Convolution) String() string {
	return fmt.Sprintf("circular convolution of %d entries at %d places", len(w.kernel), len(w.places))
}

// Bytes implements [Structured].
func (w *Convolution) Bytes() int64 {
	return 4*int64(len(w.places)+len(w.seen)) + 40*int64(len(w.kernel))
}

// Identify implements [Structured].
func (w *Convolution) Identify(to io.Writer) error {
	_, err := fmt.Fprintf(to, "convolution n=%d places=%d\n", len(w.kernel), len(w.places))
	return errors.Join(err, binary.Write(to, binary.LittleEndian, w.kernel), binary.Write(to, binary.LittleEndian, w.places))
}

// NewSweep implements [Operator]; it never fails.
func (w *Convolution) NewSweep(p, q, threads int) (Sweep, error) {
	m, _ := w.Dims()
	return newWholeSweep(&convolutionSweep{Convolution: w, p: p, q: q, threads: max(1, threads)}, m, p, q, threads), nil
}

type convolutionSweep struct {
	*Convolution
	p, q, threads int
	there, back   []float64 // N×2⌈max(p,q)/2⌉
}

func (s *convolutionSweep) forward(z, v, x, c []float64) error {
	s.filter(s.p, s.linear, 1, func(j, k int) float64 { return x[k*len(s.kernel)+j] })
	s.gather(z, s.p)
	s.filter(s.q, s.square, 1, func(j, k int) float64 { return c[k*len(s.kernel)+j] })
	s.gather(v, s.q)
	return nil
}

func (s *convolutionSweep) backward(r, h, g, d []float64) error {
	at := func(from []float64, count int) func(j, k int) float64 {
		return func(j, k int) float64 {
			if mu := int(s.seen[j]); mu >= 0 {
				return from[mu*count+k]
			}
			return 0
		}
	}
	s.filter(s.p, s.linear, -1, at(g, s.p))
	s.spread(r, s.p)
	s.filter(s.q, s.square, -1, at(d, s.q))
	s.spread(h, s.q)
	return nil
}

// filter convolves count signals, two as one complex one, with the kernel of this
// spectrum, or with the reversed kernel where sign is -1: that is the conjugate spectrum.
func (s *convolutionSweep) filter(count int, spectrum []float64, sign float64, value func(j, k int) float64) {
	if count == 0 {
		return
	}
	n, width := len(s.kernel), (count+1)/2
	if s.there == nil {
		size := (max(s.p, s.q) + 1) / 2 * 2 * n
		s.there, s.back = make([]float64, size), make([]float64, size)
	}
	there := s.there[:2*width*n]
	s.plan.Into(there, width, s.threads, func(j int, re, im []float64) {
		for k := range width {
			re[k], im[k] = value(j, k), 0
			if width+k < count {
				im[k] = value(j, width+k)
			}
		}
	})
	// The inverse transform is the transform with both parts exchanged.
	s.plan.Into(s.back[:2*width*n], width, s.threads, func(j int, re, im []float64) {
		a, b := spectrum[2*j], sign*spectrum[2*j+1]
		from := there[2*width*j:]
		for k := range width {
			x, y := from[k], from[width+k]
			im[k], re[k] = x*a-y*b, x*b+y*a
		}
	})
}

// at is signal k of count at a place, after filter.
func (s *convolutionSweep) at(place, k, count int) float64 {
	width := (count + 1) / 2
	return s.back[2*width*place+(width+k)%(2*width)]
}

func (s *convolutionSweep) gather(z []float64, count int) {
	for mu, place := range s.places {
		for k := range count {
			z[mu*count+k] = s.at(int(place), k, count)
		}
	}
}

func (s *convolutionSweep) spread(r []float64, count int) {
	n := len(s.kernel)
	for k := range count {
		for i := range n {
			r[k*n+i] = s.at(i, k, count)
		}
	}
}
