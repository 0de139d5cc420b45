package evolution

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/calamp/calamp/channel"
)

// Table keeps what a sensor's readings are worth, for many trajectories, fixed points and thresholds of one P and
// one distribution of gains: of signals and noise it depends through δ = (V+Δ)/(q₀+Δ) alone. It is computed at nodes in log δ, when
// they are first asked for, and interpolated between them, which is within 5e-5 of what is computed without it
// (TestTable): enough for pictures. It can be used by several goroutines at once.
type Table struct {
	p    int
	gain channel.GainPrior
	tol  float64

	mu    sync.Mutex
	nodes map[int]*tableNode // by -log δ in steps
}

// NewTable is an empty table for models with this P and these gains; what its nodes have is computed to the relative
// tolerance tol.
func NewTable(p int, gain channel.GainPrior, tol float64) *Table {
	return &Table{p: p, gain: gain, tol: max(tol, leastTol), nodes: make(map[int]*tableNode)}
}

// fits says whether the table is one of the model's.
func (t *Table) fits(m Model) error {
	if t.p != m.P || t.gain != m.Gain {
		return fmt.Errorf("a table for P = %d and gains of %v was given for a model with P = %d and gains of %v", t.p, t.gain, m.P, m.Gain)
	}
	return nil
}

const (
	tableStep = 0.5 // in log δ
	tableNear = 6   // nodes that a value is interpolated from
)

// tableNode has the logarithms of m̂ and of the error on s, once known is true. Who has the turn computes them; one whose call ends before
// leaves that to the next.
type tableNode struct {
	turn       chan struct{}
	known      atomic.Bool
	mHat, mseS float64
}

func (t *Table) node(k int, w *work) *tableNode {
	t.mu.Lock()
	n := t.nodes[k]
	if n == nil {
		n = &tableNode{turn: make(chan struct{}, 1)}
		t.nodes[k] = n
	}
	t.mu.Unlock()
	if n.known.Load() {
		return n
	}
	w.wait(n.turn)
	defer func() { <-n.turn }()
	if !n.known.Load() {
		a := bayesAverages(t.p, t.gain, math.Exp(-tableStep*float64(k)), t.tol, w)
		n.mHat, n.mseS = math.Log(a.chiHat.Value), math.Log(a.mseS.Value)
		n.known.Store(true)
	}
	return n
}

// at interpolates. δ is at most 1, so that the nodes lie to one side of the first.
func (t *Table) at(delta float64, w *work) averages {
	if t.gain.Lo == t.gain.Hi { // in closed form
		return bayesAverages(t.p, t.gain, delta, t.tol, w)
	}
	at := -math.Log(delta) / tableStep
	first := max(0, int(at)-tableNear/2+1)
	var mHat, mseS [tableNear]float64
	parallel(tableNear, func(j int) {
		n := t.node(first+j, w)
		mHat[j], mseS[j] = n.mHat, n.mseS
	})
	at -= float64(first)
	return averages{chiHat: neville(mHat, at).exp(t.tol), mseS: neville(mseS, at).exp(t.tol)}
}

// neville is the polynomial through values at 0, 1, …, at x; its error is taken to be what the last of them changes.
func neville(values [tableNear]float64, x float64) (n Number) {
	p := values
	for width := 1; width < tableNear; width++ {
		n.Value = p[0]
		for i := range tableNear - width {
			p[i] = ((float64(i+width)-x)*p[i] + (x-float64(i))*p[i+1]) / float64(width)
		}
	}
	return Number{p[0], math.Abs(p[0] - n.Value)}
}

// exp is e^n, with a further relative error.
func (n Number) exp(tol float64) Number {
	v := math.Exp(n.Value)
	return Number{v, v * (n.Err + tol)}
}
