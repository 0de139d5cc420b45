//go:build unix

package online

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipeIsNoState: a named pipe is refused, and not waited for.
func TestPipeIsNoState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "S")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Skip(err)
	}
	for _, readOnly := range []bool{true, false} {
		if _, err := OpenStore(path, nil, &StoreOptions{ReadOnly: readOnly}); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("read only %t: %v", readOnly, err)
		}
	}
}
