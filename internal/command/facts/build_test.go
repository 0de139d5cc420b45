package facts

import (
	"strings"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/simd"
)

// The command's version is the library's, of a build for tests with the mark of no release.
func TestVersion(t *testing.T) {
	if got := BuildVersion().Version; !strings.HasPrefix(got, "v"+calamp.Version) {
		t.Errorf("version %s of the command, %s of the library", got, calamp.Version)
	}
}

func TestKernelInUse(t *testing.T) {
	level, err := simd.Active()
	if err != nil {
		t.Skip(err)
	}
	if got := BuildVersion().Kernel; got != level.String() {
		t.Errorf("kernel %s, in use is %s", got, level)
	}
}
