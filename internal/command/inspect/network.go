package inspect

import (
	"fmt"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/prior"
)

const networkKind = "network"

// networkFacts is what a network gives, of latents of mean 0 and variance 1.
type networkFacts struct {
	Latents int     `json:"latents"`
	Entries int     `json:"entries"`
	Layers  string  `json:"layers"`  // 20 → relu 400 → sigmoid 784
	Mean    float64 `json:"x_mean"`  // of the signals' entries
	Power   float64 `json:"x_power"` // their mean square
	Scales  bool    `json:"scales"`  // signals scale with the latents
}

func inspectNetwork(path string) (*networkFacts, error) {
	layers, slack, err := dataset.LoadNetwork(path)
	if err != nil {
		return nil, err
	}
	n, err := prior.NewNetwork(layers, prior.Gaussian(0, 1), slack)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &networkFacts{n.LatentEntries(), n.Entries(), option.ShapeWords(layers), n.Mean(), n.Square(), n.Scales()}, nil
}

func (f *networkFacts) describe(text *console.Summary) {
	if f == nil {
		return
	}
	text.Line("network", "%s: signals of %s from %s", f.Layers, console.Plural(f.Entries, "entry"), console.Plural(f.Latents, "latent"))
	text.Line("x", "mean %.3g and mean square %.3g, of latents N(0, 1)", f.Mean, f.Power)
	if f.Scales {
		text.Line("scale", "that of the latents: the common scale of signals and gains depends on what is given of these")
	} else {
		text.Line("scale", "the network has one, with its biases and activations, and holds the common scale of signals and gains")
	}
}
