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
