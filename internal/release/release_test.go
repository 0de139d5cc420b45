package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPythonVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "v1.2.3-rc.1": "1.2.3rc1", "v1.2.3-beta.2": "1.2.3b2",
		"v0.1.0-20261122082452-4b0e5802d74c": "0.1.0.dev20261122082452+g4b0e5802d74c", "v0.1.0-20261122082452-4b0e5802d74c+changed": "0.1.0.dev20261122082452+g4b0e5802d74c.changed",
	} {
		if got := (&builder{source: source{version: version}}).pythonVersion(); got != want {
			t.Errorf("%s is %s, expected %s", version, got, want)
		}
	}
}

// TestArchives looks at a wheel and a Debian package with the tools that will read them, around a command that is
// none.
func TestArchives(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	b := &builder{source: source{version: "v1.2.3", time: time.Unix(1e9, 0)}, out: t.TempDir(), work: t.TempDir()}
	p := platform{"linux", "amd64"}
	for _, folder := range []string{"linux_amd64-small", "linux_amd64-", "man1"} {
		if err := os.MkdirAll(filepath.Join(b.work, folder), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"linux_amd64-small/calamp", "linux_amd64-/calamp", "man1/calamp.1", "calamp.bash", "calamp.zsh", "calamp.fish", "calamp.powershell"} {
		if err := os.WriteFile(filepath.Join(b.work, name), []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time over the first
		if err := b.wheel(p); err != nil {
			t.Fatal(err)
		}
		if err := b.archive(p); err != nil {
			t.Fatal(err)
		}
	}
	wheel, err := zip.OpenReader(filepath.Join(b.out, b.built[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer wheel.Close()
	found := map[string]bool{}
	for _, f := range wheel.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		found[f.Name] = true
		if f.Name == "calamp/bin/calamp" && (string(content) != "linux_amd64-small/calamp" || f.Mode()&0o111 == 0) {
			t.Errorf("%s: mode %v, %q", f.Name, f.Mode(), content)
		}
		if strings.HasSuffix(f.Name, "RECORD") && bytes.Count(content, []byte("\n")) != len(wheel.File) {
			t.Errorf("RECORD has not all of %d files:\n%s", len(wheel.File), content)
		}
	}
	for _, name := range []string{"calamp/__init__.py", "calamp/py.typed", "calamp-1.2.3.dist-info/METADATA", "calamp-1.2.3.dist-info/licenses/THIRD_PARTY_NOTICES"} {
		if !found[name] {
			t.Errorf("no %s in the wheel", name)
		}
	}
	for tool, args := range map[string][]string{
		"dpkg-deb": {"--contents", filepath.Join(b.out, "calamp_1.2.3_amd64.deb")},
		"tar":      {"-tvzf", filepath.Join(b.out, "calamp_1.2.3_linux_amd64.tar.gz")},
	} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Logf("no %s", tool)
			continue
		}
		out, err := exec.Command(tool, args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "-rwxr-xr-x root/root") || !strings.Contains(string(out), "calamp.1") {
			t.Errorf("%s: %v\n%s", tool, err, out)
		}
	}
	if err := b.checksums(); err != nil {
		t.Fatal(err)
	}
}
