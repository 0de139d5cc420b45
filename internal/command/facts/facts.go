// Package facts is what several commands say of a problem, a result or a state:
// sizes, errors against a truth, broken and flagged sensors. It computes nothing
// that the library does not.
package facts

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/report"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/operator"
)

// Size is the shape of a problem.
type Size struct {
	M       int     `json:"m"`
	N       int     `json:"n"`
	P       int     `json:"p"`
	Alpha   float64 `json:"alpha"`
	Missing int     `json:"missing_readings"`
	Sensors int     `json:"sensors,omitempty"` // where they have several rows of M
	Complex bool    `json:"complex,omitempty"`
}

// SizeOf is the size of a problem.
func SizeOf(p *dataset.Problem) Size {
	m, n := p.W.Dims()
	_, signals := p.Y.Dims()
	parts := 1 // of a reading, in columns beside each other
	if p.Complex {
		parts = 2
	}
	size := Size{M: m, N: n, P: signals / parts, Alpha: float64(m) / float64(n), Missing: missing(p.Y, parts), Complex: p.Complex}
	if p.Sensors != nil {
		size.Sensors = calamp.SensorCount(p.Sensors, m)
	}
	return size
}

// missing counts the readings of which a part is NaN.
func missing(y *mat.Dense, parts int) (total int) {
	for reading := range slices.Chunk(y.RawMatrix().Data, parts) {
		if slices.ContainsFunc(reading, math.IsNaN) {
			total++
		}
	}
	return total
}

func (s Size) String() string {
	signal := "signal"
	if s.Complex {
		signal = "complex signal"
	}
	sensors := console.Plural(s.M, "sensor")
	if s.Sensors > 0 {
		sensors = fmt.Sprintf("%s with %s", console.Plural(s.Sensors, "sensor"), console.Plural(s.M, "row"))
	}
	text := fmt.Sprintf("%s with %s, %s (α = %.4g)",
		console.Plural(s.P, signal), console.Plural(s.N, "entry"), sensors, s.Alpha)
	if s.Missing > 0 {
		text += fmt.Sprintf(", %d of %d readings missing", s.Missing, s.M*s.P)
	}
	return text
}

// MatrixName says what W is, in words: how a table was stored and in which arithmetic it
// was used, or what else it is.
func MatrixName(w operator.Operator, storage, arithmetic string) string {
	_, table := w.(operator.Matrix)
	switch {
	case !table:
		return operator.Describe(w)
	case storage == "f32+f64":
		return "float64, dense; float32, and in float32 arithmetic, where that is enough"
	case arithmetic == "f32+f64":
		return StorageName(storage) + "; in float32 arithmetic where that is enough"
	}
	return StorageName(storage)
}

// StorageOf is how the entries of W are stored: empty where it has none.
func StorageOf(w operator.Operator) string {
	if matrices, _ := operator.Separate(w); matrices != nil {
		return StorageOf(matrices[0])
	}
	if table, ok := w.(operator.Matrix); ok {
		return table.Storage()
	}
	return ""
}

// StorageName says how a table is stored, in words.
func StorageName(storage string) string {
	return strings.Replace(storage, "f", "float", 1) + ", dense"
}

// Metrics compares a result with the truth; empty where it is not known.
type Metrics []metric

// metric is a figure by its name in JSON, and in the report where it has one.
type metric struct {
	name, label string
	value       float64
}

// MetricsOf is nil without truth. What cannot be compared is left out.
func MetricsOf(res *calamp.Result, truth calamp.Truth) Metrics {
	if truth.X == nil && truth.S == nil {
		return nil
	}
	m := res.Score(truth)
	offsets := math.NaN()
	if truth.O != nil && res.Offset != nil {
		offsets = calamp.Score(nil, res.Offset, calamp.Truth{S: truth.O}).SMSE
	}
	if res.Phase == nil {
		m.PhaseShift = math.NaN()
	}
	return slices.DeleteFunc(Metrics{
		{"x_mse", "MSE of x", m.XMSE},
		{"x_mse_scaled", "MSE of x, scale corrected", m.XMSEScaled},
		{"x_one_minus_ncc", "1 − correlation of x", m.XOneMinusNCC},
		{"s_mse", "MSE of s", m.SMSE},
		{"s_mse_scaled", "MSE of s, scale corrected", m.SMSEScaled},
		{"s_one_minus_cncc", "1 − correlation of s, centred", m.SOneMinusCNCC},
		{"scale", "Scale to the truth", m.Scale},
		{"o_mse", "MSE of offsets", offsets},
		{"phase_shift", "", m.PhaseShift}, // radians; of complex signals
	}, func(m metric) bool { return console.Known(m.value) == nil })
}

// Of is a figure by its name in JSON; NaN where there is none.
func (all Metrics) Of(name string) float64 {
	if i := slices.IndexFunc(all, func(m metric) bool { return m.name == name }); i >= 0 {
		return all[i].value
	}
	return math.NaN()
}

// MarshalJSON implements [json.Marshaler].
func (all Metrics) MarshalJSON() ([]byte, error) {
	var o console.Object
	for _, m := range all {
		o = append(o, m.name, m.value)
	}
	return o.MarshalJSON()
}

// Fields is the metrics in words, for the report.
func (all Metrics) Fields() (fields []report.Field) {
	for _, m := range all {
		if m.label != "" {
			fields = append(fields, report.Field{Name: m.label, Value: console.Short(m.value)})
		}
	}
	return fields
}

// MeansRemoved says what was done to W.
const MeansRemoved = "row or column means of W are taken out while solving, and restored exactly"

// TruthLines adds the errors; nothing where there is no truth.
func TruthLines(s *console.Summary, m Metrics) {
	line := func(name, format string, values ...any) {
		if !slices.ContainsFunc(values, func(v any) bool { return math.IsNaN(v.(float64)) }) {
			s.Line(name, format, values...)
		}
	}
	line("x and truth", "MSE %.3g, scale corrected %.3g, 1-ncc %.3g", m.Of("x_mse"), m.Of("x_mse_scaled"), m.Of("x_one_minus_ncc"))
	line("s and truth", "MSE %.3g, scale corrected %.3g, 1-cncc %.3g", m.Of("s_mse"), m.Of("s_mse_scaled"), m.Of("s_one_minus_cncc"))
	line("offsets and truth", "MSE %.3g", m.Of("o_mse"))
}

// TypicalGainSD is the median relative standard deviation of s, which is also
// that of the gain 1/s.
func TypicalGainSD(res *calamp.Result) float64 {
	relative := make([]float64, len(res.S))
	for mu, s := range res.S {
		relative[mu] = math.Sqrt(res.SVar[mu]) / s
	}
	slices.Sort(relative)
	return relative[len(relative)/2]
}

// Converged counts the signals that have.
func Converged(res *calamp.Result) int {
	total := 0
	for _, done := range res.Converged {
		if done {
			total++
		}
	}
	return total / res.ColumnsPerSignal()
}

// IsBroken tells whether a result that was read has a sensor as more likely broken than not.
func IsBroken(res *calamp.Result, sensor int) bool {
	return res.Broken != nil && res.Broken[sensor] > 0.5
}

// OutlierLines says which readings were left out.
func OutlierLines(s *console.Summary, res *calamp.Result) {
	const shown = 5
	list := res.OutlyingReadings()
	if len(list) == 0 {
		return
	}
	var words []string
	for _, at := range list[:min(shown, len(list))] {
		words = append(words, fmt.Sprintf("%d/%d", at[0], at[1]))
	}
	if more := len(list) - shown; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	of := "sensor"
	if res.Sensors != nil { // which have several rows
		of = "row"
	}
	s.Line("outliers", "%s, left out (%s/signal): %s", console.Plural(len(list), "reading"), of, strings.Join(words, ", "))
}

// BrokenLines says which sensors were left out.
func BrokenLines(s *console.Summary, res *calamp.Result) {
	const shown = 8
	if len(res.BrokenSensors) == 0 {
		return
	}
	var words []string
	for _, b := range res.BrokenSensors[:min(shown, len(res.BrokenSensors))] {
		words = append(words, strconv.Itoa(b.Sensor))
	}
	text := strings.Join(words, ", ")
	if more := len(res.BrokenSensors) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	s.Line("broken", "%s, left out: %s", console.Plural(len(res.BrokenSensors), "sensor"), text)
}

// StateFault gives the errors of state files their exit codes.
func StateFault(err error) error {
	if err == nil {
		return nil
	}
	e := &console.Exit{Code: console.Failed, Err: err}
	record, _ := errors.AsType[*online.RecordFault](err)
	switch {
	case errors.Is(err, online.ErrStateMismatch):
		e.Code = console.WrongUsage
		e.Hint = "give the model and matrix that the state was made with (calamp inspect shows the model), or begin a new state"
	case errors.Is(err, online.ErrStateDamaged):
		e.Code = console.WrongUsage
		e.Hint = "the file was left as it is; go on with a copy of it, or begin a new state under another name"
		if record != nil && record.Hint() != "" {
			e.Hint = record.Hint()
		}
	case errors.Is(err, online.ErrStateVersion), errors.Is(err, online.ErrNoState), errors.Is(err, online.ErrNoCheckpoint), errors.Is(err, online.ErrCheckpointLimit):
		e.Code = console.WrongUsage
	case errors.Is(err, online.ErrStateInUse):
		e.Hint = "one process at a time can have a state; what a running one has learned is at its --http address"
	}
	return e
}

// FlaggedSensor is a sensor that is not used, and why.
type FlaggedSensor struct {
	Sensor int    `json:"sensor"`
	Reason string `json:"reason"`
}
