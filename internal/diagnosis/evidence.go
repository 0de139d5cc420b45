package diagnosis

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/evidence"
	"github.com/calamp/calamp/solver"
)

// integrated says whether signals were taken for Gaussian and integrated out.
func (r *Run) integrated() bool { return r.Plan.Algorithm == solver.Evidence }

// unchecked is why nothing checks the error bars of Gaussian signals with free variances; empty where halves of the snapshots do.
func (r *Run) unchecked() string {
	if !r.integrated() || r.Solver.Integrated().FewLearned() {
		return ""
	}
	halves := fmt.Sprintf("at least %d snapshots, and there are %d", evidence.LeastForHalves, r.signals())
	if r.signals() >= evidence.LeastForHalves {
		independent := r.Solver.Independent()
		if independent >= evidence.LeastIndependent {
			return ""
		}
		halves = fmt.Sprintf("the snapshots, and these resemble each other like %.2g independent ones", independent)
	}
	return "a Gaussian prior of the signals was fitted, and the evidence reached its maximum; but its error bars are checked by halves of " + halves
}

// mostWidened is the factor of variances, from fits of readings that are drawn anew, up to which an answer from few snapshots can be used though it is weak otherwise: one, and the scatter of a few draws.
// Of ten such answers to field problems it is above for four, of which none has error bars that hold, and below for six, of which five have.
const mostWidened = 1.25

// uncheckedFew is why the answer of a prior of few parameters cannot be used where there are too few snapshots to check it by their halves; empty where it can. These parameters
// do not fit themselves to noise, but readings may tell signals from gains too badly.
func (r *Run) uncheckedFew() string {
	if factor := r.Solver.WidenedByHalves(); !r.Solver.Integrated().FewLearned() || r.signals() >= evidence.LeastForHalves || factor > 0 && factor <= mostWidened {
		return ""
	}
	weak := r.warnMeasurements()
	if weak == nil {
		weak = r.warnUnexplained()
	}
	if weak == nil {
		return ""
	}
	return fmt.Sprintf("there are %d snapshots, and gains of readings drawn from this answer are not found again within its error bars; %s", r.signals(), weak.Message)
}

// betweenColumns is how many entries lie between columns of W, and the largest distance from their own.
func (r *Run) betweenColumns() (count int, largest float64) {
	at, _ := r.Solver.ColumnShifts()
	for _, v := range at {
		if v != 0 {
			count, largest = count+1, max(largest, math.Abs(v))
		}
	}
	return count, largest
}

func entriesLie(count int) string {
	if count == 1 {
		return "an entry lies"
	}
	return fmt.Sprintf("%d entries lie", count)
}

// warnGaussian says that an answer is that of Gaussian signals.
func (r *Run) warnGaussian() *Warning {
	if !r.integrated() || !r.Converged {
		return nil
	}
	text := "signals were integrated out under a Gaussian prior: that is more reliable for this W, but sparse signals may have errors several times those with known gains"
	if r.Solver.Integrated().Sites {
		text = "gains and signals were found by expectation propagation: that is more reliable for this W, but its error bars are approximate where columns of W are nearly dependent"
	}
	switch of := r.Solver.Integrated(); {
	case of.Lines:
		text += "; snapshots follow each other as lines of a scan do, and were found with the spectrum of both directions"
	case of.Correlated:
		text += "; snapshots resemble each other, and were found with their covariance"
	}
	if count, largest := r.betweenColumns(); count > 0 {
		text += fmt.Sprintf("; %s between columns of W, by up to %.2g of their distance: column_shift says where", entriesLie(count), largest)
	}
	if factor := r.Solver.WidenedByHalves(); factor > max(1, r.Solver.CommonMisfit()) {
		what := "fits of both halves of the snapshots"
		if r.signals() < evidence.LeastForHalves {
			what = "fits of readings drawn from this answer"
		}
		text += fmt.Sprintf("; %s differ by more than their errors, so all variances were multiplied by %.2g", what, factor)
	}
	return &Warning{Code: GaussianSignals, Message: text}
}

// warnCommonMisfit says that W is wrong by the same in all snapshots.
func (r *Run) warnCommonMisfit() *Warning {
	factor := r.Solver.CommonMisfit()
	if !r.Converged || !(factor > 1) {
		return nil
	}
	return &Warning{Code: MatrixDoubtful, Message: fmt.Sprintf("what all snapshots have in common fits W worse than noise explains, as where W is wrong or sources lie between columns that are far apart: all variances were multiplied by %.2g; a finer grid, where columns are directions", factor)}
}

// warnFits says that another fit of the same readings has other signals.
func (r *Run) warnFits() *Warning {
	signals := r.Solver.Doubtful()
	if len(signals) == 0 || !r.Converged {
		return nil
	}
	return &Warning{Code: FitsDisagree, Signals: signals, Message: fmt.Sprintf("fits with two priors find different entries in %d of %d signals, by more than their error bars: a few columns of W are nearly dependent, and the readings do not determine which of their entries are zero; the difference was added to the variances", len(signals), r.signals())}
}
