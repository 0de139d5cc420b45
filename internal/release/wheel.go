package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// wheelTags are the platforms of the wheels, as the packaging standards of Python call them. The command is
// static, so that any Linux will do; the others are the oldest systems that Go supports.
var wheelTags = map[platform]string{
	{"linux", "amd64"}:   "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
	{"linux", "arm64"}:   "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
	{"darwin", "amd64"}:  "macosx_12_0_x86_64",
	{"darwin", "arm64"}:  "macosx_12_0_arm64",
	{"windows", "amd64"}: "win_amd64",
}

// pythonVersion is the version by PEP 440.
func (b *builder) pythonVersion() string {
	version := strings.TrimPrefix(b.version, "v")
	base, rest, ok := strings.Cut(version, "-")
	if !ok {
		return version
	}
	when, revision, ok := strings.Cut(rest, "-")
	if !ok { // v1.2.3-rc.1, v1.2.3-beta.2
		return base + strings.NewReplacer("rc.", "rc", "beta.", "b", "alpha.", "a").Replace(rest)
	}
	return base + ".dev" + when + "+g" + strings.ReplaceAll(revision, "+", ".")
}

// wheel builds the package for Python: its modules, and the command without NATS.
func (b *builder) wheel(p platform) error {
	command, err := b.command(p, "small")
	if err != nil {
		return err
	}
	binary, err := os.ReadFile(command)
	if err != nil {
		return err
	}
	var files []file
	err = fs.WalkDir(os.DirFS("python"), "calamp", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".py") && d.Name() != "py.typed" {
			return err
		}
		content, err := os.ReadFile(filepath.Join("python", filepath.FromSlash(name)))
		files = append(files, file{name: name, content: content})
		return err
	})
	if err != nil {
		return err
	}
	files = append(files, file{"calamp/bin/" + filepath.Base(command), 0o755, binary})
	version := b.pythonVersion()
	info := "calamp-" + version + ".dist-info/"
	readme, err := os.ReadFile("python/README.md")
	if err != nil {
		return err
	}
	metadata := fmt.Sprintf(`Metadata-Version: 2.1
Name: calamp
Version: %s
Summary: Blind calibration from sparse signals
License: BSD-3-Clause
Home-page: https://github.com/calamp/calamp
Requires-Python: >=3.9
Requires-Dist: numpy
Description-Content-Type: text/markdown

%s`, version, readme)
	tags := ""
	for _, tag := range strings.Split(wheelTags[p], ".") {
		tags += "Tag: py3-none-" + tag + "\n"
	}
	files = append(files,
		file{name: info + "METADATA", content: []byte(metadata)},
		file{name: info + "WHEEL", content: []byte("Wheel-Version: 1.0\nGenerator: calamp\nRoot-Is-Purelib: false\n" + tags)},
		file{name: info + "entry_points.txt", content: []byte("[console_scripts]\ncalamp = calamp.__main__:main\n")},
	)
	for _, name := range []string{"LICENSE", "THIRD_PARTY_NOTICES"} {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files = append(files, file{name: info + "licenses/" + name, content: content})
	}
	record := ""
	for _, f := range files {
		sum := sha256.Sum256(f.content)
		record += fmt.Sprintf("%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.content))
	}
	files = append(files, file{name: info + "RECORD", content: []byte(record + info + "RECORD,,\n")})
	content, err := zipped(files, b.time)
	if err != nil {
		return err
	}
	return b.write(fmt.Sprintf("calamp-%s-py3-none-%s.whl", version, wheelTags[p]), content)
}
