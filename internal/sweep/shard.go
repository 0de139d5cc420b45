package sweep

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Shard is one of several processes that part the points of a sweep among
// themselves without talking to each other.
type Shard struct{ Index, Count int } // Index from 1; the zero value is all points

// Of are the shard's points. Costs are spread evenly, and those that share a matrix stay together.
func (s Shard) Of(points []Point) []Point {
	if s.Count <= 1 {
		return points
	}
	var mine []Point
	for i, group := range together(InTurn(points)) {
		if i%s.Count == s.Index-1 {
			mine = append(mine, group...)
		}
	}
	return mine
}

// String is what [ParseShard] reads.
func (s Shard) String() string {
	if s.Count == 0 {
		return "all"
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Count)
}

// ParseShard reads all, i/n with i from 1, or auto and auto/n, which ask the
// environment: getenv is os.Getenv.
func ParseShard(text string, getenv func(string) string) (Shard, error) {
	wrong := fmt.Errorf("expected i/n with i from 1 to n, auto, auto/n or all, found %q", text)
	if text == "all" {
		return Shard{}, nil
	}
	index, count, parted := strings.Cut(text, "/")
	n := 0
	if parted {
		var err error
		if n, err = strconv.Atoi(count); err != nil || n < 1 {
			return Shard{}, wrong
		}
	}
	if index == "auto" {
		return detect(n, getenv)
	}
	i, err := strconv.Atoi(index)
	if !parted || err != nil || i < 1 || i > n {
		return Shard{}, wrong
	}
	return Shard{i, n}, nil
}

// schedulers say in variables of the environment which task this is, and some
// also of how many.
var schedulers = []struct{ name, task, first, count string }{
	{"a Slurm array", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT"},
	{"a Kubernetes Indexed Job", "JOB_COMPLETION_INDEX", "", ""},
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "", "OMPI_COMM_WORLD_SIZE"},
}

// detect finds the shard that the scheduler means; count is 0 when not given.
// Without a scheduler it is all points.
func detect(count int, getenv func(string) string) (Shard, error) {
	for _, s := range schedulers {
		if getenv(s.task) == "" {
			continue
		}
		index, err := strconv.Atoi(getenv(s.task))
		if err != nil || index < 0 {
			return Shard{}, fmt.Errorf("%s is %q, expected a number", s.task, getenv(s.task))
		}
		if s.first != "" {
			first, err := strconv.Atoi(getenv(s.first))
			if err == nil && count == 0 { // with a count, a resubmitted task keeps its number
				index -= first
			}
		}
		if count == 0 {
			count, err = strconv.Atoi(getenv(s.count))
			if err != nil || s.count == "" {
				return Shard{}, fmt.Errorf("this is task %d of %s, which does not say of how many: give --shard auto/n", index, s.name)
			}
		}
		if index >= count {
			return Shard{}, fmt.Errorf("this is task %d (from 0) of %s, but there are %d shards", index, s.name, count)
		}
		return Shard{index + 1, count}, nil
	}
	if count > 0 {
		return Shard{}, errors.New("neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX nor OMPI_COMM_WORLD_RANK is set")
	}
	return Shard{}, nil
}
