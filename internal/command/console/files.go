package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/printable"
)

// Output is a file to be written: the flag that asked for it, and where.
type Output struct {
	Flag string // -o, --trace
	Path string // empty when not asked for, - for standard output
}

// File is an output.
func File(flag, path string) Output { return Output{flag, path} }

// Outputs are the files of one command.
type Outputs []Output

// Check finds, before a long run, what would make writing fail after it.
func (all Outputs) Check(jsonAsked bool, inputs ...string) error {
	stdout := ""
	if jsonAsked {
		stdout = "--json"
	}
	for k, o := range all {
		if o.Path == "" {
			continue
		}
		if o.Path == "-" {
			if stdout != "" {
				return Usage("%s and %s are both standard output", stdout, o.Flag)
			}
			stdout = o.Flag + " -"
			continue
		}
		if err := o.writable(); err != nil {
			return err
		}
		for _, input := range inputs {
			if input != "" && SameFile(o.Path, input) {
				return Usage("%s %s would overwrite the input", o.Flag, o.Path)
			}
		}
		for _, other := range all[:k] {
			if other.Path != "" && other.Path != "-" && (SameFile(o.Path, other.Path) || filepath.Clean(o.Path) == filepath.Clean(other.Path)) {
				return Usage("%s and %s would both write %s", other.Flag, o.Flag, o.Path)
			}
		}
	}
	return nil
}

// TakesStdout says whether a file goes to standard output.
func (all Outputs) TakesStdout() bool {
	for _, o := range all {
		if o.Path == "-" {
			return true
		}
	}
	return false
}

// writable refuses a path that cannot be written.
func (o Output) writable() error {
	stat, err := os.Stat(o.Path)
	if err == nil && stat.IsDir() {
		return Usage("%s %s is a folder, expected the name of a file", o.Flag, o.Path)
	}
	if err == nil && !stat.Mode().IsRegular() { // a device or a pipe: opening it may block
		return nil
	}
	folder := filepath.Dir(o.Path)
	if target, err := filepath.EvalSymlinks(o.Path); err == nil {
		folder = filepath.Dir(target)
	}
	if stat, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return Usage("%s %s: there is no folder %s", o.Flag, o.Path, folder)
	} else if err == nil && !stat.IsDir() {
		return Usage("%s %s: %s is not a folder", o.Flag, o.Path, folder)
	}
	// Permissions are best asked of the system itself.
	probe, err := os.CreateTemp(folder, ".calamp-*.tmp")
	if err != nil {
		return Usage("%s %s cannot be written: %w", o.Flag, o.Path, Cause(err))
	}
	probe.Close()
	os.Remove(probe.Name())
	return nil
}

// Cause is a file error without the path.
func Cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// SameFile reports whether two paths are one file: one that is there, or one that both would make. Devices and pipes may be given twice.
func SameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return x.Mode().IsRegular() && os.SameFile(x, y)
	}
	if errA == nil || errB == nil {
		return false
	}
	folderA, nameA := place(a)
	folderB, nameB := place(b)
	if folderA == nil || folderB == nil || !os.SameFile(folderA, folderB) {
		return false
	}
	if foldsCase {
		return strings.EqualFold(nameA, nameB)
	}
	return nameA == nameB
}

// foldsCase says that names which differ in case alone may be one file. Where they are two, a command with both is refused for nothing.
var foldsCase = runtime.GOOS == "windows" || runtime.GOOS == "darwin"

// mostLinks is how many links one after the other are followed, as in Linux (path_resolution(7)).
const mostLinks = 40

// place is the folder and the name where a file would be made, with links followed; nil where there is no such folder.
func place(path string) (folder fs.FileInfo, name string) {
	for range mostLinks {
		dir, base := filepath.Split(path)
		if dir == "" {
			dir = "."
		}
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return nil, ""
		}
		path = filepath.Join(dir, base)
		target, err := os.Readlink(path)
		if err != nil { // it is no link
			folder, _ = os.Stat(dir)
			return folder, base
		}
		if !filepath.IsAbs(target) {
			target = dir + string(filepath.Separator) + target
		}
		path = target
	}
	return nil, ""
}

// Write writes to the path, all or nothing, or to standard output.
func (c *Console) Write(path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(c.Stdout)
	}
	return dataset.WriteFile(path, write)
}

// PrintJSON prints one object.
func (c *Console) PrintJSON(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := c.Stdout.Write(printable.JSON(b.Bytes()))
	return err
}

// Print prints text for people. What it quotes from files cannot reach a terminal
// as control characters.
func (c *Console) Print(text string) error {
	_, err := io.WriteString(c.Stdout, printable.Text(text))
	return err
}

// PrintBeside is Print where standard output belongs to a file.
func (c *Console) PrintBeside(text string) error {
	_, err := io.WriteString(c.Stderr, printable.Text(text))
	return err
}

// CommandLine is what was typed, without the folders, which are private.
func (c *Console) CommandLine() string { return Line(c.Args) }

// Line is arguments of calamp as they would be typed in a shell, without folders.
func Line(args []string) string {
	words := []string{"calamp"}
	for _, word := range args {
		if strings.ContainsRune(word, filepath.Separator) {
			word = filepath.Base(word)
		}
		if word == "" || strings.ContainsAny(word, " \t\"'$&|;<>()*?`\\") {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}
