package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed numpy.py
var numpyScript string

// child is a process with baselines. It finds its data in a directory, and
// answers "VARIANT REPEATS" on a line with the seconds that took.
type child struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	settle  time.Duration
	release func()
}

// startNumpy starts Python on the data in a directory.
func (b *bench) startNumpy(directory string, threads int, core bool) (*child, error) {
	verbose := "0"
	if core {
		verbose = "2" // OpenBLAS says what processor it takes this one for
	}
	return b.startChild(threads, verbose, b.python, "-c", numpyScript, directory, strconv.FormatBool(b.cpu))
}

// startGonum starts this program again, on gonum's side.
func (b *bench) startGonum(directory string, threads int) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return b.startChild(threads, "0", self, gonumCommand, directory, strconv.FormatBool(b.cpu))
}

func (b *bench) startChild(threads int, verbose, name string, args ...string) (*child, error) {
	c := &child{command: exec.Command(name, args...), release: func() {}}
	c.command.Env = childEnvironment(os.Environ(), threads, verbose)
	c.command.Stderr = &coreName{b: b}
	if threads > 1 {
		c.settle = b.settle
	}
	in, err := c.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in, c.out = in, bufio.NewReader(out)
	if err := c.command.Start(); err != nil {
		return nil, err
	}
	if threads == 1 && !b.cpu {
		pin(c.command.Process.Pid)
	}
	return c, nil
}

// coreName passes on what a child complains of, and prints OpenBLAS's answer.
type coreName struct{ b *bench }

func (c *coreName) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		if name, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("Core: ")); ok {
			c.b.printf("OpenBLAS core: %s.\n", name)
			continue
		}
		os.Stderr.Write(line)
	}
	return len(p), nil
}

// childEnvironment is ours without what would make OpenBLAS choose kernels for
// another machine, and with the number of threads.
func childEnvironment(environment []string, threads int, verbose string) []string {
	kept := slices.DeleteFunc(slices.Clone(environment), func(v string) bool {
		return strings.HasPrefix(v, "OPENBLAS_") || strings.HasPrefix(v, "OMP_NUM_THREADS=") || strings.HasPrefix(v, "GOMAXPROCS=")
	})
	count := strconv.Itoa(threads)
	return append(kept, "OPENBLAS_NUM_THREADS="+count, "GOMAXPROCS="+count, "OPENBLAS_VERBOSE="+verbose)
}

// variant is one of the child's.
func (c *child) variant(name, command string) *variant {
	return &variant{name: name, settle: c.settle, f: func(repeats int) (time.Duration, error) { return c.time(command, repeats) }}
}

func (c *child) time(variant string, repeats int) (time.Duration, error) {
	if _, err := fmt.Fprintln(c.in, variant, repeats); err != nil {
		return 0, err
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("%s: %w", filepath.Base(c.command.Path), err)
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
	return time.Duration(seconds * float64(time.Second)), err
}

// stop ends the child, which ends with its input.
func (c *child) stop() error {
	if err := c.in.Close(); err != nil {
		return err
	}
	return c.command.Wait()
}

// writeFloats writes values where a child finds them.
func writeFloats(directory, name string, values []float64) error {
	file, err := os.Create(filepath.Join(directory, name+".f64"))
	if err != nil {
		return err
	}
	defer file.Close()
	buffered := bufio.NewWriterSize(file, 1<<20)
	var bits [8]byte
	for _, v := range values {
		binary.LittleEndian.PutUint64(bits[:], math.Float64bits(v))
		if _, err := buffered.Write(bits[:]); err != nil {
			return err
		}
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return file.Close()
}

func readFloats(directory, name string) ([]float64, error) {
	raw, err := os.ReadFile(filepath.Join(directory, name+".f64"))
	if err != nil {
		return nil, err
	}
	values := make([]float64, len(raw)/8)
	for i := range values {
		values[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
	}
	return values, nil
}

// scratch makes a directory for a child's data, in which "shape" holds the
// numbers given.
func scratch(shape ...float64) (string, error) {
	directory, err := os.MkdirTemp("", "calamp-bench-")
	if err != nil {
		return "", err
	}
	return directory, writeFloats(directory, "shape", shape)
}
