package theory

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/figure"
)

// overlay is what AMP did, to be drawn over its prediction. Times are
// iterations offline and samples online.
type overlay struct {
	name string // in the legend
	x, s curve
}

// curve is a mean square error over time; err is empty, or holds error bars.
type curve struct{ at, mse, err []float64 }

func (c *curve) add(at, mse, err float64) {
	c.at, c.mse, c.err = append(c.at, at), append(c.mse, mse), append(c.err, err)
}

// loadOverlay reads --overlay; nil without it.
func (s *se) loadOverlay() (*overlay, error) {
	switch {
	case s.overlay == "" && s.overTruth != "":
		return nil, console.Usage("--truth is for a result: add --overlay R.npz")
	case s.overlay == "":
		return nil, nil
	case s.plot == "":
		return nil, console.Usage("--overlay draws over the plot: add --plot F.svg")
	}
	switch filepath.Ext(s.overlay) {
	case ".csv":
		if s.overTruth != "" {
			return nil, console.Usage("--truth is for an overlaid .npz; %s holds errors already", s.overlay)
		}
		return s.overlayTable()
	case ".npz", ".mat":
		return s.overlayResult()
	}
	return nil, console.Usage("--overlay %s: expected a .csv (calamp solve --trace) or a .npz (calamp solve -o)", s.overlay)
}

// overlayTable reads errors from a table, or posterior variances from a trace.
func (s *se) overlayTable() (*overlay, error) {
	f, err := os.Open(s.overlay)
	if err != nil {
		return nil, console.Usage("--overlay %s: %w", s.overlay, console.Cause(err))
	}
	defer f.Close()
	o, err := s.parseTable(f)
	if err != nil {
		return nil, console.Usage("--overlay %s: %w", s.overlay, err)
	}
	return o, nil
}

func (s *se) parseTable(r io.Reader) (*overlay, error) {
	lines, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) < 2 {
		return nil, errors.New("no line of numbers")
	}
	header := lines[0]
	column := func(name string) int { return slices.Index(header, name) }
	at, other := "iteration", "sample"
	if s.online {
		at, other = other, at
	}
	switch {
	case column(at) < 0:
		return nil, fmt.Errorf("no column %s; found %s", at, strings.Join(header, ", "))
	case !s.online && column(other) >= 0:
		return nil, errors.New("this is a table of samples: it goes over calamp se online")
	}
	o := &overlay{name: "cal-AMP"}
	x, sc := column("mse_x"), column("mse_s")
	if x < 0 {
		x, sc = column("mean_x_var"), column("mean_s_var")
		o.name = "cal-AMP's own estimate"
	}
	if x < 0 {
		return nil, fmt.Errorf("no column mse_x or mean_x_var; found %s", strings.Join(header, ", "))
	}
	xErr, sErr := column("mse_x_err"), column("mse_s_err")
	for i, line := range lines[1:] {
		if s.online && i+2 < len(lines) && line[column(at)] == lines[i+2][column(at)] {
			continue // the last iteration of a sample counts
		}
		cell := func(k int) (float64, error) {
			if k < 0 || line[k] == "" {
				return math.NaN(), nil
			}
			v, err := strconv.ParseFloat(line[k], 64)
			if err != nil {
				return 0, fmt.Errorf("line %d, column %s: expected a number, found %q", i+2, header[k], line[k])
			}
			return v, nil
		}
		var values [5]float64
		for j, k := range []int{column(at), x, xErr, sc, sErr} {
			if values[j], err = cell(k); err != nil {
				return nil, err
			}
		}
		o.x.add(values[0], values[1], values[2])
		o.s.add(values[0], values[3], values[4])
	}
	return o, nil
}

// overlayResult reads the end of a run: its errors where the truth is given,
// and else what it thinks they are.
func (s *se) overlayResult() (*overlay, error) {
	res, err := dataset.LoadResult(s.overlay)
	if err != nil {
		return nil, err
	}
	if err := option.RefuseComplex(res.Phase != nil, "an overlay"); err != nil {
		return nil, err
	}
	_, p := res.X.Dims()
	if !s.online && p != s.p {
		s.Warn("%s holds %s, and --p is %d", s.overlay, console.Plural(p, "signal"), s.p)
	}
	o := &overlay{name: "cal-AMP's own estimate"}
	mseX := func(k int) float64 { return floats.Sum(mat.Col(nil, k, res.XVar)) / float64(res.XVar.RawMatrix().Rows) }
	mseS := floats.Sum(res.SVar) / float64(len(res.SVar))
	if s.overTruth != "" {
		truth, err := s.loadTruth(res)
		if err != nil {
			return nil, err
		}
		o.name = "cal-AMP"
		mseX = func(k int) float64 { return scaledError(res.X.ColView(k), truth.X.ColView(k)) }
		if mseS = math.NaN(); truth.S != nil {
			mseS = calamp.Score(nil, res.S, calamp.Truth{S: truth.S}).SMSEScaled
		}
	}
	last, mean := float64(s.iterations), 0.0
	for k := range p {
		if s.online {
			last = float64(k + 1)
			o.x.add(last, mseX(k), math.NaN())
		}
		mean += mseX(k) / float64(p)
	}
	if !s.online {
		o.x.add(last, mean, math.NaN())
	}
	o.s.add(last, mseS, math.NaN())
	return o, nil
}

func scaledError(x, x0 mat.Vector) float64 {
	return calamp.Score(mat.DenseCopyOf(x), nil, calamp.Truth{X: mat.DenseCopyOf(x0)}).XMSEScaled
}

func (s *se) loadTruth(res *calamp.Result) (calamp.Truth, error) {
	problem, err := dataset.Load(s.overTruth)
	if err != nil {
		return calamp.Truth{}, err
	}
	if err := option.RefuseComplex(problem.Complex, "--truth"); err != nil {
		return calamp.Truth{}, err
	}
	truth := problem.Truth
	if truth.X == nil {
		return truth, console.Usage("--truth %s has no array X0", s.overTruth)
	}
	n, p := res.X.Dims()
	if rows, columns := truth.X.Dims(); rows != n || columns < p {
		return truth, console.Usage("--truth %s: X0 is %d×%d, but x in %s is %d×%d", s.overTruth, rows, columns, s.overlay, n, p)
	}
	if truth.S != nil && len(truth.S) != len(res.S) {
		return truth, console.Usage("--truth %s: s0 has %d entries, but s in %s has %d", s.overTruth, len(truth.S), s.overlay, len(res.S))
	}
	return truth, nil
}

// figure draws the errors over iterations, online over samples.
func (s *se) figure(res *prediction, drawn *overlay) figure.Figure {
	f := figure.Figure{
		X: figure.Axis{Label: "iteration", Whole: true}, Y: figure.Axis{Label: "mean square error", Log: true},
		Alt: fmt.Sprintf("Mean square errors of signals and calibration that state evolution predicts for P = %d, α = %g, density %g, noise variance %g", s.p, s.alpha, s.truth.Density, s.truth.NoiseVar),
	}
	if s.online {
		f.X.Label = "sample"
	}
	var x, scaled, gains curve
	for k, p := range res.samples {
		for i, o := range p.steps {
			at := float64(i + 1)
			if s.online {
				if at = float64(k + 1); i < len(p.steps)-1 {
					continue
				}
			}
			x.add(at, o.MSEX.Value, math.NaN())
			gains.add(at, o.MSES.Value, math.NaN())
			if s.mismatched {
				scaled.add(at, s.scaled(o).Value, math.NaN())
			}
		}
	}
	f.Series = append(f.Series, figure.Series{Name: "signals x", X: x.at, Y: x.mse, Color: figure.Blue})
	if s.mismatched {
		f.Series = append(f.Series, figure.Series{Name: "x after the best factor", X: scaled.at, Y: scaled.mse, Color: figure.Neutral, Dashed: true})
	}
	if !s.knownGains {
		f.Series = append(f.Series, figure.Series{Name: "calibration s", X: gains.at, Y: gains.mse, Color: figure.Orange})
	}
	if drawn != nil {
		f.Series = append(f.Series, drawn.x.rings(drawn.name, figure.Blue), drawn.s.rings("", figure.Orange))
	}
	return f
}

func (c *curve) rings(name string, color figure.Color) figure.Series {
	s := figure.Series{Name: name, X: c.at, Y: c.mse, Style: figure.Rings, Color: color}
	for i, v := range c.mse {
		s.Lo, s.Hi = append(s.Lo, v-c.err[i]), append(s.Hi, v+c.err[i])
	}
	return s
}
