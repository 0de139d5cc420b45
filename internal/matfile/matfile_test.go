package matfile

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/calamp/calamp/internal/memory"
)

// expected is what scipy reads in a variable; nil where that is no array of numbers.
type expected struct {
	Kind   string // of numpy: f, c, i, u, b
	Shape  []int
	Values []any
	Text   *string
}

// archived calls test with every file of an archive in testdata, and what scipy reads in it.
func archived(t *testing.T, name string, test func(t *testing.T, data []byte, want map[string]json.RawMessage)) {
	t.Helper()
	archive, err := zip.OpenReader("testdata/" + name + ".zip")
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	text, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]map[string]json.RawMessage
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(f.Name, func(t *testing.T) { test(t, data, want[f.Name]) })
	}
}

// refused are files that are damaged, with what is said of them. Octave writes sparse logical
// arrays as if they were full ones, and reads others in place of them.
var refused = map[string]string{
	"sparse_logical_v6.mat": "Octave 7 writes sparse logical arrays wrongly", "sparse_logical_v7.mat": "Octave 7 writes",
	"sparse_logical_big_v6.mat": "Octave 7 writes", "sparse_logical_big_v7.mat": "Octave 7 writes",
	"bad_miuint32.mat":        "a dimension of -",
	"corrupted_zlib_data.mat": "",
	"malformed1.mat":          "",
}

func TestFilesOfOthers(t *testing.T) {
	for _, name := range []string{"scipy", "octave"} {
		read := 0
		archived(t, name, func(t *testing.T, data []byte, want map[string]json.RawMessage) {
			file := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
			version := Version(data[:min(len(data), 1024)])
			if expected := versionOf(file); version != expected {
				t.Fatalf("version %g, expected %g", version, expected)
			}
			if version != 5 {
				return
			}
			variables, err := List(bytes.NewReader(data), int64(len(data)), nil)
			values := map[string][]byte{}
			for _, v := range variables {
				var r io.Reader
				if r, err = v.Open(); err == ErrNoNumbers {
					err = nil
					continue
				} else if err != nil {
					break
				}
				if values[v.Name], err = io.ReadAll(r); err != nil {
					break
				}
				if int64(len(values[v.Name])) != v.Bytes {
					t.Errorf("%s: %d bytes, expected %d", v.Name, len(values[v.Name]), v.Bytes)
				}
			}
			if text, ok := refused[file]; ok {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("not refused: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range variables {
				compare(t, v, values[v.Name], want)
				read++
			}
		})
		t.Logf("%s: %d variables", name, read)
	}
}

// versionOf is the version by the file's name; Octave's HDF5 is not MATLAB's.
func versionOf(file string) float64 {
	for part, version := range map[string]float64{"_4_": 4, "_4.2c": 4, "version4": 4, "mat4": 4, "m4.mat": 4, "hdf5_7": 7.3, "hdf5.mat": 0} {
		if strings.Contains(file, part) {
			return version
		}
	}
	return 5
}

// compare compares a variable with what scipy reads in it.
func compare(t *testing.T, v *Variable, raw []byte, want map[string]json.RawMessage) {
	t.Helper()
	text, ok := want[v.Name]
	if !ok {
		t.Logf("scipy does not read %s (%s, %v): %s", v.Name, v.Dtype, v.Shape, want[""])
		return
	}
	var e *expected
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	if e == nil || e.Text == nil && strings.HasPrefix(v.Dtype, "<U") {
		if raw != nil && !strings.HasPrefix(v.Dtype, "<U") {
			t.Errorf("%s: %s, where scipy reads no numbers", v.Name, v.Dtype)
		}
		return
	}
	if e.Text != nil {
		if got := line(raw); strings.HasPrefix(v.Dtype, "<U") && got != *e.Text {
			t.Errorf("%s: %q, expected %q", v.Name, got, *e.Text)
		}
		return
	}
	if raw == nil {
		t.Errorf("%s: %s, where scipy reads numbers", v.Name, v.Dtype)
		return
	}
	if !slices.Equal(v.Shape, e.Shape) {
		t.Errorf("%s: shape %v, expected %v", v.Name, v.Shape, e.Shape)
	}
	kind, parts := v.Dtype[1:], 1
	if kind[0] == 'c' {
		size, _ := strconv.Atoi(kind[1:])
		kind, parts = fmt.Sprintf("f%d", size/2), 2
	}
	if w := width(kind); len(raw) != len(e.Values)*w {
		t.Fatalf("%s: %d bytes of %s, expected %d values of %d parts", v.Name, len(raw), v.Dtype, len(e.Values), parts)
	}
	for k, want := range e.Values {
		if got := get(raw[k*width(kind):], kind); !same(got, want) {
			t.Errorf("%s: value %d is %v, expected %v", v.Name, k, got, want)
		}
	}
}

func line(raw []byte) string {
	var b strings.Builder
	for i := 0; i+4 <= len(raw); i += 4 {
		if c := binary.LittleEndian.Uint32(raw[i:]); c != 0 {
			b.WriteRune(rune(c))
		}
	}
	return b.String()
}

func same(got float64, want any) bool {
	switch want := want.(type) {
	case float64:
		return got == want
	case bool:
		return (got != 0) == want
	case string:
		v, err := strconv.ParseFloat(want, 64)
		return err == nil && (got == v || math.IsNaN(got) && math.IsNaN(v))
	}
	return false
}

// readAll reads every variable of a file of version 5.
func readAll(data []byte) ([]*Variable, [][]byte, error) {
	list, err := List(bytes.NewReader(data), int64(len(data)), nil)
	if err != nil {
		return nil, nil, err
	}
	values := make([][]byte, len(list))
	for k, v := range list {
		r, err := v.Open()
		if err == ErrNoNumbers {
			continue
		}
		if err != nil {
			return list, values, err
		}
		if values[k], err = io.ReadAll(r); err != nil {
			return list, values, err
		}
	}
	return list, values, nil
}

// TestChangedBit changes every bit of a compressed array: none may go unnoticed but for those of
// the file's text, and of the level of compression.
func TestChangedBit(t *testing.T) {
	archived(t, "octave", func(t *testing.T, data []byte, _ map[string]json.RawMessage) {
		if !strings.HasSuffix(t.Name(), "/double_v7.mat") {
			return
		}
		for at := headerSize; at < len(data); at++ {
			for bit := range 8 {
				changed := bytes.Clone(data)
				changed[at] ^= 1 << bit
				_, want, _ := readAll(data)
				if _, got, err := readAll(changed); err == nil && !slices.EqualFunc(got, want, bytes.Equal) {
					t.Errorf("bit %d of byte %d goes unnoticed", bit, at)
				}
			}
		}
	})
}

// TestCutShort cuts files everywhere.
func TestCutShort(t *testing.T) {
	archived(t, "octave", func(t *testing.T, data []byte, _ map[string]json.RawMessage) {
		if Version(data) != 5 || !strings.Contains(t.Name(), "_v") {
			return
		}
		_, want, wrong := readAll(data)
		if wrong != nil {
			return
		}
		for n := headerSize + 1; n < len(data)-8; n++ { // the last eight can be padding
			_, got, err := readAll(data[:n])
			if err == nil && len(got) == len(want) {
				t.Errorf("%d of %d bytes are read", n, len(data))
			}
		}
	})
}

func TestWriteIsRead(t *testing.T) {
	var floats []byte
	for k := range 6 {
		floats = put(floats, "f8", float64(k)/7)
	}
	arrays := []Array{
		{Name: "a", Dtype: "<f8", Shape: []int{2, 3}, Data: floats},
		{Name: "v", Dtype: "<f4", Shape: []int{3}, Data: floats[:12]},
		{Name: "one", Dtype: "<f8", Data: floats[8:16]},
		{Name: "b", Dtype: "|b1", Shape: []int{3}, Data: []byte{1, 0, 1}},
		{Name: "t", Text: "größer 𝔸"},
	}
	var file bytes.Buffer
	if err := Write(&file, arrays); err != nil {
		t.Fatal(err)
	}
	list, values, err := readAll(file.Bytes())
	if err != nil || len(list) != len(arrays) {
		t.Fatal(len(list), err)
	}
	for k, v := range list {
		a := arrays[k]
		if a.Text != "" {
			if got := line(values[k]); got != a.Text {
				t.Errorf("%q, expected %q", got, a.Text)
			}
			continue
		}
		if v.Name != a.Name || v.Dtype != a.Dtype || !bytes.Equal(values[k], a.Data) || count(v.Shape) != count(a.Shape) {
			t.Errorf("%+v, expected %+v", v, a)
		}
	}
}

// FuzzList reads any bytes after a sound header, in both byte orders, and as the inside of a compressed variable: no panic, no
// more values than were said, and no more memory than four times the file and what is allowed.
func FuzzList(f *testing.F) {
	for _, name := range []string{"scipy", "octave"} {
		archive, err := zip.OpenReader("testdata/" + name + ".zip")
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.File {
			r, err := file.Open()
			if err != nil {
				f.Fatal(err)
			}
			data, err := io.ReadAll(r)
			if err != nil {
				f.Fatal(err)
			}
			if Version(data[:min(len(data), 1024)]) == 5 && len(data) < 4000 {
				f.Add(data[headerSize:], data[126] == 'M', false, uint16(0))
			}
		}
		archive.Close()
	}
	le := binary.LittleEndian
	for _, v := range []struct{ class, rows, columns uint32 }{{6, 1 << 20, 16}, {5, math.MaxInt32, 0}, {5, 0, math.MaxInt32}, {6 | 0x800, 1 << 20, 4}, {4, 1, 1 << 24}} {
		inside := appendElement(nil, 6, le.AppendUint64(nil, uint64(v.class)))
		inside = appendElement(inside, 5, le.AppendUint32(le.AppendUint32(nil, v.rows), v.columns))
		inside = appendTag(appendElement(inside, 1, []byte("W")), 9, 1<<27)
		f.Add(append(appendTag(nil, matrixType, 1<<28), inside...), false, true, uint16(60000))
	}
	f.Fuzz(func(t *testing.T, inside []byte, big, deflated bool, zeros uint16) {
		header := append(make([]byte, 124), "\x00\x01IM"...)
		order := binary.ByteOrder(binary.LittleEndian)
		if big {
			header, order = append(header[:124], "\x01\x00MI"...), binary.BigEndian
		}
		if deflated { // with zeros behind it, of which nothing is left: 8 MB at most, for which a machine with much else to do takes a second
			var b bytes.Buffer
			z := zlib.NewWriter(&b)
			z.Write(inside)
			piece := make([]byte, 128)
			for range zeros {
				z.Write(piece)
			}
			z.Close()
			tag := make([]byte, 8)
			order.PutUint32(tag, compressedType)
			order.PutUint32(tag[4:], uint32(b.Len()))
			inside = append(tag, b.Bytes()...)
		}
		data := append(header, inside...)
		const allowed, fixed = 1 << 20, 1 << 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		variables := readEach(t, data, allowed)
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		if took > 10*time.Second {
			t.Errorf("%v for %d bytes", took, len(data))
		}
		// A buffer that grows is there twice; a decompressor takes 50 KB, and there is one for all headers.
		most := uint64(2*max(allowed, memory.OfFile*len(data)) + fixed + variables*100<<10)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > most {
			t.Errorf("%d bytes allocated for %d, expected at most %d", allocated, len(data), most)
		}
	})
}

// readEach reads all variables of a file, and returns how many there may be at most.
func readEach(t *testing.T, data []byte, most memory.Size) int {
	allowed := memory.Allow(most)
	allowed.File(int64(len(data)))
	list, err := List(bytes.NewReader(data), int64(len(data)), allowed)
	if err != nil {
		return 1
	}
	for _, v := range list {
		if v.Bytes > 1<<26 {
			continue // who wants these values counts them first
		}
		r, err := v.Open()
		if err != nil {
			continue
		}
		if n, err := io.Copy(io.Discard, r); err == nil && n != v.Bytes {
			t.Errorf("%s: %d bytes, expected %d", v.Name, n, v.Bytes)
		}
	}
	return len(list) + 1
}
