package dataset

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/prior"
)

// LoadNetwork reads the layers of a network from the .npz at path, in the order from the latents to the signals:
//
//	W1           N₁×N₂  weights of x = f(W1 h + b1)
//	b1           N₁     biases; left out for none
//	activation1         the name of f, a text: identity, relu, leaky, leaky:SLOPE, tanh-hard, sigmoid or sign
//	W2, b2, activation2, …  the same of the layers that follow
//	slack               one number, the variance of independent noise on the signals' entries; left out for none
//
// The error names the array and what was expected of it.
func LoadNetwork(path string) (list []prior.Layer, slack float64, err error) {
	c, err := open(path)
	if err != nil {
		return nil, 0, err
	}
	defer c.close()
	if c.format != npzFormat {
		return nil, 0, c.fault("", "expected a network: a .npz with W1, b1, activation1, W2, …")
	}
	known := map[string]bool{"slack": true}
	for i := 1; i == 1 || c.find(layerName("W", i)) != nil; i++ {
		l, err := c.layer(i)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, l)
		for _, kind := range []string{"W", "b", "activation"} {
			known[layerName(kind, i)] = true
		}
	}
	for _, e := range c.entries {
		if strings.HasPrefix(e.name, "W") && !known[e.name] {
			return nil, 0, c.fault(e.name, "it is no layer: expected W1 to W%d, and W%d next", len(list), len(list)+1)
		}
	}
	a, err := c.readOptional("slack")
	if err != nil || a == nil {
		return list, 0, err
	}
	if len(a.Data) != 1 {
		return nil, 0, c.fault("slack", "expected one number, found %s", a.dims())
	}
	return list, a.Data[0], nil
}

func layerName(kind string, i int) string { return kind + strconv.Itoa(i) }

// layer reads layer i, from 1.
func (c *container) layer(i int) (l prior.Layer, err error) {
	w, err := c.read(layerName("W", i), false)
	if err != nil {
		return l, err
	}
	if len(w.Shape) != 2 {
		return l, c.fault(w.Name, "expected a matrix, outputs × inputs of the layer, found %s", w.dims())
	}
	if err := checkFinite(w, false); err != nil {
		return l, err
	}
	l.Rows, l.Cols, l.Weights = w.Shape[0], w.Shape[1], w.Data
	b, err := c.readOptional(layerName("b", i))
	if err != nil {
		return l, err
	}
	if b != nil {
		if len(b.Data) != l.Rows {
			return l, c.fault(b.Name, "expected %d values, one for each row of %s, found %s", l.Rows, w.Name, b.dims())
		}
		for j, v := range b.Data {
			if math.IsNaN(v - v) {
				return l, c.fault(b.Name, "value %d is %g, expected a finite number", j, v)
			}
		}
		l.Bias = b.Data
	}
	name := layerName("activation", i)
	if c.find(name) == nil {
		return l, c.fault(name, "%s is missing: the activation after %s, a text: %s", name, w.Name, activationNames)
	}
	text, err := c.text(name)
	if err != nil {
		return l, err
	}
	if l.Activation, err = prior.ActivationNamed(text); err != nil {
		return l, c.fault(name, "%w", err)
	}
	return l, nil
}

const activationNames = "identity, relu, leaky, leaky:SLOPE, tanh-hard, sigmoid or sign"

// SaveNetwork writes a network to the .npz at path, as [LoadNetwork] reads it.
func SaveNetwork(path string, n prior.Network) error {
	var arrays []output
	for i, l := range n.Layers() {
		arrays = append(arrays, matrixOutput(layerName("W", i+1), mat.NewDense(l.Rows, l.Cols, l.Weights)))
		if l.Bias != nil {
			arrays = append(arrays, vectorOutput(layerName("b", i+1), l.Bias))
		}
		arrays = append(arrays, textOutput(layerName("activation", i+1), l.Activation.String()))
	}
	if s := n.Slack(); s > 0 {
		arrays = append(arrays, scalarOutput("slack", s))
	}
	if isMat(path) {
		return fmt.Errorf("%s: a network is a .npz", path)
	}
	return writeArrays(path, arrays)
}
