package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time that this thread has used.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// ticks is how many of the kernel's units of processor time make a second.
const ticks = 100

// used is processor time in seconds since some moment, at one moment: all of
// the machine's, and what this process and its children had of it.
type used struct {
	at         time.Time
	total, own float64
}

// usage reads processor times. What other virtual machines took counts too.
func usage(pids []int) used {
	u := used{at: time.Now()}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return u
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	for i, f := range strings.Fields(line)[1:] {
		const idle, ioWait, guest = 3, 4, 8 // guests' time is in the users'
		if v, err := strconv.ParseFloat(f, 64); err == nil && i != idle && i != ioWait && i < guest {
			u.total += v / ticks
		}
	}
	u.own = processTime("self")
	for _, pid := range pids {
		u.own += processTime(strconv.Itoa(pid))
	}
	return u
}

func processTime(pid string) float64 {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // from the third on
	user, _ := strconv.ParseFloat(string(fields[11]), 64)
	system, _ := strconv.ParseFloat(string(fields[12]), 64)
	return (user + system) / ticks
}

// others is how many processors other processes have used since.
func (u used) others(since used) float64 {
	return max(0, (u.total-since.total)-(u.own-since.own)) / u.at.Sub(since.at).Seconds()
}

// pin puts a process, or this thread if pid is 0, on the last of its processors;
// the function it returns lets it go.
func pin(pid int) (release func()) {
	var all unix.CPUSet
	if unix.SchedGetaffinity(pid, &all) != nil {
		return func() {}
	}
	last := 0
	for i := range 8 * len(all) * 8 {
		if all.IsSet(i) {
			last = i
		}
	}
	var one unix.CPUSet
	one.Set(last)
	if unix.SchedSetaffinity(pid, &one) != nil {
		return func() {}
	}
	return func() { unix.SchedSetaffinity(pid, &all) }
}

// processor is the name of the machine's.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	field := func(name string) string {
		for line := range strings.Lines(string(info)) {
			key, v, ok := strings.Cut(line, ":")
			if ok && strings.TrimSpace(key) == name {
				return strings.TrimSpace(v)
			}
		}
		return "?"
	}
	return fmt.Sprintf("%s (family %s, model %s)", field("model name"), field("cpu family"), field("model"))
}

// load says how busy the machine is.
func load() string {
	v, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown load"
	}
	first, _, _ := strings.Cut(string(v), " ")
	return "load average at the start " + first
}
