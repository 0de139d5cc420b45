// Package memory knows amounts of memory: how people write them, how much the
// machine has, and what this process holds.
package memory

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// Size is a number of bytes, at most Unlimited.
type Size int64

// Unlimited is more than any machine has.
const Unlimited Size = 1e18

// units are the suffixes of sizes, decimal and binary.
var units = []struct {
	suffix string
	factor float64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
}

// UnmarshalText reads sizes such as "500MB", "2GiB" and 4000000000.
func (s *Size) UnmarshalText(text []byte) error {
	number, factor := strings.TrimSpace(string(text)), 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, factor = strings.TrimSpace(rest), u.factor
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v*factor >= 1 && v*factor <= float64(Unlimited)) {
		return errors.New("expected a size such as 500MB or 2GiB")
	}
	*s = Size(v * factor)
	return nil
}

// MarshalText writes the number of bytes.
func (s Size) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(s), 10), nil }

// String is the size for people.
func (s Size) String() string {
	v, unit := float64(s), "B"
	for _, u := range []string{"KB", "MB", "GB", "TB"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, u
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}

// Total is the memory of the machine, or of the container this process is in (a
// Slurm job and a pod have a limit). Where neither is known there is none.
func Total() Size { return limited("MemTotal:") }

// Available is how much of it is free.
func Available() Size { return limited("MemAvailable:") }

func limited(line string) Size {
	size := Unlimited
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

// Resident is the memory that this process holds, where the system says so.
func Resident() (Size, bool) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text)) // in pages: all that is mapped, and what of it is in memory
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return Size(pages) * Size(os.Getpagesize()), err == nil
}

const (
	// spareFrom is the length of the largest arrays, in numbers, from which on a process holds little else, and sparePercent
	// how much garbage it then lets lie, in percent of what is in use. Arrays of numbers take a collection no time; with
	// the default of 100 % a process takes twice what it needs.
	spareFrom    = 1 << 20
	sparePercent = 5
)

// Spare has garbage collected early while a problem of arrays of so many numbers is solved, unless GOGC in the environment says
// when to. The caller calls done afterwards.
func Spare(numbers int) (done func()) {
	if numbers < spareFrom || os.Getenv("GOGC") != "" {
		return func() {}
	}
	was := debug.SetGCPercent(sparePercent)
	return func() { debug.SetGCPercent(was) }
}
