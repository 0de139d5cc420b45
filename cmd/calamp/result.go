package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/dataset"
	"github.com/calamp/calamp/report"
)

// size is the shape of a problem.
type size struct {
	M       int     `json:"m"`
	N       int     `json:"n"`
	P       int     `json:"p"`
	Alpha   float64 `json:"alpha"`
	Missing int     `json:"missing_readings"`
}

func sizeOf(p *dataset.Problem) size {
	m, n := p.W.Dims()
	_, signals := p.Y.Dims()
	return size{M: m, N: n, P: signals, Alpha: float64(m) / float64(n), Missing: missing(p.Y)}
}

func missing(y *mat.Dense) int {
	total := 0
	for _, v := range y.RawMatrix().Data {
		if math.IsNaN(v) {
			total++
		}
	}
	return total
}

func (s size) String() string {
	text := fmt.Sprintf("%s with %s, %s (α = %.4g)",
		plural(s.P, "signal"), plural(s.N, "entry"), plural(s.M, "sensor"), s.Alpha)
	if s.Missing > 0 {
		text += fmt.Sprintf(", %d of %d readings missing", s.Missing, s.M*s.P)
	}
	return text
}

// plural is "1 signal", "2 signals", "2 entries".
func plural(n int, noun string) string {
	if n != 1 {
		noun = strings.TrimSuffix(noun+"s", "ys")
		if !strings.HasSuffix(noun, "s") {
			noun += "ies"
		}
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func storageName(storage string) string {
	if storage == "f32+f64" {
		return "float64, dense; float32 at first"
	}
	return strings.Replace(storage, "f", "float", 1) + ", dense"
}

// metrics compares a result with the truth; nil where it is not known.
type metrics struct {
	XMSE          *float64 `json:"x_mse,omitempty"`
	XMSEScaled    *float64 `json:"x_mse_scaled,omitempty"`
	XOneMinusNCC  *float64 `json:"x_one_minus_ncc,omitempty"`
	SMSE          *float64 `json:"s_mse,omitempty"`
	SMSEScaled    *float64 `json:"s_mse_scaled,omitempty"`
	SOneMinusCNCC *float64 `json:"s_one_minus_cncc,omitempty"`
	Scale         *float64 `json:"scale,omitempty"`
}

// metricsOf is nil without truth.
func metricsOf(res *calamp.Result, truth calamp.Truth) *metrics {
	if truth.X == nil && truth.S == nil {
		return nil
	}
	m := calamp.Score(res.X, res.S, truth)
	return &metrics{
		known(m.XMSE), known(m.XMSEScaled), known(m.XOneMinusNCC),
		known(m.SMSE), known(m.SMSEScaled), known(m.SOneMinusCNCC), known(m.Scale),
	}
}

// fields is the metrics in words, for the report.
func (m *metrics) fields() []report.Field {
	if m == nil {
		return nil
	}
	var all []report.Field
	add := func(name string, v *float64) {
		if v != nil {
			all = append(all, report.Field{Name: name, Value: short(*v)})
		}
	}
	add("MSE of x", m.XMSE)
	add("MSE of x, scale corrected", m.XMSEScaled)
	add("1 − correlation of x", m.XOneMinusNCC)
	add("MSE of s", m.SMSE)
	add("MSE of s, scale corrected", m.SMSEScaled)
	add("1 − correlation of s, centred", m.SOneMinusCNCC)
	add("Scale to the truth", m.Scale)
	return all
}

// resultJSON is what solve prints with --json.
type resultJSON struct {
	Status           calamp.Status    `json:"status"`
	Reason           string           `json:"reason"`
	Iterations       int              `json:"iterations"`
	WallS            float64          `json:"wall_s"`
	size                              // m, n, p, alpha, missing_readings
	signalPrior                       // prior, components
	Model            model            `json:"model"`
	Options          optionsJSON      `json:"options"`
	faultsJSON                        // faulty, fault_rate, broken_sensors, saturation
	MeansRemoved     bool             `json:"means_removed"`
	ScaleSD          *float64         `json:"scale_sd,omitempty"`
	LogEvidence      *float64         `json:"log_evidence,omitempty"`
	Storage          string           `json:"w_storage"`
	Warnings         []calamp.Warning `json:"warnings"`
	ConvergedSignals int              `json:"converged_signals"`
	Metrics          *metrics         `json:"metrics,omitempty"`
	Compare          comparisons      `json:"compare,omitempty"`
	Written          []string         `json:"written"`
}

// print tells what was found, to standard output unless a file goes there.
func (s *solve) print(data *dataset.Problem, res *calamp.Result, others comparisons, written []string) error {
	if s.json {
		return s.printJSON(resultJSON{
			Status: res.Status, Reason: res.Reason, Iterations: res.Iterations, WallS: res.Wall.Seconds(),
			size: sizeOf(data), signalPrior: s.prior, Model: s.model, Options: s.solver.json(), faultsJSON: s.faults.json(res),
			MeansRemoved: res.MeansRemoved,
			ScaleSD:      known(res.ScaleSD), LogEvidence: known(res.LogEvidence), Storage: res.Storage,
			Warnings: orEmpty(res.Warnings), ConvergedSignals: converged(res),
			Metrics: metricsOf(res, data.Truth), Compare: others, Written: orEmpty(written),
		})
	}
	var text summary
	text.line("problem", "%v", sizeOf(data))
	text.line("status", "%v: %s; %v", res.Status, res.Reason, res.Wall.Round(time.Millisecond))
	if learned := slices.Concat(s.prior.learned(), s.model.Learned); len(learned) > 0 {
		text.line("model", "%s, %s; %s learned", s.prior.words(&s.model), s.model.channelWords(), strings.Join(learned, ", "))
	}
	if res.MeansRemoved {
		text.line("matrix", "%s", meansRemoved)
	}
	text.calibration(res, s.model)
	text.broken(res)
	text.truth(metricsOf(res, data.Truth))
	others.table(&text)
	if len(written) > 0 {
		text.line("written", "%s", strings.Join(written, ", "))
	} else if s.out == "" {
		text.line("written", "no result: give -o R.npz to keep it")
	}
	out := s.stdout
	if s.outputs().takesStdout() {
		if s.quiet {
			return nil
		}
		out = s.stderr
	}
	_, err := fmt.Fprint(out, text.String())
	return err
}

const meansRemoved = "row or column means of W are taken out while solving, and restored exactly"

func (s *summary) calibration(res *calamp.Result, m model) {
	mean, variance := m.gainPrior().Moments()
	s.line("gains", "typical uncertainty ±%s, before the readings ±%s",
		percent(typicalGainSD(res)), percent(math.Sqrt(variance)/mean))
	s.line("scale", "common to signals and gains, uncertainty ±%s", percent(res.ScaleSD))
}

func (s *summary) truth(m *metrics) {
	if m == nil {
		return
	}
	if m.XMSE != nil {
		s.line("x and truth", "MSE %.3g, scale corrected %.3g, 1-ncc %.3g", *m.XMSE, *m.XMSEScaled, *m.XOneMinusNCC)
	}
	if m.SMSE != nil {
		s.line("s and truth", "MSE %.3g, scale corrected %.3g, 1-cncc %.3g", *m.SMSE, *m.SMSEScaled, *m.SOneMinusCNCC)
	}
}

// typicalGainSD is the median relative standard deviation of s, which is also
// that of the gain 1/s.
func typicalGainSD(res *calamp.Result) float64 {
	relative := make([]float64, len(res.S))
	for mu, s := range res.S {
		relative[mu] = math.Sqrt(res.SVar[mu]) / s
	}
	slices.Sort(relative)
	return relative[len(relative)/2]
}

func converged(res *calamp.Result) int {
	total := 0
	for _, done := range res.Converged {
		if done {
			total++
		}
	}
	return total
}

// orEmpty makes a list that JSON shows as [].
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
