package kernel

import "github.com/calamp/calamp/internal/simd"

// MostRadix is the largest radix of [Fourier].
const MostRadix = 61

// Fourier is a step of a Fourier transform by decimation in frequency: it replaces radix neighbouring parts v₀, v₁, … of
// re + i im, of rest rows of run values each, by
//
//	t_p Σ_q v_q e^(-2πi pq/radix),   p = 0 … radix-1,
//
// where t₀ is 1, and the others are cos - i sin of the row's radix-1 angles in twiddles. roots are cos and sin of
// 2πk/radix for all k.
func Fourier(radix int, re, im []float64, rest, run int, twiddles, roots []float64) {
	switch {
	case radix <= 5 && active != simd.Go && run%4 == 0:
		fourier(radix, re, im, rest, run, twiddles, roots)
	case radix == 4:
		plainFourier4(re, im, rest, run, twiddles)
	default:
		plainFourier(radix, re, im, rest, run, twiddles, roots)
	}
}

// plainFourier4 has no multiplications but those with the factors.
func plainFourier4(re, im []float64, rest, run int, twiddles []float64) {
	part := rest * run
	for j := range rest {
		t := (*[6]float64)(twiddles[6*j:])
		from, to := j*run, (j+1)*run
		a, ai := re[from:to], im[from:to]
		b, bi := re[part:][from:to][:len(a)], im[part:][from:to][:len(a)]
		c, ci := re[2*part:][from:to][:len(a)], im[2*part:][from:to][:len(a)]
		d, di := re[3*part:][from:to][:len(a)], im[3*part:][from:to][:len(a)]
		ai = ai[:len(a)]
		for i := range a {
			s, si := a[i]+c[i], ai[i]+ci[i]
			u, ui := a[i]-c[i], ai[i]-ci[i]
			v, vi := b[i]+d[i], bi[i]+di[i]
			w, wi := bi[i]-di[i], d[i]-b[i] // -i (b-d)
			a[i], ai[i] = s+v, si+vi
			x, y := u+w, ui+wi
			b[i], bi[i] = x*t[0]+y*t[1], y*t[0]-x*t[1]
			x, y = s-v, si-vi
			c[i], ci[i] = x*t[2]+y*t[3], y*t[2]-x*t[3]
			x, y = u-w, ui-wi
			d[i], di[i] = x*t[4]+y*t[5], y*t[4]-x*t[5]
		}
	}
}

// plainFourier is the step as it is defined.
func plainFourier(radix int, re, im []float64, rest, run int, twiddles, roots []float64) {
	var a, b [MostRadix]float64
	part := rest * run
	for j := range rest {
		t := twiddles[2*j*(radix-1):]
		for lane := j * run; lane < (j+1)*run; lane++ {
			for q := range radix {
				a[q], b[q] = re[lane+q*part], im[lane+q*part]
			}
			for p := range radix {
				x, y, at := 0.0, 0.0, 0
				for q := range radix {
					cos, sin := roots[2*at], roots[2*at+1]
					x += a[q]*cos + b[q]*sin
					y += b[q]*cos - a[q]*sin
					if at += p; at >= radix {
						at -= radix
					}
				}
				if p > 0 {
					cos, sin := t[2*p-2], t[2*p-1]
					x, y = x*cos+y*sin, y*cos-x*sin
				}
				re[lane+p*part], im[lane+p*part] = x, y
			}
		}
	}
}

// Turn multiplies re + i im by (cos - i sin)(c - i s), where factors are all c, then all s.
func Turn(re, im, factors []float64, cos, sin float64) {
	if len(re) == 0 {
		return
	}
	if active != simd.Go && len(re)%4 == 0 {
		turn(re, im, factors, cos, sin)
		return
	}
	plainTurn(re, im, factors, cos, sin)
}

func plainTurn(re, im, factors []float64, cos, sin float64) {
	c, s := factors[:len(re)], factors[len(re):2*len(re)]
	im = im[:len(re)]
	for k, a := range re {
		b, x, y := im[k], c[k]*cos-s[k]*sin, c[k]*sin+s[k]*cos
		re[k], im[k] = a*x+b*y, b*x-a*y
	}
}
