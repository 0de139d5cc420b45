package imager

import (
	"context"
	"fmt"
	"image"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/figure"
	"github.com/calamp/calamp/operator"
)

// Injection is a run whose readings were multiplied by known gains, drawn from U[0.8, 1.2].
type Injection struct {
	Blocks     int
	Truth      []float64 // M, injected
	Found      []float64 // M
	Divided    []float64 // M, Found by what was found without injection
	Status     calamp.Status
	Iterations int
}

// Correlation of what was found with what was injected; the imager's own gains are in it.
func (i *Injection) Correlation() float64 { return stat.Correlation(i.Found, i.Truth, nil) }

// OwnRemoved is the correlation after dividing by the gains found without injection.
func (i *Injection) OwnRemoved() float64 { return stat.Correlation(i.Divided, i.Truth, nil) }

// Outcome is what the experiment gave.
type Outcome struct {
	// Gains (M) found from scenes 1–2 and from 3–4, each of mean one, with their standard deviations.
	Gain, SD [2][]float64
	Status   [2]calamp.Status

	Injections []Injection

	// LeftOut is the root mean square error of readings of scene 3 that were left out, relative to
	// that of their blocks' own variation, with gains ignored, with those of scenes 1–2, and those of 3–4.
	LeftOut [3]float64

	Scene image.Image // scene 3 with gains ignored, and with those of scenes 1–2
}

// Run does the experiment; quick is a small part of it, that shows what it will look like. reported is
// called before each of its runs.
func Run(ctx context.Context, quick bool, reported func(what string, done float64)) (*Outcome, error) {
	d, err := load()
	if err != nil {
		return nil, err
	}
	e := &experiment{data: d, ctx: ctx, reported: reported, runs: 11, out: &Outcome{}}
	parts, sizes := [2][]int{scenes(1, 2), scenes(3, 4)}, []int{60, blocks, 3 * blocks}
	if quick {
		e.runs = 7
		for i, p := range parts {
			parts[i] = some(p, 60)
		}
		sizes = sizes[:1]
	}
	if err := e.agree(parts); err != nil {
		return nil, err
	}
	for _, size := range sizes {
		if err := e.inject(size); err != nil {
			return nil, err
		}
	}
	return e.out, e.picture(quick)
}

type experiment struct {
	*data
	ctx        context.Context
	reported   func(what string, done float64)
	done, runs int
	out        *Outcome
}

func (e *experiment) run(what string, y *mat.Dense, s []float64) (*calamp.Result, error) {
	e.reported(what, float64(e.done)/float64(e.runs))
	e.done++
	return e.solve(e.ctx, y, s)
}

// some are a few of the columns, at random.
func some(columns []int, count int) []int {
	c := slices.Clone(columns)
	rand.New(rand.NewPCG(1, 0)).Shuffle(len(c), func(i, j int) { c[i], c[j] = c[j], c[i] })
	return c[:count]
}

// agree finds the gains from two scenes each.
func (e *experiment) agree(parts [2][]int) error {
	for i, columns := range parts {
		res, err := e.run(fmt.Sprintf("gains from scenes %d and %d", 2*i+1, 2*i+2), e.readings(columns, nil), nil)
		if err != nil {
			return err
		}
		e.out.Status[i] = res.Status
		middle := stat.Mean(res.Gain, nil)
		for mu, g := range res.Gain {
			e.out.Gain[i] = append(e.out.Gain[i], g/middle)
			e.out.SD[i] = append(e.out.SD[i], g/middle*math.Sqrt(res.SVar[mu])/res.S[mu])
		}
	}
	return nil
}

// inject multiplies readings by gains that are known then, and looks for them.
func (e *experiment) inject(size int) error {
	columns := scenes(1, size/blocks)
	if size < blocks {
		columns = some(scenes(1, 4), size)
	}
	m, _ := e.y.Dims()
	in := Injection{Blocks: size, Truth: make([]float64, m)}
	rng := rand.New(rand.NewPCG(uint64(size), 1))
	for mu := range in.Truth {
		in.Truth[mu] = 0.8 + 0.4*rng.Float64()
	}
	own, err := e.run(fmt.Sprintf("%d blocks as they are", size), e.readings(columns, nil), nil)
	if err != nil {
		return err
	}
	res, err := e.run(fmt.Sprintf("%d blocks with gains injected", size), e.readings(columns, in.Truth), nil)
	if err != nil {
		return err
	}
	in.Found, in.Status, in.Iterations = res.Gain, res.Status, res.Iterations
	for mu, g := range res.Gain {
		in.Divided = append(in.Divided, g/own.Gain[mu])
	}
	e.out.Injections = append(e.out.Injections, in)
	return nil
}

// leftOutOf is one of how many readings of a block are left out.
const leftOutOf = 10

// picture looks at scene 3 with gains ignored, those of scenes 1–2, and those of 3–4.
func (e *experiment) picture(quick bool) error {
	columns := scenes(3, 3)
	if quick {
		columns = columns[:60]
	}
	y := e.readings(columns, nil)
	given := mat.DenseCopyOf(y)
	rng := rand.New(rand.NewPCG(3, 0))
	y.Apply(func(_, _ int, v float64) float64 {
		if rng.IntN(leftOutOf) == 0 {
			return math.NaN()
		}
		return v
	}, y)
	m, _ := y.Dims()
	var images []*mat.Dense
	for i, name := range []string{"gains ignored", "gains of scenes 1 and 2", "gains of scenes 3 and 4"} {
		s := make([]float64, m)
		for mu := range s {
			s[mu] = 1
			if i > 0 {
				s[mu] = 1 / e.out.Gain[i-1][mu]
			}
		}
		res, err := e.run("scene 3, "+name, y, s)
		if err != nil {
			return err
		}
		if e.out.LeftOut[i], err = e.leftOut(res.X, given, y, s); err != nil {
			return err
		}
		pixels, err := e.pixels(res.X)
		if err != nil {
			return err
		}
		images = append(images, pixels)
	}
	e.out.Scene = e.mosaic(images[:2])
	return nil
}

// leftOut is the error of the readings that were left out, relative to the readings' own
// variation about what a block's mean brightness alone makes of them.
func (e *experiment) leftOut(x, given, y *mat.Dense, s []float64) (float64, error) {
	m, p := y.Dims()
	predicted, flat := make([]float64, m*p), make([]float64, m*p)
	entries := mat.DenseCopyOf(x.T())
	if err := operator.Mul(predicted, e.w, entries.RawMatrix().Data); err != nil {
		return 0, err
	}
	entries.Apply(func(_, i int, v float64) float64 {
		if i > 0 {
			return 0
		}
		return v
	}, entries)
	if err := operator.Mul(flat, e.w, entries.RawMatrix().Data); err != nil {
		return 0, err
	}
	wrong, all := 0.0, 0.0
	for mu := range m {
		for k := range p {
			if j := mu*p + k; math.IsNaN(y.At(mu, k)) {
				z := s[mu] * given.At(mu, k)
				wrong += (z - predicted[j]) * (z - predicted[j])
				all += (z - flat[j]) * (z - flat[j])
			}
		}
	}
	return math.Sqrt(wrong / all), nil
}

// pixels are the images of coefficients, N×P.
func (e *experiment) pixels(x *mat.Dense) (*mat.Dense, error) {
	n, p := x.Dims()
	out := mat.NewDense(p, n, nil)
	// The basis has N rows, sensors to it: its product is N×P, pixel by pixel.
	z := make([]float64, n*p)
	if err := operator.Mul(z, e.basis, mat.DenseCopyOf(x.T()).RawMatrix().Data); err != nil {
		return nil, err
	}
	for k := range p {
		for i := range n {
			out.Set(k, i, z[i*p+k])
		}
	}
	return out, nil
}

// mosaic puts blocks into their scene, one picture beside the other with the same greys. Pixels of
// a block are numbered column by column, and blocks from the bottom up: so neighbours fit. Around
// the scene there are blocks without light, which are left out.
func (e *experiment) mosaic(images []*mat.Dense) image.Image {
	const gap = 12
	lit := lit(images[len(images)-1])
	if len(lit) == 0 {
		return image.NewGray(image.Rect(0, 0, 1, 1))
	}
	var xs, ys []int
	for _, k := range lit {
		xs, ys = append(xs, e.x[k]), append(ys, e.y0[k])
	}
	left, top := slices.Min(xs), slices.Min(ys)
	width, height := side*(slices.Max(xs)+1-left), side*(slices.Max(ys)+1-top)
	all := slices.Sorted(slices.Values(images[len(images)-1].RawMatrix().Data))
	lo, hi := all[len(all)/200], all[len(all)-1-len(all)/200]
	img := image.NewGray(image.Rect(0, 0, len(images)*(width+gap)-gap, height))
	for i := range img.Pix {
		img.Pix[i] = 255
	}
	for j, picture := range images {
		_, n := picture.Dims()
		for _, k := range lit {
			for i := range n {
				x, y := j*(width+gap)+side*(e.x[k]-left)+i/side, side*(slices.Max(ys)-e.y0[k])+i%side
				img.Pix[y*img.Stride+x] = uint8(255 * min(max((picture.At(k, i)-lo)/(hi-lo), 0), 1))
			}
		}
	}
	return img
}

// lit are the blocks that are part of the scene: those with a tenth of the light of the brightest, at least.
func lit(picture *mat.Dense) (list []int) {
	p, _ := picture.Dims()
	mean, most := make([]float64, p), 0.0
	for k := range mean {
		mean[k] = stat.Mean(picture.RawRowView(k), nil)
		most = max(most, mean[k])
	}
	for k, m := range mean {
		if m > 0.1*most {
			list = append(list, k)
		}
	}
	return list
}

// Agreement is the correlation of the gains from scenes 1–2 and 3–4, and the part of the
// projections whose two gains are within two standard deviations of their difference.
func (o *Outcome) Agreement() (correlation, within float64) {
	for mu, g := range o.Gain[0] {
		if math.Abs(g-o.Gain[1][mu]) <= 2*math.Hypot(o.SD[0][mu], o.SD[1][mu]) {
			within += 1 / float64(len(o.Gain[0]))
		}
	}
	return stat.Correlation(o.Gain[0], o.Gain[1], nil), within
}

// Notes are the figures in words.
func (o *Outcome) Notes() (lines []string) {
	correlation, within := o.Agreement()
	difference := make([]float64, len(o.Gain[0]))
	for mu, g := range o.Gain[0] {
		difference[mu] = g - o.Gain[1][mu]
	}
	lines = append(lines,
		fmt.Sprintf("gains from scenes 1-2 (%v, standard deviation %.2g %%) and from 3-4 (%v, %.2g %%): correlation %.3f, difference %.2g %%; within 2 stated standard deviations (typically %.2g %%): %.0f %% of the projections",
			o.Status[0], 100*stat.StdDev(o.Gain[0], nil), o.Status[1], 100*stat.StdDev(o.Gain[1], nil), correlation,
			100*stat.StdDev(difference, nil), 100*stat.Mean(o.SD[0], nil), 100*within),
		fmt.Sprintf("readings of scene 3 that were left out, error relative to their variation: gains ignored %.3f, gains of scenes 1-2 %.3f, gains of 3-4 %.3f", o.LeftOut[0], o.LeftOut[1], o.LeftOut[2]))
	for i := range o.Injections {
		in := &o.Injections[i]
		lines = append(lines, fmt.Sprintf("gains U[0.8, 1.2] injected, %d blocks (%v after %d iterations): correlation %.3f; divided by the gains found without injection %.3f", in.Blocks, in.Status, in.Iterations, in.Correlation(), in.OwnRemoved()))
	}
	return append(lines, "there is no independent truth of the imager's own gains")
}

// Picture draws the gains against each other, and against those that were injected.
func (o *Outcome) Picture() figure.Panels {
	bars := func(v, sd []float64) (lo, hi []float64) {
		for i, x := range v {
			lo, hi = append(lo, x-2*sd[i]), append(hi, x+2*sd[i])
		}
		return lo, hi
	}
	lo, hi := bars(o.Gain[1], o.SD[1])
	diagonal := func(a, b float64) figure.Series {
		return figure.Series{X: []float64{a, b}, Y: []float64{a, b}, Color: figure.Neutral, Dashed: true}
	}
	own := figure.Figure{
		Title: "the imager's own gains", X: figure.Axis{Label: "from scenes 1 and 2"}, Y: figure.Axis{Label: "from scenes 3 and 4"},
		Series: []figure.Series{diagonal(slices.Min(o.Gain[0]), slices.Max(o.Gain[0])), {X: o.Gain[0], Y: o.Gain[1], Lo: lo, Hi: hi, Style: figure.Points, Color: figure.Blue}},
	}
	row := []figure.Figure{own}
	if n := len(o.Injections); n > 0 {
		in := &o.Injections[n-1]
		row = append(row, figure.Figure{
			Title: fmt.Sprintf("injected, %d blocks", in.Blocks), X: figure.Axis{Label: "injected"}, Y: figure.Axis{Label: "found"},
			Series: []figure.Series{
				diagonal(0.8, 1.2),
				{Name: "found", X: in.Truth, Y: centred(in.Found), Style: figure.Rings, Color: figure.Orange},
				{Name: "divided by the imager's own", X: in.Truth, Y: centred(in.Divided), Style: figure.Points, Color: figure.Blue},
			},
		})
	}
	return figure.Panels{OwnAxes: true, Rows: [][]figure.Figure{row}, Alt: "Gains of a compressive imager: from two pairs of scenes, and injected ones"}
}

// centred are gains of mean one, which is what a free common scale leaves.
func centred(v []float64) []float64 {
	middle, out := stat.Mean(v, nil), make([]float64, len(v))
	for i, x := range v {
		out[i] = x / middle
	}
	return out
}
