package dataset

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// WriteFile writes what write writes to the file at path, all or nothing: to a
// temporary file in the same folder, which is synced and renamed when write has
// succeeded, and removed when anything fails. A link is followed, an existing
// file's permissions are kept. Path "-" is standard output; that, devices and
// pipes are written directly.
func WriteFile(path string, write func(io.Writer) error) error {
	if path == "-" {
		return inFile("standard output", writeBuffered(os.Stdout, write))
	}
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) { // a new file
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

// inFile names the file in an error.
func inFile(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", path, err)
}

// replace writes a temporary file and renames it to path, where old is, or nil.
func replace(path string, old fs.FileInfo, write func(io.Writer) error) error {
	f, err := createTemp(filepath.Dir(path))
	if err != nil {
		return withoutPath(err)
	}
	renamed := false
	defer func() { // also when write panics
		if !renamed {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if old != nil {
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := writeBuffered(f, write); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	renamed = true
	return syncFolder(filepath.Dir(path))
}

// createTemp creates a file in the folder. Unlike os.CreateTemp it leaves the
// permissions to the umask.
func createTemp(folder string) (*os.File, error) {
	for {
		name := filepath.Join(folder, ".calamp-"+strconv.FormatUint(rand.Uint64(), 36)+".tmp")
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
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

// syncFolder makes a rename durable.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" { // folders cannot be synced there
		return nil
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
