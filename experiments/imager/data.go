// Package imager is an experiment on real readings: the gains of the projections of a
// compressive imager, found from its readings alone. It has the data and what to measure,
// and does not depend on commands.
package imager

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

const (
	side   = 33  // pixels of a block each way
	blocks = 404 // of a scene
	bands  = 14  // groups of coefficients
)

// data are the readings, with W for coefficients of two-dimensional cosines.
type data struct {
	w      operator.Operator // M×N
	basis  operator.Operator // N×N
	y      *mat.Dense        // M×P, 404 blocks of each of four scenes
	x, y0  []int             // 404, the blocks' places in their scene
	groups []int             // N
}

// ErrNone is what a program without the readings says, one built with the tag small.
var ErrNone = errors.New("this build of calamp has not the imager's readings; those of the releases and of go install do")

func load() (*data, error) {
	if file == nil {
		return nil, ErrNone
	}
	name, err := unpacked()
	if err != nil {
		return nil, err
	}
	defer os.Remove(name)
	arrays := map[string]*dataset.Array{}
	for _, n := range []string{"W", "Y", "block_x", "block_y"} {
		if arrays[n], err = dataset.LoadArray(name, n); err != nil {
			return nil, err
		}
	}
	w, y := arrays["W"], arrays["Y"]
	pixels, err := operator.NewDense(w.Shape[0], w.Shape[1], w.Data)
	if err != nil {
		return nil, err
	}
	d := &data{y: mat.NewDense(y.Shape[0], y.Shape[1], y.Data), x: whole(arrays["block_x"]), y0: whole(arrays["block_y"])}
	if d.basis, err = dataset.OpenBasis(fmt.Sprintf("dct2:%dx%d", side, side), side*side); err != nil {
		return nil, err
	}
	if d.w, err = operator.Compose(pixels, d.basis); err != nil {
		return nil, err
	}
	d.groups, err = operator.Bands(side, side, bands)
	return d, err
}

// unpacked writes the file where it can be read, and returns its name.
func unpacked() (string, error) {
	f, err := os.CreateTemp("", "calamp-imager-*.npz")
	if err != nil {
		return "", err
	}
	_, err = f.Write(file)
	if e := f.Close(); err == nil {
		err = e
	}
	return f.Name(), err
}

func whole(a *dataset.Array) []int {
	v := make([]int, len(a.Data))
	for i, x := range a.Data {
		v[i] = int(x)
	}
	return v
}

// readings are those of some blocks, each sensor's times its factor; nil for none.
func (d *data) readings(columns []int, factor []float64) *mat.Dense {
	m, _ := d.y.Dims()
	y := mat.NewDense(m, len(columns), nil)
	for mu := range m {
		for a, k := range columns {
			v := d.y.At(mu, k)
			if factor != nil {
				v *= factor[mu]
			}
			y.Set(mu, a, v)
		}
	}
	return y
}

// scenes are the blocks of the scenes from … to, counted from 1.
func scenes(from, to int) (columns []int) {
	for k := (from - 1) * blocks; k < to*blocks; k++ {
		columns = append(columns, k)
	}
	return columns
}

// solve finds signals, and gains unless s is known (M). Nothing else is given but the basis, the
// bands, and that coefficients of a band are Gaussian about zero: their variances, the noise, the
// range of the gains and the contrast of every block are learned.
func (d *data) solve(ctx context.Context, y *mat.Dense, s []float64) (*calamp.Result, error) {
	unknown := prior.GaussBernoulli{Density: 1, SignalVar: math.NaN()}
	guess, gain, err := calamp.Guess(d.w, y, unknown, channel.Gain{Prior: channel.GainPrior{Lo: math.NaN()}, NoiseVar: math.NaN()})
	if err != nil {
		return nil, err
	}
	kinds := make([]prior.GaussBernoulli, bands)
	for j := range kinds {
		kinds[j] = guess
	}
	groups, err := prior.ByGroup(d.groups, kinds)
	if err != nil {
		return nil, err
	}
	p := &calamp.Problem{W: d.w, Y: y, Prior: groups.Learning(prior.SignalVar), Channel: channel.Faulty{Working: gain}}
	opt := &calamp.Options{Learn: calamp.Learn{Noise: true, Range: true}}
	if s != nil {
		p.Channel, opt.Learn.Range = channel.AWGN{NoiseVar: gain.NoiseVar, S: s}, false
	}
	return calamp.Solve(ctx, p, opt)
}
