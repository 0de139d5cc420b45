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
	linear, square []float64 // 2×N, transforms of the kernel and of its square, over N: real, then imaginary parts
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
		w.plan.Into(out[:n], out[n:], 1, 1, func(j int, re, im []float64) {
			clear(im)
			for i := range re {
				re[i] = math.Pow(kernel[j+i], float64(power)) / float64(n)
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
	s := &convolutionSweep{Convolution: w, p: p, q: q, there: columns{plan: w.plan, threads: max(1, threads)}}
	return newWholeSweep(s, m, p, q, threads), nil
}

type convolutionSweep struct {
	*Convolution
	p, q  int
	there columns
	back  []float64
}

func (s *convolutionSweep) forward(z, v, x, c []float64) error {
	s.see(z, s.p, s.linear, x)
	s.see(v, s.q, s.square, c)
	return nil
}

func (s *convolutionSweep) backward(r, h, g, d []float64) error {
	s.spread(r, s.p, s.linear, g)
	s.spread(h, s.q, s.square, d)
	return nil
}

// see sets z to what is seen of count convolved columns x.
func (s *convolutionSweep) see(z []float64, count int, spectrum, x []float64) {
	n := len(s.kernel)
	s.filter(count, spectrum, 1, func(k, j int, out []float64, step int) {
		for at := 0; at < len(out); at += step {
			out[at] = x[k*n+j]
			j++
		}
	}, func(p *pairs) {
		for i := range p.count {
			from, step := p.plane(i)
			for mu, place := range s.places {
				z[mu*count+p.first+i] = from[int(place)*step]
			}
		}
	})
}

// spread sets r to the reversed convolution of what sensors read.
func (s *convolutionSweep) spread(r []float64, count int, spectrum, g []float64) {
	n := len(s.kernel)
	s.filter(count, spectrum, -1, func(k, j int, out []float64, step int) {
		for at := 0; at < len(out); at += step {
			out[at] = 0
			if mu := int(s.seen[j]); mu >= 0 {
				out[at] = g[mu*count+k]
			}
			j++
		}
	}, func(p *pairs) {
		for i := range p.count {
			from, step := p.plane(i)
			out := r[(p.first+i)*n:][:n]
			for j := range out {
				out[j] = from[j*step]
			}
		}
	})
}

// filter convolves count columns with the kernel of this spectrum, or with the reversed kernel where sign is -1: that is
// the conjugate spectrum.
func (s *convolutionSweep) filter(count int, spectrum []float64, sign float64, load func(k, j int, out []float64, step int), done func(p *pairs)) {
	n := len(s.kernel)
	s.there.each(count, ofReals(count, load), func(p *pairs) {
		size := n * p.width
		if len(s.back) < 2*size {
			s.back = make([]float64, 2*size)
		}
		re, im := s.back[:size], s.back[size:2*size]
		// The inverse transform is the transform with both parts exchanged.
		s.plan.Into(im, re, p.width, s.there.threads, func(j int, outIm, outRe []float64) {
			for i := range outRe {
				x, y := p.re[j*p.width+i], p.im[j*p.width+i]
				a, b := spectrum[j+i/p.width], sign*spectrum[n+j+i/p.width]
				outRe[i], outIm[i] = x*a-y*b, x*b+y*a
			}
		})
		p.re, p.im = re, im
		done(p)
	})
}
