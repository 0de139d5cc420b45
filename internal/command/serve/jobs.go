package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/crash"
	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/internal/page"
)

// The states of a job.
const (
	waiting   = "waiting"
	running   = "running"
	done      = "done"
	failed    = "failed"
	cancelled = "cancelled"
)

// job is a problem to be solved, or that was.
type job struct {
	ID     int       `json:"id"`
	Name   string    `json:"name"`
	State  string    `json:"state"`
	Error  string    `json:"error,omitempty"`
	Hint   string    `json:"hint,omitempty"`
	Ended  time.Time `json:"ended,omitzero"`
	Report bool      `json:"report"` // there is one
	Result bool      `json:"result"`

	// prepare makes the problem, in the folder for it, and says which arguments calamp
	// solve is to have.
	prepare func(ctx context.Context, in string) (args []string, err error)

	own bool // its model was made with it: that of the server is another

	memory memory.Size // that what is in its file may take; 0 for as much as calamp solve allows

	board   *page.Board
	folder  string
	problem string             // the file, once there is one
	cancel  context.CancelFunc // while it runs
}

func (j *job) over() bool { return j.State != waiting && j.State != running }

const (
	// mostWaiting jobs wait at a time, and mostKept that are over can be looked at.
	mostWaiting, mostKept = 8, 8
)

var errFull = fmt.Errorf("%d problems wait already", mostWaiting)

// jobs are solved one at a time, in turn.
type jobs struct {
	folder string
	board  *page.Board // its head is the list
	model  string      // the file that tells what is known of problems; empty for none
	solve  func(ctx context.Context, a *console.Console, args []string, board *page.Board) error

	mu     sync.Mutex
	list   []*job
	last   int
	closed bool
	bell   chan struct{}
	worker sync.WaitGroup
}

func newJobs(folder string) *jobs {
	q := &jobs{folder: folder, board: page.NewBoard(), bell: make(chan struct{}, 1), solve: solveLive}
	q.board.Head([]*job{})
	q.worker.Go(q.work)
	return q
}

// add has a job wait for its turn.
func (q *jobs) add(j *job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return errors.New("the server ends")
	}
	if q.count(func(j *job) bool { return j.State == waiting }) >= mostWaiting {
		return errFull
	}
	q.last++
	j.ID, j.State, j.board = q.last, waiting, page.NewBoard()
	if j.folder == "" {
		j.folder = filepath.Join(q.folder, fmt.Sprint(j.ID))
	}
	q.list = append(q.list, j)
	q.tell()
	select {
	case q.bell <- struct{}{}:
	default:
	}
	return nil
}

// find returns a job, or nil.
func (q *jobs) find(id int) *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k := slices.IndexFunc(q.list, func(j *job) bool { return j.ID == id }); k >= 0 {
		return q.list[k]
	}
	return nil
}

// end takes a job that waits out of the queue, and has one that runs end with what
// there is.
func (q *jobs) end(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch j.State {
	case waiting:
		q.finish(j, cancelled, "", "")
	case running:
		j.cancel()
	}
}

// file is the path of a job's report or result, empty where there is none.
func (q *jobs) file(j *job, name string) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if name == reportName && j.Report || name == resultName && j.Result {
		return filepath.Join(j.folder, name)
	}
	return ""
}

// problemFolder is where in a job's folder its problem is: apart from the job's other files, since visitors call it what they like.
func problemFolder(folder string) string { return filepath.Join(folder, "problem") }

// keep gives the file of a job's problem a place in another folder as well, where it stays
// when the job is forgotten; a file that is not ours stays where it is.
func (q *jobs) keep(j *job, folder string) (path string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case j.problem == "":
		return "", errors.New("this problem was not there yet")
	case filepath.Dir(j.problem) != problemFolder(j.folder):
		return j.problem, nil
	}
	path = filepath.Join(problemFolder(folder), filepath.Base(j.problem))
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, os.Link(j.problem, path)
}

// close ends all jobs, and waits for the one that runs.
func (q *jobs) close() {
	q.mu.Lock()
	q.closed = true
	for _, j := range q.list {
		if j.State == running {
			j.cancel()
		}
		j.board.Close()
	}
	close(q.bell)
	q.mu.Unlock()
	q.board.Close()
	q.worker.Wait()
}

func (q *jobs) count(which func(*job) bool) (n int) {
	for _, j := range q.list {
		if which(j) {
			n++
		}
	}
	return n
}

// tell shows the list. The caller holds the lock.
func (q *jobs) tell() { q.board.Head(q.list) }

// finish notes how a job ended, and forgets the oldest ones that are over. The caller
// holds the lock.
func (q *jobs) finish(j *job, state, text, hint string) {
	j.State, j.Error, j.Hint, j.Ended = state, text, hint, time.Now()
	for q.count((*job).over) > mostKept {
		k := slices.IndexFunc(q.list, (*job).over)
		q.list[k].board.Close()
		os.RemoveAll(q.list[k].folder)
		q.list = slices.Delete(q.list, k, k+1)
	}
	q.tell()
}

// work solves what waits, until the queue is closed.
func (q *jobs) work() {
	for range q.bell {
		for j, ctx := q.next(); j != nil; j, ctx = q.next() {
			q.one(ctx, j)
		}
	}
}

// next is the job whose turn it is, or nil.
func (q *jobs) next() (*job, context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	k := slices.IndexFunc(q.list, func(j *job) bool { return j.State == waiting })
	if k < 0 || q.closed {
		return nil, nil
	}
	j := q.list[k]
	ctx, cancel := context.WithCancel(context.Background())
	j.State, j.cancel = running, cancel
	q.tell()
	return j, ctx
}

// The files of a job.
const (
	resultName = "result.npz"
	reportName = "report.html"
)

// one solves a job.
func (q *jobs) one(ctx context.Context, j *job) {
	defer j.cancel()
	var said bytes.Buffer
	a := &console.Console{Stdin: strings.NewReader(""), Stdout: &said, Stderr: &said}
	err := q.solved(ctx, a, j)
	q.mu.Lock()
	defer q.mu.Unlock()
	j.Result, j.Report = exists(filepath.Join(j.folder, resultName)), exists(filepath.Join(j.folder, reportName))
	state, text, hint := done, "", ""
	// Where files are here is private.
	without := strings.NewReplacer(problemFolder(j.folder)+string(filepath.Separator), "", j.folder+string(filepath.Separator), "").Replace
	if err != nil {
		text = without(err.Error())
		e, ok := errors.AsType[*console.Exit](err)
		switch {
		case ctx.Err() != nil:
			state = cancelled
		case !ok || e.Code != console.NotConverged: // that is a result like any other, which says so itself
			state = failed
		}
		if ok {
			hint = without(e.Hint)
		}
	}
	j.board.End(map[string]any{"state": state, "error": text, "hint": hint, "said": without(said.String())})
	q.finish(j, state, text, hint)
}

func (q *jobs) solved(ctx context.Context, a *console.Console, j *job) (err error) {
	defer crash.Catch(&err)
	in := problemFolder(j.folder)
	if err := os.MkdirAll(in, 0o700); err != nil {
		return err
	}
	args, err := j.prepare(ctx, in)
	if err != nil {
		return err
	}
	q.mu.Lock()
	j.problem = args[0]
	q.mu.Unlock()
	a.Args = append([]string{"solve"}, args...)
	args = append(args, "-o", filepath.Join(j.folder, resultName), "--report", filepath.Join(j.folder, reportName))
	if q.model != "" && !j.own {
		args = append(args, "--model", q.model)
	}
	if j.memory > 0 {
		args = append(args, "--memory", fmt.Sprint(int64(j.memory)))
	}
	return q.solve(ctx, a, args, j.board)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
