package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"math"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/operator"
)

// Provenance says where a result came from: the array provenance of its file, as JSON. It
// has no names of files, no times and no number of threads, so that the same data and
// settings make the same bytes.
type Provenance struct {
	Version string          `json:"version"`
	Command string          `json:"command"`            // with the flags that the result depends on
	W       string          `json:"w_sha256"`           // of M, N and the entries as float64, row by row, all little-endian
	Y       string          `json:"y_sha256,omitempty"` // the same of the readings; empty for those of a stream
	Model   json.RawMessage `json:"model"`              // as in --json, with what was learned
	Outcome *Outcome        `json:"outcome,omitempty"`  // nil for a stream
}

// Outcome is how a run ended, and what to know before trusting it.
type Outcome struct {
	Status     calamp.Status    `json:"status"`
	Reason     string           `json:"reason"`
	Iterations int              `json:"iterations"`
	Warnings   []calamp.Warning `json:"warnings"`
}

const provenanceName = "provenance"

// HashMatrix is the SHA-256 of the rows and columns, as 64-bit whole numbers, and the entries
// as float64, row by row, all little-endian: of the numbers, however they are stored. Of -0
// and 0 it is that of 0. Of a matrix that is no table it is that of what it is made of
// ([operator.Identify]).
func HashMatrix(w operator.Operator) (string, error) {
	h := sha256.New()
	if _, table := w.(operator.Matrix); table {
		hashSize(h, w)
	}
	err := operator.Identify(h, w)
	return hex.EncodeToString(h.Sum(nil)), err
}

// HashReadings is the same for readings; every NaN counts as the same.
func HashReadings(y *mat.Dense) string {
	h := sha256.New()
	hashSize(h, y)
	rows, columns := y.Dims()
	nan, raw := math.Float64bits(math.NaN()), make([]byte, 0, 8*columns)
	for row := range rows {
		raw = raw[:0]
		for _, v := range y.RawRowView(row) {
			bits := math.Float64bits(v + 0) // -0 + 0 is 0
			if v != v {
				bits = nan
			}
			raw = binary.LittleEndian.AppendUint64(raw, bits)
		}
		h.Write(raw)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func hashSize(h hash.Hash, of interface{ Dims() (rows, columns int) }) {
	rows, columns := of.Dims()
	h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(rows)), uint64(columns)))
}

func (p *Provenance) output() (output, error) {
	text, err := json.Marshal(p)
	return textOutput(provenanceName, string(text)), err
}

// textOutput is a single text, as numpy writes one.
func textOutput(name, text string) output {
	characters := []rune(text)
	return output{name, fmt.Sprintf("<U%d", len(characters)), nil, 1, func(dst []byte, _ int) ([]byte, error) {
		for _, c := range characters {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(c))
		}
		return dst, nil
	}}
}

// LoadProvenance reads where the result at path came from; nil where the file does not say.
func LoadProvenance(path string) (*Provenance, error) {
	c, err := open(path)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if c.find(provenanceName) == nil {
		return nil, nil
	}
	text, err := c.readText(provenanceName)
	if err != nil {
		return nil, err
	}
	p := &Provenance{}
	if err := json.Unmarshal([]byte(text), p); err != nil {
		return nil, c.fault(provenanceName, "not the JSON that was expected: %w", err)
	}
	return p, nil
}

// maxText bounds the bytes of a text.
const maxText = 1 << 24

func (c *container) readText(name string) (string, error) {
	a, r, err := c.start(name)
	if err != nil {
		return "", err
	}
	defer r.Close()
	if !strings.HasPrefix(a.Dtype, "<U") || a.count() != 1 || a.Bytes > maxText {
		return "", a.fault("%s is %s of dtype %s, expected text", name, a.dims(), a.Dtype)
	}
	raw, err := io.ReadAll(io.LimitReader(r, maxText))
	if err != nil {
		return "", a.fault("%w", err)
	}
	var b strings.Builder
	for ; len(raw) >= 4; raw = raw[4:] {
		if character := binary.LittleEndian.Uint32(raw); character != 0 { // zeros fill the end
			b.WriteRune(rune(character))
		}
	}
	return b.String(), nil
}
