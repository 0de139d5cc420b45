// Package experiments regenerates the figures of M. Gabrié, J. Barbier, F.
// Krzakala and L. Zdeborová, "Blind calibration for compressed sensing: state
// evolution and an online algorithm" (2019), and some of our own: a spec, what
// to run, and a recipe, how to draw it, for each.
package experiments

import (
	"embed"
	"fmt"
	"io"
	"strings"

	"github.com/calamp/calamp/internal/sweep"
)

//go:embed *.toml
var specs embed.FS

// Experiment is a figure and the sweep that it shows.
type Experiment struct {
	Name  string // of the figure
	About string
	Sweep string // several figures can show one sweep

	draw func(t *table) (Picture, []string)
}

// Picture is what a recipe draws, see package figure.
type Picture interface {
	Write(w io.Writer, format string) error
}

// All experiments, those of the paper first.
var All = []Experiment{
	{"diagonal-ansatz", "fig. 2: full against diagonal covariances", "diagonal-ansatz", diagonalAnsatz},
	{"dynamics-offline", "fig. 3a: AMP and state evolution along the iterations", "dynamics-offline", dynamicsOffline},
	{"fixed-points-offline", "fig. 3b: where they end, against P", "fixed-points-offline", fixedPointsOffline},
	{"dynamics-online", "fig. 3c: the same along the iterations of samples of a stream", "dynamics-online", dynamicsOnline},
	{"fixed-points-online", "fig. 3d: where they end, against k", "fixed-points-online", fixedPointsOnline},
	{"phase-x", "fig. 4: recovery of the signals in the ρ–α plane", "phase", phaseX},
	{"phase-s", "fig. 5: recovery of the gains in the ρ–α plane", "phase", phaseS},
	{"phase-published", "the published algorithm beside the default one", "phase-published", phasePublished},
	{"se-phase", "the ρ–α plane from state evolution alone", "se-phase", sePhase},
	{"complex-phases", "complex gains: AMP and state evolution, by what is known of phases", "complex-phases", complexPhases},
	{"condition", "success against the condition number of W: AMP beside vector AMP", "condition", conditionPlane},
	{"joint-thresholds", "α_cal against P: independent signals, and those that share their entries", "joint-thresholds", jointThresholds},
	{"depth", "signals out of networks: recovery and thresholds, one and two layers", "depth", depth},
	{"hard-phase", "α_min, α_cal and the information-theoretic line", "hard-phase", hardPhase},
}

// Find returns the experiment of a name.
func Find(name string) (*Experiment, error) {
	var names []string
	for i := range All {
		if All[i].Name == name {
			return &All[i], nil
		}
		names = append(names, All[i].Name)
	}
	return nil, fmt.Errorf("there is no figure %q, there are %s", name, strings.Join(names, ", "))
}

// Spec is the sweep that the figure shows.
func (e *Experiment) Spec() (*sweep.Spec, error) {
	name := e.Sweep + ".toml"
	text, err := specs.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return sweep.Parse(name, string(text))
}

// Draw makes the picture of what has been run, and says in a few sentences
// what can be read from it in numbers.
func (e *Experiment) Draw(points []sweep.Point, rows sweep.Rows) (Picture, []string) {
	return e.draw(newTable(points, rows))
}
