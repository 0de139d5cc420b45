package solve

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/dataset"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/solver"
)

// resultJSON is what solve prints with --json.
type resultJSON struct {
	Status             calamp.Status      `json:"status"`
	Reason             string             `json:"reason"`
	Iterations         int                `json:"iterations"`
	WallS              float64            `json:"wall_s"`
	facts.Size                            // m, n, p, alpha, missing_readings
	option.SignalPrior                    // prior, components
	Groups             []option.Group     `json:"groups,omitempty"`
	Amplitude          []float64          `json:"amplitude,omitempty"`
	Model              option.Model       `json:"model"`
	Options            option.OptionsJSON `json:"options"`
	option.FaultsJSON                     // faulty, fault_rate, broken_sensors, saturation
	option.OffsetJSON                     // offset, offset_sd
	MeansRemoved       bool               `json:"means_removed"`
	Plan               *solver.Plan       `json:"plan"`
	ScaleSD            *float64           `json:"scale_sd,omitempty"`
	LogEvidence        *float64           `json:"log_evidence,omitempty"`
	Matrix             string             `json:"matrix"`    // W in words
	Storage            string             `json:"w_storage"` // of a table
	Arithmetic         string             `json:"w_arithmetic"`
	Warnings           []calamp.Warning   `json:"warnings"`
	ConvergedSignals   int                `json:"converged_signals"`
	Metrics            *facts.Metrics     `json:"metrics,omitempty"`
	Compare            comparisons        `json:"compare,omitempty"`
	Written            []string           `json:"written"`
}

// print tells what was found, to standard output unless a file goes there.
func (s *solve) print(data *dataset.Problem, res *calamp.Result, others comparisons, written []string) error {
	if s.json {
		return s.PrintJSON(resultJSON{
			Status: res.Status, Reason: res.Reason, Iterations: res.Iterations, WallS: res.Wall.Seconds(),
			Size: facts.SizeOf(data), SignalPrior: s.prior, Groups: s.groups.Found(), Amplitude: res.Amplitude, Model: s.model, Options: s.solver.JSON(), FaultsJSON: s.faults.JSON(res), OffsetJSON: s.offset.JSON(),
			MeansRemoved: res.Plan.Has("mean removal"), Plan: res.Plan,
			ScaleSD: console.Known(res.ScaleSD), LogEvidence: console.Known(res.LogEvidence), Matrix: facts.MatrixName(data.W, res.Storage, res.Arithmetic), Storage: res.Storage, Arithmetic: res.Arithmetic,
			Warnings: console.OrEmpty(res.Warnings), ConvergedSignals: facts.Converged(res),
			Metrics: s.metricsOf(data, res), Compare: others, Written: console.OrEmpty(written),
		})
	}
	var text console.Summary
	text.Line("problem", "%v", facts.SizeOf(data))
	text.Line("status", "%v: %s; %v", res.Status, res.Reason, res.Wall.Round(time.Millisecond))
	if learned := slices.Concat(s.prior.LearnedNames(), s.model.Learned); len(learned) > 0 {
		text.Line("model", "%s, %s; %s learned", s.prior.Words(&s.model), s.model.ChannelWords(), strings.Join(learned, ", "))
	}
	for _, line := range s.groups.Words() {
		text.Line("group", "%s", line)
	}
	if res.Amplitude != nil {
		text.Line("signals", "from %s to %s times as large as their root mean square", console.Short(slices.Min(res.Amplitude)), console.Short(slices.Max(res.Amplitude)))
	}
	if res.Plan.Has("mean removal") {
		text.Line("matrix", "%s", facts.MeansRemoved)
	}
	calibrationLines(&text, res, s.model)
	s.offset.Line(&text, res)
	facts.BrokenLines(&text, res)
	facts.TruthLines(&text, s.metricsOf(data, res))
	others.table(&text)
	if len(written) > 0 {
		text.Line("written", "%s", strings.Join(written, ", "))
	} else if s.out == "" {
		text.Line("written", "no result: give -o R.npz to keep it")
	}
	switch {
	case !s.outputs().TakesStdout():
		return s.Print(text.String())
	case s.Quiet:
		return nil
	}
	return s.PrintBeside(text.String())
}

func calibrationLines(s *console.Summary, res *calamp.Result, m option.Model) {
	mean, variance := m.GainPrior().Moments()
	s.Line("gains", "typical uncertainty ±%s, before the readings ±%s",
		console.Percent(facts.TypicalGainSD(res)), console.Percent(math.Sqrt(variance)/mean))
	s.Line("scale", "common to signals and gains, uncertainty ±%s", console.Percent(res.ScaleSD))
}
