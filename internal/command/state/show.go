package state

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/online"
)

// Is tells a state file by its name, or by the bbolt magic number in it.
func Is(path string) bool {
	if filepath.Ext(path) == ".calamp" {
		return true
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 20)
	_, err = io.ReadFull(f, head)
	return err == nil && binary.NativeEndian.Uint32(head[16:]) == 0xED0CDAED
}

// stateInspection is what a state file holds; JSON shows it as it is.
type stateInspection struct {
	File        string           `json:"file"`
	Kind        string           `json:"kind"` // state
	Fingerprint string           `json:"fingerprint"`
	Model       []string         `json:"model"`
	Created     time.Time        `json:"created"`
	State       *savedFacts      `json:"state,omitempty"` // none before the first sample
	Checkpoints []checkpointFact `json:"checkpoints"`
}

type savedFacts struct {
	LastSeq   int64                 `json:"last_seq"`
	Committed time.Time             `json:"committed"`
	Learned   uint64                `json:"learned_samples"`
	Sensors   int                   `json:"sensors"`
	GainSD    *float64              `json:"gain_sd,omitempty"`  // median, relative
	SRange    *[2]float64           `json:"s_range,omitempty"`  // of the estimates
	Spread    *[2]float64           `json:"s_normal,omitempty"` // mean and standard deviation, where they do not fill the range; without the anchor
	Anchor    string                `json:"anchor,omitempty"`   // what holds the scale
	Signal    *learnedModel         `json:"learned_model,omitempty"`
	Retention float64               `json:"retention"`              // what forgetting leaves of the past at a sample
	Drift     *driftFacts           `json:"drift,omitempty"`        // none where it is not looked for
	Doubted   int                   `json:"doubted,omitempty"`      // samples in a row that contradict the state and are explained by a change
	Kept      int                   `json:"kept_samples,omitempty"` // until there are enough to be solved together
	OffsetSD  float64               `json:"offset_sd,omitempty"`    // learned
	Outliers  float64               `json:"outlier_rate,omitempty"` // part of the readings
	Flagged   []facts.FlaggedSensor `json:"flagged"`
}

// driftFacts is what is known of a drift of the gains.
type driftFacts struct {
	Rate  float64 `json:"rate"`            // standard deviation of the relative step a sample
	Part  float64 `json:"part"`            // of the sensors that walk
	Since uint64  `json:"since,omitempty"` // samples learned from at the alarm; none while the gains stay
}

// learnedModel is what a stream has taught of signals and noise.
type learnedModel struct {
	Density    float64 `json:"density"`
	SignalMean float64 `json:"signal_mean"`
	SignalVar  float64 `json:"signal_var"`
	NoiseVar   float64 `json:"noise_var"`
}

type checkpointFact struct {
	Name string `json:"name"`
	*savedFacts
}

// Show shows a state file, which it only reads.
func Show(a *console.Console, path string, asJSON bool) error {
	store, err := online.OpenStore(path, nil, &online.StoreOptions{ReadOnly: true})
	if err != nil {
		return facts.StateFault(err)
	}
	defer store.Close()
	in, err := factsOf(store)
	if err != nil {
		return facts.StateFault(err)
	}
	if asJSON {
		return a.PrintJSON(in)
	}
	return a.Print(in.text())
}

func factsOf(store *online.Store) (*stateInspection, error) {
	id := store.Identity()
	in := &stateInspection{
		File: store.Path(), Kind: "state", Fingerprint: id.Fingerprint.String(),
		Model: strings.Split(strings.TrimSpace(id.Model), "\n"), Created: store.Created().UTC(),
		Checkpoints: []checkpointFact{},
	}
	saved, err := store.Load()
	if err != nil {
		return nil, err
	}
	gain := gainOf(in.Model)
	if saved.State != nil {
		in.State = savedFactsOf(saved, gain)
	}
	all, err := store.Checkpoints()
	if err != nil {
		return nil, err
	}
	for _, name := range online.CheckpointNames(all) {
		in.Checkpoints = append(in.Checkpoints, checkpointFact{name, savedFactsOf(all[name], gain)})
	}
	return in, nil
}

// gainOf finds the prior of s in the lines of the model; nil if it is not there.
func gainOf(lines []string) *channel.GainPrior {
	for _, line := range lines {
		var p channel.GainPrior
		n, _ := fmt.Sscanf(line, "calibration lo=%g hi=%g center=%g precision=%g", &p.Lo, &p.Hi, &p.Center, &p.Precision)
		p.Log = strings.HasSuffix(line, " log")
		if n == 4 && p.Validate() == nil {
			return &p
		}
	}
	return nil
}

func savedFactsOf(saved online.Saved, gain *channel.GainPrior) *savedFacts {
	s := saved.State
	f := &savedFacts{
		LastSeq: saved.Sequence, Committed: saved.Time.UTC(), Learned: s.Samples,
		Sensors: s.Sensors(), Retention: s.Retention, Flagged: []facts.FlaggedSensor{},
		Kept: len(s.Warm), OffsetSD: s.OffsetSD,
	}
	if n := s.Outliers; n.Readings > 0 {
		f.Outliers = n.Outlying / n.Readings
	}
	if m := s.Model; m != nil {
		if g, ok := m.GaussBernoulli(); ok {
			f.Signal = &learnedModel{g.Density, g.SignalMean, g.SignalVar, m.NoiseVar}
		}
	}
	if d := s.Drift; d != nil {
		f.Drift = &driftFacts{Rate: d.Rate(), Part: 1 - d.Parts[0], Since: d.Since}
	}
	for _, fork := range s.Forks {
		f.Doubted = max(f.Doubted, fork.Accepted)
	}
	for mu, flag := range s.Flag {
		if flag != online.Healthy {
			f.Flagged = append(f.Flagged, facts.FlaggedSensor{Sensor: mu, Reason: flag.String()})
		}
	}
	if gain != nil && f.Sensors > 0 && s.Width() == gain.Width() {
		f.posterior(s, *gain)
	}
	return f
}

func (f *savedFacts) posterior(s *online.State, gain channel.GainPrior) {
	r := &calamp.Result{S: make([]float64, f.Sensors), SVar: make([]float64, f.Sensors)}
	if s.Range != nil {
		gain = s.Range.Prior
		mean, sd, _ := channel.NormalOf(gain)
		f.Spread = &[2]float64{mean, sd}
	}
	gain.Posteriors(r.S, r.SVar, s.Stats)
	f.Anchor = s.Anchor.String()
	factor := 1.0
	if s.Anchor.Set() {
		known := func(mu int) bool {
			return s.Flag[mu] == online.Healthy && gain.Readings(s.Stats[mu*gain.Width():(mu+1)*gain.Width()]) > 0
		}
		if fit := s.Anchor.Fit(r.S, r.SVar, known); fit.Holds() {
			factor = fit.Factor
		}
	}
	span := [2]float64{math.Inf(1), 0}
	for mu := range f.Sensors {
		r.S[mu] *= factor
		r.SVar[mu] *= factor * factor
		span[0], span[1] = min(span[0], r.S[mu]), max(span[1], r.S[mu])
	}
	f.GainSD, f.SRange = console.Known(facts.TypicalGainSD(r)), &span
}

func (in *stateInspection) text() string {
	var text console.Summary
	text.Line("file", "%s: a state, created %s", in.File, in.Created.Format(time.RFC3339))
	for k, line := range in.Model {
		text.Line([]string{"model", ""}[min(k, 1)], "%s", line)
	}
	text.Line("fingerprint", "%s", in.Fingerprint)
	if in.State == nil {
		text.Line("state", "empty: no sample was taken in yet")
	} else {
		in.State.describe(&text)
	}
	for _, c := range in.Checkpoints {
		text.Line("checkpoint", "%s: after sample %d, %s learned from, %s", c.Name, c.LastSeq, console.Plural(int(c.Learned), "sample"), c.Committed.Format(time.RFC3339))
	}
	return text.String()
}

func (f *savedFacts) describe(text *console.Summary) {
	text.Line("state", "after sample %d, %s learned from, %s", f.LastSeq, console.Plural(int(f.Learned), "sample"), f.Committed.Format(time.RFC3339))
	text.Line("sensors", "%d, %d of them flagged", f.Sensors, len(f.Flagged))
	if f.GainSD != nil {
		text.Line("s", "from %.4g to %.4g; typical uncertainty of s and of the gain 1/s ±%s", f.SRange[0], f.SRange[1], console.Percent(*f.GainSD))
	}
	if n := f.Spread; n != nil {
		text.Line("", "not spread evenly over the range of the model: normal, %.4g ± %.2g", n[0], n[1])
	}
	if f.Anchor != "" {
		text.Line("scale", "held by %s", f.Anchor)
	}
	if m := f.Signal; m != nil {
		text.Line("learned", "density %s, non-zero entries of mean %s and variance %s, noise variance %s",
			console.Short(m.Density), console.Short(m.SignalMean), console.Short(m.SignalVar), console.Short(m.NoiseVar))
	}
	if d := f.Drift; d != nil && d.Since > 0 {
		text.Line("drift", "the gains walk by %s a sample (alarm after sample %d)", console.Percent(d.Rate), d.Since)
	}
	if f.Kept > 0 {
		text.Line("warm-up", "%s kept until there are enough to be solved together", console.Plural(f.Kept, "sample"))
	}
	if f.OffsetSD > 0 {
		text.Line("offsets", "standard deviation %.3g, learned", f.OffsetSD)
	}
	if f.Outliers > 0 {
		text.Line("outliers", "%s of the readings are outliers", console.Percent(f.Outliers))
	}
	if f.Doubted > 0 {
		text.Line("doubt", "the last %s contradict what was learned; what changed is being found out", console.Plural(f.Doubted, "sample"))
	}
	for _, s := range f.Flagged {
		text.Line("", "sensor %d is not used: %s", s.Sensor, s.Reason)
	}
}
