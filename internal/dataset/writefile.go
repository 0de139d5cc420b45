package dataset

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/calamp/calamp/internal/atomicfile"
)

// WriteFile writes what write writes to the file at path, all or nothing: first to a
// temporary file in the same folder, which is synced and renamed when write has
// succeeded, and removed when anything fails. A link is followed, and an existing
// file's permissions are kept. Path "-" is standard output. Standard output, devices,
// pipes and what /dev/fd leads to are written to directly.
func WriteFile(path string, write func(io.Writer) error) error {
	if path == "-" {
		return inFile("standard output", writeBuffered(os.Stdout, write))
	}
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(path); err == nil { // a link of /dev/fd, as shells make for >(…): it leads to no name
			return inFile(path, writeDirect(path, write))
		}
		// a new file
		return inFile(path, replace(path, nil, write))
	}
	if err != nil {
		return inFile(path, withoutPath(err))
	}
	stat, err := os.Stat(target)
	switch {
	case err != nil:
		return inFile(path, withoutPath(err))
	case stat.IsDir():
		return inFile(path, errors.New("this is a folder, expected a file"))
	case !stat.Mode().IsRegular():
		return inFile(path, writeDirect(target, write))
	}
	return inFile(path, replace(target, stat, write))
}

// inFile adds the name of the file to an error.
func inFile(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", path, err)
}

// replace writes the file at path anew. old describes the existing file; nil when there
// is none.
func replace(path string, old fs.FileInfo, write func(io.Writer) error) error {
	return withoutPath(atomicfile.Replace(path, old, func(f *os.File) error { return writeBuffered(f, write) }))
}

func writeDirect(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return withoutPath(err)
	}
	return errors.Join(writeBuffered(f, write), f.Close())
}

func writeBuffered(w io.Writer, write func(io.Writer) error) error {
	buffered := bufio.NewWriterSize(w, 1<<18)
	if err := write(buffered); err != nil {
		return err
	}
	return buffered.Flush()
}
