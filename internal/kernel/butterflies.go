package kernel

import "github.com/calamp/calamp/internal/simd"

// Butterflies2 replaces neighbouring runs a, b of x by a+b and a-b. The length of x is a
// multiple of 2*run.
func Butterflies2(x []float64, run int) {
	if active != simd.Go && run%4 == 0 {
		butterflies2(x, run)
		return
	}
	plainButterflies2(x, run)
}

// Butterflies4 replaces neighbouring runs a, b, c, d of x by a+b+c+d, a-b+c-d, a+b-c-d
// and a-b-c+d: two steps of the Walsh–Hadamard transform. The length of x is a multiple
// of 4*run.
func Butterflies4(x []float64, run int) {
	if active != simd.Go && run%4 == 0 {
		butterflies4(x, run)
		return
	}
	plainButterflies4(x, run)
}

func plainButterflies2(x []float64, run int) {
	for ; len(x) >= 2*run; x = x[2*run:] {
		a := x[:run]
		b := x[run:][:len(a)]
		for i, u := range a {
			v := b[i]
			a[i], b[i] = u+v, u-v
		}
	}
}

// The sums are taken in the order of the assembly, which rounds nothing else.
func plainButterflies4(x []float64, run int) {
	for ; len(x) >= 4*run; x = x[4*run:] {
		a := x[:run]
		b, c, d := x[run:][:len(a)], x[2*run:][:len(a)], x[3*run:][:len(a)]
		for i := range a {
			s, t := a[i]+b[i], a[i]-b[i]
			u, v := c[i]+d[i], c[i]-d[i]
			a[i], b[i], c[i], d[i] = s+u, t+v, s-u, t-v
		}
	}
}

// Fourier4 is a step of a Fourier transform by decimation in frequency: it replaces four
// neighbouring parts a, b, c, d of re + i im, of rest rows of run values each, by
//
//	a+b+c+d,   (a-ib-c+id) t₁,   (a-b+c-d) t₂,   (a+ib-c-id) t₃,
//
// where t₁, t₂, t₃ are cos - i sin of the row's three angles in twiddles.
func Fourier4(re, im []float64, rest, run int, twiddles []float64) {
	if active != simd.Go && run%4 == 0 {
		fourier4(re, im, rest, run, twiddles)
		return
	}
	plainFourier4(re, im, rest, run, twiddles)
}

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
