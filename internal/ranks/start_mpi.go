//go:build mpi && linux

package ranks

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// ErrNone is the error of Start in a command that was built without MPI.
var ErrNone = errors.New("this calamp was built without MPI")

// Library is the environment variable that names the MPI library to load.
const Library = "CALAMP_MPI"

// names are the libraries to look for: Open MPI's, MPICH's, which MVAPICH and Intel MPI share, and that of
// the interface which MPI 5 makes common.
var names = []string{"libmpi_abi.so.0", "libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi.so"}

// launchers are what the two families set for the processes that they start, and
// the libraries that then are the right ones.
var launchers = []struct{ variable, library string }{
	{"OMPI_COMM_WORLD_SIZE", "libmpi.so.40"},
	{"PMI_RANK", "libmpich.so.12"},
}

// mpi is a library in use. One thread calls it, the one that initialised it.
type mpi struct {
	world, bytes uintptr // handles of MPI_COMM_WORLD and MPI_BYTE
	rank, size   int
	version      string

	gather, trade, test uintptr // functions
	abort, finalize     uintptr

	work    chan func()
	aborted atomic.Int64 // an exit code above 0: end everything
}

// Start finds the ranks that mpirun or srun started. The library is that of the machine, loaded
// now: of which family it is shows in its symbols, and in what it says of itself.
func Start() (Transport, error) {
	m := &mpi{work: make(chan func())}
	started := make(chan error)
	go m.serve(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return m, nil
}

// serve calls the library for the rest of the process, on one thread.
func (m *mpi) serve(started chan<- error) {
	runtime.LockOSThread()
	err := m.start()
	started <- err
	if err != nil {
		return
	}
	for call := range m.work {
		call()
	}
}

// do has the thread of the library do something.
func (m *mpi) do(call func()) {
	done := make(chan struct{})
	m.work <- func() { defer close(done); call() }
	<-done
}

func load() (library uintptr, name string, err error) {
	candidates := names
	for _, l := range launchers {
		if os.Getenv(l.variable) != "" {
			candidates = append([]string{l.library}, names...)
			break
		}
	}
	if given := os.Getenv(Library); given != "" {
		candidates = []string{given}
	}
	for _, name := range candidates {
		// Open MPI's own modules look for its symbols among those that are global.
		if library, err = purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL); err == nil {
			return library, name, nil
		}
	}
	return 0, "", fmt.Errorf("no MPI library: looked for %s; %s=/path/to/libmpi.so names one", strings.Join(candidates, ", "), Library)
}

const (
	threadFunneled = 1 // MPI_THREAD_FUNNELED, in all of them

	// The handles of MPICH's interface, and those of MPI 5; Open MPI's are addresses.
	mpichWorld, mpichByte = 0x44000000, 0x4c00010d
	abiWorld, abiByte     = 0x101, 0x247
)

func (m *mpi) start() error {
	// Signals such as that of a nil pointer are Go's: Open MPI, and UCX below MPICH, would print them and end.
	os.Setenv("OMPI_MCA_opal_signal", "")
	os.Setenv("UCX_HANDLE_ERRORS", "none")
	os.Setenv("UCX_ERROR_SIGNALS", "")
	library, name, err := load()
	if err != nil {
		return err
	}
	find := func(function string) (address uintptr) {
		found, e := purego.Dlsym(library, function)
		if e != nil && err == nil {
			err = fmt.Errorf("%s is no MPI library of version 3 or later: it has no %s", name, function)
		}
		return found
	}
	initialise, rank, size := find("MPI_Init_thread"), find("MPI_Comm_rank"), find("MPI_Comm_size")
	version := find("MPI_Get_library_version")
	m.gather, m.trade, m.test = find("MPI_Iallgatherv"), find("MPI_Ialltoallv"), find("MPI_Test")
	m.abort, m.finalize = find("MPI_Abort"), find("MPI_Finalize")
	if err != nil {
		return err
	}
	m.version = text(version)
	_, common := purego.Dlsym(library, "MPI_Abi_get_version")
	world, open := purego.Dlsym(library, "ompi_mpi_comm_world")
	switch {
	case open == nil:
		bytes, err := purego.Dlsym(library, "ompi_mpi_byte")
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		m.world, m.bytes = world, bytes
	case common == nil && strings.Contains(name, "abi"):
		m.world, m.bytes = abiWorld, abiByte
	case strings.Contains(m.version, "MPICH") || strings.Contains(m.version, "Intel") || strings.Contains(m.version, "MVAPICH"):
		m.world, m.bytes = mpichWorld, mpichByte
	default:
		return fmt.Errorf("%s is of a kind that is not known: %s", name, m.version)
	}
	var provided, r, s int32
	if code := call(initialise, 0, 0, threadFunneled, pointer(&provided)); code != 0 {
		return fmt.Errorf("%s: MPI_Init_thread failed with code %d", name, code)
	}
	call(rank, m.world, pointer(&r))
	call(size, m.world, pointer(&s))
	m.rank, m.size = int(r), int(s)
	return nil
}

// call returns the code of a function of MPI: 0 is success. Its errors end the process by themselves.
func call(function uintptr, arguments ...uintptr) int32 {
	code, _, _ := purego.SyscallN(function, arguments...)
	return int32(code)
}

func pointer[T any](v *T) uintptr { return uintptr(unsafe.Pointer(v)) }

// text asks for the version of the library, which can be had before all else.
func text(function uintptr) string {
	raw, length := make([]byte, 8192), int32(0)
	call(function, pointer(&raw[0]), pointer(&length))
	line, _, _ := strings.Cut(string(raw[:max(0, min(int(length), len(raw)))]), "\n")
	return strings.TrimRight(line, "\x00")
}

// Rank implements [Transport].
func (m *mpi) Rank() (rank, size int) { return m.rank, m.size }

// String is what the library says it is.
func (m *mpi) String() string { return m.version }

// Gather implements [Transport].
func (m *mpi) Gather(all []byte, bounds []int) error {
	if bounds[m.size] == 0 {
		return nil
	}
	counts, places, err := counted(bounds)
	if err != nil {
		return err
	}
	// What is sent must not be where others' parts arrive, as far as MPI is concerned.
	send := append([]byte(nil), all[bounds[m.rank]:bounds[m.rank+1]]...)
	return m.wait(func(request uintptr) int32 {
		return call(m.gather, begin(send), uintptr(len(send)), m.bytes,
			begin(all), pointer(&counts[0]), pointer(&places[0]), m.bytes, m.world, request)
	}, send, all)
}

// Trade implements [Transport].
func (m *mpi) Trade(got, send []byte, taken, sent []int) error {
	getCounts, getPlaces, err := counted(taken)
	if err != nil {
		return err
	}
	sendCounts, sendPlaces, err := counted(sent)
	if err != nil {
		return err
	}
	return m.wait(func(request uintptr) int32 {
		return call(m.trade, begin(send), pointer(&sendCounts[0]), pointer(&sendPlaces[0]), m.bytes,
			begin(got), pointer(&getCounts[0]), pointer(&getPlaces[0]), m.bytes, m.world, request)
	}, got, send)
}

// counted are the lengths and places of parts as MPI counts them, in 32 bits.
func counted(bounds []int) (counts, places []int32, err error) {
	size := len(bounds) - 1
	if bounds[size] > math.MaxInt32 {
		return nil, nil, fmt.Errorf("%d bytes to be sent at once, expected at most %d: solve fewer signals at a time", bounds[size], math.MaxInt32)
	}
	counts, places = make([]int32, size), make([]int32, size)
	for r := range size {
		counts[r], places[r] = int32(bounds[r+1]-bounds[r]), int32(bounds[r])
	}
	return counts, places, nil
}

func begin(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

const (
	// attentive is how long a rank that waits looks for others all the time, and lets no more than
	// its core go. After that it sleeps in between: others may have more to do, or need this core.
	attentive = 2 * time.Millisecond
	nap       = 50 * time.Microsecond
)

// wait has the library's thread start an operation on the buffers, and waits until it is done, or
// until Abort is called.
func (m *mpi) wait(begin func(request uintptr) int32, buffers ...[]byte) (err error) {
	m.do(func() {
		var pins runtime.Pinner
		defer pins.Unpin()
		state := new(struct {
			request [2]uintptr
			done    int32
			status  [64]byte
		})
		pins.Pin(state)
		for _, b := range buffers {
			if len(b) > 0 {
				pins.Pin(&b[0])
			}
		}
		if code := begin(pointer(&state.request)); code != 0 {
			err = fmt.Errorf("%s: an operation between ranks failed with code %d", m.version, code)
			return
		}
		since := time.Now()
		for {
			call(m.test, pointer(&state.request), pointer(&state.done), pointer(&state.status))
			switch {
			case state.done != 0:
				runtime.KeepAlive(begin) // with the counts, which the operation reads until its end
				return
			case m.aborted.Load() > 0:
				call(m.abort, m.world, uintptr(m.aborted.Load()))
			case time.Since(since) > attentive:
				time.Sleep(nap)
			default:
				unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			}
		}
	})
	return err
}

const (
	// patience is how long MPI may take to end all processes.
	patience = 5 * time.Second

	// lastWords is how long mpirun has to read what a rank wrote before it is asked to end all: words and end reach it on
	// different ways, and MPICH's drops words that come second.
	lastWords = 500 * time.Millisecond
)

// Abort implements [Transport].
func (m *mpi) Abort(code int) {
	time.Sleep(lastWords)
	m.aborted.Store(int64(code))
	go m.do(func() { call(m.abort, m.world, uintptr(code)) })
	time.Sleep(patience)
	os.Exit(code)
}

// Close implements [Transport].
func (m *mpi) Close() { m.do(func() { call(m.finalize) }) }
