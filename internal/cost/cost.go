// Package cost says on paper what an iteration takes: memory, time, and what goes between ranks. It
// knows the sizes of a problem and the rates of machines, and measures those of this one. docs/log/performance.md
// compares it with what was measured.
package cost

import (
	"math/bits"
	"time"

	"github.com/calamp/calamp/operator"
)

// Problem is the size of a problem with a table W.
type Problem struct {
	M, N, P int
	Single  bool // W is in single precision in its file
}

// Rates are what a machine does.
type Rates struct {
	// Bytes, Single and Double are the seconds that a sweep takes an entry of W, with all signals, on the threads of one rank:
	// one of the usual ones, over bytes or in single precision and without the squares of W, and one of the others.
	Bytes, Single, Double float64

	// Beside is what all else takes, in seconds for each of M·P readings and N·P entries.
	Beside float64

	Disk    float64       // bytes a second that one rank reads from its file
	Network float64       // bytes a second between one rank and the others, in each direction
	Latency time.Duration // of one message
}

// Setup is how a problem is divided.
type Setup struct {
	Ranks  int
	Memory int64 // bytes for the rows of W of a rank; a larger share stays in its file
}

// Limit is what takes most of the time of an iteration.
type Limit string

// The limits.
const (
	Arithmetic Limit = "arithmetic"    // products with W
	Reading    Limit = "disk"          // W does not fit into memory
	Sensors    Limit = "work beside W" // what every rank does for all sensors and signals
	Wire       Limit = "network"       // bytes between ranks
	Messages   Limit = "latency"       // messages between ranks
)

// Estimate is what an iteration of one rank takes; ranks do the same at the same time.
type Estimate struct {
	Setup
	Rows   int   // of W, of the rank with most
	Share  int64 // bytes of these rows in the file
	OnDisk bool  // they stay there

	Resident int64 // bytes of memory that the rank needs
	Sent     int64 // bytes that it sends in an iteration, on average

	Sweep, Disk, Beside, Network, Waiting time.Duration
	Iteration                             time.Duration // all of these
	Limit                                 Limit
}

const (
	// exactEvery is how many sweeps there are for each that has the squares of W, and is in double precision.
	exactEvery = 8

	// Numbers of double precision that a run keeps for each reading, entry of a signal and sensor,
	// with those of sweeps (r and h of eight chunks of rows) and of ranks. Found by the heap of runs: see TestMemory.
	aReading, anEntry, aSensor = 18, 67, 30

	// The same of sweeps over bytes, whose eight chunks have sums in 32 and in 64 bits, and of what they are differences to.
	byteReading, byteEntry = 2, 14
)

// Kept is the memory, in bytes, that a run of M sensors, N entries and P signals keeps beside W.
func Kept(m, n, p int) float64 {
	return 8 * (float64(p)*(aReading*float64(m)+anEntry*float64(n)) + aSensor*float64(m))
}

// On is what a problem takes on ranks with these rates.
func (p Problem) On(s Setup, r Rates) Estimate {
	e := Estimate{Setup: s}
	m, n, signals, k := float64(p.M), float64(p.N), float64(p.P), float64(s.Ranks)
	e.Rows = (p.M + s.Ranks - 1) / s.Ranks
	entry := int64(8)
	if p.Single {
		entry = 4
	}
	entries := int64(e.Rows) * int64(p.N)
	e.Share = entries * entry
	e.OnDisk = e.Share > s.Memory
	e.Resident = int64(Kept(p.M, p.N, p.P))
	switch {
	case e.OnDisk:
		e.Resident += min(s.Memory, slabs)
	case p.Single:
		e.Resident += e.Share
	default:
		e.Resident += entries * 12 // and a copy in single precision
	}

	const exact = 1.0 / exactEvery
	usual := r.Single
	switch {
	case e.OnDisk && !p.Single:
		usual = r.Double
	case !e.OnDisk && operator.BytesPay(p.M*p.N):
		usual = r.Bytes
		e.Resident += entries + int64(8*(byteReading*m*signals+byteEntry*n*signals))
	}
	e.Sweep = seconds(float64(entries) * ((1-exact)*usual + exact*r.Double))
	e.Beside = seconds((m + n) * signals * r.Beside)
	if e.OnDisk {
		e.Disk = seconds(float64(e.Share) / r.Disk)
	}
	if s.Ranks > 1 {
		others := (k - 1) / k
		columns := signals * (1 + exact)
		// W x is gathered; Wᵀg is traded, and its sum gathered (operator.Distributed).
		bytes := 8 * columns * (m + 2*n) * others
		e.Sent = int64(bytes)
		e.Network = seconds(bytes / r.Network)
		e.Waiting = meetings * time.Duration(bits.Len(uint(s.Ranks-1))) * r.Latency
	}
	e.Iteration = e.Sweep + e.Disk + e.Beside + e.Network + e.Waiting
	e.Limit = e.limit()
	return e
}

const (
	// slabs is what a sweep over a file takes of memory at most, with eight threads.
	slabs = 8 * operator.SlabBytes

	// meetings of all ranks in a sweep: where they are, W x, the trade of sums, and their gathering.
	meetings = 4
)

func (e *Estimate) limit() Limit {
	limit, most := Arithmetic, e.Sweep
	for _, c := range []struct {
		limit Limit
		time  time.Duration
	}{{Reading, e.Disk}, {Sensors, e.Beside}, {Wire, e.Network}, {Messages, e.Waiting}} {
		if c.time > most {
			limit, most = c.limit, c.time
		}
	}
	return limit
}

// Least is the smallest number of ranks that hold W in memory, and as many as that have rows; 0 if no number does.
func (p Problem) Least(memory int64, r Rates) int {
	lo, hi := 1, (p.M+3)/4
	if p.On(Setup{hi, memory}, r).OnDisk {
		return 0
	}
	for lo < hi {
		if mid := (lo + hi) / 2; p.On(Setup{mid, memory}, r).OnDisk {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
