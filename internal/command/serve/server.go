package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/command/solve"
	"github.com/calamp/calamp/internal/cost"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/internal/page"
)

// server answers the page.
type server struct {
	folder    string
	upload    int64
	entries   float64 // that W, or the signals, of a simulated problem may have
	jobs      *jobs
	sweep     *watched // nil without --sweep
	version   string
	uploading sync.Mutex // one at a time: they go to the disk
}

// mostEntries is 320 MB in double precision: what the largest upload unpacks to, and a little more.
const mostEntries = 4e7

func newPage(folder string, upload int64, sweep *watched, version string) *server {
	return &server{folder: folder, upload: upload, entries: mostEntries, jobs: newJobs(folder), sweep: sweep, version: version}
}

func (s *server) close() { s.jobs.close() }

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	about := page.About{Kind: page.Solver, Version: s.version, Upload: s.upload, Fields: fields()}
	if s.sweep != nil {
		about.Sweep = s.sweep.name
		mux.HandleFunc("GET /api/sweep", s.sweep.serve)
	}
	page.Handle(mux, about)
	mux.HandleFunc("GET /api/events", s.events)
	mux.HandleFunc("POST /api/problem", s.problem)
	mux.HandleFunc("POST /api/demo", s.demo)
	mux.HandleFunc("POST /api/simulate", s.simulate)
	mux.HandleFunc("POST /api/jobs/{id}/cancel", s.cancel)
	mux.HandleFunc("POST /api/jobs/{id}/again", s.again)
	mux.HandleFunc("GET /api/jobs/{id}/{file}", s.file)
	mux.HandleFunc("GET /api/theory/trajectory", trajectory)
	mux.HandleFunc("GET /api/theory/thresholds", thresholds)
	mux.HandleFunc("GET /api/theory/plane", plane)
	return mux
}

// events tells of the list of jobs, and with ?job=ID of one of them.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	sources := []page.Source{{Name: "jobs", Board: s.jobs.board}}
	if text := r.URL.Query().Get("job"); text != "" {
		j := s.jobOf(w, text)
		if j == nil {
			return
		}
		sources = append(sources, page.Source{Name: "run", Board: j.board})
	}
	page.ServeEvents(w, r, sources...)
}

func (s *server) jobOf(w http.ResponseWriter, text string) *job {
	id, err := strconv.Atoi(text)
	if err == nil {
		if j := s.jobs.find(id); j != nil {
			return j
		}
	}
	http.Error(w, "there is no such problem here any more", http.StatusNotFound)
	return nil
}

// problem takes a file: ?name=P.npz, and ?flags= in JSON, flags of calamp solve.
func (s *server) problem(w http.ResponseWriter, r *http.Request) {
	name := plain(r.URL.Query().Get("name"))
	if ext := strings.ToLower(filepath.Ext(name)); ext != ".npz" && ext != ".mat" {
		http.Error(w, name+": expected a .npz or .mat with W and Y", http.StatusBadRequest)
		return
	}
	flags, err := solverFlags(r.URL.Query().Get("flags"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.ContentLength > s.upload {
		s.tooLarge(w)
		return
	}
	if !s.uploading.TryLock() {
		http.Error(w, "another file is on its way: try again when it is there", http.StatusServiceUnavailable)
		return
	}
	defer s.uploading.Unlock()
	folder, err := os.MkdirTemp(s.folder, "upload-")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	path := filepath.Join(problemFolder(folder), name)
	err = os.Mkdir(filepath.Dir(path), 0o700)
	if err == nil {
		err = s.receive(w, r, path)
	}
	if err == nil {
		err = checkTakes(path, most())
	}
	if err != nil {
		os.RemoveAll(folder)
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			s.tooLarge(w)
			return
		}
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	j := &job{Name: name, prepare: func(_ context.Context, in string) ([]string, error) {
		// The problem is needed while it is solved; its folder goes with the job's.
		return append([]string{filepath.Join(in, name)}, flags...), nil
	}}
	j.memory = most()
	s.submit(w, j, folder)
}

const (
	// uploadTime is for all of a file, uploadPause between two parts of it.
	uploadTime, uploadPause = 10 * time.Minute, 10 * time.Second
)

// receive writes a request's body to a file. Who is slow is cut off.
func (s *server) receive(w http.ResponseWriter, r *http.Request, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	control := http.NewResponseController(w)
	end := time.Now().Add(uploadTime)
	control.SetWriteDeadline(end.Add(time.Minute))
	body := http.MaxBytesReader(w, r.Body, s.upload)
	part := make([]byte, 1<<20)
	for err == nil {
		next := time.Now().Add(uploadPause)
		if next.After(end) {
			next = end
		}
		control.SetReadDeadline(next)
		// A part is read until it is full, so that a byte now and then is not enough.
		var n int
		n, err = io.ReadFull(body, part)
		if _, failed := f.Write(part[:n]); failed != nil {
			err = failed
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && r.ContentLength < 0 {
		err = nil
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		if at, failed := f.Seek(0, io.SeekCurrent); failed == nil && at == r.ContentLength {
			err = nil
		}
	}
	return errors.Join(err, f.Close())
}

// most is the memory that a dropped problem may take: what is in its file, once that is read, or what a run keeps
// for it. A file can be asked for by a page, the memory of the machine not.
func most() memory.Size { return memory.Total() / 4 }

// checkTakes refuses a problem that is small and becomes larger than that. What else is wrong with it is said where it is
// solved.
func checkTakes(path string, most memory.Size) error {
	takes, err := dataset.Takes(path)
	if wrong, ok := errors.AsType[*dataset.InputError](err); ok && errors.Is(err, dataset.ErrClaims) {
		return &dataset.InputError{Path: filepath.Base(path), Array: wrong.Array, Err: wrong.Err}
	}
	if err != nil {
		return nil
	}
	if memory.Size(takes) > most {
		return fmt.Errorf("%s: unpacked it takes %v, more than %v, a quarter of this machine's memory", filepath.Base(path), memory.Size(takes), most)
	}
	m, n, p := sizes(path)
	if run := cost.Kept(m, n, p); run > float64(most) {
		return fmt.Errorf("%s: a run with %d sensors, %d entries and %d signals takes %v, more than %v, a quarter of this machine's memory",
			filepath.Base(path), m, n, p, memory.Size(min(run, float64(memory.Unlimited))), most)
	}
	return nil
}

// sizes are those of the problem at path; a complex signal counts as two.
func sizes(path string) (m, n, p int) {
	arrays, err := dataset.Inspect(path)
	if err != nil {
		return 0, 0, 0
	}
	for _, a := range arrays {
		switch {
		case a.Name == "W" && len(a.Shape) == 2:
			m, n = a.Shape[0], a.Shape[1]
		case a.Name == "Y" && len(a.Shape) > 0:
			p = 1
			if len(a.Shape) == 2 {
				p = a.Shape[1]
			}
			if strings.HasPrefix(strings.TrimLeft(a.Dtype, "<>"), "c") && a.Bytes > 0 {
				p *= 2
			}
		}
	}
	return m, n, p
}

func (s *server) tooLarge(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	http.Error(w, fmt.Sprintf("files of at most %d MB can be dropped here; calamp serve P.npz takes larger ones, --max-upload raises this", s.upload>>20), http.StatusRequestEntityTooLarge)
}

// submit queues a job, and answers with its number. The folder, where there is one,
// becomes the job's.
func (s *server) submit(w http.ResponseWriter, j *job, folder string) {
	j.folder = folder
	if err := s.jobs.add(j); err != nil {
		os.RemoveAll(folder)
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	page.JSON(w, http.StatusAccepted, map[string]int{"id": j.ID})
}

// fileJob solves a file that is there already.
func fileJob(path string) *job {
	return &job{Name: filepath.Base(path), prepare: func(context.Context, string) ([]string, error) {
		return []string{path}, nil
	}}
}

// demo solves the sandals.
func (s *server) demo(w http.ResponseWriter, _ *http.Request) {
	s.submit(w, &job{Name: "sandals", own: true, prepare: func(_ context.Context, folder string) ([]string, error) {
		problem, flags, err := solve.DemoProblem(10)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(folder, "sandals.npz")
		return append([]string{path}, flags...), dataset.Save(path, problem)
	}}, "")
}

func (s *server) cancel(w http.ResponseWriter, r *http.Request) {
	if j := s.jobOf(w, r.PathValue("id")); j != nil {
		s.jobs.end(j)
		w.WriteHeader(http.StatusNoContent)
	}
}

// again solves a job's problem once more, with other flags.
func (s *server) again(w http.ResponseWriter, r *http.Request) {
	j := s.jobOf(w, r.PathValue("id"))
	if j == nil {
		return
	}
	flags, err := solverFlags(r.URL.Query().Get("flags"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	folder, err := os.MkdirTemp(s.folder, "again-")
	var path string
	if err == nil {
		path, err = s.jobs.keep(j, folder)
	}
	if err != nil {
		os.RemoveAll(folder)
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	s.submit(w, &job{Name: j.Name, own: j.own, memory: j.memory, prepare: func(context.Context, string) ([]string, error) {
		return append([]string{path}, flags...), nil
	}}, folder)
}

// file is a job's result, or its report, which is a page of its own: it runs nothing
// and loads nothing.
func (s *server) file(w http.ResponseWriter, r *http.Request) {
	j := s.jobOf(w, r.PathValue("id"))
	if j == nil {
		return
	}
	name := r.PathValue("file")
	path := s.jobs.file(j, name)
	if path == "" {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	f, err := os.Open(path)
	if err != nil {
		http.Error(w, "there is no such file any more", http.StatusNotFound)
		return
	}
	defer f.Close()
	h := w.Header()
	if name == reportName {
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox allow-same-origin; frame-ancestors 'self'")
	} else {
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Content-Disposition", `attachment; filename="`+strings.TrimSuffix(plain(j.Name), filepath.Ext(j.Name))+`-result.npz"`)
	}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(uploadTime))
	io.Copy(w, f)
}

// plain is the last part of a file's name, without what a shell, a header or a page
// could misunderstand.
func plain(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '_'
	}, name)
	const longest = 100
	if len(clean) > longest {
		clean = clean[len(clean)-longest:]
	}
	ext := strings.TrimSuffix(filepath.Ext(clean), ".")
	return cmp.Or(strings.TrimLeft(strings.TrimSuffix(clean, ext), ".-"), "_") + ext
}

// allowed are the flags of calamp solve that a page may give: those that say what is known or how to
// solve, and name no file.
var allowed = append(named(option.OnPage()), "max-iter", "tol", "damping", "algorithm", "covariance", "variance", "mean-removal", "no-scale-step")

func named(parameters []*option.Parameter) (names []string) {
	for _, p := range parameters {
		names = append(names, p.Name)
	}
	return names
}

// fields are the form of the page.
func fields() (list []page.Field) {
	for _, p := range option.OnPage() {
		like := p.Default
		if p.Learnable && like != "off" {
			like = "learned"
		}
		list = append(list, page.Field{Name: p.Name, Label: strings.ReplaceAll(p.Name, "-", " "), Title: p.Doc, Like: like})
	}
	return append(list, page.Field{Name: "max-iter", Label: "iterations, at most", Like: "1000"})
}

// harmless are words, numbers and sizes, as in auto, per-sensor, 0.9,1.1, 1e-6 and 32x32: no names of files.
var harmless = regexp.MustCompile(`^([a-z][a-z-]*|[-+0-9.,eE]+|[0-9]+x[0-9]+)$`)

// solverFlags are the arguments of {"density": "0.1", …}; an empty value is not given.
func solverFlags(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var given map[string]string
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		return nil, errors.New("flags: expected a JSON object of texts")
	}
	var args []string
	for _, name := range allowed {
		value := strings.TrimSpace(given[name])
		if value != "" && !harmless.MatchString(value) {
			return nil, fmt.Errorf("--%s %s: expected a word or numbers; a page cannot name files", name, value)
		}
		if value != "" {
			args = append(args, "--"+name+"="+value)
		}
		delete(given, name)
	}
	for name := range given {
		return nil, fmt.Errorf("--%s is no flag that a page can give, which are %s", name, strings.Join(allowed, ", "))
	}
	return args, nil
}

// query reads parameters of a request, and keeps the first error.
type query struct {
	url.Values
	err error
}

// number is a parameter between lo and hi.
func (q *query) number(name string, lo, hi float64) float64 {
	v, err := strconv.ParseFloat(q.Get(name), 64)
	if (err != nil || !(v >= lo && v <= hi)) && q.err == nil {
		q.err = fmt.Errorf("%s: expected a number from %g to %g, found %q", name, lo, hi, q.Get(name))
	}
	return v
}

func (q *query) whole(name string, lo, hi int) int {
	v, err := strconv.Atoi(q.Get(name))
	if (err != nil || v < lo || v > hi) && q.err == nil {
		q.err = fmt.Errorf("%s: expected a whole number from %d to %d, found %q", name, lo, hi, q.Get(name))
	}
	return v
}

// failed answers a request that was wrong.
func (q *query) failed(w http.ResponseWriter) bool {
	if q.err != nil {
		http.Error(w, q.err.Error(), http.StatusBadRequest)
	}
	return q.err != nil
}
