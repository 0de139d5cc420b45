package operator

// Sweeps are what a solver chooses from, iteration by iteration. They may share their
// workspace: one of them runs at a time.
type Sweeps struct {
	Exact  Sweep // over p linear and p quadratic columns
	Linear Sweep // over p linear columns
}

// Sharer is an Operator whose sweeps take so much memory that they had better share it, as
// those of a [Disk].
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
