package amp

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/joint"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
)

// jointVAMP is vector AMP ([vamp]) for signals that belong together: rows and sensors are those of [jointRows], and what they and W exchange are normal
// beliefs with one precision matrix over signals for all rows, Γ, and one for all sensors, T, where vector AMP has a number a signal. What one returns
// goes on without what it was given, along the directions in which both are diagonal. With H the mean of n²(-∂g) over sensors,
//
//	C̄ = Σ C_i/N = F α Fᵀ,             Γ1 = F⁻ᵀF⁻¹:   Γ2⁻¹ = F α/(1-α) Fᵀ,      r2 = x̂ + F α/(1-α) F⁻¹(x̂-r1),
//	T1⁻¹ - T1⁻¹ H T1⁻¹ = E β Eᵀ,      T1 = E⁻ᵀE⁻¹:   T2 = E⁻ᵀ (1-β)/β E⁻¹,     p2 = p1 + E 1/(1-β) Eᵀ n g.
//
// Signals that are turned to where Γ2 and T2 are diagonal are independent to W, whose half is that of [lmmse].
type jointVAMP struct {
	*jointRows
	strides
	linear linearHalf
	lmmse  *lmmse
	damped float64 // what a step keeps of the former state

	p1               []float64   // M×P of W̃; r1 is the centre of fields
	logGamma, logTau []float64   // P×P, log Γ1 and log T1
	next             [][]float64 // r1, p1 and these before damping

	r2, p2, unsure []float64   // P×N; M×P; Γ2⁻¹
	rows2          *joint.Pair // F and α; nil in the first iteration
	square         []float64   // P, Σ (F⁻¹(x̂-r1))²
	sensors2       *joint.Pair // E and β
	reached        []float64   // P, Σ (Eᵀ n g)²
	counted        float64     // sensors that count
	both           *joint.Pair // in which Γ2⁻¹ is diagonal, and T2 is I
	outputs        func(chunk int)
}

func newJointVAMP(rows *jointRows, half linearHalf) *jointVAMP {
	l, p := half.common(), rows.P
	v := &jointVAMP{jointRows: rows, linear: half, lmmse: l}
	of := func(count int) []float64 { return make([]float64, count) }
	v.p1, v.p2, v.r2 = of(len(v.Y)), of(len(v.Y)), of(len(v.X))
	v.logGamma, v.logTau, v.unsure = of(p*p), of(p*p), of(p*p)
	v.square, v.reached, v.outputs = of(p), of(p), v.outputChunk
	v.next = [][]float64{of(len(v.X)), of(len(v.Y)), of(p * p), of(p * p)}
	v.keep(v.p1, v.logGamma, v.logTau)
	v.State.linear, v.turned.readings = append(v.State.linear, v.p1), v.p1
	return v
}

// parts are what one iteration hands to the next.
func (v *jointVAMP) parts() [][]float64 { return [][]float64{v.Centre, v.p1, v.logGamma, v.logTau} }

// sweepsOver implements [Iteration]: there are none.
func (v *jointVAMP) sweepsOver(operator.Operator) (s operator.Sweeps, err error) { return s, nil }

func (v *jointVAMP) use(operator.Sweeps) {}

// prepare implements [Iteration].
func (v *jointVAMP) prepare(ctx context.Context) error { return v.linear.prepare(ctx) }

// Step implements [Iteration].
func (v *jointVAMP) Step(delta float64) error {
	v.damped = delta
	v.steps++
	v.setApart()
	ok := true
	if v.fresh {
		if err := v.start(); err != nil {
			return err
		}
		v.fresh, v.steps = false, 1
	} else {
		ok = v.input()
	}
	v.fieldPull, v.fieldTurn = v.nextPull, v.nextTurn
	if ok = ok && v.output(); ok {
		var err error
		if ok, err = v.combine(); err != nil {
			return err
		}
	}
	if !ok || !AllFinite(v.SVar) || !AllFinite(v.next[0]) || !AllFinite(v.next[1]) {
		v.Moved[0] = math.NaN() // seen by the caller as a step to take back
		return nil
	}
	v.move(v.parts(), v.next, 1-delta, v.State.change(), v.product)
	return nil
}

// start is the first iteration's first part: nothing is known beyond the prior.
func (v *jointVAMP) start() error {
	v.mixing = nil
	v.linear.begin()
	if err := v.lmmse.forward(v.p1, v.X); err != nil {
		return err
	}
	copy(v.Lambda, v.X)
	copy(v.Centre, v.X)
	copy(v.r2, v.X)
	copy(v.unsure, v.meanC())
	for k := range v.P {
		x := v.X[k*v.N : (k+1)*v.N]
		v.SumC[k], v.Norm[k] = v.sumC[k*v.P+k], math.Sqrt(blas64.Dot(vector(x), vector(x)))
		v.Moved[k], v.Along[k] = 0, 0
	}
	v.rows2 = nil
	if !logOf(v.logTau, v.unsure, -1) {
		v.Moved[0] = math.NaN()
	}
	return nil
}

// input is the rows' part. ok is false where no number came of it.
func (v *jointVAMP) input() (ok bool) {
	a, size, ok := joint.Exp(v.logGamma, v.P, v.columns)
	if !ok {
		return false
	}
	v.field = a
	for i := range v.size {
		v.size[i] = size
	}
	clear(v.Onward)
	v.rows.Update(joint.Field{Shape: a, Size: v.size, Centre: v.Centre, Onward: v.Onward})
	v.fields(a)
	v.nextPull = sum(v.rows.Pull)
	copy(v.sumC, v.rows.Sum)
	copy(v.traces, v.rows.Trace)
	if v.rows2, ok = a.Pair(size, v.meanC(), 1); !ok {
		return false
	}
	v.rowsGoOn()
	for signal := range v.P / v.columns {
		from, to := signal*v.columns*v.N, (signal+1)*v.columns*v.N
		v.takeUp(signal, v.rows.X[from:to], v.rows.C[from:to], 0)
	}
	for k := range v.P {
		v.Moved[k] /= 1 - v.damped
		v.Along[k] /= 1 - v.damped
	}
	v.sumTurnsOf(a)
	return true
}

// meanC is C̄.
func (v *jointVAMP) meanC() []float64 {
	mean := make([]float64, len(v.sumC))
	for j, c := range v.sumC {
		mean[j] = c / float64(v.N)
	}
	return mean
}

// rowsGoOn is what rows say beyond what they were given.
func (v *jointVAMP) rowsGoOn() {
	alpha := v.rows2.Variance
	for k, value := range alpha {
		alpha[k] = min(max(value, leastKept), mostKept)
	}
	v.rows2.Covariance(v.unsure, func(k int) float64 { return alpha[k] / (1 - alpha[k]) })
	step := make([]float64, len(v.X))
	for j, x := range v.rows.X {
		v.r2[j] = x - v.Centre[j]
	}
	turnEntries(step, v.rows2.From, v.r2, v.P)
	clear(v.square)
	for j := range step {
		k := j / v.N
		v.square[k] += step[j] * step[j]
		step[j] *= alpha[k] / (1 - alpha[k])
	}
	turnEntries(v.r2, v.rows2.To, step, v.P)
	for j, x := range v.rows.X {
		v.r2[j] += x
	}
}

// output is the sensors' part.
func (v *jointVAMP) output() (ok bool) {
	negative := make([]float64, len(v.logTau))
	for j, l := range v.logTau {
		negative[j] = -l
	}
	k, size, ok := joint.Exp(negative, v.P, v.columns)
	if !ok {
		return false
	}
	v.shape = k
	k.Matrix(v.covariance)
	v.own, v.at = k.Own()
	for mu, norm := range v.lmmse.norms {
		v.sizes[mu] = norm * norm * size
	}
	parallel.Run((v.M+sensorChunk-1)/sensorChunk, v.Threads, v.outputs)
	left := v.contraction()
	if v.sensors2, ok = k.Contracted(size, left.Data); ok {
		v.sensorsGoOn()
	}
	return ok
}

// outputChunk is that of some sensors.
func (v *jointVAMP) outputChunk(chunk int) {
	if v.interrupted() {
		return
	}
	from, to := chunk*sensorChunk, min((chunk+1)*sensorChunk, v.M)
	w := v.works.Get()
	defer v.works.Put(w)
	z := make([]float64, (to-from)*v.P)
	for j := range z {
		z[j] = v.lmmse.norms[from+j/v.P] * v.p1[from*v.P+j]
	}
	v.read(w, from, z)
	v.answer(w, from, v.G[from*v.P:to*v.P])
}

// counts reports whether a sensor does: those that are missing, or more likely broken than not, send no belief.
func (v *jointVAMP) counts(mu int) bool {
	return !v.OutOfOrder(mu) && v.lmmse.norms[mu] > 0 && (v.partial[mu] != nil || !math.IsNaN(v.Y[mu*v.P]))
}

// contraction is what is left of the variance of z, the mean over sensors of 1 - V^½(-∂g)V^½, in the directions of K:
//
//	(D - (1-π)V)/D + (1-π) V^½ Cˢ e eᵀ V^½ + π(1-π) V^½ g gᵀ V^½.
//
// As a sum of these it has the digits of what is little.
func (v *jointVAMP) contraction() (left dense.Matrix) {
	p, noise := v.P, channel.NoiseOf(v.model.Channel)
	left = dense.New(p, p)
	rows := dense.New(2*v.M, p)
	v.counted = 0
	for mu := range v.M {
		if !v.counts(mu) {
			continue
		}
		v.counted++
		if v.partial[mu] != nil {
			v.addPartial(left, mu)
			continue
		}
		other := noise + excessOf(v.excess, mu*p)
		known, doubted := rows.Row(mu), rows.Row(v.M+mu)
		read := make([]float64, p)
		for k, kappa := range v.shape.Values {
			variance, j := v.sizes[mu]*kappa, mu*p+k
			root := math.Sqrt(variance)
			read[k] = (1 - v.Broken[mu]) * variance / (variance + other)
			left.Row(k)[k] += (other + v.Broken[mu]*variance) / (variance + other)
			known[k], doubted[k] = root*v.known[j], root*v.doubted[j]
		}
		if v.doubt[mu] {
			v.boundDoubt(doubted, known, read)
		} else {
			clear(doubted)
		}
	}
	dense.AddProduct(left, 1, rows.T(), rows, dense.All, v.Threads)
	if v.columns > 1 {
		joint.Circular(left.Data, p)
	}
	scale(left.Data, 1/max(v.counted, 1))
	return left
}

// boundDoubt makes d of a sensor in doubt as long as it can be: no more variance is left than there was, since its message would have a negative precision else. What is read, less the part that is lost with
// s, is diag(r) - kkᵀ, and a larger ddᵀ than that leaves none where dᵀ(diag(r) - kkᵀ)⁻¹d > 1.
func (v *jointVAMP) boundDoubt(d, k, r []float64) {
	part := 1 / float64(v.columns) // of one direction in a matrix that commutes with J
	var dd, kk, re, im float64
	for j, read := range r {
		dd, kk, re = dd+part*d[j]*d[j]/read, kk+part*k[j]*k[j]/read, re+part*d[j]*k[j]/read
		if v.columns > 1 {
			im += part * d[j] * k[j^1] / read * float64(1-2*(j&1))
		}
	}
	if most := dd + (re*re+im*im)/max(1-kk, leastRead); most > 1 {
		scale(d, 1/math.Sqrt(most))
	}
}

// addPartial adds a sensor whose readings cannot be turned.
func (v *jointVAMP) addPartial(left dense.Matrix, mu int) {
	p, work := v.P, make([]float64, v.P*v.P)
	slopes := dense.New(p, p)
	blas64.Gemm(blas.Trans, blas.NoTrans, v.sizes[mu], block(v.shape.Vectors, p), block(v.partial[mu], p), 0, block(work, p))
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, block(work, p), block(v.shape.Vectors, p), 0, block(slopes.Data, p))
	for k, kappa := range v.shape.Values {
		for l, other := range v.shape.Values {
			left.Row(k)[l] += math.Sqrt(kappa) * slopes.Row(k)[l] * math.Sqrt(other)
		}
		left.Row(k)[k]++
	}
}

// sensorsGoOn is what sensors say beyond what they were given.
func (v *jointVAMP) sensorsGoOn() {
	beta, to := v.sensors2.Variance, block(v.sensors2.To, v.P)
	for k, b := range beta {
		beta[k] = min(max(b, leastRead), 1-leastRead)
	}
	clear(v.reached)
	copy(v.p2, v.p1)
	along := make([]float64, v.P)
	for mu, norm := range v.lmmse.norms {
		from, end := mu*v.P, (mu+1)*v.P
		counts := v.counts(mu)
		for j := from; j < end; j++ {
			if v.lmmse.weight[j] = 0; counts {
				v.lmmse.weight[j] = 1
			}
		}
		if !counts {
			continue
		}
		blas64.Gemv(blas.Trans, norm, to, vector(v.G[from:end]), 0, vector(along))
		for k, a := range along {
			v.reached[k] += a * a
			along[k] = a / (1 - beta[k])
		}
		blas64.Gemv(blas.NoTrans, 1, to, vector(along), 1, vector(v.p2[from:end]))
	}
}

// combine is the linear part: signals that are turned to where Γ2 is diagonal, and T2 is I, are independent.
func (v *jointVAMP) combine() (ok bool, err error) {
	l, beta := v.lmmse, v.sensors2.Variance
	precision := make([]float64, v.P*v.P)
	v.sensors2.Precision(precision, func(k int) float64 { return (1 - beta[k]) / beta[k] })
	if v.both, ok = joint.NewPair(precision, v.unsure, v.P, v.columns); !ok || !(v.both.Variance[0] > 0) {
		return false, nil
	}
	for k, d := range v.both.Variance {
		l.gamma[k], l.tau[k], l.moved[k] = 1/d, 1, 1
	}
	turnEntries(l.r, v.both.From, v.r2, v.P)
	turnReadings(l.q, v.p2, v.both.From, blas.Trans)
	if err := v.linear.solve(); err != nil {
		return false, err
	}
	v.extract()
	return logOf(v.next[2], v.next[2], 1) && logOf(v.next[3], v.next[3], 1), nil
}

// extract makes the linear means and variances the next beliefs, see [vamp.combine].
func (v *jointVAMP) extract() {
	l, n := v.lmmse, float64(v.N)
	gamma, tau := make([]float64, v.P), make([]float64, v.P)
	for k := range v.P {
		determined := max(n-l.free[k], leastKept)
		a, aRest := determined/n, l.free[k]/n
		b, bRest := determined/l.counted[k], l.left[k]/l.counted[k]
		if !(l.counted[k] > 0) {
			b, bRest = leastKept, 1
		}
		scale(l.change[k*v.N:(k+1)*v.N], 1/a)
		for j := k; j < len(l.z); j += v.P {
			l.z[j] -= b / bRest * l.h[j]
		}
		gamma[k], tau[k] = l.gamma[k]*a/aRest, l.tau[k]*bRest/b
	}
	turnEntries(v.next[0], v.both.To, l.change, v.P)
	for j, r := range v.r2 {
		v.next[0][j] += r
	}
	turnReadings(v.next[1], l.z, v.both.To, blas.Trans)
	v.both.Precision(v.next[2], func(k int) float64 { return gamma[k] })
	v.both.Precision(v.next[3], func(k int) float64 { return tau[k] })
}

// product is that of two moves of what the next iteration is given, see [vamp.product].
func (v *jointVAMP) product(a, b [][]float64) float64 {
	total, p := 0.0, v.P
	for i, count := range []int{v.N, v.M} { // of logarithms
		for j, d := range a[2+i] {
			total += float64(count) * d * b[2+i][j]
		}
	}
	precision, size, _ := joint.Exp(v.logGamma, p, 1)
	matrix := make([]float64, p*p)
	precision.Matrix(matrix)
	turned := make([]float64, len(v.X))
	turnEntries(turned, matrix, b[0], p)
	total += size * blas64.Dot(vector(a[0]), vector(turned))
	precision, size, _ = joint.Exp(v.logTau, p, 1)
	precision.Matrix(matrix)
	turned = make([]float64, len(v.Y))
	turnReadings(turned, b[1], matrix, blas.NoTrans)
	return total + size*blas64.Dot(vector(a[1]), vector(turned))
}

// LogEvidence implements [Iteration]: that of [vamp], direction by direction.
func (v *jointVAMP) LogEvidence() float64 {
	total, l := sum(v.LogZ), v.lmmse
	for k := range v.P {
		total += 0.5 * (l.logDet[k] - l.tau[k]*l.quadratics[k])
		beta := v.sensors2.Variance[k]
		total += 0.5 * (v.reached[k]/(1-beta) - v.counted*math.Log(beta))
	}
	if v.rows2 == nil {
		return total
	}
	for k, alpha := range v.rows2.Variance {
		total += 0.5 * (v.square[k]/(1-alpha) - float64(v.N)*math.Log1p(-alpha))
	}
	return total + sum(v.rows.LogMass)
}

// turnEntries writes Tx, of all entries of signals.
func turnEntries(dst, t, x []float64, p int) {
	n := len(x) / p
	dense.Product(dense.Of(dst, p, n), dense.Of(t, p, p), dense.Of(x, p, n))
}

// turnReadings writes the rows of z times T, or its transpose.
func turnReadings(dst, z, t []float64, how blas.Transpose) {
	p := int(math.Sqrt(float64(len(t))) + 0.5)
	blas64.Gemm(blas.NoTrans, how, 1, block(z, p), block(t, p), 0, block(dst, p))
}

// logOf writes sign times the logarithm of a symmetric matrix; false where it has none.
func logOf(dst, a []float64, sign float64) bool {
	p := int(math.Sqrt(float64(len(a))) + 0.5)
	s, size, ok := joint.NewShape(a, p, 1, leastOfLargest)
	if ok {
		s.Of(dst, func(value float64) float64 { return sign * math.Log(size*value) })
	}
	return ok
}

// leastOfLargest is the least eigenvalue of a precision, relative to its largest: rounding is below.
const leastOfLargest = 1e-14
