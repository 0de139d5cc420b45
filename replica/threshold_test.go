package replica

import (
	"context"
	"testing"
	"time"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/recovery"
)

func TestInformationThreshold(t *testing.T) {
	type row struct {
		rho, delta, a, b float64
		p                int
	}
	rows := []row{{0.2, 1e-6, 0.95, 1.05, 3}, {0.2, 1e-8, 0.5, 1.5, 3}}
	if *long {
		rows = append(rows, row{0.2, 1e-10, 0.5, 1.5, 3}, row{0.2, 1e-14, 0.5, 1.5, 3}, row{0.2, 1e-14, 0.95, 1.05, 3}, row{0.5, 1e-8, 0.7, 1.3, 10})
	}
	if testing.Short() {
		rows = rows[:1]
	}
	for _, c := range rows {
		start := time.Now()
		g := prior.GaussBernoulli{Density: c.rho, SignalVar: 1}
		tr, err := InformationThreshold(context.Background(), g, channel.Uniform(c.a, c.b), c.delta, c.p, 0)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		t.Logf("%+v: informed %v, information %v, algorithmic %v; V %.3g, %.3g; α_min %.4f α_CS %.4f (%v)", c, tr.Informed, tr.Information, tr.Algorithmic, tr.Low, tr.High, recovery.AlphaMin(c.rho, c.p), recovery.AlphaCS(g), time.Since(start))
		if !(tr.Informed.Value < tr.Information.Value && tr.Information.Value < tr.Algorithmic.Value) {
			t.Error("out of order")
		}
	}
}
