package facts

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/calamp/calamp/internal/simd"
	"github.com/calamp/calamp/internal/version"
)

// Build is what this binary was built from.
type Build struct {
	Version      string    `json:"version"`
	Revision     string    `json:"revision,omitempty"`
	Modified     bool      `json:"modified,omitempty"` // there were changes not in Revision
	Go           string    `json:"go"`
	OS           string    `json:"os"`
	Arch         string    `json:"arch"`
	RevisionTime time.Time `json:"-"` // of Revision; zero where not known

	Kernel string `json:"kernel"` // the instruction set of the loops over W: go, avx2 or avx512
}

// What a release was built from; internal/release sets it, since it builds outside of git as well.
var release, revision, revisionTime string

// BuildVersion reads what this binary was built from: a release, a tagged module (go install …@v1.2.3), or a
// working tree, which is version.Development with its revision.
func BuildVersion() Build {
	v := Build{Version: version.Development, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Kernel: kernelInUse()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if release != "" {
		v.Version, v.Revision = release, revision
		v.RevisionTime, _ = time.Parse(time.RFC3339, revisionTime)
		return v
	}
	if info.Main.Version == "v"+version.Number {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.RevisionTime, _ = time.Parse(time.RFC3339, s.Value)
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// kernelInUse is the instruction set of the loops over W.
func kernelInUse() string {
	level, err := simd.Active()
	if err != nil {
		return fmt.Sprintf("%s (%v)", level, err)
	}
	return level.String()
}

// String is the version in a line.
func (v Build) String() string {
	return fmt.Sprintf("%s, %s, %s/%s, kernel %s", v.Source(), v.Go, v.OS, v.Arch, v.Kernel)
}

// Source is the version, and the revision where it is known.
func (v Build) Source() string {
	text := v.Version
	if v.Revision != "" {
		text += " (" + v.Revision[:min(len(v.Revision), 12)]
		if v.Modified {
			text += ", modified"
		}
		text += ")"
	}
	return text
}
