package operator

import "github.com/calamp/calamp/internal/transform"

// columns transforms columns of real values, two as one complex signal: column 2k is its real part, 2k+1 its imaginary one.
type columns struct {
	plan    *transform.Fourier
	threads int
	re, im  []float64
}

// pairs are the transforms of some columns.
type pairs struct {
	n, width     int       // size, and number of pairs
	first, count int       // of the columns
	re, im       []float64 // n×width
}

// each transforms what load tells for columns first … first+2·width-1, and has done look at it, for count columns in all,
// as many at once as the transform gains from.
func (c *columns) each(count int, load func(first, width int) transform.Load, done func(p *pairs)) {
	n, all := c.plan.Size(), (count+1)/2
	most := c.plan.Together(all)
	if len(c.re) < n*most {
		c.re, c.im = make([]float64, n*most), make([]float64, n*most)
	}
	for pair := 0; pair < all; pair += most {
		width := min(most, all-pair)
		p := &pairs{n: n, width: width, first: 2 * pair, count: min(2*width, count-2*pair), re: c.re[:n*width], im: c.im[:n*width]}
		c.plan.Into(p.re, p.im, width, c.threads, load(p.first, width))
		done(p)
	}
}

// ofReals is the load of count columns of which load sets out[0], out[step], … to values j, j+1, ….
func ofReals(count int, load func(k, j int, out []float64, step int)) func(first, width int) transform.Load {
	return func(first, width int) transform.Load {
		return func(j int, re, im []float64) {
			for q := range width {
				k := first + 2*q
				load(k, j, re[q:], width)
				if k+1 < count {
					load(k+1, j, im[q:], width)
					continue
				}
				for at := q; at < len(im); at += width {
					im[at] = 0
				}
			}
		}
	}
}

// ofSpectra is the load of count columns of whose spectra load sets re and im to values j, j+1, ….
func ofSpectra(count int, load func(k, j int, re, im []float64)) func(first, width int) transform.Load {
	return func(first, width int) transform.Load {
		return func(j int, re, im []float64) {
			var x, y [transform.MostLoaded]float64
			values := len(re) / width
			for q := range width {
				k := first + 2*q
				load(k, j, x[:values], y[:values])
				for i := range values {
					re[i*width+q], im[i*width+q] = x[i], y[i]
				}
				if k+1 == count {
					continue
				}
				load(k+1, j, x[:values], y[:values])
				for i := range values { // times i
					re[i*width+q] -= y[i]
					im[i*width+q] += x[i]
				}
			}
		}
	}
}

// plane is where column i of p is, after a transform back: out[0], out[step], ….
func (p *pairs) plane(i int) (out []float64, step int) {
	if i%2 == 0 {
		return p.re[i/2:], p.width
	}
	return p.im[i/2:], p.width
}

// at is what the transforms of the columns 2q and 2q+1 of p have at r: of z = a + ib, with a and b real,
//
//	a_r = ½(z_r + z̄_(n-r)),   b_r = (z_r - z̄_(n-r)) / 2i.
func (p *pairs) at(q, r int) (a, ai, b, bi float64) {
	mirror := 0
	if r > 0 {
		mirror = p.n - r
	}
	x, y, u, v := p.re[r*p.width+q], p.im[r*p.width+q], p.re[mirror*p.width+q], p.im[mirror*p.width+q]
	return 0.5 * (x + u), 0.5 * (y - v), 0.5 * (y + v), 0.5 * (u - x)
}
