package sweep

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/teacher"
)

// matrixFields are the parameters of which the matrix of a shared draw is a function.
type matrixFields struct {
	N, M    int
	Density float64
	Seed    uint64
	Complex bool             `json:",omitempty"`
	Matrix  teacher.Ensemble `json:",omitzero"`
}

// matrices are those that points share, by the seed of their draw. One that is out of use is dropped
// when another is drawn: points that share one follow each other, see [InTurn].
type matrices struct {
	mutex sync.Mutex
	kept  map[uint64]*sharedMatrix
}

type sharedMatrix struct {
	users int
	draw  func() (operator.Operator, error) // once
}

// of returns the matrix that draw makes of seed, until done is called.
func (m *matrices) of(seed uint64, draw func() (operator.Operator, error)) (w operator.Operator, done func(), err error) {
	m.mutex.Lock()
	s, there := m.kept[seed]
	if !there {
		for other, unused := range m.kept {
			if unused.users == 0 {
				delete(m.kept, other)
			}
		}
		s = &sharedMatrix{draw: sync.OnceValues(draw)}
		if m.kept == nil {
			m.kept = make(map[uint64]*sharedMatrix)
		}
		m.kept[seed] = s
	}
	s.users++
	m.mutex.Unlock()
	w, err = s.draw()
	return w, func() {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		s.users--
	}, err
}

// posed is a problem with its truth.
type posed struct {
	*calamp.Problem
	truth calamp.Truth
}

// source draws problems with a W of their own, or a W, and problems behind one.
type source struct {
	pose   func(seed uint64) (*calamp.Problem, calamp.Truth, error)
	matrix func(seed uint64) (operator.Operator, error)
	behind func(w operator.Operator, seed uint64) (*calamp.Problem, calamp.Truth, error)
}

func (p Point) source() source {
	if p.Complex() {
		t := p.complexTeacher()
		return source{t.Pose, t.DrawMatrix, func(w operator.Operator, seed uint64) (*calamp.Problem, calamp.Truth, error) {
			in, err := t.Readings(w, seed)
			if err != nil {
				return nil, calamp.Truth{}, err
			}
			return t.Problem(in), in.Truth, nil
		}}
	}
	t := p.withJoint(p.teacher(), p.stream())
	matrix := func(seed uint64) (operator.Operator, error) { return t.DrawMatrix(seed) }
	return source{t.Pose, matrix, func(w operator.Operator, seed uint64) (*calamp.Problem, calamp.Truth, error) {
		y, truth, err := t.Readings(w, seed)
		if err != nil {
			return nil, calamp.Truth{}, err
		}
		return t.Problem(&teacher.Instance{W: w.(*operator.Dense), Y: y}), truth, nil
	}}
}

// draw makes the problem of a point, which is that of its stream: whether others share its
// matrix at the time changes nothing. done is to be called when W is no longer used.
func (r *Runner) draw(p Point) (in posed, done func(), err error) {
	from := p.source()
	if !p.SharedMatrix {
		in.Problem, in.truth, err = from.pose(p.stream())
		return in, func() {}, err
	}
	seed := binary.LittleEndian.Uint64(p.matrix[:])
	w, done, err := r.drawn.of(seed, func() (operator.Operator, error) { return from.matrix(seed) })
	if err != nil {
		return in, done, err
	}
	in.Problem, in.truth, err = from.behind(w, p.stream())
	return in, done, err
}

// InTurn orders points for running: seed by seed, so that a sweep that is not
// finished shows all of its plane, and the costly ones of a seed first, so
// that the end is not spent waiting for one of them. Those that share a matrix follow
// each other, at the place of the costliest.
func InTurn(points []Point) []Point {
	largest := make(map[[8]byte]float64)
	for _, p := range points {
		largest[p.matrix] = max(largest[p.matrix], p.Cost())
	}
	group := func(p Point) float64 {
		if p.SharedMatrix {
			return largest[p.matrix]
		}
		return p.Cost()
	}
	out := slices.Clone(points)
	slices.SortStableFunc(out, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Seed, b.Seed), cmp.Compare(group(b), group(a)),
			bytes.Compare(a.matrix[:], b.matrix[:]), cmp.Compare(b.Cost(), a.Cost()))
	})
	return out
}

// together parts points in turn into groups that share a matrix, and single ones.
func together(points []Point) (groups [][]Point) {
	for first, i := 0, 1; i <= len(points); i++ {
		if i == len(points) || !points[i].SharedMatrix || points[i].matrix != points[first].matrix {
			groups = append(groups, points[first:i])
			first = i
		}
	}
	return groups
}
