package crash

import (
	"errors"
	"strings"
	"testing"
)

func guarded(f func()) (err error) {
	defer Catch(&err)
	f()
	return nil
}

func divide(a, b int) int { return a / b }

func TestCatch(t *testing.T) {
	if err := guarded(func() {}); err != nil {
		t.Error(err)
	}
	err := guarded(func() { _ = divide(1, 0) })
	caught, ok := errors.AsType[*Error](err)
	if !ok || !strings.Contains(err.Error(), "internal error: runtime error: integer divide by zero (github.com/calamp/calamp/internal/crash.divide, crash_test.go:") {
		t.Fatal(err)
	}
	if strings.Contains(err.Error(), "\n") || !strings.Contains(string(caught.Stack), "divide") {
		t.Errorf("%q\n%s", err, caught.Stack)
	}
}

// TestCarried: a panic that is caught and thrown again elsewhere says where it
// was first.
func TestCarried(t *testing.T) {
	first := guarded(func() { _ = divide(1, 0) })
	again := guarded(func() { panic(first) })
	if again.Error() != first.Error() {
		t.Errorf("%v, at first %v", again, first)
	}
	cause := errors.New("cause")
	if err := guarded(func() { panic(cause) }); !errors.Is(err, cause) {
		t.Error(err)
	}
}
