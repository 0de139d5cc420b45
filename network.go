package calamp

import (
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/prior"
)

// columns are signals that are stored one after the other, as the columns of a matrix.
func columns(v []float64, p int) *mat.Dense {
	n := len(v) / p
	m := mat.NewDense(n, p, nil)
	for k := range p {
		m.SetCol(k, v[k*n:(k+1)*n])
	}
	return m
}

// rescaleLatents multiplies the latents of signals of c times the size, where these scale with them.
func (r *Result) rescaleLatents(c float64) {
	n, ok := prior.NetworkOf(r.Prior)
	if ok && r.Latent != nil && n.Scales() {
		scaleBy(c, r.Latent)
		scaleBy(c*c, r.LatentVar)
		r.SlackSD *= c * c
	}
}

// independent is the prior of what has independent entries: latents, where signals come out of a network, and else the signals.
func independent(p prior.Prior) prior.Prior {
	if n, ok := prior.NetworkOf(p); ok {
		return n.Latents()
	}
	return p
}
