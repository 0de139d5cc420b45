package serve

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/page"
	"github.com/calamp/calamp/internal/sweep"
)

// watched is the sweep that the page shows.
type watched struct {
	name   string
	store  sweep.Store
	points []sweep.Point

	mu   sync.Mutex
	read time.Time // when rows were read last
	seen console.Object
}

// openSweep reads what --sweep names; nil where nothing is.
func (s *serve) openSweep() (*watched, error) {
	if s.sweep == "" {
		if s.data != "" {
			return nil, console.Usage("--data is the folder of a sweep: it needs --sweep")
		}
		return nil, nil
	}
	spec, err := sweep.Load(s.sweep)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, console.Usage("--sweep %s: there is no such file", s.sweep)
	}
	if err != nil {
		return nil, console.Usage("--sweep %w", err)
	}
	folder := cmp.Or(s.data, sweep.FolderOf(s.sweep))
	return &watched{name: filepath.Base(s.sweep), store: sweep.Store{Dir: folder}, points: spec.Points()}, nil
}

const (
	// rowsPause is between two looks at the folder, which can be large, and far away.
	rowsPause = 2 * time.Second

	mostFailures = 50
	mostCells    = 100_000
)

func (s *watched) serve(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.read) > rowsPause {
		s.seen = s.look()
		s.read = time.Now()
	}
	page.JSON(w, http.StatusOK, s.seen)
}

// look says how far the sweep is, with its rows as columns of numbers: one for every point, NaN where there is none.
func (s *watched) look() console.Object {
	rows, damaged, err := s.store.Rows()
	p := sweep.StatusOf(s.points, rows)
	text, failures := "", []console.Object{} // the first ones
	if err != nil {
		text = err.Error()
	}
	t := newTable(s.points[:min(len(s.points), mostCells)])
	hosts, work := map[string]int{}, map[string]float64{}
	for k, point := range s.points {
		row, there := rows[point.Key()]
		if !there {
			continue
		}
		hosts[row.Host]++
		work[row.Host] += row.WallS
		if row.Failed() && len(failures) < mostFailures {
			failures = append(failures, console.Object{"point", point.String(), "class", row.Class, "message", row.Message})
		}
		if k < mostCells {
			t.put(k, row)
		}
	}
	list := []console.Object{}
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		list = append(list, console.Object{"name", name, "done", hosts[name], "wall_s", work[name]})
	}
	return console.Object{
		"points", p.Points, "done", p.Done, "failed", p.Failed, "classes", p.Classes, "damaged", damaged, "rate", p.Rate, "left_s", p.Left.Seconds(), "error?", text,
		"hosts", list, "failures", failures, "table", t.columns, "kinds", t.kinds,
	}
}

// table is points and what was measured at their end, as columns.
type table struct {
	columns map[string]page.Numbers
	kinds   []string
	points  int
}

func newTable(points []sweep.Point) *table {
	t := &table{columns: make(map[string]page.Numbers), points: len(points)}
	for k, p := range points {
		kind := slices.Index(t.kinds, string(p.Algorithm))
		if kind < 0 {
			kind = len(t.kinds)
			t.kinds = append(t.kinds, string(p.Algorithm))
		}
		for name, v := range map[string]float64{
			"algorithm": float64(kind), "n": float64(p.N), "density": p.Density, "alpha": p.Alpha, "p": float64(p.P), "noise_var": p.NoiseVar,
			"s_lo": p.SRange[0], "s_hi": p.SRange[1], "seed": float64(p.Seed),
		} {
			t.set(name, k, v)
		}
	}
	return t
}

func (t *table) set(column string, k int, v float64) {
	if t.columns[column] == nil {
		all := make(page.Numbers, t.points)
		for i := range all {
			all[i] = math.NaN()
		}
		t.columns[column] = all
	}
	t.columns[column][k] = v
}

func (t *table) put(k int, row *sweep.Row) {
	t.set("failed", k, boolean(row.Failed()))
	t.set("iterations", k, float64(row.Iterations))
	t.set("wall_s", k, row.WallS)
	if len(row.Measures) == 0 {
		return
	}
	for name, v := range row.Measures[len(row.Measures)-1].Values {
		t.set(name, k, float64(v))
	}
}

func boolean(v bool) float64 {
	if v {
		return 1
	}
	return 0
}
