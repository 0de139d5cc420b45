package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/sbinet/npyio/npy"
	"gonum.org/v1/gonum/mat"
)

// Names of the files in a problem's folder.
const (
	problemFile  = "P.npz"
	matrixFile   = "W.npy"
	readingsFile = "Y.npy"
	signalsFile  = "X.npy"
	framesFile   = "frames.f8"
	linesFile    = "lines.jsonl"
	stateFile    = "S.calamp" // in the folders of the two commands
)

// readings are Y of a problem, M×P, a row a sensor.
type readings struct {
	m, p   int
	values []float64
	random *rand.Rand
}

func (y *readings) row(sensor int) []float64 { return y.values[sensor*y.p : (sensor+1)*y.p] }

// seed depends on the name alone, so that problems can be added between others.
func (p *problem) seed() uint64 {
	h := fnv.New32a()
	h.Write([]byte(p.name))
	return uint64(h.Sum32())
}

// create makes the files of a problem in its folder, with the earlier command.
func (b *pair) create(ctx context.Context, p *problem) error {
	folder := b.folder(p)
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(p.seed(), 1))
	if p.signals != nil {
		if err := writeArray(filepath.Join(folder, signalsFile), p.signals(random)); err != nil {
			return err
		}
	}
	seed := strconv.FormatUint(p.seed(), 10)
	f, err := execute(ctx, b.before, folder, "", append(p.simulate, "-q", "--seed", seed, "-o", problemFile))
	if err != nil {
		return err
	}
	if f.code != 0 {
		return fmt.Errorf("simulate: exit code %d: %s", f.code, f.stderr)
	}
	if p.edit != nil || p.apart {
		return p.take(folder, random)
	}
	return nil
}

// take takes a problem apart, edits its readings, and writes what it needs.
func (p *problem) take(folder string, random *rand.Rand) error {
	path := filepath.Join(folder, problemFile)
	arrays, err := readArrays(path)
	if err != nil {
		return err
	}
	y, err := readingsOf(arrays["Y"])
	if err != nil {
		return err
	}
	y.random = random
	if p.edit != nil {
		p.edit(y)
	}
	var encoded bytes.Buffer
	if err := npy.Write(&encoded, mat.NewDense(y.m, y.p, y.values)); err != nil {
		return err
	}
	arrays["Y"].bytes = encoded.Bytes()
	if !p.apart {
		return writeArrays(path, arrays)
	}
	return errors.Join(
		os.WriteFile(filepath.Join(folder, matrixFile), arrays["W"].bytes, 0o644),
		os.WriteFile(filepath.Join(folder, readingsFile), arrays["Y"].bytes, 0o644),
		y.write(filepath.Join(folder, framesFile), writeFrame),
		y.write(filepath.Join(folder, linesFile), writeLine))
}

func readingsOf(a *array) (*readings, error) {
	n, err := npy.NewReader(bytes.NewReader(a.bytes))
	if err != nil {
		return nil, err
	}
	shape := n.Header.Descr.Shape
	if len(shape) != 2 || n.Header.Descr.Fortran || a.values == nil {
		return nil, fmt.Errorf("readings of shape %s, expected M×P numbers in C order", a.shape)
	}
	return &readings{m: shape[0], p: shape[1], values: a.values}, nil
}

func writeArray(path string, values *mat.Dense) error {
	var encoded bytes.Buffer
	if err := npy.Write(&encoded, values); err != nil {
		return err
	}
	return os.WriteFile(path, encoded.Bytes(), 0o644)
}

func writeArrays(path string, arrays map[string]*array) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	z := zip.NewWriter(file)
	for _, name := range sortedKeys(arrays) {
		entry, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
		if err != nil {
			return err
		}
		if _, err := entry.Write(arrays[name].bytes); err != nil {
			return err
		}
	}
	return errors.Join(z.Close(), file.Close())
}

// write writes the readings as a stream, a column a sample.
func (y *readings) write(path string, sample func(w io.Writer, number int, values []float64) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	w := bufio.NewWriter(file)
	for column := range y.p {
		values := make([]float64, y.m)
		for sensor := range values {
			values[sensor] = y.row(sensor)[column]
		}
		if err := sample(w, column+1, values); err != nil {
			return err
		}
	}
	return errors.Join(w.Flush(), file.Close())
}

func writeFrame(w io.Writer, _ int, values []float64) error {
	return binary.Write(w, binary.LittleEndian, values)
}

func writeLine(w io.Writer, number int, values []float64) error {
	line := struct {
		Seq int        `json:"seq"`
		Y   []*float64 `json:"y"`
	}{number, make([]*float64, len(values))}
	for i := range values {
		if !math.IsNaN(values[i]) {
			line.Y[i] = &values[i]
		}
	}
	return json.NewEncoder(w).Encode(line)
}

// Edits of readings. Every step-th sensor is concerned, from the fourth on.

func each(y *readings, step int, edit func(row []float64)) {
	for sensor := 3; sensor < y.m; sensor += step {
		edit(y.row(sensor))
	}
}

func stuck(step int) func(*readings) {
	return func(y *readings) {
		each(y, step, func(row []float64) {
			for i := range row {
				row[i] = 0.7
			}
		})
	}
}

func garbage(step int) func(*readings) {
	return func(y *readings) {
		each(y, step, func(row []float64) {
			for i := range row {
				row[i] = y.random.NormFloat64()
			}
		})
	}
}

func scaled(step int, factor float64) func(*readings) {
	return func(y *readings) {
		each(y, step, func(row []float64) {
			for i := range row {
				row[i] *= factor
			}
		})
	}
}

// missing leaves out readings, each with the same probability.
func missing(fraction float64) func(*readings) {
	return func(y *readings) {
		for i := range y.values {
			if y.random.Float64() < fraction {
				y.values[i] = math.NaN()
			}
		}
	}
}

func clipped(level float64) func(*readings) {
	return func(y *readings) {
		for i, v := range y.values {
			y.values[i] = max(-level, min(level, v))
		}
	}
}

func all(edits ...func(*readings)) func(*readings) {
	return func(y *readings) {
		for _, edit := range edits {
			edit(y)
		}
	}
}

// similar are p signals that differ by a part of their size.
func similar(n, p int, part float64) func(*rand.Rand) *mat.Dense {
	return func(random *rand.Rand) *mat.Dense {
		x := mat.NewDense(n, p, nil)
		for i := range n {
			if random.Float64() > 0.2 {
				continue
			}
			v := random.NormFloat64()
			for l := range p {
				x.Set(i, l, v*(1+part*random.NormFloat64()))
			}
		}
		return x
	}
}
