package vector

import (
	"math"

	"github.com/calamp/calamp/internal/simd"
)

// Mills replaces values of zero or more, a multiple of Lanes, by Mills' ratio ∫_x^∞ e^(½(x²-t²)) dt.
func Mills(v []float64) {
	if active != simd.Go {
		millsRatios(v)
		return
	}
	for i, x := range v {
		v[i] = mills(x)
	}
}

// Layout of [LogisticNodes]: for every field the values of Lanes entries. The first seven are given.
const (
	LogisticWidth   = iota
	LogisticF       // σ(m)
	LogisticRest    // 1 - σ(m)
	LogisticC1      // (m-ω)/V
	LogisticH1      // 1/2V
	LogisticC2      // a (σ(m)-λ)
	LogisticH2      // a/2
	LogisticMass    // sums of the weights,
	LogisticFirst   // times x,
	LogisticSecond  // x²,
	LogisticFirstX  // Δ
	LogisticSecondX // and Δ²
	LogisticFields
)

// LogisticNodes sums N(u; ω, V) exp(-½ a (σ(u)-λ)²), relative to that at m, over nodes u = m + width·x, of an even number, with weights of these logarithms:
// d = u - m and Δ = σ(u) - σ(m) are taken without cancellation.
func LogisticNodes(x, logs, d []float64) {
	logs, d = logs[:len(x)], d[:LogisticFields*Lanes]
	if active == simd.Go {
		plainLogisticNodes(x, logs, d)
		return
	}
	logisticNodes(x, logs, d)
}

func plainLogisticNodes(x, logs, d []float64) {
	for lane := range Lanes {
		at := func(f int) float64 { return d[f*Lanes+lane] }
		var sums [LogisticFields - LogisticMass]float64
		for j, x := range x {
			step := at(LogisticWidth) * x
			e := math.Expm1(step)
			change := at(LogisticF) * at(LogisticRest) * e / (at(LogisticRest) + float64(at(LogisticF)*(1+e)))
			w := math.Exp(max(-708, logs[j]-float64(step*(at(LogisticC1)+float64(step*at(LogisticH1))))-float64(change*(at(LogisticC2)+float64(change*at(LogisticH2))))))
			for i, v := range [...]float64{1, x, x * x, change, change * change} {
				sums[i] += float64(w * v)
			}
		}
		for i, s := range sums {
			d[(LogisticMass+i)*Lanes+lane] = s
		}
	}
}
