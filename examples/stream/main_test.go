package main

import (
	"bytes"
	"path/filepath"
	"testing"
)

func TestStream(t *testing.T) {
	var out bytes.Buffer
	if err := run(&out, filepath.Join(t.TempDir(), "S.calamp")); err != nil {
		t.Fatal(err)
	}
	const want = "samples 0 to 7: s to 1 %: true\nsamples 8 to 19: s to 1 %: true\n"
	if out.String() != want {
		t.Errorf("%sexpected\n%s", out.String(), want)
	}
}
