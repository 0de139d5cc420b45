package facts

import (
	"testing"

	"github.com/calamp/calamp/internal/simd"
)

func TestKernelInUse(t *testing.T) {
	level, err := simd.Active()
	if err != nil {
		t.Skip(err)
	}
	if got := BuildVersion().Kernel; got != level.String() {
		t.Errorf("kernel %s, in use is %s", got, level)
	}
}
