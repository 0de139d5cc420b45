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
	lost := missing(p.Y)
	if p.Complex {
		signals, lost = signals/2, lost/2
	}
	size := Size{M: m, N: n, P: signals, Alpha: float64(m) / float64(n), Missing: lost, Complex: p.Complex}
	if p.Sensors != nil {
		size.Sensors = calamp.SensorCount(p.Sensors, m)
	}
	return size
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

// Metrics compares a result with the truth; nil where it is not known.
type Metrics struct {
	XMSE          *float64 `json:"x_mse,omitempty"`
	XMSEScaled    *float64 `json:"x_mse_scaled,omitempty"`
	XOneMinusNCC  *float64 `json:"x_one_minus_ncc,omitempty"`
	SMSE          *float64 `json:"s_mse,omitempty"`
	SMSEScaled    *float64 `json:"s_mse_scaled,omitempty"`
	SOneMinusCNCC *float64 `json:"s_one_minus_cncc,omitempty"`
	Scale         *float64 `json:"scale,omitempty"`
	OMSE          *float64 `json:"o_mse,omitempty"`       // of the offsets
	PhaseShift    *float64 `json:"phase_shift,omitempty"` // radians; of complex signals
}

// MetricsOf is nil without truth.
func MetricsOf(res *calamp.Result, truth calamp.Truth) *Metrics {
	if truth.X == nil && truth.S == nil {
		return nil
	}
	m := res.Score(truth)
	offsets := math.NaN()
	if truth.O != nil && res.Offset != nil {
		offsets = calamp.Score(nil, res.Offset, calamp.Truth{S: truth.O}).SMSE
	}
	var shift *float64
	if res.Phase != nil {
		shift = console.Known(m.PhaseShift)
	}
	return &Metrics{
		console.Known(m.XMSE), console.Known(m.XMSEScaled), console.Known(m.XOneMinusNCC),
		console.Known(m.SMSE), console.Known(m.SMSEScaled), console.Known(m.SOneMinusCNCC), console.Known(m.Scale),
		console.Known(offsets), shift,
	}
}

// Fields is the metrics in words, for the report.
func (m *Metrics) Fields() []report.Field {
	if m == nil {
		return nil
	}
	var all []report.Field
	add := func(name string, v *float64) {
		if v != nil {
			all = append(all, report.Field{Name: name, Value: console.Short(*v)})
		}
	}
	add("MSE of x", m.XMSE)
	add("MSE of x, scale corrected", m.XMSEScaled)
	add("1 − correlation of x", m.XOneMinusNCC)
	add("MSE of s", m.SMSE)
	add("MSE of s, scale corrected", m.SMSEScaled)
	add("1 − correlation of s, centred", m.SOneMinusCNCC)
	add("Scale to the truth", m.Scale)
	add("MSE of offsets", m.OMSE)
	return all
}

// MeansRemoved says what was done to W.
const MeansRemoved = "row or column means of W are taken out while solving, and restored exactly"

// TruthLines adds the errors; nothing where there is no truth.
func TruthLines(s *console.Summary, m *Metrics) {
	if m == nil {
		return
	}
	if m.XMSE != nil && m.XMSEScaled != nil && m.XOneMinusNCC != nil {
		s.Line("x and truth", "MSE %.3g, scale corrected %.3g, 1-ncc %.3g", *m.XMSE, *m.XMSEScaled, *m.XOneMinusNCC)
	}
	if m.SMSE != nil && m.SMSEScaled != nil && m.SOneMinusCNCC != nil {
		s.Line("s and truth", "MSE %.3g, scale corrected %.3g, 1-cncc %.3g", *m.SMSE, *m.SMSEScaled, *m.SOneMinusCNCC)
	}
	if m.OMSE != nil {
		s.Line("offsets and truth", "MSE %.3g", *m.OMSE)
	}
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
	s.Line("outliers", "%s, left out (sensor/signal): %s", console.Plural(len(list), "reading"), strings.Join(words, ", "))
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
