package sweep

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/prior"
)

// Networks are what signals come out of: "0.2:relu" for a layer with a latent for five entries, "0.5:relu,0.4:relu" for two layers, from the latents on, or a list
// of such. Weights are independent, and drawn with the problem. The density is that of the latents.
type Networks []string

// UnmarshalTOML implements [toml.Unmarshaler].
func (n *Networks) UnmarshalTOML(v any) error {
	for _, entry := range listOf(v) {
		word, ok := entry.(string)
		if !ok {
			return fmt.Errorf("expected layers, as in 0.2:relu, found %v", entry)
		}
		if _, err := evolution.ParseLayers(word); err != nil {
			return err
		}
		*n = append(*n, strings.ReplaceAll(word, " ", ""))
	}
	return nil
}

// layers are those of the limit of large N; nil for independent entries.
func (p Point) layers() []evolution.Layer {
	if p.Network == "" {
		return nil
	}
	list, err := evolution.ParseLayers(p.Network)
	if err != nil {
		panic("calamp: " + err.Error()) // specs are read with it
	}
	return list
}

// network is the one that the problem's signals come out of.
func (p Point) network() (n prior.Network, err error) {
	list := p.layers()
	widths := make([]int, len(list)+1)
	widths[len(list)] = p.N
	for i := len(list) - 1; i >= 0; i-- {
		widths[i] = max(1, int(math.Round(list[i].Inputs*float64(widths[i+1]))))
	}
	rng := rand.New(rand.NewPCG(p.stream(), 39))
	made := make([]prior.Layer, len(list))
	for i, l := range list {
		made[i] = prior.Layer{Rows: widths[i+1], Cols: widths[i], Activation: l.Activation, Weights: make([]float64, widths[i+1]*widths[i])}
		for j := range made[i].Weights {
			made[i].Weights[j] = rng.NormFloat64() / math.Sqrt(float64(widths[i]))
		}
	}
	return prior.NewNetwork(made, p.signal(), 0)
}

// validateNetwork refuses what has none.
func (p Point) validateNetwork() error {
	switch {
	case p.Network == "":
		return nil
	case p.Complex() || !p.independent() || p.Covariance == "full":
		return errors.New("network: its signals are real, W has independent entries, and covariances are diagonal")
	case p.Algorithm.online() && (!p.Algorithm.synthetic() || p.Record.Prediction):
		return errors.New("network: state evolution of networks is offline")
	}
	return nil
}
