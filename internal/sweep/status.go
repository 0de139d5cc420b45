package sweep

import (
	"slices"
	"time"
)

// Progress is how far a sweep is.
type Progress struct {
	Points, Done, Failed int
	Classes              map[string]int // of failures
	Damaged              int            // lines that were no rows
	Rate                 float64        // points a second, lately; 0 when not known
	Left                 time.Duration  // at that rate; 0 when not known
	Newest               time.Time
}

// recent is how far back a rate looks from the newest row.
const recent = 5 * time.Minute

// StatusOf counts the rows of points.
func StatusOf(points []Point, rows Rows) Progress {
	s := Progress{Points: len(points), Classes: make(map[string]int)}
	var times []time.Time
	for _, p := range points {
		row, there := rows[p.Key()]
		if !there {
			continue
		}
		s.Done++
		if row.Failed() {
			s.Failed++
			s.Classes[row.Class]++
		}
		times = append(times, row.Done)
	}
	if len(times) < 2 {
		return s
	}
	slices.SortFunc(times, time.Time.Compare)
	s.Newest = times[len(times)-1]
	first, _ := slices.BinarySearchFunc(times, s.Newest.Add(-recent), time.Time.Compare)
	if took := s.Newest.Sub(times[first]).Seconds(); took > 0 {
		s.Rate = float64(len(times)-first-1) / took
		s.Left = time.Duration(float64(s.Points-s.Done) / s.Rate * float64(time.Second))
	}
	return s
}
