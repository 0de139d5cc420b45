package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// file is one of an archive.
type file struct {
	name    string
	mode    fs.FileMode // 0 is 0644
	content []byte
}

func (f file) perm() fs.FileMode {
	if f.mode == 0 {
		return 0o644
	}
	return f.mode
}

// pages makes the manual pages and the completions, with a command that runs here.
func (b *builder) pages() error {
	command, err := b.command(platform{runtime.GOOS, runtime.GOARCH}, "")
	if err != nil {
		return err
	}
	man := filepath.Join(b.work, "man1")
	if err := os.MkdirAll(man, 0o777); err != nil {
		return err
	}
	if out, err := exec.Command(command, "man", man).CombinedOutput(); err != nil {
		return fmt.Errorf("calamp man: %w\n%s", err, out)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		out, err := exec.Command(command, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("calamp completion %s: %w", shell, err)
		}
		if err := os.WriteFile(filepath.Join(b.work, "calamp."+shell), out, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// contents are the files of an archive, without the command: where they lie in the repository or were made.
func (b *builder) contents() ([]file, error) {
	places := map[string]string{
		"README.md": "README.md", "CITATION.cff": "CITATION.cff", "LICENSE": "LICENSE", "THIRD_PARTY_NOTICES": "THIRD_PARTY_NOTICES", "CHANGELOG.md": "CHANGELOG.md",
		"matlab/calamp.m": "matlab/calamp.m", "Containerfile": "scripts/Containerfile",
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		places["completions/calamp."+shell] = filepath.Join(b.work, "calamp."+shell)
	}
	man, err := filepath.Glob(filepath.Join(b.work, "man1", "*.1"))
	if err != nil {
		return nil, err
	}
	for _, page := range man {
		places["man/man1/"+filepath.Base(page)] = page
	}
	var files []file
	for name, place := range places {
		content, err := os.ReadFile(place)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: name, content: content})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// archive builds what is downloaded for a platform, and for Linux the Debian package.
func (b *builder) archive(p platform) error {
	command, err := b.command(p, "")
	if err != nil {
		return err
	}
	binary, err := os.ReadFile(command)
	if err != nil {
		return err
	}
	files, err := b.contents()
	if err != nil {
		return err
	}
	if p.system == "linux" {
		if err := b.debian(p, binary, files); err != nil {
			return err
		}
	}
	files = append([]file{{filepath.Base(command), 0o755, binary}}, files...)
	name := fmt.Sprintf("calamp_%s_%v", strings.TrimPrefix(b.version, "v"), p)
	for i := range files {
		files[i].name = path.Join(name, files[i].name)
	}
	if p.system == "windows" {
		content, err := zipped(files, b.time)
		if err != nil {
			return err
		}
		return b.write(name+".zip", content)
	}
	content, err := tarred(files, b.time)
	if err != nil {
		return err
	}
	return b.write(name+".tar.gz", content)
}

// tarred is a .tar.gz in which every file has the same time and belongs to root, with the folders
// that its names need where they begin with ./, as in Debian packages.
func tarred(files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	packed, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(packed)
	made := map[string]bool{}
	for _, f := range files {
		if strings.HasPrefix(f.name, "./") {
			if err := folders(t, path.Dir(f.name), made, at); err != nil {
				return nil, err
			}
		}
		h := &tar.Header{Name: f.name, Mode: int64(f.perm()), Size: int64(len(f.content)), ModTime: at, Uname: "root", Gname: "root", Format: tar.FormatGNU}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	err = packed.Close()
	return b.Bytes(), err
}

func folders(t *tar.Writer, folder string, made map[string]bool, at time.Time) error {
	if made[folder] {
		return nil
	}
	made[folder] = true
	name := "./"
	if folder != "." {
		if err := folders(t, path.Dir(folder), made, at); err != nil {
			return err
		}
		name = "./" + folder + "/"
	}
	return t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755, ModTime: at, Uname: "root", Gname: "root", Format: tar.FormatGNU})
}

// zipped is a .zip in which every file has the same time.
func zipped(files []file, at time.Time) ([]byte, error) {
	if earliest := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC); at.Before(earliest) { // that the format has
		at = earliest
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		h.SetMode(f.perm())
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return b.Bytes(), err
}
