package quadrature

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// offsetRow is one case of testdata/offset_moments.json, computed with mpmath at 60 digits by the
// project.
type offsetRow struct {
	N                                     float64
	TauC                                  json.Number `json:"tau_c"`
	BC                                    json.Number `json:"B_c"`
	T0                                    json.Number
	YBar                                  json.Number `json:"y_bar"`
	OmegaBar                              json.Number `json:"omega_bar"`
	SO2                                   *float64
	A, B                                  float64
	LZ                                    json.Number
	S, Cs, Zeta, Vz, Csz, Rho, O, Co, Cso json.Number
}

func TestOffsetGolden(t *testing.T) {
	raw, err := os.ReadFile("testdata/offset_moments.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Rows []offsetRow }
	if err := json.Unmarshal(raw, &file); err != nil || len(file.Rows) == 0 {
		t.Fatal(err)
	}
	worst := map[string]float64{}
	for i, r := range file.Rows {
		d := OffsetDensity{
			N: r.N, Tau: number(t, r.TauC), B: number(t, r.BC), T0: number(t, r.T0), Y: number(t, r.YBar), Omega: number(t, r.OmegaBar),
			Var: math.Inf(1), Lo: r.A, Hi: r.B,
		}
		if r.SO2 != nil {
			d.Var = *r.SO2
		}
		p := d.Posterior()
		const eps = 2.2e-16
		s, cs, co := number(t, r.S), number(t, r.Cs), number(t, r.Co)
		// Attainable: one unit in the last place of s, of what ζ and o are made of, and of what clipped edges leave of variances.
		check := func(name string, got float64, want json.Number, own float64) {
			e := math.Abs(difference(t, got, want))
			relative := max(0, e-8*eps*math.Abs(got)) / own
			worst[name] = max(worst[name], relative)
			if !(relative < 1e-9) {
				t.Errorf("row %d (n=%g, so2=%v, tau %g, range [%g,%g]): %s is %g, want %s: off by %.2g of its scale", i, r.N, r.SO2, d.Tau, r.A, r.B, name, got, want, relative)
			}
		}
		if p.Offset == 0 && r.O == "0.0" { // no variance: no offset
			continue
		}
		abs := func(n json.Number) float64 { return math.Abs(number(t, n)) }
		check("s", p.S, r.S, s)
		check("Cs", p.SVar, r.Cs, cs)
		check("zeta", p.Zeta, r.Zeta, abs(r.Zeta)+1e-300)
		check("Vz", p.ZetaVar, r.Vz, abs(r.Vz)+1e-300)
		check("Csz", p.SZeta, r.Csz, math.Sqrt(cs*abs(r.Vz))+1e-300)
		check("rho", p.Rho, r.Rho, 1)
		check("o", p.Offset, r.O, abs(r.O)+math.Sqrt(co))
		check("Co", p.OffsetVar, r.Co, co)
		check("Cso", p.SOf, r.Cso, math.Sqrt(cs*co))
		check("lz", d.Log(p.Mode)+p.LogMass, r.LZ, max(1, abs(r.LZ)))
	}
	t.Logf("worst, relative: %v", worst)
}

func BenchmarkOffsetPosterior(b *testing.B) {
	d := OffsetDensity{N: 10, Tau: 3e4, B: 3e4, T0: 1e5, Y: 0.1, Omega: 0.02, Var: 0.05, Lo: 0.5, Hi: 1.5}
	for b.Loop() {
		d.Posterior()
	}
}
