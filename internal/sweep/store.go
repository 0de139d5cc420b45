package sweep

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Store is a folder with the rows of a sweep: files of JSON lines, *.jsonl or
// *.jsonl.gz. Every process that writes has a file of its own, so that any
// number of them can share the folder, on a network file system too, without
// locks. A line that a crash left unfinished is no JSON, and is passed over.
type Store struct{ Dir string }

// Read calls each with every row. damaged counts the lines that were passed
// over. A folder that is not there has no rows.
func (s Store) Read(each func(*Row)) (damaged int, err error) {
	files, err := s.files()
	if err != nil {
		return 0, err
	}
	for _, path := range files {
		bad, err := readFile(path, each)
		damaged += bad
		if err != nil {
			return damaged, fmt.Errorf("%s: %w", path, err)
		}
	}
	return damaged, nil
}

func (s Store) files() ([]string, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".jsonl.gz") {
			out = append(out, filepath.Join(s.Dir, name))
		}
	}
	return out, err
}

func readFile(path string, each func(*Row)) (damaged int, err error) {
	stat, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	if !stat.Mode().IsRegular() { // a pipe, say, would be waited for
		return 0, errors.New("this is no regular file, and holds no rows")
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return 0, err
		}
	}
	lines := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			row := new(Row)
			if json.Unmarshal(line, row) != nil || row.Key == "" {
				damaged++
			} else {
				each(row)
			}
		}
		if errors.Is(err, io.EOF) {
			return damaged, nil
		}
		if err != nil {
			return damaged, err
		}
	}
}

// Rows are the rows of a store by key, the better one where a point was run
// twice.
type Rows map[string]*Row

// Rows reads all rows.
func (s Store) Rows() (rows Rows, damaged int, err error) {
	rows = make(Rows)
	damaged, err = s.Read(rows.Add)
	return rows, damaged, err
}

// Add keeps the row unless there is one as good for its key. A result is
// better than a failure; two results are the same but for where and when, and
// of two failures the class decides, not the order in which they came.
func (r Rows) Add(row *Row) {
	old, there := r[row.Key]
	if !there || old.Failed() && (!row.Failed() || row.Class < old.Class) {
		r[row.Key] = row
	}
}

// Missing are the points without a row; with retry, those that failed count as
// missing too.
func (r Rows) Missing(points []Point, retry bool) []Point {
	return slices.DeleteFunc(slices.Clone(points), func(p Point) bool {
		row, there := r[p.Key()]
		return there && !(retry && row.Failed())
	})
}

// Writer appends rows to a file of its own.
type Writer struct {
	dir    string
	file   *os.File // made with the first row
	synced time.Time
}

// Writer prepares for rows; the folder is made where it is not there.
func (s Store) Writer() (*Writer, error) {
	return &Writer{dir: s.Dir}, os.MkdirAll(s.Dir, 0o777)
}

// syncEvery is how much work a power failure may cost.
const syncEvery = time.Second

// Append adds rows, each a line, in one write: what a crash leaves is whole
// lines, and perhaps a part of one.
func (w *Writer) Append(rows ...Row) error {
	if len(rows) == 0 {
		return nil
	}
	var lines bytes.Buffer
	e := json.NewEncoder(&lines)
	e.SetEscapeHTML(false)
	for i := range rows {
		if err := e.Encode(&rows[i]); err != nil {
			return err
		}
	}
	if w.file == nil {
		if err := w.create(); err != nil {
			return err
		}
	}
	if _, err := w.file.Write(lines.Bytes()); err != nil {
		return err
	}
	if time.Since(w.synced) < syncEvery {
		return nil
	}
	return w.Sync()
}

// Sync returns when all rows are on the disk.
func (w *Writer) Sync() error {
	if w.file == nil {
		return nil
	}
	w.synced = time.Now()
	return w.file.Sync()
}

func (w *Writer) create() (err error) {
	host, _ := os.Hostname()
	if host == "" {
		host = "host"
	}
	name := fmt.Sprintf("rows-%s-%s-%d-*.jsonl", time.Now().UTC().Format("20060102T150405Z"), host, os.Getpid())
	w.file, err = os.CreateTemp(w.dir, strings.ReplaceAll(name, string(filepath.Separator), "_"))
	if err != nil {
		return err
	}
	w.synced = time.Now()
	return w.file.Chmod(0o644) // others are to merge it
}

// Close syncs and closes the file.
func (w *Writer) Close() error {
	if w.file == nil {
		return nil
	}
	err := w.Sync()
	return errors.Join(err, w.file.Close())
}
