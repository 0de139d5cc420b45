package sweep

import (
	"strings"
	"testing"
)

const deepSpec = `
[[grid]]
algorithm = ["offline", "threshold"]
network = ["0.2:relu", "0.5:relu, 0.4:identity"]
n = 50
density = 0.3
alpha = 0.5
p = 2
s_range = [0.9, 1.1]
noise_var = 1e-6
`

// Points of networks have keys of their own, problems out of layers of the sizes asked for, and are the same whenever they are drawn.
func TestNetworks(t *testing.T) {
	s, err := Parse("deep.toml", deepSpec)
	if err != nil {
		t.Fatal(err)
	}
	points := s.Points()
	if len(points) != 4 || points[0].Key() == points[1].Key() || points[1].Network != "0.5:relu,0.4:identity" {
		t.Fatalf("%v", points)
	}
	n, err := points[1].network()
	if err != nil || n.Entries() != 50 || n.LatentEntries() != 10 || len(n.Layers()) != 2 || n.Layers()[0].Rows != 20 {
		t.Errorf("%d entries of %d latents, %v", n.Entries(), n.LatentEntries(), err)
	}
	again, _ := points[1].network()
	if n.Name() != again.Name() {
		t.Error("another network the second time")
	}
	if m := points[1].model(); len(m.Network) != 2 || m.Network[0].Inputs != 0.5 {
		t.Errorf("the limit has %v", m.Network)
	}
	in, done, err := new(Runner).draw(points[0])
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if rows, columns := in.truth.X.Dims(); rows != 50 || columns != 2 || in.Prior.Variance() == points[0].signal().Variance() {
		t.Errorf("signals %d×%d of variance %g", rows, columns, in.Prior.Variance())
	}
	for lines, want := range map[string]string{
		`network = "0.2:rely"`: "no activation",
		`network = "relu"`:     "no layer",
		"network = \"0.2:relu\"\nmatrix = \"condition:3\"": "W has independent entries",
	} {
		text := strings.Replace(deepSpec, `network = ["0.2:relu", "0.5:relu, 0.4:identity"]`, lines, 1)
		if _, err := Parse("deep.toml", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", lines, err)
		}
	}
}
