package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"calamp": main, "arrays": arrays})
}

func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:             "testdata/script",
		ContinueOnError: true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":     cmdExits,
			"finite":    cmdFinite,
			"json":      cmdJSON,
			"mkproblem": cmdMkproblem,
			"mkpng":     cmdMkpng,
			"mkarrays":  cmdMkarrays,
			"cut":       cmdCut,
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "devfull":
				_, err := os.Stat("/dev/full")
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}

// cmdExits is "exits N command…": the command must exit with the code N.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N command…")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		failed, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		code = failed.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, expected %s", code, args[0])
	}
}

var notFinite = regexp.MustCompile(`\b(NaN|nan|[+-]?Inf|[+-]?inf)\b`)

// cmdFinite is "finite FILE…": no NaN and no Inf in arrays or text.
func cmdFinite(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		if filepath.Ext(name) != ".npz" {
			if bad := notFinite.FindString(ts.ReadFile(name)); bad != "" {
				ts.Fatalf("%s in %s", bad, name)
			}
			continue
		}
		infos, err := dataset.Inspect(ts.MkAbs(name))
		ts.Check(err)
		for _, info := range infos {
			if strings.HasPrefix(info.Dtype, "<U") {
				continue // text
			}
			a, err := dataset.LoadArray(ts.MkAbs(name), info.Name)
			ts.Check(err)
			for i, v := range a.Data {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					ts.Fatalf("%s: value %d of %s is %g", name, i, info.Name, v)
				}
			}
		}
	}
}

// cmdJSON is "json FILE path op value": path is a.b.0.c, op is ==, < or >, or
// ! with no value for a field that must not be there.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: json FILE path op value")
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &v))
	for _, key := range strings.Split(args[1], ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			k, err := strconv.Atoi(key)
			ts.Check(err)
			if k >= len(at) {
				ts.Fatalf("%s has %d entries", args[1], len(at))
			}
			v = at[k]
		default:
			v = nil
		}
	}
	if args[2] == "!" {
		if v != nil {
			ts.Fatalf("%s is %v", args[1], v)
		}
		return
	}
	ok := fmt.Sprint(v) == args[3]
	if want, err := strconv.ParseFloat(args[3], 64); err == nil && args[2] != "==" {
		found, isNumber := v.(float64)
		ok = isNumber && (args[2] == "<" && found < want || args[2] == ">" && found > want)
	}
	if !ok {
		ts.Fatalf("%s is %v, expected %s %s", args[1], v, args[2], args[3])
	}
}

func cmdMkpng(ts *testscript.TestScript, neg bool, args []string) {
	var b bytes.Buffer
	ts.Check(png.Encode(&b, image.NewGray(image.Rect(0, 0, 4, 4))))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o666))
}

// cmdCut is "cut FILE N": only the first N bytes stay.
func cmdCut(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), int64(n)))
}

// array is an array of a file to be made, in whatever type.
type array struct {
	name  string
	descr string
	rows  int
	cols  int // 0 for a vector
	data  []float64
}

// cmdMkproblem is "mkproblem FILE edit…": a good small problem, made bad:
//
//	m=60 n=50 p=4    size, before all other edits
//	W[3,4]=nan       an entry, or with * a row or column
//	Y.T              transposed
//	X0:40x3 s0:7     resized
//	-W               left out
//	W=string         of another type: string, object, complex, single, big
//	W>w              renamed
//
// A FILE .npy or .csv holds the one array that is left.
func cmdMkproblem(ts *testscript.TestScript, neg bool, args []string) {
	arrays, edits := smallProblem(ts, args[1:])
	for _, edit := range edits {
		arrays = editArray(ts, arrays, edit)
	}
	path := ts.MkAbs(args[0])
	var content []byte
	switch filepath.Ext(path) {
	case ".npz":
		content = archiveOf(ts, arrays)
	case ".npy":
		content = arrays[0].npy()
	case ".csv":
		content = arrays[0].csv()
	}
	ts.Check(os.WriteFile(path, content, 0o666))
}

func smallProblem(ts *testscript.TestScript, edits []string) ([]*array, []string) {
	size := map[string]int{"m": 60, "n": 50, "p": 4}
	for len(edits) > 0 {
		name, value, _ := strings.Cut(edits[0], "=")
		if _, ok := size[name]; !ok {
			break
		}
		v, err := strconv.Atoi(value)
		ts.Check(err)
		size[name] = v
		edits = edits[1:]
	}
	m, n, p := size["m"], size["n"], size["p"]
	in, err := teacher.Teacher{
		N: n, M: m, P: p, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1},
		Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-6,
	}.Draw(1)
	ts.Check(err)
	w := &array{"W", "<f8", m, n, make([]float64, m*n)}
	for mu := range m {
		in.W.RowInto(w.data[mu*n:(mu+1)*n], mu)
	}
	of := func(name string, a *mat.Dense) *array {
		rows, cols := a.Dims()
		return &array{name, "<f8", rows, cols, slices.Clone(a.RawMatrix().Data)}
	}
	return []*array{w, of("Y", in.Y), of("X0", in.Truth.X), {"s0", "<f8", m, 0, in.Truth.S}}, edits
}

var (
	entryEdit  = regexp.MustCompile(`^(\w+)\[(\d+|\*),(\d+|\*)\]=(.+)$`)
	resizeEdit = regexp.MustCompile(`^(\w+):(\d+)(?:x(\d+))?$`)
)

func editArray(ts *testscript.TestScript, arrays []*array, edit string) []*array {
	find := func(name string) *array {
		i := slices.IndexFunc(arrays, func(a *array) bool { return a.name == name })
		if i < 0 {
			ts.Fatalf("no array %q for the edit %s", name, edit)
		}
		return arrays[i]
	}
	if name, ok := strings.CutPrefix(edit, "-"); ok {
		return slices.DeleteFunc(arrays, func(a *array) bool { return a.name == name })
	}
	if name, ok := strings.CutSuffix(edit, ".T"); ok {
		find(name).transpose()
	} else if m := entryEdit.FindStringSubmatch(edit); m != nil {
		v, err := strconv.ParseFloat(m[4], 64)
		ts.Check(err)
		find(m[1]).set(m[2], m[3], v)
	} else if m := resizeEdit.FindStringSubmatch(edit); m != nil {
		a := find(m[1])
		a.rows, _ = strconv.Atoi(m[2])
		a.cols, _ = strconv.Atoi(m[3])
		a.data = make([]float64, a.rows*max(a.cols, 1))
		for i := range a.data {
			a.data[i] = 1
		}
	} else if name, to, ok := strings.Cut(edit, ">"); ok {
		find(name).name = to
	} else if name, kind, ok := strings.Cut(edit, "="); ok {
		find(name).descr = map[string]string{"string": "<U4", "object": "|O", "complex": "<c16", "single": "<f4", "big": ">f8"}[kind]
	} else {
		ts.Fatalf("unknown edit %s", edit)
	}
	return arrays
}

func (a *array) transpose() {
	b := make([]float64, len(a.data))
	for i := range a.rows {
		for k := range a.cols {
			b[k*a.rows+i] = a.data[i*a.cols+k]
		}
	}
	a.rows, a.cols, a.data = a.cols, a.rows, b
}

func (a *array) set(row, col string, v float64) {
	for i := range a.rows {
		for k := range max(a.cols, 1) {
			if (row == "*" || row == strconv.Itoa(i)) && (col == "*" || col == strconv.Itoa(k)) {
				a.data[i*max(a.cols, 1)+k] = v
			}
		}
	}
}

func (a *array) npy() []byte {
	shape := fmt.Sprintf("(%d, %d)", a.rows, a.cols)
	if a.cols == 0 {
		shape = fmt.Sprintf("(%d,)", a.rows)
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", a.descr, shape)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	out = append(out, header...)
	for _, v := range a.data {
		switch a.descr {
		case "<f4":
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v)))
		case ">f8":
			out = binary.BigEndian.AppendUint64(out, math.Float64bits(v))
		case "<f8":
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
		default: // of 16 bytes, and never to be read
			out = append(out, make([]byte, 16)...)
		}
	}
	return out
}

func (a *array) csv() []byte {
	var b bytes.Buffer
	for i := range a.rows {
		for k := range a.cols {
			if k > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%.17g", a.data[i*a.cols+k])
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func archiveOf(ts *testscript.TestScript, arrays []*array) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, a := range arrays {
		w, err := z.CreateHeader(&zip.FileHeader{Name: a.name + ".npy", Method: zip.Deflate})
		ts.Check(err)
		_, err = w.Write(a.npy())
		ts.Check(err)
	}
	ts.Check(z.Close())
	return b.Bytes()
}

// cmdMkarrays is "mkarrays FILE NAME=1,2,3…": a .npz with these vectors; NAME:=1 is a
// single number.
func cmdMkarrays(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: mkarrays FILE NAME=1,2,3…")
	}
	var vectors []dataset.Vector
	for _, arg := range args[1:] {
		name, list, _ := strings.Cut(arg, "=")
		v := dataset.Vector{Name: strings.TrimSuffix(name, ":"), Scalar: strings.HasSuffix(name, ":")}
		for _, text := range strings.Split(list, ",") {
			x, err := strconv.ParseFloat(text, 64)
			ts.Check(err)
			v.Values = append(v.Values, x)
		}
		vectors = append(vectors, v)
	}
	ts.Check(dataset.WriteFile(ts.MkAbs(args[0]), func(w io.Writer) error { return dataset.WriteVectors(w, vectors...) }))
}
