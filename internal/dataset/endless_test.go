package dataset

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/calamp/calamp/internal/memory"
)

// endless is a device that gives a byte for ever, and counts what was read of it.
type endless struct {
	first []byte
	read  int
}

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	if e.read > 1<<24 {
		return 0, io.ErrUnexpectedEOF // a reader that goes on has failed
	}
	n := copy(p, e.first)
	e.first = e.first[n:]
	clear(p[n:])
	return len(p), nil
}

// TestEndlessInputIsRefusedByItsHead: a device such as /dev/zero has no end.
func TestEndlessInputIsRefusedByItsHead(t *testing.T) {
	for name, e := range map[string]*endless{
		"zeros": {}, "an image": {first: []byte("\x89PNG\r\n\x1a\n")},
	} {
		_, err := Read(e, "input")
		if err == nil || !strings.Contains(err.Error(), "expected numpy's") || e.read > 1<<16 {
			t.Errorf("%s: %v after %d bytes", name, err, e.read)
		}
	}
	// What has a known head is read whole, as before.
	var archive bytes.Buffer
	if err := WriteVectors(&archive, Vector{Name: "a", Values: make([]float64, 1000)}); err != nil {
		t.Fatal(err)
	}
	size := archive.Len()
	c, err := bufferAny(io.MultiReader(bytes.NewReader(archive.Bytes()[:10]), bytes.NewReader(archive.Bytes()[10:])), "input", memory.Half())
	if err != nil || c.size != int64(size) || len(c.entries) != 1 {
		t.Errorf("an archive of %d bytes in two pieces: %v, %v", size, c, err)
	}
}
