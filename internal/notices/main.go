// Command notices writes the licences of everything that is linked into the
// command calamp, on any system it is built for: of Go itself, and of the modules
// that go.mod names. Run it in the root of the repository:
//
//	go run ./internal/notices >THIRD_PARTY_NOTICES
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	err := write(out)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

const head = `calamp is made of its own code (see LICENSE) and of what is listed here, each part
under its own licence. Written by go run ./internal/notices.
`

func write(w io.Writer) error {
	modules, err := linked()
	if err != nil {
		return err
	}
	fmt.Fprint(w, head)
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		texts, err := licences(modules[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		// The texts of golang.org/x/sys are, to the letter, those of Go itself, whose
		// own copies not every installation has.
		if strings.HasPrefix(name, "golang.org/x/sys ") {
			name = "Go itself, its runtime and standard library; and " + name
		}
		section(w, name, texts)
	}
	return nil
}

// linked finds the modules of the command's packages, "path version", and the
// folders they are in.
func linked() (map[string]string, error) {
	const format = "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}"
	modules := map[string]string{"uPlot 1.6.32": "internal/page/assets/uplot"} // no module, but part of the command
	// MPI is for Linux, with a tag of its own, which takes no package away.
	for _, build := range [][2]string{{"linux", "mpi"}, {"darwin", ""}, {"windows", ""}} {
		env := []string{"GOOS=" + build[0], "GOARCH=amd64", "CGO_ENABLED=0"}
		list, err := run(env, "go", "list", "-deps", "-tags", build[1], "-f", format, "./cmd/calamp")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(list) {
			if name, folder, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				modules[name] = folder
			}
		}
	}
	return modules, nil
}

func run(env []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), env...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err)
	}
	return string(out), nil
}

var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)`)

// licences are the texts of a module: the files in its root that are named so, and
// those in a folder of licences.
func licences(folder string) (texts [][]byte, err error) {
	var files []string
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		switch {
		case !licenceName.MatchString(e.Name()):
		case e.IsDir():
			more, err := filepath.Glob(filepath.Join(path, "*"))
			if err != nil {
				return nil, err
			}
			// Where there is a choice, it is not the GPL.
			isGPL := func(path string) bool { return strings.HasPrefix(filepath.Base(path), "gpl") }
			files = append(files, slices.DeleteFunc(more, isGPL)...)
		default:
			files = append(files, path)
		}
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("no licence in %s", folder)
	}
	return texts, nil
}

// inUTF8 is a text of whose letters some may be in Latin-1.
func inUTF8(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	var letters []rune
	for _, b := range text {
		letters = append(letters, rune(b))
	}
	return []byte(string(letters))
}

func section(w io.Writer, name string, texts [][]byte) {
	fmt.Fprintf(w, "\n%s\n%s\n", strings.Repeat("=", 80), name)
	for _, text := range texts {
		text = inUTF8(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
		fmt.Fprintf(w, "%s\n%s\n", strings.Repeat("-", 80), bytes.TrimSpace(text))
	}
}
