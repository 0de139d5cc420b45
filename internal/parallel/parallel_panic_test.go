package parallel

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/calamp/calamp/internal/crash"
)

// TestPanic: the panic of a part, in whichever goroutine, is the caller's, after
// all other parts are done; the next job is not disturbed.
func TestPanic(t *testing.T) {
	for bad := range 20 {
		var done atomic.Int32
		err := func() (err error) {
			defer crash.Catch(&err)
			Run(20, 4, func(i int) {
				if i == bad {
					panic("part is bad")
				}
				done.Add(1)
			})
			return nil
		}()
		if _, ok := errors.AsType[*crash.Error](err); !ok || !strings.Contains(err.Error(), "part is bad (github.com/calamp/calamp/internal/parallel.TestPanic") {
			t.Fatal(err)
		}
		if done.Load() != 19 {
			t.Errorf("%d other parts were done", done.Load())
		}
	}
	var done atomic.Int32
	Run(20, 4, func(int) { done.Add(1) })
	if done.Load() != 20 {
		t.Errorf("%d parts after the panics", done.Load())
	}
}
