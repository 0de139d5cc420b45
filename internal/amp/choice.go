package amp

import (
	"errors"

	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/solver"
)

// vectorAMP chooses between AMP and vector AMP.
func (b *planner) vectorAMP() (on bool, why string, err error) {
	b.plan.Algorithm = solver.AMP
	if b.Algorithm != solver.VAMP {
		return false, asked, nil
	}
	if err := b.vectorPossible(); err != nil {
		return false, "", err
	}
	b.plan.Algorithm = solver.VAMP
	return true, asked, nil
}

// vectorPossible says what excludes vector AMP, if anything does.
func (b *planner) vectorPossible() error {
	_, streamed := b.W.(operator.Streamed)
	switch {
	case b.full():
		return errors.New("vector AMP has one variance a signal: full covariances need AMP")
	case b.Variance == solver.Scalar:
		return errors.New("vector AMP has one precision a signal: scalar variances of W are for AMP")
	case b.Batch:
		return errors.New("vector AMP would decompose every batch of rows: mini-batches need AMP")
	case streamed:
		return errors.New("vector AMP needs W in memory")
	}
	return nil
}
