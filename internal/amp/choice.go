package amp

import (
	"errors"
	"fmt"
	"math"

	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/solver"
)

const (
	// likeIndependent is how far from 1 the spread of eigenvalues may be for a W that
	// AMP is right for: columns with a correlation of 0.3 have 1.1 and lose nothing,
	// condition number 10 has 1.3 to 1.5, orthogonal rows have 0.65 and less.
	likeIndependent = 0.2

	// Below leastFilled a W is sparse, and above mostUneven its columns are: vector AMP
	// takes all entries of a signal for equally well known, and is falsely sure of those
	// that are not. Independent entries have a third and 1, sparse ones of 5 % 0.02 and 3.
	leastFilled = 0.1
	mostUneven  = 2.5

	// mostRepeated is the part of the rows or columns that may be multiples of others.
	mostRepeated = 0.02

	// A decomposition takes M²(N+3M) multiplications or so: minutes at mostRows, and with
	// more than mostTall times as many rows as columns far longer than the iterations.
	mostRows = 6000
	mostTall = 4

	// followsOffsets is why AMP is used behind rows that are orthogonal, or nearly: it is as good there.
	followsOffsets = "not chosen: AMP follows what an offset does to all of a few signals"

	// mostMissing readings of one signal are a system of equations of their own in every
	// iteration.
	mostMissing = 600
)

// vectorAMP chooses between AMP and vector AMP, by what W is.
func (b *planner) vectorAMP() (on bool, why string, err error) {
	if b.Algorithm != solver.AutoAlgorithm {
		b.plan.Algorithm = b.Algorithm
		switch {
		case b.vector():
			err = b.vectorPossible()
		case b.evidence():
			return false, "not asked: signals are integrated out", b.evidencePossible()
		}
		return b.vector(), asked, err
	}
	b.plan.Algorithm = solver.AMP
	if why = b.amp(); why != "" {
		return false, why, nil
	}
	if b.rowsOrthogonal() {
		b.plan.Algorithm = solver.VAMP
		return true, "the rows of W are orthogonal: nothing needs to be decomposed", nil
	}
	if b.centred, err = b.withoutMeans(); err != nil {
		return false, "", err
	}
	looked, err := b.lookedAt()
	if err != nil {
		return false, "", err
	}
	structure, err := operator.StructureOf(operator.RealOf(looked), Threads(b.Threads, b.m*b.n))
	if err != nil {
		return false, "not possible: " + err.Error(), nil
	}
	vector, why := b.vectorFits(structure)
	if vector {
		b.plan.Algorithm, b.centred = solver.VAMP, nil
	}
	return vector, why, nil
}

// amp is why AMP is to be used whatever W is; empty where that is open.
func (b *planner) amp() string {
	if err := b.vectorPossible(); err != nil {
		return "not possible: " + err.Error()
	}
	switch {
	case b.NoScaleStep && b.Tol < 0:
		return "not asked: the recursion is left alone"
	case b.rowsOrthogonal() && b.fewForOffsets():
		return followsOffsets
	case b.rowsOrthogonal():
		return ""
	}
	if _, streamed := b.W.(operator.Streamed); streamed {
		return "not chosen: W is not in memory (--algorithm vamp reads it some hundred times)"
	}
	if why := b.tooMuch(); why != "" {
		return "not chosen: " + why + " (--algorithm vamp does it by conjugate gradients, with 5 to 50 products an iteration)"
	}
	return ""
}

// tooMuch is why W cannot be decomposed, or should not be; empty where it can.
func (b *planner) tooMuch() string {
	m, most := b.m, mostRows
	if b.pairs() {
		m, most = 2*m, mostRows/2
	}
	switch {
	case b.m > most:
		return fmt.Sprintf("W has more than %d rows to decompose", most)
	case b.m > mostTall*b.n:
		return fmt.Sprintf("W has more than %d times as many rows as columns", mostTall)
	case b.missing() > mostMissing:
		return fmt.Sprintf("a signal has more than %d missing readings", mostMissing)
	case !b.Fits(24 * int64(m) * int64(m)):
		return "there is too little memory to decompose W"
	}
	return ""
}

// decomposition is that of WWᵀ; without it, vector AMP takes conjugate gradients.
func (b *planner) decomposition() (on bool, why string, err error) {
	switch {
	case !b.vector():
		return false, "not needed without vector AMP", nil
	case b.rowsOrthogonal():
		return false, "not needed: the rows of W are orthogonal", nil
	}
	if why := b.tooMuch(); why != "" {
		return false, why + ": conjugate gradients in its place", nil
	}
	return true, "of WWᵀ, once", nil
}

// linearHalf is that of vector AMP.
func (b *planner) linearHalf(s *State) linearHalf {
	l := newLMMSE(b.W, b.P, s.Threads)
	if b.pairs() {
		return newPaired(l, b.linearHalfOf(newLMMSE(operator.RealOf(b.W), b.P/2, s.Threads)))
	}
	return b.linearHalfOf(l)
}

// pairs reports whether rows and columns of W are pairs of real ones.
func (b *planner) pairs() bool {
	return operator.IsComplex(b.W)
}

func (b *planner) linearHalfOf(l *lmmse) linearHalf {
	switch {
	case b.rowsOrthogonal():
		return newOrthogonal(l)
	case b.plan.Has("decomposition"):
		return newDecomposed(l)
	}
	return newGradients(l)
}

// rowsOrthogonal reports whether W says so of its rows.
func (b *planner) rowsOrthogonal() bool {
	_, ok := operator.Orthogonal(b.W)
	return ok
}

// missing is the largest number of readings that a signal lacks.
func (b *planner) missing() int {
	most := 0
	for k := range b.P {
		count := 0
		for j := k; j < len(b.Y); j += b.P {
			if math.IsNaN(b.Y[j]) {
				count++
			}
		}
		most = max(most, count)
	}
	return most
}

// vectorFits says whether vector AMP is for such a W, and why.
func (b *planner) vectorFits(s operator.Structure) (fits bool, why string) {
	repeated := func(count, of int) bool { return float64(count) > mostRepeated*float64(of) }
	independent := likeIndependentEntries(s)
	switch {
	case independent && b.centred != nil && b.fewSignals():
		return true, "W has means, and vector AMP follows what an offset does to all of a few signals beside them"
	case independent:
		return false, fmt.Sprintf("not needed: the singular values of W are those of independent entries (spread %.2g)", s.Spread)
	case s.Filled < leastFilled:
		return false, fmt.Sprintf("W is sparse (%.2g): it would be falsely sure", s.Filled)
	case s.Uneven > mostUneven:
		return false, fmt.Sprintf("columns of W differ in size (%.2g): it would be falsely sure", s.Uneven)
	case repeated(s.RepeatedRows, b.m):
		return false, fmt.Sprintf("%d rows of W are multiples of others: it would be falsely sure", s.RepeatedRows)
	case repeated(s.RepeatedColumns, b.n):
		return false, fmt.Sprintf("%d columns of W are multiples of others: it would be falsely sure", s.RepeatedColumns)
	case s.Spread < 1 && b.fewForOffsets():
		return false, followsOffsets
	case s.Spread < 1:
		return true, fmt.Sprintf("the rows of W are nearly orthogonal (spread of squared singular values %.2g, of independent entries 1)", s.Spread)
	}
	return true, fmt.Sprintf("W is ill-conditioned or correlated (spread of squared singular values %.2g, of independent entries 1)", s.Spread)
}

// likeIndependentEntries reports whether AMP is right for a matrix by its singular values.
func likeIndependentEntries(s operator.Structure) bool {
	return s.Spread >= 1-likeIndependent && s.Spread <= 1+likeIndependent
}

// LikeIndependent reports whether AMP is right for W, but for its means, by its singular values.
func LikeIndependent(w operator.Operator) bool {
	if centred, err := operator.RemoveMeans(w, 0); err == nil && centred != nil {
		w = centred.Operator
	}
	return WhollyIndependent(w)
}

// WhollyIndependent reports whether AMP is right for W with its means, by its singular values.
func WhollyIndependent(w operator.Operator) bool {
	structure, err := operator.StructureOf(operator.RealOf(w), Threads(0, 1))
	return err == nil && likeIndependentEntries(structure)
}

// vectorPossible says what excludes vector AMP, if anything does.
func (b *planner) vectorPossible() error {
	switch {
	case b.full():
		return errors.New("vector AMP has one variance a signal: full covariances need AMP")
	case b.exchangeable():
		return b.exchangeablePossible()
	case b.displaced() != nil:
		return errors.New("vector AMP decomposes W, whose rows move with parameters of sensors: they need AMP")
	case b.networked():
		return errors.New("signals that come out of a network need AMP for W: vector AMP is for matrices of their layers")
	case b.Variance == solver.Scalar:
		return errors.New("vector AMP has one precision a signal: scalar variances of W are for AMP")
	case b.separate() && !b.rowsOrthogonal():
		return errSeparate
	}
	return nil
}

// withoutMeans is W without its means, as AMP would have it; nil where they stay.
func (b *planner) withoutMeans() (*operator.Centred, error) {
	if b.NoMeanRemoval {
		return nil, nil
	}
	return operator.RemoveMeans(b.W, b.RAM)
}

// withMeansRemoved is what AMP's sweeps would read, in the usual layout.
func (b *planner) withMeansRemoved() operator.Operator {
	if b.centred != nil {
		return b.centred.Operator
	}
	return b.W
}
