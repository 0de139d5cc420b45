package theory

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/prior"
)

// networkSpec is --prior network:FILE.npz, or network:RATIO:ACTIVATION,… from the latents on, of layers of independent weights that have RATIO inputs an output.
type networkSpec struct {
	text   string
	layers []evolution.Layer
}

// String implements [pflag.Value].
func (n *networkSpec) String() string { return n.text }

// Type implements [pflag.Value].
func (n *networkSpec) Type() string { return "network:FILE|network:RATIO:ACTIVATION,…" }

// Set implements [pflag.Value].
func (n *networkSpec) Set(text string) error {
	if text == option.GaussBernoulli {
		*n = networkSpec{text: text}
		return nil
	}
	rest, is := strings.CutPrefix(text, "network:")
	if !is || rest == "" {
		return errors.New("expected network:FILE.npz or network:RATIO:ACTIVATION,…, as in network:0.2:relu")
	}
	n.text = text
	if strings.HasSuffix(rest, ".npz") {
		list, slack, err := dataset.LoadNetwork(rest)
		if err != nil {
			return err
		}
		network, err := prior.NewNetwork(list, prior.Gaussian(0, 1), slack)
		if err != nil {
			return fmt.Errorf("%s: %w", rest, err)
		}
		if slack > 0 {
			return fmt.Errorf("%s: theory is for networks without slack", rest)
		}
		n.layers = evolution.LayersOf(network)
		return nil
	}
	var err error
	n.layers, err = evolution.ParseLayers(rest)
	return err
}

func (t *theory) registerNetwork(flags *pflag.FlagSet) {
	flags.Var(&t.network, "prior", "signals come out of a network, whose latents the model flags describe: of a file, as for calamp solve, or layers of independent\nweights with RATIO inputs for each output, from the latents on; network:0.2:relu")
}
