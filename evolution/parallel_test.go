package evolution

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/calamp/calamp/internal/crash"
)

// TestParallelPanics: a panic reaches the caller, after all others are done.
func TestParallelPanics(t *testing.T) {
	var done atomic.Int64
	run := func() (err error) {
		defer crash.Catch(&err)
		parallel(20, func(i int) {
			if i == 3 {
				panic("a bug")
			}
			done.Add(1)
		})
		return nil
	}
	if err := run(); err == nil || !strings.Contains(err.Error(), "internal error: a bug (") {
		t.Error(err)
	}
	if done.Load() != 19 {
		t.Errorf("%d of the others are done", done.Load())
	}
}
