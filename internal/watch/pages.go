package watch

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/page"
)

// unhealthyAfter is how many samples in a row must be rejected, or dropped as
// taken in before, for the stream to be unhealthy; or most of the last latestSamples.
const (
	unhealthyAfter = 10
	latestSamples  = 100
)

// health follows the last samples.
type health struct {
	sync.Mutex
	started    time.Time
	lastSample time.Time
	rejected   int // in a row
	seen       uint64
	latest     [latestSamples]bool // which of the last samples taught nothing, sample k at k mod their number
	duplicates int                 // in a row
	reason     string
	changed    int64    // number of the sample with which the latest change was found
	change     []string // what it was
	missing    int64    // messages that never came
	notice     string   // the latest word about the stream itself
}

func (h *health) sample(ok bool, reason string) {
	h.Lock()
	defer h.Unlock()
	h.lastSample = time.Now()
	h.duplicates = 0
	h.latest[h.seen%latestSamples] = !ok
	h.seen++
	if ok {
		h.rejected, h.reason = 0, ""
		return
	}
	h.rejected++
	h.reason = reason
}

// ofLatest is how many of the last samples taught nothing.
func (h *health) ofLatest() (count int) {
	for _, bad := range h.latest {
		if bad {
			count++
		}
	}
	return count
}

// duplicate notes a sample that was dropped. It is no news of the rejected ones.
func (h *health) duplicate() {
	h.Lock()
	defer h.Unlock()
	h.duplicates++
}

func (h *health) say(text string, missing int64) {
	h.Lock()
	defer h.Unlock()
	h.missing += missing
	h.notice = text
}

// Changed tells what was found to have changed with a sample.
func (s *Server) Changed(sequence int64, what []string) {
	if s == nil {
		return
	}
	s.health.Lock()
	defer s.health.Unlock()
	s.health.changed, s.health.change = sequence, what
}

// healthJSON is what /healthz says.
type healthJSON struct {
	Status        string   `json:"status"` // ok, or unhealthy
	Rejected      int      `json:"rejected_in_a_row"`
	OfLast100     int      `json:"rejected_of_last_100"`
	Duplicates    int      `json:"duplicates_in_a_row"`
	Reason        string   `json:"reason,omitempty"`
	LastSeq       *int64   `json:"last_seq,omitempty"`
	Learned       uint64   `json:"learned_samples"`
	Flagged       int      `json:"sensors_flagged"`
	Drift         float64  `json:"drift,omitempty"`       // relative step of the gains a sample, while they drift
	Changed       []string `json:"changed,omitempty"`     // noise, signals, gains: the latest change
	ChangedSeq    *int64   `json:"changed_seq,omitempty"` // the sample with which it was found
	Missing       int64    `json:"missing"`               // messages of a stream that never came
	Notice        string   `json:"notice,omitempty"`      // the latest word about the stream itself
	UptimeS       float64  `json:"uptime_s"`
	SinceSampleS  *float64 `json:"since_last_sample_s,omitempty"`
	UnhealthyFrom int      `json:"unhealthy_from"`
}

func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request) {
	h := &s.health
	h.Lock()
	j := healthJSON{
		Status: "ok", Rejected: h.rejected, OfLast100: h.ofLatest(), Duplicates: h.duplicates, Reason: h.reason,
		Missing: h.missing, Notice: h.notice,
		UptimeS: time.Since(h.started).Seconds(), UnhealthyFrom: unhealthyAfter,
	}
	if !h.lastSample.IsZero() {
		since := time.Since(h.lastSample).Seconds()
		j.SinceSampleS = &since
	}
	if h.change != nil {
		seq := h.changed
		j.Changed, j.ChangedSeq = h.change, &seq
	}
	h.Unlock()
	if v := s.view.Load(); v != nil {
		j.Learned, j.Flagged = v.Posterior.Samples, len(v.Posterior.Flagged)
		j.Drift = v.Posterior.Drift
		if v.Sequence >= 0 {
			j.LastSeq = &v.Sequence
		}
	}
	code := http.StatusOK
	if j.Duplicates >= unhealthyAfter {
		j.Reason = "all samples were taken in before: their numbers are not above the last one"
	}
	most := 2*j.OfLast100 > latestSamples
	if most && j.Reason == "" {
		j.Reason = fmt.Sprintf("%d of the last %d samples taught nothing", j.OfLast100, latestSamples)
	}
	if most || max(j.Rejected, j.Duplicates) >= unhealthyAfter {
		j.Status, code = "unhealthy", http.StatusServiceUnavailable
	}
	page.JSON(w, code, j)
}

// posteriorJSON is what /posterior says. Arrays have one entry a sensor.
type posteriorJSON struct {
	LastSeq *int64        `json:"last_seq,omitempty"`
	Learned uint64        `json:"learned_samples"`
	ScaleSD float64       `json:"scale_sd"`
	S       []float64     `json:"s"`
	SSD     []float64     `json:"s_sd"`
	Gain    []float64     `json:"gain"`
	Phase   []float64     `json:"phase,omitempty"`    // of s in radians, where it is complex: then s is its size, and s_sd of both parts together
	PhaseSD *float64      `json:"phase_sd,omitempty"` // of the common phase; none where it is a convention
	Count   []float64     `json:"count"`
	Theta   [][]float64   `json:"theta,omitempty"` // of parameters that every sensor has of its own, J each
	ThetaSD [][]float64   `json:"theta_sd,omitempty"`
	Flagged []flaggedJSON `json:"flagged"`
}

type flaggedJSON struct {
	Sensor int    `json:"sensor"`
	Reason string `json:"reason"`
}

func (s *Server) servePosterior(w http.ResponseWriter, r *http.Request) {
	v := s.view.Load()
	if v == nil {
		http.Error(w, "nothing was learned yet", http.StatusServiceUnavailable)
		return
	}
	format := r.URL.Query().Get("format")
	if format == "" && strings.Contains(r.Header.Get("Accept"), "application/x-npz") {
		format = "npz"
	}
	switch format {
	case "npz":
		v.writeNPZ(w)
	case "", "json":
		page.JSON(w, http.StatusOK, v.json())
	default:
		http.Error(w, "format is json or npz", http.StatusBadRequest)
	}
}

func (v *View) json() posteriorJSON {
	p := v.Posterior
	j := posteriorJSON{
		Learned: p.Samples, ScaleSD: p.ScaleSD, S: p.S, SSD: v.deviations(), Gain: p.Gain, Count: p.Count,
		Flagged: []flaggedJSON{},
	}
	if j.Phase = p.Phase; p.Phase != nil && !p.PhaseFree {
		j.PhaseSD = &p.PhaseSD
	}
	if v.Sequence >= 0 {
		j.LastSeq = &v.Sequence
	}
	if p.Theta != nil {
		sd := p.ThetaSD()
		for mu := range p.S {
			j.Theta, j.ThetaSD = append(j.Theta, p.Theta.RawRowView(mu)), append(j.ThetaSD, sd.RawRowView(mu))
		}
	}
	for _, f := range p.Flagged {
		j.Flagged = append(j.Flagged, flaggedJSON{f.Sensor, f.Reason.String()})
	}
	return j
}

// deviations are the posterior standard deviations of s.
func (v *View) deviations() []float64 {
	sd := make([]float64, len(v.Posterior.SVar))
	for mu, variance := range v.Posterior.SVar {
		sd[mu] = math.Sqrt(variance)
	}
	return sd
}

// deviationsOfSize are those of |s|: of a complex s half of the variance is across it, unless its phase is known.
func (v *View) deviationsOfSize() []float64 {
	sd, p := v.deviations(), v.Posterior
	if p.Phase == nil {
		return sd
	}
	if !channel.PhasesKnown(p.Calibration.Prior) {
		for mu := range sd {
			sd[mu] *= math.Sqrt2 / 2
		}
	}
	return sd
}

// writeNPZ writes s, s_var, gain, phase where s is complex, theta and theta_sd (M×J, row by row) where sensors have parameters, count and flagged (M), scale_sd, last_seq and
// learned_samples.
func (v *View) writeNPZ(w http.ResponseWriter) {
	p := v.Posterior
	flagged := make([]float64, len(p.S))
	for _, f := range p.Flagged {
		flagged[f.Sensor] = float64(f.Reason)
	}
	number := func(name string, x float64) dataset.Vector {
		return dataset.Vector{Name: name, Values: []float64{x}, Scalar: true}
	}
	var b bytes.Buffer
	var phase []dataset.Vector
	if p.Phase != nil {
		phase = []dataset.Vector{{Name: "phase", Values: p.Phase}}
	}
	further := phase
	if p.Theta != nil {
		further = append(further, dataset.Vector{Name: "theta", Values: p.Theta.RawMatrix().Data}, dataset.Vector{Name: "theta_sd", Values: p.ThetaSD().RawMatrix().Data})
	}
	err := dataset.WriteVectors(&b, append(further,
		dataset.Vector{Name: "s", Values: p.S}, dataset.Vector{Name: "s_var", Values: p.SVar},
		dataset.Vector{Name: "gain", Values: p.Gain}, dataset.Vector{Name: "count", Values: p.Count},
		dataset.Vector{Name: "flagged", Values: flagged},
		number("scale_sd", p.ScaleSD), number("last_seq", float64(v.Sequence)), number("learned_samples", float64(p.Samples)))...)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-npz")
	w.Header().Set("Content-Disposition", `attachment; filename="posterior.npz"`)
	w.Write(b.Bytes())
}

// spread is the median and the largest posterior standard deviation of s among
// the sensors in use.
func (v *View) spread() (median, worst float64) {
	sd := v.deviations()
	for _, f := range v.Posterior.Flagged {
		sd[f.Sensor] = -1
	}
	slices.Sort(sd)
	used := sd[len(v.Posterior.Flagged):]
	if len(used) == 0 {
		return 0, 0
	}
	return used[len(used)/2], used[len(used)-1]
}
