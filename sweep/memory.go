package sweep

import (
	"bufio"
	"math"
	"os"
	"strconv"
	"strings"
)

// Memory is about what the point needs: the matrix, and the arrays of the
// iteration.
func (p Point) Memory() Size {
	if p.Algorithm == Rehearsal && p.Rehearse.Eat != 0 && p.Seed == p.Rehearse.Eat {
		return math.MaxInt64
	}
	const base = 16e6
	if !p.Algorithm.synthetic() {
		return base
	}
	n, m, signals := float64(p.N), float64(p.sensors()), float64(p.P)
	arrays := 30 * (n + m) * signals
	if p.Covariance == "full" {
		arrays = 12 * (n + m) * signals * (signals + 2)
	}
	return Size(min(base+8*(n*m+arrays), 1e18))
}

// memory is what a point may have: by default all that the machine has, since
// what is free at the moment must not decide what becomes of a point.
func (l Limits) memory() Size {
	if l.Memory > 0 {
		return l.Memory
	}
	return machine("MemTotal:")
}

// available is how much memory is free, for how many points to run at a time.
func available() Size { return machine("MemAvailable:") }

// machine is a line of /proc/meminfo, or the limit of the container that this
// may be: a Slurm job and a pod have one. Where neither is known there is none.
func machine(line string) Size {
	size := Size(math.MaxInt64 - 1)
	if v, ok := meminfo(line); ok {
		size = v
	}
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if v, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			size = min(size, Size(v))
		}
	}
	return size
}

func meminfo(name string) (Size, bool) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 2 && fields[0] == name {
			v, err := strconv.ParseInt(fields[1], 10, 64)
			return Size(v) * 1024, err == nil
		}
	}
	return 0, false
}
