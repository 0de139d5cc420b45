// Command release builds everything that is published: archives for six platforms, Debian packages, wheels for
// Python, a list of what is in them (SBOM), and checksums. Run it in the root of the repository:
//
//	go run ./internal/release -out dist           everything
//	go run ./internal/release -out dist -wheel    the wheels alone; -host: for this machine alone
//
// It needs Go with the modules, and no network; the same commit gives the same bytes in any folder.
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	number "github.com/calamp/calamp/internal/version"
)

// source is the commit that is built.
type source struct {
	version  string // v1.2.3, or v1.2.3-TIME-REVISION before that is released
	revision string
	time     time.Time // of all files
}

// platform is what is built for.
type platform struct{ system, machine string }

func (p platform) String() string { return p.system + "_" + p.machine }

// platforms of the archives.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

func main() {
	out := flag.String("out", "dist", "folder for what is built")
	wheels := flag.Bool("wheel", false, "build only wheels")
	host := flag.Bool("host", false, "build only for this machine")
	version := flag.String("version", "", "another version than that of internal/version: v1.2.3")
	flag.Parse()
	if err := release(*out, *wheels, *host, *version); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func release(out string, onlyWheels, onlyHost bool, version string) error {
	from, err := sourceOf(version)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	b := &builder{source: from, out: out}
	defer b.close()
	if b.work, err = os.MkdirTemp("", "calamp-release-"); err != nil {
		return err
	}
	chosen := slices.Clone(platforms)
	if onlyHost {
		chosen = []platform{{runtime.GOOS, runtime.GOARCH}}
	}
	for _, p := range chosen {
		if _, ok := wheelTags[p]; ok {
			if err := b.wheel(p); err != nil {
				return fmt.Errorf("wheel for %v: %w", p, err)
			}
		}
	}
	if !onlyWheels {
		if err := b.pages(); err != nil {
			return err
		}
		for _, p := range chosen {
			if err := b.archive(p); err != nil {
				return fmt.Errorf("archive for %v: %w", p, err)
			}
		}
		if err := b.bill(chosen); err != nil {
			return err
		}
	}
	return b.checksums()
}

// sourceOf takes the version from package version. The tag of a commit that has one must agree. What has no tag comes
// before that release, in order of the time of the commit. Another version is -version alone, outside of git or for tests.
func sourceOf(version string) (source, error) {
	revision, err := git("rev-parse", "HEAD")
	if err != nil {
		if version == "" {
			version = "v" + number.Number
		}
		return source{version: version, time: time.Unix(0, 0).UTC()}, nil
	}
	seconds, err := git("log", "-1", "--format=%ct")
	if err != nil {
		return source{}, err
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return source{}, err
	}
	s := source{version: version, revision: revision, time: time.Unix(at, 0).UTC()}
	if s.version == "" {
		if tag, err := git("describe", "--exact-match", "--tags", "--match", "v[0-9]*"); err == nil {
			if s.version = tag; tag != "v"+number.Number && !strings.HasPrefix(tag, "v"+number.Number+"-") {
				return source{}, fmt.Errorf("the tag is %s, and internal/version says %s", tag, number.Number)
			}
		} else {
			s.version = "v" + number.Number + "-" + s.time.Format("20060102150405") + "-" + revision[:12]
		}
	}
	if !regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(s.version) {
		return source{}, fmt.Errorf("version %q, expected v1.2.3", s.version)
	}
	if changed, err := git("status", "--porcelain", "--untracked-files=no"); err != nil || changed != "" {
		s.version += "+changed"
	}
	return s, nil
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	return strings.TrimSpace(string(out)), err
}

// builder builds, and remembers what it has built.
type builder struct {
	source
	out, work string
	built     []string // names in out
}

func (b *builder) close() {
	if b.work != "" {
		os.RemoveAll(b.work)
	}
}

// command builds the command for a platform, with build tags, and returns its path.
func (b *builder) command(p platform, tags string) (string, error) {
	path := filepath.Join(b.work, p.String()+"-"+tags, "calamp")
	if p.system == "windows" {
		path += ".exe"
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	const facts = "github.com/calamp/calamp/internal/command/facts."
	set := fmt.Sprintf(" -X %srelease=%s -X %srevision=%s -X %srevisionTime=%s", facts, b.version, facts, b.revision, facts, b.time.Format(time.RFC3339))
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", tags, "-ldflags", "-s -w -buildid="+set, "-o", path, "./cmd/calamp")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.system, "GOARCH="+p.machine, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly", "GOPROXY=off", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}

// write writes a file of the release.
func (b *builder) write(name string, content []byte) error {
	b.built = append(b.built, name)
	fmt.Printf("%10d  %s\n", len(content), name)
	return os.WriteFile(filepath.Join(b.out, name), content, 0o666)
}

// checksums of all, as sha256sum -c reads them.
func (b *builder) checksums() error {
	var text strings.Builder
	slices.Sort(b.built)
	for _, name := range b.built {
		content, err := os.ReadFile(filepath.Join(b.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(content), name)
	}
	return os.WriteFile(filepath.Join(b.out, "SHA256SUMS"), []byte(text.String()), 0o666)
}
