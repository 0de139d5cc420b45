package theory

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/figure"
	"github.com/calamp/calamp/replica"
)

// freeEnergy is one call of calamp free-energy.
type freeEnergy struct {
	theory
	points int
}

// FreeEnergyCommand is calamp free-energy.
func FreeEnergyCommand(a *console.Console) *cobra.Command {
	f := &freeEnergy{theory: newTheory(a), points: 200}
	cmd := &cobra.Command{
		Use:   "free-energy",
		Short: "Say what anyone could reach: free energy and mutual information",
		Long: `Compute the replica potential φ of blind calibration for large random matrices, in
nats for each of the N rows of X: the free energy f = -max φ, the information that
the readings hold on the signals, and all stationary points of φ, which are the
fixed points of state evolution. The one with the largest φ is the least error that
anyone can reach; the stable one of largest error is where cal-AMP ends.

--csv and --plot give the potential along the error V = mse_x; the columns are

  mse_x,a_hat,i_x,i_z,phi,next

with a_hat = α m_hat, φ = -(P/2) m a_hat + P i_x + α i_z, and next the error after
an iteration of state evolution from V.

For a solver that is given another model (--assume-density and the like) it is the
potential of the paper's mismatched student, at the end of its state evolution.`,
		Example: `  calamp free-energy --alpha 0.33 --p 3 --density 0.2 --noise-var 1e-6
  calamp free-energy --alpha 0.4 --p 3 --s-range 0.5,1.5 --noise-var 1e-8 --plot F.svg`,
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Flags()) },
	}
	flags := cmd.Flags()
	f.registerSize(flags, "signals, P")
	f.truth.Register(flags)
	f.groups.Register(flags)
	f.truth.RegisterRows(flags)
	flags.Var(option.Count(&f.points, 2), "points", "points of the curve")
	f.registerStated(flags)
	f.registerNetwork(flags)
	f.registerOutputs(flags)
	return cmd
}

func (f *freeEnergy) run(flags *pflag.FlagSet) error {
	if err := cmp.Or(f.complete(flags), f.checkSize(), f.checkOutputs(), f.checkTogether(), f.loadGroups()); err != nil {
		return err
	}
	if f.truth.NoiseVar == 0 || f.stated.NoiseVar == 0 {
		return console.Usage("--noise-var must be above 0: without noise the free energy is infinite where the signals are recovered").
			WithHint("calamp threshold has the noiseless limits")
	}
	if f.mismatched && (f.csv || f.out != "" || f.plot != "") {
		return console.Usage("a mismatched potential has six arguments and no curve: --csv, -o and --plot are for a solver who knows the model")
	}
	ctx, stop := console.Interruptible()
	defer stop()
	f.truth.NoteAssumption(f.Console, flags)
	if f.mismatched {
		return f.runMismatched(ctx)
	}
	potential, err := replica.New(f.matched(), 0)
	if err != nil {
		return &console.Exit{Code: console.WrongUsage, Err: err}
	}
	bar := f.Progress()
	defer bar.Done()
	bar.Show("stationary points", 0)
	energy, points, err := analyse(ctx, potential)
	if err != nil {
		return console.Interruption(ctx, err, "nothing to write yet")
	}
	curve, err := f.curve(ctx, potential, points, bar)
	if err != nil && ctx.Err() == nil {
		return err
	}
	bar.Done()
	list, more := curveTable(curve), ""
	if !f.csv && f.out == "" {
		list, more = pointTable(points), f.words(energy)
	}
	object := f.object(energy, points)
	if err := f.writeAll(list, func() figure.Figure { return f.figure(curve, points) }, object, more); err != nil {
		return err
	}
	return console.Interruption(ctx, nil, fmt.Sprintf("%d of %d points of the curve done", len(curve), f.points))
}

func analyse(ctx context.Context, p *replica.Potential) (*replica.Energy, []replica.Stationary, error) {
	energy, err := p.FreeEnergy(ctx)
	if err != nil {
		return nil, nil, err
	}
	points, err := p.StationaryPoints(ctx)
	return energy, points, err
}

// curve is the potential from well below the smallest stationary error up to the
// prior's variance; nothing when it was not asked for.
func (f *freeEnergy) curve(ctx context.Context, p *replica.Potential, points []replica.Stationary, bar *console.Progress) ([]replica.Value, error) {
	if !f.csv && f.out == "" && f.plot == "" {
		return nil, nil
	}
	var list []replica.Value
	lo, hi := math.Log(0.1*points[0].MSE), math.Log(f.matched().Variance())
	for i := range f.points {
		bar.Show("potential", float64(i)/float64(f.points))
		v, err := p.At(ctx, math.Exp(lo+(hi-lo)*float64(i)/float64(f.points-1)))
		if err != nil {
			return list, err
		}
		list = append(list, v)
	}
	return list, nil
}

func curveTable(list []replica.Value) console.Table {
	t := console.Table{Header: []string{"mse_x", "a_hat", "i_x", "i_z", "phi", "next"}}
	for _, v := range list {
		t.Rows = append(t.Rows, []float64{v.MSE, v.AHat.Value, v.IX.Value, v.IZ.Value, v.Phi.Value, v.Next.Value})
	}
	return t
}

// pointTable is what people are shown: the stationary points.
func pointTable(points []replica.Stationary) console.Table {
	t := console.Table{Header: []string{"mse_x", "phi", "stable"}}
	for _, s := range points {
		stable := 0.0
		if s.Stable {
			stable = 1
		}
		t.Rows = append(t.Rows, []float64{s.MSE, s.Phi.Value, stable})
	}
	return t
}

// hard says that cal-AMP ends above the error that could be reached.
func hard(e *replica.Energy) bool { return e.Algorithmic.MSE != e.Dominant.MSE }

func (f *freeEnergy) words(e *replica.Energy) string {
	var text console.Summary
	text.Line("free energy", "f = %v", e.F)
	text.Line("information", "on the signals %v, on signals and gains %v", e.Signals, e.Both)
	if hard(e) {
		text.Line("phase", "hard: an error of %.4g is possible, cal-AMP ends at %.4g", e.Dominant.MSE, e.Algorithmic.MSE)
	} else {
		text.Line("phase", "easy: cal-AMP ends at the error %.4g, the least possible", e.Dominant.MSE)
	}
	return text.String()
}

// object is what free-energy prints with --json.
func (f *freeEnergy) object(e *replica.Energy, points []replica.Stationary) console.Object {
	phase, all := "easy", []console.Object(nil)
	if hard(e) {
		phase = "hard"
	}
	for _, s := range points {
		all = append(all, console.Object{
			"mse_x", s.MSE, "m", s.Overlap, "a_hat", s.AHat.Value, "i_x", s.IX.Value, "i_x_err", s.IX.Err, "i_z", s.IZ.Value, "i_z_err", s.IZ.Err,
			"phi", s.Phi.Value, "phi_err", s.Phi.Err, "stable", s.Stable,
		})
	}
	return console.Object{
		"alpha", f.alpha, "p", f.p, "prior?", f.network.text, "model", f.truth, "free_energy", e.F.Value, "free_energy_err", e.F.Err, "information_x", e.Signals.Value, "information_x_err", e.Signals.Err,
		"information_xs", e.Both.Value, "information_xs_err", e.Both.Err, "phase", phase, "mse_x_possible", e.Dominant.MSE, "mse_x_algorithmic", e.Algorithmic.MSE,
		"stationary_points", all, "written", f.written(),
	}
}

func (f *freeEnergy) figure(curve []replica.Value, points []replica.Stationary) figure.Figure {
	var v, phi, at, top []float64
	for _, c := range curve {
		v, phi = append(v, c.MSE), append(phi, c.Phi.Value)
	}
	for _, s := range points {
		at, top = append(at, s.MSE), append(top, s.Phi.Value)
	}
	return figure.Figure{
		X: figure.Axis{Label: "mean square error of x", Log: true}, Y: figure.Axis{Label: "φ (nats)"},
		Alt: fmt.Sprintf("The replica potential over the error for P = %d, α = %g, density %g, noise variance %g", f.p, f.alpha, f.truth.Density, f.truth.NoiseVar),
		Series: []figure.Series{
			{Name: "potential", X: v, Y: phi, Color: figure.Blue},
			{Name: "stationary", X: at, Y: top, Style: figure.Rings, Color: figure.Orange},
		},
	}
}

// overlapsOf and conjugatesOf are the arguments of the mismatched potential, named.
func overlapsOf(p replica.Point) console.Object {
	return console.Object{"q", p.Q, "m", p.M, "q12", p.Q12}
}

func conjugatesOf(p replica.Point) console.Object {
	return console.Object{"q_hat", p.QHat, "m_hat", p.MHat, "q12_hat", p.Q12Hat}
}

// runMismatched evaluates the potential where the mismatched student's state
// evolution ends.
func (f *freeEnergy) runMismatched(ctx context.Context) error {
	o, ok, err := evolution.FixedPointMismatched(ctx, f.mismatch(), nil)
	if err != nil {
		return console.Interruption(ctx, &console.Exit{Code: console.WrongUsage, Err: err}, "nothing to write yet")
	}
	p := replica.Mismatched{Model: f.mismatch()}
	at := p.At(o)
	phi, gradient, err := p.Phi(ctx, at)
	if err != nil {
		return console.Interruption(ctx, err, "nothing to write yet")
	}
	if !finite(phi, o.MSEX, o.MSES) {
		return &console.Exit{Code: console.NotConverged, Err: fmt.Errorf("state evolution ran away: there is no fixed point to evaluate the potential at")}
	}
	if f.json {
		err = f.PrintJSON(console.Object{
			"alpha", f.alpha, "p", f.p, "model", f.truth, "assumed_model", f.statedModel(), "phi", phi.Value, "phi_err", phi.Err,
			"at", append(overlapsOf(at), conjugatesOf(at)...), "gradient", append(overlapsOf(gradient), conjugatesOf(gradient)...),
			"mse_x", o.MSEX.Value, "mse_s", o.MSES.Value, "converged", ok,
		})
	} else {
		var text console.Summary
		text.Line("potential", "φ = %v", phi)
		text.Line("errors", "mse_x %v, mse_s %v", o.MSEX, o.MSES)
		text.Line("overlaps", "%s", namedNumbers(overlapsOf(at)...))
		text.Line("conjugates", "%s", namedNumbers(conjugatesOf(at)...))
		err = f.Print(text.String())
	}
	if err == nil && !ok {
		err = &console.Exit{Code: console.NotConverged, Err: fmt.Errorf("state evolution had not converged: the potential is that of its last iteration")}
	}
	return err
}

func namedNumbers(pairs ...any) string {
	var words []string
	for i := 0; i < len(pairs); i += 2 {
		words = append(words, fmt.Sprintf("%s %.9g", pairs[i], pairs[i+1]))
	}
	return strings.Join(words, ", ")
}
