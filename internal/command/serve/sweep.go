package serve

import (
	"errors"
	"io/fs"
	"maps"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
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
	seen sweepJSON
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
	folder := s.data
	if folder == "" {
		folder = strings.TrimSuffix(s.sweep, ".toml")
		if folder == s.sweep {
			folder += ".rows"
		}
	}
	return &watched{name: filepath.Base(s.sweep), store: sweep.Store{Dir: folder}, points: spec.Points()}, nil
}

// sweepJSON is how far a sweep is, and its rows as columns of numbers.
type sweepJSON struct {
	Points  int            `json:"points"`
	Done    int            `json:"done"`
	Failed  int            `json:"failed"`
	Classes map[string]int `json:"classes"`
	Damaged int            `json:"damaged"`
	Rate    float64        `json:"rate"`   // points a second
	LeftS   float64        `json:"left_s"` // at that rate
	Error   string         `json:"error,omitempty"`

	Hosts    []hostJSON              `json:"hosts"`
	Failures []failureJSON           `json:"failures"` // the first ones
	Table    map[string]page.Numbers `json:"table"`    // a number for every point, NaN where there is none
	Kinds    []string                `json:"kinds"`    // algorithms, numbered in the table
}

type hostJSON struct {
	Name string  `json:"name"`
	Done int     `json:"done"`
	Wall float64 `json:"wall_s"`
}

type failureJSON struct {
	Point   string `json:"point"`
	Class   string `json:"class"`
	Message string `json:"message"`
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

func (s *watched) look() sweepJSON {
	rows, damaged, err := s.store.Rows()
	p := sweep.StatusOf(s.points, rows)
	j := sweepJSON{
		Points: p.Points, Done: p.Done, Failed: p.Failed, Classes: p.Classes, Damaged: damaged, Rate: p.Rate, LeftS: p.Left.Seconds(),
		Failures: []failureJSON{}, Table: make(map[string]page.Numbers),
	}
	if err != nil {
		j.Error = err.Error()
	}
	t := newTable(s.points[:min(len(s.points), mostCells)])
	hosts := make(map[string]*hostJSON)
	for k, point := range s.points {
		row, there := rows[point.Key()]
		if !there {
			continue
		}
		if hosts[row.Host] == nil {
			hosts[row.Host] = &hostJSON{Name: row.Host}
		}
		hosts[row.Host].Done++
		hosts[row.Host].Wall += row.WallS
		if row.Failed() && len(j.Failures) < mostFailures {
			j.Failures = append(j.Failures, failureJSON{point.String(), row.Class, row.Message})
		}
		if k < mostCells {
			t.put(k, row)
		}
	}
	j.Hosts = sorted(hosts)
	j.Table, j.Kinds = t.columns, t.kinds
	return j
}

func sorted(hosts map[string]*hostJSON) []hostJSON {
	list := []hostJSON{}
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		list = append(list, *hosts[name])
	}
	return list
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
