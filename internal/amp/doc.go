// Package amp is the solver: message passing on signals and sensors together, offline and in
// streams. It knows matrices, priors and channels by their interfaces
// alone, and nothing of files, of problems with a known truth, or of what becomes of its
// results.
//
// [NewSolver] plans a run (plan.go), and makes a [State], an [Iteration] on it and the
// [Part]s that go along. [Solver.Run] is the loop.
package amp
