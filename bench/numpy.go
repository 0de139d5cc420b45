package main

import (
	"bufio"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed numpy.py
var numpyScript string

// numpy is the child process with the baselines.
type numpy struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// startNumpy gives W to a Python child through a temporary file.
func startNumpy(c *config, w []float64) (*numpy, error) {
	file, err := os.CreateTemp("", "calamp-bench-*.f64")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	buffered := bufio.NewWriterSize(file, 1<<20)
	var value [8]byte
	for _, v := range w {
		binary.LittleEndian.PutUint64(value[:], math.Float64bits(v))
		if _, err := buffered.Write(value[:]); err != nil {
			return nil, err
		}
	}
	if err := buffered.Flush(); err != nil {
		return nil, err
	}
	n := &numpy{command: exec.Command(c.python, "-c", numpyScript, strconv.Itoa(c.m), strconv.Itoa(c.n), strconv.Itoa(c.p), strconv.FormatBool(c.cpu), file.Name())}
	n.command.Env = childEnvironment(os.Environ(), c.threads)
	n.command.Stderr = os.Stderr
	if n.in, err = n.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := n.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	n.out = bufio.NewReader(out)
	return n, n.command.Start()
}

// childEnvironment is ours without what would make OpenBLAS choose kernels for
// another machine, and with its number of threads.
func childEnvironment(environment []string, threads int) []string {
	kept := slices.DeleteFunc(slices.Clone(environment), func(v string) bool {
		return strings.HasPrefix(v, "OPENBLAS_") || strings.HasPrefix(v, "OMP_NUM_THREADS=")
	})
	return append(kept, "OPENBLAS_NUM_THREADS="+strconv.Itoa(threads), "OPENBLAS_VERBOSE=2")
}

// time returns the seconds that repeats runs of a variant took.
func (n *numpy) time(variant string, repeats int) (time.Duration, error) {
	if _, err := fmt.Fprintln(n.in, variant, repeats); err != nil {
		return 0, err
	}
	line, err := n.out.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("numpy: %w", err)
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
	return time.Duration(seconds * float64(time.Second)), err
}

// stop ends the child, which ends with its input.
func (n *numpy) stop() error {
	file := n.command.Args[len(n.command.Args)-1]
	defer os.Remove(file)
	if err := n.in.Close(); err != nil {
		return err
	}
	return n.command.Wait()
}
