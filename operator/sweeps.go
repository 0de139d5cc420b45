package operator

// Sweeps are what a solver chooses from, iteration by iteration. They may share their
// workspace: one of them runs at a time.
type Sweeps struct {
	Exact  Sweep // over p linear and p quadratic columns
	Linear Sweep // over p linear columns

	// Single are the same with arithmetic in single precision, and sums over short runs
	// that are added up in double precision; nil unless [HasSingle]. Products are off
	// by some [SingleError] of their size. Numbers must be within its range.
	Single struct{ Exact, Linear Sweep }
}

// SingleError is by how much sweeps in single precision are off: the root mean square of
// the error of z, relative to that of z for entries of W and of x with random signs.
// TestSinglePrecision (internal/kernel) measures 1e-7.
const SingleError = 2e-7

// Single is a Matrix that may have sweeps in single precision: its entries are.
type Single interface {
	Sharer
	HasSingle() bool
}

// HasSingle reports whether [NewSweeps] over w has those in single precision.
func HasSingle(w Operator) bool {
	s, ok := w.(Single)
	return ok && s.HasSingle()
}

// Sharer is an Operator that chooses the sweeps for a solver: in single
// precision, too, or with one workspace, where that takes much memory, as for a [Disk].
type Sharer interface {
	NewSweeps(p, threads int) (Sweeps, error)
}

// NewSweeps prepares both sweeps over w with p columns.
func NewSweeps(w Operator, p, threads int) (s Sweeps, err error) {
	if w, ok := w.(Sharer); ok {
		return w.NewSweeps(p, threads)
	}
	if s.Exact, err = w.NewSweep(p, p, threads); err == nil {
		s.Linear, err = w.NewSweep(p, 0, threads)
	}
	return s, err
}
