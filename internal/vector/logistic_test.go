package vector

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMills(t *testing.T) {
	v := make([]float64, 4000)
	want := make([]float64, len(v))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range v {
		v[i] = 20 * rng.Float64()
		want[i] = math.Exp(0.5*v[i]*v[i]) * math.Erfc(v[i]/math.Sqrt2) * math.Sqrt(math.Pi/2)
		if i%4 == 0 {
			v[i] = math.Exp(15 * rng.Float64())
			want[i] = mills(v[i])
		}
	}
	Mills(v)
	worst := 0.0
	for i, w := range want {
		worst = max(worst, math.Abs(v[i]/w-1))
	}
	if t.Logf("relative difference %.2g", worst); !(worst < 1e-13) {
		t.Errorf("relative difference %.2g", worst)
	}
}

// The assembly is the plain version, of narrow peaks and wide ones.
func TestLogisticNodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	worst := 0.0
	for range 2000 {
		x, logs := make([]float64, 14), make([]float64, 14)
		for j := range x {
			x[j], logs[j] = float64(j)-6.5, rng.NormFloat64()
		}
		got := make([]float64, LogisticFields*Lanes)
		for lane := range Lanes {
			m, width := 4*rng.NormFloat64(), math.Exp(-20*rng.Float64())
			f := 1 / (1 + math.Exp(-m))
			for i, v := range [...]float64{width, f, 1 / (1 + math.Exp(m)), rng.NormFloat64() / width, 0.3 / (width * width), rng.NormFloat64() / width, 2 / (width * width)} {
				got[i*Lanes+lane] = v
			}
		}
		want := append([]float64(nil), got...)
		LogisticNodes(x, logs, got)
		plainLogisticNodes(x, logs, want)
		for i := LogisticMass * Lanes; i < len(got); i++ {
			lane, scale := i%Lanes, want[i]
			switch mass := want[LogisticMass*Lanes+lane]; i / Lanes {
			case LogisticFirst:
				scale = math.Sqrt(mass * want[LogisticSecond*Lanes+lane])
			case LogisticFirstX:
				scale = math.Sqrt(mass * want[LogisticSecondX*Lanes+lane])
			}
			worst = max(worst, math.Abs(got[i]-want[i])/scale)
		}
	}
	if t.Logf("difference %.2g", worst); !(worst < 1e-12) {
		t.Errorf("difference %.2g", worst)
	}
}
