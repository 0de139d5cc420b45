// Package atomicfile writes files all or nothing: whoever looks at a name sees a
// whole file, the former or the new one, also after a crash.
package atomicfile

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// Replace gives path the content that write writes to a temporary file in the same
// folder, which is then synced and renamed, or removed when anything fails. The file
// has the permissions of old, the one that is replaced; nil leaves them to the
// umask.
func Replace(path string, old fs.FileInfo, write func(*os.File) error) error {
	f, err := create(filepath.Dir(path))
	if err != nil {
		return err
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
	if err := write(f); err != nil {
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

// New is for a path at which there is no file, and for those who write a file by its
// name: fill is given a name in the same folder, and creates and syncs the file
// there. A file that another process has made at path meanwhile stays as it is, and
// is no error.
func New(path string, fill func(name string) error) error {
	name := temporary(filepath.Dir(path))
	defer os.Remove(name)
	if err := fill(name); err != nil {
		return err
	}
	err := os.Link(name, path)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil { // a file system without links
		err = os.Rename(name, path)
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// temporary is a name in the folder that no other file has.
func temporary(folder string) string {
	return filepath.Join(folder, ".calamp-"+strconv.FormatUint(rand.Uint64(), 36)+".tmp")
}

// create creates a temporary file. Unlike os.CreateTemp it leaves the permissions to
// the umask.
func create(folder string) (*os.File, error) {
	for {
		f, err := os.OpenFile(temporary(folder), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// syncFolder makes a new name durable.
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
