package operator

// The inner loops, in plain Go. Slices are cut to one length first so that the
// compiler drops the bounds checks. Products are converted explicitly, which
// keeps them from being fused: same bits on every architecture.

// dot2x2 returns the products of rows wa, wb with columns x0, x1 and of their
// squares with c0, c1: wa·x0, wa·x1, wb·x0, wb·x1, then the same for squares.
func dot2x2[T float32 | float64](wa, wb []T, x0, x1, c0, c1 []float64) (sums [8]float64) {
	n := len(wa)
	wb, x0, x1, c0, c1 = wb[:n], x0[:n], x1[:n], c0[:n], c1[:n]
	var a0, a1, b0, b1, sa0, sa1, sb0, sb1 float64
	for i := range n {
		a, b := float64(wa[i]), float64(wb[i])
		aa, bb := a*a, b*b
		p, q := x0[i], x1[i]
		a0 += float64(a * p)
		a1 += float64(a * q)
		b0 += float64(b * p)
		b1 += float64(b * q)
		p, q = c0[i], c1[i]
		sa0 += float64(aa * p)
		sa1 += float64(aa * q)
		sb0 += float64(bb * p)
		sb1 += float64(bb * q)
	}
	return [8]float64{a0, a1, b0, b1, sa0, sa1, sb0, sb1}
}

func dot2[T float32 | float64](wa, wb []T, x []float64) (a, b float64) {
	n := len(wa)
	wb, x = wb[:n], x[:n]
	for i := range n {
		a += float64(float64(wa[i]) * x[i])
		b += float64(float64(wb[i]) * x[i])
	}
	return a, b
}

func dotSquares2[T float32 | float64](wa, wb []T, c []float64) (a, b float64) {
	n := len(wa)
	wb, c = wb[:n], c[:n]
	for i := range n {
		u, v := float64(wa[i]), float64(wb[i])
		a += float64(u * u * c[i])
		b += float64(v * v * c[i])
	}
	return a, b
}

// axpy2 adds ga·wa + gb·wb to r, and da·wa² + db·wb² to h.
func axpy2[T float32 | float64](r, h []float64, wa, wb []T, ga, gb, da, db float64) {
	n := len(wa)
	r, h, wb = r[:n], h[:n], wb[:n]
	for i := range n {
		a, b := float64(wa[i]), float64(wb[i])
		r[i] += float64(a*ga) + float64(b*gb)
		h[i] += float64(a*a*da) + float64(b*b*db)
	}
}

func axpyLinear2[T float32 | float64](r []float64, wa, wb []T, ga, gb float64) {
	n := len(wa)
	r, wb = r[:n], wb[:n]
	for i := range n {
		r[i] += float64(float64(wa[i])*ga) + float64(float64(wb[i])*gb)
	}
}

func axpySquares2[T float32 | float64](h []float64, wa, wb []T, da, db float64) {
	n := len(wa)
	h, wb = h[:n], wb[:n]
	for i := range n {
		a, b := float64(wa[i]), float64(wb[i])
		h[i] += float64(a*a*da) + float64(b*b*db)
	}
}
