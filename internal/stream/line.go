package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/internal/printable"
	"github.com/calamp/calamp/internal/watch"
	"github.com/calamp/calamp/online"
)

// Line is the JSON line of a sample, of what was refused, or of what was noticed. docs/online-json.md
// has the fields.
type Line struct {
	Seq        *int64      `json:"seq,omitempty"`
	Place      string      `json:"place,omitempty"`
	Missing    int64       `json:"missing,omitempty"`
	Status     string      `json:"status"`
	Iterations int         `json:"iterations"`
	Committed  bool        `json:"committed"`
	Reject     string      `json:"reject,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	Chi2       *float64    `json:"chi2,omitempty"`
	Used       int         `json:"used"`
	Worst      []SensorChi `json:"worst,omitempty"`
	Masked     []int       `json:"masked,omitempty"`
	Flagged    []int       `json:"flagged"`
	ScaleStep  *float64    `json:"scale_step,omitempty"`
	ScaleSD    *float64    `json:"scale_sd,omitempty"`
	Drift      float64     `json:"drift,omitempty"`
	Change     *Change     `json:"change,omitempty"`
	Disturbed  *Disturbed  `json:"disturbed,omitempty"`
	X          any         `json:"x,omitempty"` // N numbers, or pairs of them
	Latent     []float64   `json:"latent,omitempty"`
}

// Disturbed is the common mode of all sensors.
type Disturbed struct {
	Constant float64 `json:"constant,omitempty"` // in the units of the readings
	Factor   float64 `json:"factor,omitempty"`
}

// Change is what was found to have changed.
type Change struct {
	What    []string    `json:"what"` // noise, signals, gains
	Sensors []int       `json:"sensors,omitempty"`
	Noise   *[2]float64 `json:"noise_var,omitempty"`    // before and after
	Power   *[2]float64 `json:"signal_power,omitempty"` // mean squares of the entries
	Samples int         `json:"samples"`
}

func changeOf(c *online.Change) *Change {
	if c == nil {
		return nil
	}
	out := &Change{What: c.What(), Sensors: c.Sensors, Samples: c.Samples}
	if c.Model && c.Before != nil {
		out.Noise = &[2]float64{c.Before.NoiseVar, c.After.NoiseVar}
		before, known := c.Before.Power()
		if after, ok := c.After.Power(); known && ok {
			out.Power = &[2]float64{before, after}
		}
	}
	return out
}

// SensorChi is the standardised residual of one sensor.
type SensorChi struct {
	Sensor int     `json:"sensor"` // row of W, from 0
	Chi    float64 `json:"chi"`    // of order one under the model
}

// The status of a line that tells of no sample: something that is none, and the stream itself.
const (
	refusedStatus = "refused"
	noticeStatus  = "notice"
)

// Line is the line of an item that was taken or refused, or of what was noticed. With signals it has the
// reconstructed signal in it.
func (e *Event) Line(signals bool) *Line {
	if e.Fate == Noticed {
		return &Line{Place: e.Place, Missing: e.Missing, Status: noticeStatus, Reason: e.Err.Error(), Flagged: []int{}}
	}
	if e.Fate == Refused {
		l := &Line{Place: e.Place, Status: refusedStatus, Reject: refusedStatus, Reason: e.Err.Error(), Flagged: []int{}}
		if e.Sequence >= 0 {
			l.Seq = &e.Sequence
		}
		return l
	}
	if e.line == nil { // the error bar of the scale costs a few iterations
		e.line = lineOf(e.Sequence, e.Estimate)
	}
	l := *e.line
	if signals {
		l.X, l.Latent = signalOf(e.Estimate), e.Estimate.Latent
	}
	return &l
}

func lineOf(sequence int64, e *online.Estimate) *Line {
	l := &Line{
		Seq: &sequence, Status: e.Status.String(), Iterations: e.Iterations,
		Committed: e.Committed, Reject: e.Reject.String(), Used: e.Used,
		Masked: e.Masked, Flagged: append([]int{}, e.Flagged...),
		ScaleStep: finite(e.Scale), ScaleSD: finite(e.ScaleSD()),
	}
	l.Drift, l.Change = e.Drift, changeOf(e.Change)
	if d := e.Disturbed; d != nil {
		l.Disturbed = &Disturbed{Constant: d.Constant, Factor: d.Factor}
	}
	if !e.Committed {
		l.Reason = e.Reason()
	}
	if e.Used > 0 {
		l.Chi2 = finite(e.ChiSquare)
	}
	for _, w := range e.Worst {
		if finite(w.Chi) != nil {
			l.Worst = append(l.Worst, SensorChi{w.Sensor, w.Chi})
		}
	}
	return l
}

// signalOf is the signal for JSON: of a complex one the real and imaginary part of each entry.
func signalOf(e *online.Estimate) any {
	n := len(e.X) / e.Columns()
	if n == len(e.X) {
		return e.X
	}
	pairs := make([][2]float64, n)
	for i := range pairs {
		pairs[i] = [2]float64{e.X[i], e.X[n+i]}
	}
	return pairs
}

// sizesOf is the signal to be looked at: of a complex one the sizes of its entries.
func sizesOf(e *online.Estimate) []float64 {
	n := len(e.X) / e.Columns()
	if n == len(e.X) {
		return e.X
	}
	sizes := make([]float64, n)
	for i := range sizes {
		sizes[i] = math.Hypot(e.X[i], e.X[n+i])
	}
	return sizes
}

// finite is v for JSON, which has neither NaN nor infinities: there it is left out.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// Lines prints a line for every sample, for what was refused, and for what was noticed, at once: whoever
// reads them needs them now.
type Lines struct {
	W       io.Writer
	Signals bool
}

// Put prints.
func (s Lines) Put(e *Event) error {
	if e.Fate == Duplicate || e.Fate == Skipped {
		return nil
	}
	b, err := json.Marshal(e.Line(s.Signals))
	if err != nil {
		return fmt.Errorf("line of sample %d: %w", e.Sequence, err)
	}
	if _, err := s.W.Write(append(printable.JSON(b), '\n')); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// Publisher puts the same lines out to a subject of a JetStream. Each has an id
// made of Prefix and the sample's number, by which a repetition is recognised.
type Publisher struct {
	Broker  *intake.Broker
	Subject string
	Prefix  string
	Signals bool
}

// Put publishes, and waits until the line is stored.
func (p Publisher) Put(e *Event) error {
	data, err := json.Marshal(e.Line(p.Signals))
	if err != nil {
		return err
	}
	return p.Broker.Publish(context.Background(), p.Subject, fmt.Sprintf("%s-%d", p.Prefix, e.Sequence), data)
}

// Watch shows the calibration to an HTTP server's visitors.
type Watch struct {
	Server     *watch.Server
	Calibrator *online.Calibrator
}

// Put shows the posterior, and counts.
func (w Watch) Put(e *Event) error {
	switch e.Fate {
	case Refused:
		w.Server.Refused()
	case Duplicate:
		w.Server.Duplicate()
	case Noticed:
		w.Server.Notice(e.Place+": "+e.Err.Error(), e.Missing)
	case Taken:
		w.Server.Show(watch.View{Sequence: e.Sequence, Posterior: w.Calibrator.Posterior()})
		step := 1.0
		if v := finite(e.Estimate.Scale); v != nil {
			step = *v
		}
		if e.Estimate.Change != nil {
			w.Server.Changed(e.Sequence, e.Estimate.Change.What())
		}
		w.Server.Sample(watch.Sample{
			Sequence: e.Sequence, X: sizesOf(e.Estimate), Worst: e.Estimate.Worst, ChiSquare: e.Estimate.ChiSquare,
			Committed: e.Estimate.Committed, Reject: e.Estimate.Reject.String(), Iterations: e.Estimate.Iterations,
			ScaleStep: step, Solving: e.Solving, Saving: e.Saving,
		})
	}
	return nil
}

// Trim keeps a stream of an embedded server from filling the disk: of the messages
// that were taken in, dropped or refused, the last Keep stay, or fewer where these
// would fill more than half of it.
type Trim struct {
	Broker *intake.Broker
	Stream string
	Keep   int
	Every  int64 // messages after which the stream is trimmed again

	trimmed int64 // number of the message after which it was trimmed last
}

// mostTrimEvery is after how many messages a stream is trimmed: often enough that
// it stays small, seldom enough to cost nothing.
const mostTrimEvery = 256

// TrimEvery is after how many messages, of so many readings, a stream that may
// take so many bytes is trimmed: what comes in between must fit.
func TrimEvery(readings int, disk int64) int64 {
	const mostPerReading = 32 // bytes, as text
	return max(1, min(mostTrimEvery, disk/16/int64(mostPerReading*readings)))
}

// Put trims now and then.
func (t *Trim) Put(e *Event) error {
	if e.Stored < t.trimmed+t.Every {
		return nil
	}
	t.trimmed = e.Stored
	return t.Broker.Trim(context.Background(), t.Stream, e.Stored, int64(t.Keep))
}
