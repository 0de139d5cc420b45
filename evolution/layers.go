package evolution

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/calamp/calamp/prior"
)

// ParseLayers reads layers of independent weights, RATIO:ACTIVATION from the latents on and with commas between them, RATIO being the number of inputs for each
// output: 0.2:relu.
func ParseLayers(text string) (list []Layer, err error) {
	for word := range strings.SplitSeq(text, ",") {
		ratio, name, _ := strings.Cut(strings.TrimSpace(word), ":")
		inputs, err := strconv.ParseFloat(ratio, 64)
		if err != nil || !(inputs > 0) || inputs > 1e6 {
			return nil, fmt.Errorf("%q is no layer: expected RATIO:ACTIVATION, with the number of inputs for each output, as in 0.2:relu", word)
		}
		f, err := prior.ActivationNamed(name)
		if err != nil {
			return nil, err
		}
		list = append(list, Layer{Inputs: inputs, WeightVar: 1, Activation: f})
	}
	return list, nil
}
