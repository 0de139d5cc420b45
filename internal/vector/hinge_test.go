package vector

import (
	"math"
	"math/rand/v2"
	"testing"
)

// randomHinges are groups of entries over twelve orders of magnitude, near convergence and far from it.
func randomHinges(groups int, rng *rand.Rand) []float64 {
	d := make([]float64, groups*HingeFields*Lanes)
	for at := range groups * Lanes {
		field := func(i int, v float64) { d[(at/Lanes*HingeFields+i)*Lanes+at%Lanes] = v }
		v, a := math.Exp(28*rng.Float64()-26), math.Exp(28*rng.Float64()-2)
		u := rng.NormFloat64()
		field(HingeV, v)
		field(HingePrecision, a*float64(min(1, rng.IntN(8))))
		field(HingeOmega, u+math.Sqrt(v)*2*rng.NormFloat64())
		field(HingeLambda, max(u, 0)+2*rng.NormFloat64()/math.Sqrt(a))
	}
	return d
}

// The assembly is the plain version, and what it does not hold for is marked by both.
func TestHinge(t *testing.T) {
	for _, slope := range []float64{0, 0.01, 0.3} {
		const groups = 5000
		got := randomHinges(groups, rand.New(rand.NewPCG(1, 2)))
		got[HingeV*Lanes] = 0
		want := append([]float64(nil), got...)
		Hinge(groups, got, slope)
		plainHinge(groups, want, slope)
		marked := 0
		for g := range groups {
			for lane := range Lanes {
				at := g*HingeFields*Lanes + lane
				sd, sdU := math.Sqrt(want[at+HingeXVar*Lanes]), math.Sqrt(want[at+HingeUVar*Lanes])
				if is := math.IsNaN(got[at+HingeLog*Lanes]); is || math.IsNaN(want[at+HingeLog*Lanes]) {
					if marked++; !is || !math.IsNaN(want[at+HingeLog*Lanes]) {
						t.Errorf("slope %g, group %d, lane %d: one of both is marked", slope, g, lane)
					}
					continue
				}
				for f, unit := range map[int]float64{HingeX: sd, HingeXVar: sd * sd, HingeOff: sdU, HingeUVar: sdU * sdU, HingeLog: 1 + math.Abs(want[at+HingeLog*Lanes])} {
					if off := math.Abs(got[at+f*Lanes] - want[at+f*Lanes]); !(off <= 1e-10*unit+1e-15*math.Abs(want[at+f*Lanes])+1e-250) {
						t.Errorf("slope %g, group %d, lane %d, field %d: %g, plain %g", slope, g, lane, f, got[at+f*Lanes], want[at+f*Lanes])
					}
				}
			}
		}
		t.Logf("slope %g: %d of %d marked", slope, marked, groups*Lanes)
		if marked > groups*Lanes/50 {
			t.Error("too many are marked")
		}
	}
}

func BenchmarkHinge(b *testing.B) {
	const groups = 100
	from := randomHinges(groups, rand.New(rand.NewPCG(1, 2)))
	d := make([]float64, len(from))
	for b.Loop() {
		copy(d, from)
		Hinge(groups, d, 0)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*groups*Lanes), "ns/entry")
}
