package serve

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/page"
	"github.com/calamp/calamp/internal/web"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// testPage serves a page, as the command does, with a limit of 1 MB for uploads.
type testPage struct {
	*server
	t       *testing.T
	address string
}

func open(t *testing.T, solve func(context.Context, *console.Console, []string, *page.Board) error) *testPage {
	t.Helper()
	p := newPage(t.TempDir(), 1<<20, nil, "test")
	if solve != nil {
		p.jobs.solve = solve
	}
	listening, err := web.Listen("127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	listening.Serve(p.handler())
	t.Cleanup(func() {
		p.close()
		listening.Close()
	})
	return &testPage{p, t, "http://" + listening.Address()}
}

func (p *testPage) do(method, path string, body io.Reader) (code int, text string) {
	p.t.Helper()
	r, err := http.NewRequest(method, p.address+path, body)
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.StatusCode, string(content)
}

// submit posts, and returns the job.
func (p *testPage) submit(path string, body io.Reader) *job {
	p.t.Helper()
	code, text := p.do("POST", path, body)
	var answer struct{ ID int }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || code != http.StatusAccepted {
		p.t.Fatal(path, code, text)
	}
	return p.jobs.find(answer.ID)
}

// state waits until a job is over, or in the given state.
func (p *testPage) state(j *job, wanted string) string {
	p.t.Helper()
	for range 1000 {
		p.jobs.mu.Lock()
		state, over := j.State, j.over()
		p.jobs.mu.Unlock()
		if over || state == wanted {
			return state
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.t.Fatal("still " + j.State)
	return ""
}

// hang is a solver that works until its context ends.
func hang(ctx context.Context, _ *console.Console, _ []string, _ *page.Board) error {
	<-ctx.Done()
	return &console.Exit{Code: console.Interrupted, Err: ctx.Err()}
}

// events are the lines of a job's events until its end.
func (p *testPage) events(j *job) map[string][]string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 20*time.Second)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s/api/events?job=%d", p.address, j.ID), nil)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	all := make(map[string][]string)
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<24)
	name := ""
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			name = text
		}
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			all[name] = append(all[name], text)
			if name == "run.end" {
				break
			}
		}
	}
	return all
}

// TestSimulatedRun: a problem is drawn and solved, its events tell of it, its errors are
// those of state evolution, and its files can be had.
func TestSimulatedRun(t *testing.T) {
	p := open(t, nil)
	j := p.submit("/api/simulate?density=0.2&alpha=0.8&p=5&noise_var=1e-4&lo=0.9&hi=1.1&n=200&seed=1", nil)
	events := p.events(j)
	var head page.About
	if len(events["run.head"]) != 1 || json.Unmarshal([]byte(events["run.head"][0]), &head) != nil || len(events["run.frame"]) == 0 || len(events["run.rows"]) == 0 {
		t.Fatal(len(events["run.head"]), len(events["run.frame"]), len(events["run.rows"]))
	}
	var rows struct{ Last []float64 }
	last := events["run.rows"][len(events["run.rows"])-1]
	if err := json.Unmarshal([]byte(last), &rows); err != nil {
		t.Fatal(err)
	}
	code, text := p.do("GET", "/api/theory/trajectory?density=0.2&alpha=0.8&p=5&noise_var=1e-4&lo=0.9&hi=1.1", nil)
	var theory struct{ X, S []float64 }
	if err := json.Unmarshal([]byte(strings.NewReplacer("x_mse", "x", "s_mse", "s").Replace(text)), &theory); err != nil || code != 200 {
		t.Fatal(code, text, err)
	}
	limit, found := theory.X[len(theory.X)-1], rows.Last[7]
	if len(theory.X) != 60 || found > 2*limit || found < limit/2 {
		t.Errorf("the error is %g, in theory %g", found, limit)
	}
	if state := p.state(j, done); state != done || j.Error != "" {
		t.Error(state, j.Error)
	}
	if code, text := p.do("GET", fmt.Sprintf("/api/jobs/%d/report.html", j.ID), nil); code != 200 || !strings.Contains(text, "<h2>Calibration</h2>") {
		t.Error(code)
	}
	code, text = p.do("GET", fmt.Sprintf("/api/jobs/%d/result.npz", j.ID), nil)
	path := filepath.Join(t.TempDir(), "r.npz")
	os.WriteFile(path, []byte(text), 0o600)
	if a, err := dataset.LoadArray(path, "s"); code != 200 || err != nil || len(a.Data) != 160 {
		t.Error(code, err)
	}
}

// problemFile is a small problem as bytes, with further names in the archive.
func problemFile(t testing.TB, further ...string) []byte {
	t.Helper()
	problem, _, err := smallProblem()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "P.npz")
	if err := dataset.Save(path, problem); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(further) == 0 {
		return content
	}
	old, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range old.File {
		z.Copy(f)
	}
	for _, name := range further {
		w, _ := z.Create(name)
		io.WriteString(w, "no array")
	}
	z.Close()
	return b.Bytes()
}

// TestDrop: a file that is dropped is solved as calamp solve does with these flags.
func TestDrop(t *testing.T) {
	p := open(t, nil)
	const markup = "<img src=x onerror=alert(1)>"
	j := p.submit("/api/problem?name="+strings.ReplaceAll("../../"+markup+".npz", " ", "%20")+`&flags={"density":"0.2","noise-var":"1e-6","s-range":"0.9,1.1","max-iter":""}`, bytes.NewReader(problemFile(t, markup+".npy")))
	if state := p.state(j, done); state != done {
		t.Fatal(state, j.Error)
	}
	if strings.ContainsAny(j.Name, "<>/ ") || filepath.Dir(filepath.Dir(p.jobs.file(j, resultName))) != p.folder {
		t.Error(j.Name, p.jobs.file(j, resultName))
	}
	_, report := p.do("GET", fmt.Sprintf("/api/jobs/%d/report.html", j.ID), nil)
	if strings.Contains(report, "<img src=x") || !strings.Contains(report, "--density=0.2") {
		t.Error("the report has markup, or not the flags")
	}
	// Once more, with another flag; what is forgotten of the first takes nothing away.
	again := p.submit(fmt.Sprintf(`/api/jobs/%d/again?flags={"density":"0.3"}`, j.ID), nil)
	os.RemoveAll(j.folder)
	if state := p.state(again, done); state != done || again.Name != j.Name {
		t.Error(state, again.Error)
	}
	if _, report := p.do("GET", fmt.Sprintf("/api/jobs/%d/report.html", again.ID), nil); !strings.Contains(report, "--density=0.3") {
		t.Error("solved again without the flag")
	}
	// What is no problem says so in the command's words, without our folders.
	for _, content := range []string{"no zip", string(problemFile(t)[:300]), ""} {
		j := p.submit("/api/problem?name=bad.npz", strings.NewReader(content))
		if state := p.state(j, done); state != failed || j.Error == "" || strings.Contains(j.Error, p.folder) {
			t.Errorf("%s: %q", state, j.Error)
		}
	}
}

// TestRefused: what a page may not ask for.
func TestRefused(t *testing.T) {
	p := open(t, hang)
	big := strings.Repeat("x", 1<<20+1)
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/api/problem?name=P.npz", big, 413},
		{"POST", "/api/problem?name=P.exe", "", 400},
		{"POST", "/api/problem", "", 400},
		{"POST", `/api/problem?name=P.npz&flags={"matrix":"/etc/passwd"}`, "", 400},
		{"POST", `/api/problem?name=P.npz&flags={"output":"x"}`, "", 400},
		{"POST", `/api/problem?name=P.npz&flags={"density":"../rho.npy"}`, "", 400},
		{"POST", `/api/problem?name=P.npz&flags={"density":"rho.NPY"}`, "", 400},
		{"POST", `/api/problem?name=P.npz&flags={"noise-var":"secret.csv"}`, "", 400},
		{"POST", `/api/problem?name=P.npz&flags={"density":"@file"}`, "", 400},
		{"POST", `/api/problem?name=P.npz&flags={"density":"0.1%20--matrix%20x"}`, "", 400},
		{"POST", `/api/problem?name=P.npz&flags=[]`, "", 400},
		{"GET", "/api/problem?name=P.npz", "", 405},
		{"POST", "/api/simulate?density=0.2", "", 400},
		{"POST", "/api/simulate?density=0.2&alpha=9&p=1000&noise_var=0&lo=0.9&hi=1.1&n=4000&seed=1", "", 400},
		{"POST", "/api/jobs/7/cancel", "", 404},
		{"POST", "/api/jobs/7/again", "", 404},
		{"GET", "/api/jobs/7/report.html", "", 404},
		{"GET", "/api/jobs/../../etc/passwd", "", 404},
		{"GET", "/api/jobs/1/..%2f..%2fetc%2fpasswd", "", 404},
		{"GET", "/api/events?job=99", "", 404},
		{"GET", "/api/theory/trajectory?density=NaN&alpha=1&p=1&noise_var=0&lo=1&hi=1", "", 400},
		{"GET", "/api/theory/thresholds?density=0.2&p=1e9&noise_var=0&lo=1&hi=1", "", 400},
		{"GET", "/api/theory/plane?p=3", "", 400},
		{"GET", "/api/sweep", "", 404},
		{"GET", "/.git/config", "", 404},
	} {
		if code, text := p.do(c.method, c.path, strings.NewReader(c.body)); code != c.want {
			t.Errorf("%s %s: %d %s, expected %d", c.method, c.path, code, text, c.want)
		}
	}
	// Small, and large when it is unpacked.
	var bomb bytes.Buffer
	z := zip.NewWriter(&bomb)
	for k := range 3 {
		z.CreateRaw(&zip.FileHeader{Name: fmt.Sprintf("W%d.npy", k), Method: zip.Deflate, UncompressedSize64: 1 << 60})
	}
	z.Close()
	if code, text := p.do("POST", "/api/problem?name=P.npz", &bomb); code != 400 || !strings.Contains(text, "unpacked") {
		t.Error("a bomb", code, text)
	}
	// Without a length nothing is known before it came.
	pipe := io.MultiReader(strings.NewReader(big), strings.NewReader("more"))
	if code, _ := p.do("POST", "/api/problem?name=P.npz", pipe); code != 413 {
		t.Error("in chunks", code)
	}
	if left, _ := filepath.Glob(filepath.Join(p.folder, "upload-*")); len(left) > 0 {
		t.Error("files of refused uploads are left", left)
	}
}

// TestQueue: one at a time, the others in turn, so many and no more; who waits can be
// taken out, who runs can be ended.
func TestQueue(t *testing.T) {
	p := open(t, hang)
	first := p.submit("/api/demo", nil)
	if state := p.state(first, running); state != running {
		t.Fatal(state)
	}
	var others []*job
	for range mostWaiting {
		others = append(others, p.submit("/api/demo", nil))
	}
	if code, text := p.do("POST", "/api/demo", nil); code != 503 || !strings.Contains(text, "8 problems wait") {
		t.Error(code, text)
	}
	cancel := func(j *job) {
		t.Helper()
		if code, _ := p.do("POST", fmt.Sprintf("/api/jobs/%d/cancel", j.ID), nil); code != 204 {
			t.Error(code)
		}
	}
	cancel(others[0])
	if state := p.state(others[0], cancelled); state != cancelled {
		t.Error(state)
	}
	cancel(first)
	if state := p.state(first, cancelled); state != cancelled {
		t.Error(state)
	}
	if state := p.state(others[1], running); state != running {
		t.Error(state)
	}
	for _, j := range others[1:] {
		cancel(j)
		p.state(j, cancelled)
	}
	// Old ones are forgotten, with their files.
	if p.jobs.find(first.ID) != nil {
		t.Error("the first one is still there")
	}
	if left, _ := os.ReadDir(p.folder); len(left) > mostKept {
		t.Errorf("%d folders", len(left))
	}
}

// TestCancelled: a run that is cancelled has what there is until then.
func TestCancelled(t *testing.T) {
	p := open(t, nil)
	j := p.submit(`/api/problem?name=P.npz&flags={"tol":"0","max-iter":"100000000"}`, bytes.NewReader(problemFile(t)))
	p.state(j, running)
	for range 1000 {
		if !j.board.Wanted() { // a frame was shown
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	p.jobs.end(j)
	if state := p.state(j, cancelled); state != cancelled || p.jobs.file(j, resultName) == "" || p.jobs.file(j, reportName) == "" {
		t.Error(state, j.Error)
	}
}

// TestSlowBody: an upload that does not go on is cut off, and keeps no other from
// uploading for longer.
func TestSlowBody(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for an upload to be cut off")
	}
	t.Parallel()
	p := open(t, hang)
	c, err := net.Dial("tcp", strings.TrimPrefix(p.address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /api/problem?name=P.npz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n")
	go func() {
		for {
			if _, err := c.Write([]byte("x")); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	start := time.Now()
	c.SetReadDeadline(start.Add(2 * uploadPause))
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || answer.StatusCode != 400 {
		t.Error(answer, err, time.Since(start))
	}
}

// TestPlane: all cells, those that recover where theory says so, and an end when the visitor goes.
func TestPlane(t *testing.T) {
	all := coarseFirst(planeCells)
	if len(all) != planeCells*(planeCells+1) || all[0] != [2]int{0, -1} || all[2] != [2]int{0, 8} {
		t.Error(len(all), all[:3])
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequest("GET", "/api/theory/plane?p=5&noise_var=1e-4&lo=0.9&hi=1.1", nil).WithContext(ctx)
	w := &lines{ResponseRecorder: httptest.NewRecorder(), after: 12, done: cancel}
	start := time.Now()
	plane(w, r)
	if took := time.Since(start); took > 10*time.Second {
		t.Error("went on for", took)
	}
	q := &query{Values: r.URL.Query()}
	q.Set("density", "1")
	m := q.model()
	for line := range strings.Lines(w.Body.String()) {
		var c struct {
			Row, Column int
			Error       float64
			AlphaCal    float64 `json:"alpha_cal"`
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(line, err)
		}
		if c.Column < 0 {
			if c.AlphaCal <= 0 {
				t.Error(line)
			}
			continue
		}
		m.Signal.Density = densityLo + (densityHi-densityLo)*float64(c.Row)/(planeCells-1)
		m.Alpha = alphaLo + (alphaHi-alphaLo)*float64(c.Column)/(planeCells-1)
		want, err := evolution.FixedPoint(t.Context(), m, nil)
		if err != nil {
			t.Fatal(err)
		}
		if relative := c.Error*m.Signal.Density/want.MSEX.Value - 1; relative > 0.01 || relative < -0.01 {
			t.Errorf("%s: expected %v", line, want.MSEX)
		}
	}
}

// lines calls done after so many writes.
type lines struct {
	*httptest.ResponseRecorder
	after int
	done  func()
}

func (l *lines) Write(b []byte) (int, error) {
	if l.after--; l.after == 0 {
		l.done()
	}
	return l.ResponseRecorder.Write(b)
}

func TestPlain(t *testing.T) {
	for name, want := range map[string]string{
		"P.npz": "P.npz", "../../etc/x.npz": "x.npz", ".npz": "_.npz", "-.mat": "_.mat", "x.": "x.", `C:\data\y.mat`: "y.mat", "..": "_", "": "_", "-o.npz": "o.npz",
		"a b\"\r\n<é>.npz": "a_b______.npz", strings.Repeat("x", 300) + ".npz": strings.Repeat("x", 96) + ".npz",
	} {
		if got := plain(name); got != want {
			t.Errorf("%q: %q, expected %q", name, got, want)
		}
	}
}

// smallProblem is drawn, with its truth.
func smallProblem() (*dataset.Problem, *teacher.Instance, error) {
	t := teacher.Teacher{N: 50, M: 40, P: 4, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-6}
	in, err := t.Draw(1)
	if err != nil {
		return nil, nil, err
	}
	return &dataset.Problem{W: in.W, Y: in.Y, Truth: in.Truth}, in, nil
}

// TestNames: a file is solved whatever its name, that of a result or a report among them.
func TestNames(t *testing.T) {
	p := open(t, nil)
	content := problemFile(t)
	for _, name := range []string{"result.npz", "RESULT.npz", "report.html.npz", ".result.npz", "result.npz.npz", "problem.npz", "x%2Fresult.npz", "..npz", "-.npz"} {
		j := p.submit("/api/problem?name="+name, bytes.NewReader(content))
		if state := p.state(j, done); state != done || j.Error != "" {
			t.Errorf("%s: %s %s %s", name, state, j.Error, j.Hint)
			continue
		}
		again := p.submit(fmt.Sprintf("/api/jobs/%d/again", j.ID), nil)
		if state := p.state(again, done); state != done || again.Error != "" {
			t.Errorf("%s again: %s %s %s", name, state, again.Error, again.Hint)
		}
		code, text := p.do("GET", fmt.Sprintf("/api/jobs/%d/result.npz", again.ID), nil)
		path := filepath.Join(t.TempDir(), "r.npz")
		os.WriteFile(path, []byte(text), 0o600)
		if a, err := dataset.LoadArray(path, "s"); code != 200 || err != nil || len(a.Data) != 40 {
			t.Errorf("%s: %d %v", name, code, err)
		}
	}
	// What cannot be read is named as it was called.
	j := p.submit("/api/problem?name=result.npz", strings.NewReader("no archive"))
	if state := p.state(j, done); state != failed || strings.ContainsRune(j.Error+j.Hint, filepath.Separator) || !strings.Contains(j.Error, "result.npz") {
		t.Errorf("%s: %q %q", state, j.Error, j.Hint)
	}
}

// TestTheoryIsBounded: what once took 16 GB is answered, in little memory, and who goes is heeded in the middle of an average.
func TestTheoryIsBounded(t *testing.T) {
	p := open(t, nil)
	const hard = "density=0.2&alpha=0.6&p=1000&noise_var=1e-6&lo=0.001&hi=1000"
	defer watchdog(hard)()
	code, text := p.do("GET", "/api/theory/trajectory?"+hard, nil)
	if code != 200 && code != 422 || code == 422 && !strings.Contains(text, "too much work") {
		t.Error(code, text)
	}
	for _, ask := range []func(http.ResponseWriter, *http.Request){trajectory, thresholds, plane} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		start := time.Now()
		ask(httptest.NewRecorder(), httptest.NewRequest("GET", "/?"+strings.Replace(hard, "hi=1000", "hi=999", 1), nil).WithContext(ctx))
		cancel()
		if took := time.Since(start); took > 10*time.Second {
			t.Error("went on for", took)
		}
	}
}

// TestTurns: questions wait no longer than their context, also while others do not end and cells wait; these begin when no question waits.
func TestTurns(t *testing.T) {
	q := newTurns()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	ran := make(chan string, 100)
	block, begun := make(chan struct{}), make(chan struct{})
	for range cap(q.cores) {
		all.Go(func() { q.now(ctx, func() { begun <- struct{}{}; <-block }) })
		<-begun
	}
	for range 3 {
		all.Go(func() { q.later(ctx, func() { ran <- "cell" }) })
	}
	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	if err := q.now(short, func() { ran <- "late" }); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := q.later(short, func() { ran <- "late" }); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if len(ran) > 0 {
		t.Error("ran:", <-ran)
	}
	close(block)
	all.Wait()
	cancel()
	if len(ran) != 3 {
		t.Errorf("%d cells", len(ran))
	}
	for range mostOpen {
		if err := q.enter(); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.enter(); !errors.Is(err, errBusy) {
		t.Error(err)
	}
	q.leave()
	if err := q.enter(); err != nil {
		t.Error(err)
	}
}

// TestBombs: files that are small, and take more than a quarter of the machine once they are read, or solved.
func TestBombs(t *testing.T) {
	folder := t.TempDir()
	file := func(name string, w, y *dataset.Array) string {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for name, a := range map[string]*dataset.Array{"W": w, "Y": y} {
			entry, err := z.Create(name + ".npy")
			if err != nil {
				t.Fatal(err)
			}
			raw := make([]byte, a.Shape[0]*a.Shape[1])
			header := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d), }", a.Shape[0], a.Shape[1])
			header += strings.Repeat(" ", (64-(len(header)+11)%64)%64) + "\n"
			entry.Write([]byte("\x93NUMPY\x01\x00" + string([]byte{byte(len(header)), byte(len(header) >> 8)}) + header))
			entry.Write(raw)
		}
		z.Close()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	table := func(m, n int) *dataset.Array { return &dataset.Array{Info: dataset.Info{Shape: []int{m, n}}} }
	const quarter = 8 << 20
	for _, c := range []struct{ path, want string }{
		{file("bytes.npz", table(4, 500000), table(4, 1)), "bytes.npz: unpacked it takes 16 MB, more than 8.39 MB, a quarter"},
		{file("state.npz", table(4, 2000), table(4, 100)), "state.npz: a run with 4 sensors, 2000 entries and 100 signals takes 107 MB"},
		{file("small.npz", table(4, 200), table(4, 2)), ""},
	} {
		switch err := checkTakes(c.path, quarter); {
		case err == nil && c.want != "", err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v, expected %q", err, c.want)
		}
	}
}
