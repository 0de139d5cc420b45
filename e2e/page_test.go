// Package e2e looks at the page of calamp serve and of calamp online --http, and at the documentation as a site, in a headless browser.
package e2e

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/png"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var (
	shots = flag.String("shots", "", "keep the screenshots in this folder, which must be there")
	long  = flag.Bool("long", false, "also what takes minutes")
	over  = flag.Duration("over", 10*time.Minute, "how long the long stream takes; it is 7200 samples")
)

var build = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "calamp-e2e-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "calamp")
	out, err := exec.Command("go", "build", "-C", "..", "-o", path, "./cmd/calamp").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if path, err := build(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// command is calamp with these arguments.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(path, args...)
}

// simulate makes a problem.
func simulate(t *testing.T, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "P.npz")
	if out, err := command(t, append(append([]string{"simulate"}, args...), "-o", path)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// server starts calamp, and returns the address that it prints.
func server(t *testing.T, args ...string) (address string, process *os.Process) {
	t.Helper()
	return fed(t, nil, args...)
}

// stream starts calamp online with the samples of a problem on standard input, which stays open until the test
// ends: so the server is there for as long as a browser needs, on a slow machine too.
func stream(t *testing.T, problem string, args ...string) (address string, process *os.Process) {
	t.Helper()
	archive, err := zip.OpenReader(problem)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	array := func(name string) []byte {
		f, err := archive.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		all, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	matrix := problem + ".W.npy"
	if err := os.WriteFile(matrix, array("W.npy"), 0o600); err != nil {
		t.Fatal(err)
	}
	header, values, _ := bytes.Cut(array("Y.npy"), []byte("\n")) // (m, p) values in rows: a sample is a column
	form := regexp.MustCompile(`'descr': '<([fc])(8|16)'.*'fortran_order': False.*'shape': \((\d+), (\d+)\)`).FindSubmatch(header)
	if form == nil {
		t.Fatalf("the header of Y: %q", header)
	}
	width, _ := strconv.Atoi(string(form[2]))
	m, _ := strconv.Atoi(string(form[3]))
	p, _ := strconv.Atoi(string(form[4]))
	input, feed := io.Pipe()
	go func() {
		for k := range p {
			for i := range m {
				if _, err := feed.Write(values[(i*p+k)*width:][:width]); err != nil {
					return
				}
			}
		}
	}()
	address, process = fed(t, input, append([]string{"online", "--matrix", matrix, "--input", string(form[1]) + string(form[2]), "--http", "127.0.0.1:0", "--state", problem + ".state"}, args...)...)
	t.Cleanup(func() { feed.Close() }) // before the process is waited for, which waits for what it reads
	return address, process
}

// fed is server with something on standard input.
func fed(t *testing.T, input io.Reader, args ...string) (address string, process *os.Process) {
	t.Helper()
	c := command(t, args...)
	c.Stdin = input
	pipe := c.StdoutPipe
	if args[0] == "online" { // lines go to standard output, which is not read here
		pipe = c.StderrPipe
	}
	said, err := pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Signal(os.Interrupt)
		c.Wait()
	})
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "http://"); ok {
			host, _, _ := strings.Cut(rest, "/")
			go func() { // so that it can go on to speak
				for lines.Scan() {
				}
			}()
			return "http://" + host + "/", c.Process
		}
	}
	t.Fatal("it printed no address")
	return "", nil
}

// browser is a tab.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	troubles []string // what the page's console says
}

// open starts a browser, of a width and a theme.
func open(t *testing.T, width int64, theme string) *browser {
	t.Helper()
	found := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			found = path
			break
		}
	}
	if found == "" {
		t.Skip("no chromium, chromium-browser or google-chrome in PATH")
	}
	if testing.Short() {
		t.Skip("starts a browser")
	}
	b := &browser{t: t}
	allocator, end := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath(found))...)
	t.Cleanup(end)
	ctx, leave := chromedp.NewContext(allocator, chromedp.WithListener(b.hear))
	t.Cleanup(leave)
	b.ctx = ctx
	theming := func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
		return chromedp.Void{}, err
	}
	b.do(chromedp.Navigate("about:blank"), chromedp.EmulateViewport(width, 900), theming)
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, text := range b.troubles {
			t.Errorf("the page says: %s", text)
		}
	})
	return b
}

func (b *browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.troubles = append(b.troubles, fmt.Sprintf("%s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		for _, a := range e.Args {
			b.troubles = append(b.troubles, fmt.Sprint(e.Type, " ", string(a.Value), a.Description))
		}
	}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// is evaluates an expression of the page.
func is[T any](b *browser, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits for an expression to be true, for as long as the slowest machine may need: what it waits for comes, or never does.
func (b *browser) until(expression string) (took time.Duration) {
	b.t.Helper()
	const patience = 3 * time.Minute
	start := time.Now()
	for time.Since(start) < patience {
		if is[bool](b, expression) {
			return time.Since(start)
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.t.Fatalf("not within %v: %s\n%s", patience, expression, is[string](b, `document.querySelector("main").innerText.slice(0, 2000)`))
	return 0
}

// look takes a picture of the page, and checks that it has colours, the theme, and nothing
// that is wider than the page.
func (b *browser) look(name, theme string) {
	b.t.Helper()
	if over := is[float64](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); over > 0 {
		b.t.Errorf("%s: %g pixels wider than the page", name, over)
	}
	time.Sleep(300 * time.Millisecond)
	shot, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if *shots != "" {
		if err := os.WriteFile(filepath.Join(*shots, name+".png"), shot, 0o666); err != nil {
			b.t.Fatal(err)
		}
	}
	img, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		b.t.Fatal(err)
	}
	colours, dark := colours(img)
	if colours < 100 || dark != (theme == "dark") {
		b.t.Errorf("%s: %d colours, dark: %v", name, colours, dark)
	}
}

func colours(img image.Image) (n int, dark bool) {
	seen := make(map[[3]uint32]bool)
	box := img.Bounds()
	for y := box.Min.Y; y < box.Max.Y; y += 2 {
		for x := box.Min.X; x < box.Max.X; x += 2 {
			r, g, b, _ := img.At(x, y).RGBA()
			seen[[3]uint32{r >> 8, g >> 8, b >> 8}] = true
		}
	}
	r, g, b, _ := img.At(box.Min.X+2, box.Max.Y-3).RGBA()
	return len(seen), r+g+b < 3*0x4000
}

const (
	solved = `/job=/.test(location.hash) && document.getElementById("run-state").textContent === "done" && !document.getElementById("sensors").hidden`
	// cells of the plane that are there
	cells   = `+(/\((\d+) of 400/.exec(document.querySelector("#theory-plots figure:nth-child(2) .caption")?.textContent ?? "(0 of 400")?.[1] ?? 400)`
	reports = `(document.getElementById("report-frame").contentDocument?.querySelector("h1")?.textContent || "") !== ""`
)

// each theme on a wide page and on a phone's.
func each(t *testing.T, f func(t *testing.T, width int64, theme string)) {
	for _, width := range []int64{375, 1280} {
		for _, theme := range []string{"light", "dark"} {
			t.Run(fmt.Sprintf("%d-%s", width, theme), func(t *testing.T) { f(t, width, theme) })
		}
	}
}

// TestSolve: the sandals are solved on the page, a sensor is chosen by a click and by keys, the address
// keeps it, and the report is there.
func TestSolve(t *testing.T) {
	address, _ := server(t, "serve")
	each(t, func(t *testing.T, width int64, theme string) {
		b := open(t, width, theme)
		b.do(chromedp.Navigate(address), chromedp.Click("#demo"))
		b.until(solved)
		b.until(reports)
		if n := is[int](b, `document.querySelectorAll("#pictures canvas").length`); n != 20 {
			t.Errorf("%d pictures", n)
		}
		b.do(chromedp.Click("#strip"), chromedp.KeyEvent("s"), chromedp.KeyEvent("s"))
		b.until(`/Sensor \d+/.test(document.getElementById("sensor").textContent)`)
		if at := is[string](b, "location.hash"); !strings.Contains(at, "sensor=") || !strings.Contains(at, "sort=") || !strings.Contains(at, "job=") {
			t.Error(at)
		}
		before := is[string](b, `document.getElementById("sensor").textContent`)
		b.do(chromedp.Reload())
		b.until(solved)
		b.until(`/Sensor \d+/.test(document.getElementById("sensor").textContent)`)
		if after := is[string](b, `document.getElementById("sensor").textContent`); after != before {
			t.Errorf("%s\nbefore: %s", after, before)
		}
		b.until(reports)
		b.look(fmt.Sprintf("solve-%d-%s", width, theme), theme)
	})
}

// TestDropped: a file that is chosen is solved with what is said of it; one that is none says so.
func TestDropped(t *testing.T) {
	problem := simulate(t, "--n", "150", "--alpha", "0.8", "--p", "4", "--seed", "1")
	bad := filepath.Join(t.TempDir(), "<b>bad<b>.npz")
	if err := os.WriteFile(bad, []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	address, _ := server(t, "serve")
	b := open(t, 1280, "light")
	b.do(chromedp.Navigate(address), chromedp.Click("summary"), chromedp.SendKeys("[name=density]", "0.2"), chromedp.SendKeys("[name=max-iter]", "999"), chromedp.SetUploadFiles("#file", []string{problem}))
	b.until(solved)
	b.until(`/--density=0.2 --max-iter=999/.test(document.getElementById("report-frame").contentDocument?.body?.textContent)`)
	if n := is[int](b, `document.querySelectorAll("#pictures figure").length`); n != 4 {
		t.Errorf("%d signals as stems", n)
	}
	b.do(chromedp.SetValue("[name=density]", "0.3"), chromedp.Click("#run-files button"))
	b.until(`/job=2/.test(location.hash) && ` + solved)
	b.until(`/--density=0.3 --max-iter=999/.test(document.getElementById("report-frame").contentDocument?.body?.textContent)`)
	b.look("again", "light")
	b.do(chromedp.SetUploadFiles("#file", []string{bad}))
	b.until(`document.getElementById("run-state").textContent === "failed" && /expected/.test(document.getElementById("run-text").textContent)`)
	if is[bool](b, `document.querySelector("main b") !== null`) {
		t.Error("a file's name became markup")
	}
	b.look("failed", "light")
}

// TestComplex: complex problems and streams, as the sizes of signals and gains.
func TestComplex(t *testing.T) {
	problem := simulate(t, "--complex", "--phase", "free", "--n", "144", "--alpha", "0.8", "--p", "40", "--s-range", "0.5,1.5", "--noise-var", "1e-6", "--seed", "1")
	address, _ := server(t, "serve", problem)
	live, _ := stream(t, problem, "--density", "0.2", "--noise-var", "1e-6", "--s-range", "0.5,1.5")
	b := open(t, 1280, "light")
	b.do(chromedp.Navigate(live))
	b.until(`+(/sample (\d+)/.exec(document.getElementById("run-text").textContent)?.[1]) > 5`)
	b.look("complex-stream", "light")
	b.do(chromedp.Navigate(address + "#solve&job=1&sensor=3"))
	b.until(solved)
	b.until(reports)
	b.until(`/Sensor 3/.test(document.getElementById("sensor").textContent) && /complex/.test(document.getElementById("solve").textContent)`)
	b.look("complex", "light")
}

// TestTheory: the plane is filled, and a click into it runs an instance.
func TestTheory(t *testing.T) {
	address, _ := server(t, "serve")
	each(t, func(t *testing.T, width int64, theme string) {
		b := open(t, width, theme)
		b.do(chromedp.Navigate(address + "#theory"))
		took := b.until(cells + " === 400")
		t.Logf("400 cells within %v", took)
		// Thresholds and trajectory take their place above the plane when they come: a click meant for the plane would miss it.
		b.until(`document.querySelectorAll("#limits dt").length === 3 && document.querySelectorAll("#theory-plots figure:nth-child(1) .u-series").length === 3`)
		b.do(chromedp.Click("canvas.map"))
		b.until(`document.querySelectorAll("#theory-plots figure:nth-child(1) .u-series").length === 5`)
		time.Sleep(2 * time.Second)
		b.look(fmt.Sprintf("theory-%d-%s", width, theme), theme)
	})
}

// TestSliders drags every slider of the theory through its range, in forty steps and two seconds, and tells how long after a move the
// trajectory was drawn, and when the plane was full again after the last one. The bars, 100 ms and 15 s, are those of a machine that does
// nothing else, so the test asks for less.
func TestSliders(t *testing.T) {
	address, process := server(t, "serve")
	b := open(t, 1280, "light")
	b.do(chromedp.Navigate(address + "#theory"))
	t.Logf("the first plane was full after %v", b.until(cells+" === 400"))
	is[bool](b, `(window.drag = async k => {
		const s = document.querySelectorAll("#sliders input")[k], fetched = window.fetch, took = [];
		let moved, asked = 0;
		const frame = () => new Promise(requestAnimationFrame);
		window.fetch = async (...a) => {
			if (!/trajectory/.test(a[0])) return fetched(...a);
			const begin = moved;
			asked++;
			const r = await fetched(...a);
			frame().then(frame).then(() => took.push(performance.now() - begin)); // the next frame may come before the numbers are read
			return r;
		};
		for (let i = 0; i < 40; i++) {
			s.value = +s.min + (s.max - s.min) * i / 39;
			moved = performance.now();
			s.dispatchEvent(new Event("input"));
			await new Promise(f => setTimeout(f, 50));
		}
		while (took.length < asked) await frame();
		window.fetch = fetched;
		window.drawn = took.sort((a, b) => a - b);
	}, true)`)
	for k, name := range []string{"density", "alpha", "p", "noise", "width"} {
		before := processorTime(process.Pid)
		is[bool](b, fmt.Sprintf("(window.drawn = null, drag(%d), true)", k))
		b.until("window.drawn !== null")
		used := processorTime(process.Pid) - before
		n, median, most := is[int](b, "drawn.length"), is[float64](b, "drawn[drawn.length >> 1]"), is[float64](b, "drawn.at(-1)")
		again := b.until(cells + " === 400")
		t.Logf("%-7s drawn %d times, %3.0f ms after a move (median), at most %4.0f ms; %4d ms of processor time; plane full %.1f s later", name, n, median, most, used.Milliseconds(), again.Seconds())
		if n < 5 {
			t.Errorf("%s: the trajectory does not follow the slider", name)
		}
	}
	b.until(`/width=0.9/.test(location.hash)`)
	is[bool](b, `(() => { const s = document.querySelectorAll("#sliders input")[2]; s.value = 7; s.dispatchEvent(new Event("input")); return true; })()`)
	b.until(cells + " < 400") // the plane was another's
}

// TestSweep: what is done, by whom, and the map.
func TestSweep(t *testing.T) {
	folder := t.TempDir()
	spec := filepath.Join(folder, "phase.toml")
	text := "name = \"phase\"\n[[grid]]\nalgorithm = \"offline\"\nn = 40\np = 3\ndensity = {from = 0.1, to = 0.9, count = 9}\nalpha = {from = 0.2, to = 2.0, count = 10}\nnoise_var = 1e-6\ns_range = [0.9, 1.1]\nseeds = 1\n[solver]\nmax_iter = 100\n"
	if err := os.WriteFile(spec, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := command(t, "sweep", "run", spec, "--shard", "1/2").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	address, _ := server(t, "serve", "--sweep", spec)
	each(t, func(t *testing.T, width int64, theme string) {
		b := open(t, width, theme)
		b.do(chromedp.Navigate(address + "#sweep"))
		b.until(`/45 of 90 points/.test(document.getElementById("sweep-text").textContent)`)
		b.look(fmt.Sprintf("sweep-%d-%s", width, theme), theme)
	})
}

// TestKeys: every key of the list does what it says, in every view, before and after something was looked at there, and none throws.
func TestKeys(t *testing.T) {
	folder := t.TempDir()
	spec := filepath.Join(folder, "phase.toml")
	text := "name = \"phase\"\n[[grid]]\nalgorithm = \"offline\"\nn = 40\np = 3\ndensity = {from = 0.1, to = 0.9, count = 3}\nalpha = {from = 0.2, to = 2.0, count = 3}\nnoise_var = 1e-6\ns_range = [0.9, 1.1]\nseeds = 1\n"
	if err := os.WriteFile(spec, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := command(t, "sweep", "run", spec).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	runs := `document.querySelectorAll("#theory-plots figure:nth-child(1) .u-series").length === `
	for _, args := range [][]string{{"serve"}, {"serve", "--sweep", spec}} {
		address, _ := server(t, args...)
		b := open(t, 1280, "light")
		b.do(chromedp.Navigate(address))
		views := []string{"solve", "theory", "sweep"}[:min(len(args)+1, 3)]
		shown := func(name string) {
			t.Helper()
			b.until(fmt.Sprintf(`!document.getElementById(%q).hidden`, name))
		}
		for range 2 {
			for k, name := range views {
				b.do(chromedp.KeyEvent(fmt.Sprint(k + 1)))
				shown(name)
				if name == "theory" {
					b.do(chromedp.KeyEvent("c"))
					b.until(runs + "3")
					b.do(chromedp.KeyEvent("r"))
					b.until(runs + "5")
					b.do(chromedp.KeyEvent("c"))
					b.until(runs + "3")
				}
				if name == "sweep" {
					b.until(`/9 of 9 points/.test(document.getElementById("sweep-text").textContent)`)
				}
				for _, key := range []string{"r", "3", "c", "s", "x", "9", "q", kb.ArrowLeft, kb.ArrowRight} {
					b.do(chromedp.KeyEvent(key))
				}
				b.do(chromedp.KeyEvent(fmt.Sprint(k + 1)))
				shown(name)
				b.do(chromedp.KeyEvent("?"))
				b.until(`document.getElementById("keys").open`)
				b.do(chromedp.KeyEvent("?"))
				b.until(`!document.getElementById("keys").open`)
			}
		}
	}
}

// TestForeignLink: a page from elsewhere that leads its reader to the server, by a link or by itself, shows the page there, and has nothing computed.
func TestForeignLink(t *testing.T) {
	address, _ := server(t, "serve")
	question := address + "api/theory/trajectory?density=0.2&alpha=0.6&p=5&noise_var=1e-6&lo=0.9&hi=1.1"
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<a id="link" href=%q>x</a><a id="page" href=%q>x</a>`, question, address)
		if r.URL.Path == "/itself" {
			fmt.Fprintf(w, `<script>location = %q</script>`, question)
		}
	}))
	defer there.Close()
	b := open(t, 1280, "light")
	refused := `/pages from elsewhere may not ask/.test(document.body?.textContent)`
	b.do(chromedp.Navigate(there.URL), chromedp.Click("#link"))
	b.until(refused)
	b.do(chromedp.Navigate(there.URL + "/itself"))
	b.until(refused)
	b.do(chromedp.Navigate(there.URL), chromedp.Click("#page"))
	b.until(`!document.getElementById("drop")?.closest("section").hidden`)
	b.do(chromedp.Navigate(question)) // typed
	b.until(`/x_mse/.test(document.body?.textContent)`)
}

// TestServerGone: where the server does not answer nothing on the page says that it is alive, and all is as before when it answers again.
func TestServerGone(t *testing.T) {
	problem := simulate(t, "--n", "300", "--alpha", "0.8", "--p", "30", "--seed", "1")
	target, process := stream(t, problem, "--density", "0.2", "--noise-var", "1e-6", "--s-range", "0.9,1.1")
	address, wire := between(t, target)
	b := open(t, 1280, "light")
	state := func(text, level string) string {
		return fmt.Sprintf(`document.getElementById("run-state").textContent === %q && document.getElementById("run-state").className === %q`, text, "badge "+level)
	}
	silent := `document.getElementById("trouble").hidden`
	b.do(chromedp.Navigate(address))
	b.until(state("live", "good") + "&&" + silent)
	wire.cut()
	b.until(state("no answer", "bad") + "&& !" + silent)
	b.look("gone", "light")
	wire.mend()
	b.until(state("live", "good") + "&&" + silent)
	wire.refuse() // as something does that is between, while the server is not there
	b.until(state("no answer", "bad") + "&& !" + silent)
	wire.mend()
	b.until(state("live", "good") + "&&" + silent)
	process.Signal(os.Interrupt)
	b.until(state("no answer", "bad") + "&& !" + silent)
}

// wire is between a browser and a server, and can be cut.
type wire struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	state string
	conns []net.Conn
}

func between(t *testing.T, target string) (address string, w *wire) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	w = &wire{listener: listener, target: strings.TrimSuffix(strings.TrimPrefix(target, "http://"), "/")}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go w.serve(c)
		}
	}()
	return "http://" + listener.Addr().String() + "/", w
}

func (w *wire) serve(c net.Conn) {
	defer c.Close()
	w.mu.Lock()
	state := w.state
	w.mu.Unlock()
	if state == "refuse" {
		c.Read(make([]byte, 1<<14))
		io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	}
	if state != "" {
		return
	}
	to, err := net.Dial("tcp", w.target)
	if err != nil {
		return
	}
	defer to.Close()
	w.mu.Lock()
	w.conns = append(w.conns, c, to)
	w.mu.Unlock()
	go func() { io.Copy(to, c); to.Close() }()
	io.Copy(c, to)
}

func (w *wire) set(state string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = state
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

func (w *wire) cut()    { w.set("cut") }
func (w *wire) refuse() { w.set("refuse") }
func (w *wire) mend()   { w.set("") }

// TestStream: a running stream.
func TestStream(t *testing.T) {
	each(t, func(t *testing.T, width int64, theme string) {
		problem := simulate(t, "--n", "300", "--alpha", "0.8", "--p", "30", "--seed", "1")
		address, _ := stream(t, problem, "--density", "0.2", "--noise-var", "1e-6", "--s-range", "0.9,1.1")
		b := open(t, width, theme)
		b.do(chromedp.Navigate(address + "#solve&sensor=5&sort=sd"))
		b.until(`+(/sample (\d+)/.exec(document.getElementById("run-text").textContent)?.[1]) > 20`)
		b.look(fmt.Sprintf("stream-%d-%s", width, theme), theme)
	})
}

// TestLongRun: ten thousand iterations. The page draws at most once a frame, and neither it nor the server
// grows; the first paint comes at once.
func TestLongRun(t *testing.T) {
	if !*long {
		t.Skip("takes minutes; -long runs it")
	}
	problem := simulate(t, "--n", "1000", "--alpha", "0.6", "--p", "10", "--seed", "1")
	address, process := server(t, "serve")
	b := open(t, 1280, "light")
	b.do(chromedp.Navigate(address))
	t.Logf("first paint after %.0f ms", is[float64](b, `performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? -1`))
	is[bool](b, `[["tol", "0"], ["max-iter", "10000"]].forEach(([name, value]) => { let e = document.querySelector("[name=" + name + "]"); if (!e) { e = document.createElement("input"); e.name = name; document.getElementById("model").append(e); } e.value = value; }), true`)
	b.do(chromedp.SetUploadFiles("#file", []string{problem}))
	b.until(`/iteration \d+/.test(document.getElementById("run-text").textContent)`)
	is[bool](b, `(window.frames60 = 0, (function f() { frames60++; requestAnimationFrame(f); })(), true)`)
	for done := 0; done < 10000; {
		start, frames := time.Now(), is[int](b, "frames60")
		time.Sleep(10 * time.Second)
		rate := float64(is[int](b, "frames60")-frames) / time.Since(start).Seconds()
		done = is[int](b, `+(/iteration (\d+)/.exec(document.getElementById("run-text").textContent)?.[1] ?? 10000)`)
		t.Logf("iteration %d: %.0f frames a second, page %.1f MB, server %s", done, rate, is[float64](b, "performance.memory.usedJSHeapSize/1e6"), resident(process.Pid))
	}
}

// TestLongStream: as many samples as two hours have seconds, in two hours with -over 2h -timeout 3h. Neither the
// page, nor the browser's process of it, nor the server, nor the state grows.
func TestLongStream(t *testing.T) {
	if !*long {
		t.Skip("takes minutes; -long runs it")
	}
	const samples, m = 7200, 160
	problem := simulate(t, "--n", "200", "--m", "160", "--p", "1000", "--seed", "1")
	extract := exec.Command("/usr/bin/python3", "-c", `
import numpy, sys
p = numpy.load(sys.argv[1])
numpy.save(sys.argv[2], p["W"])
p["Y"].T.astype("<f8").tofile(sys.argv[3])`, problem, problem+".W.npy", problem+".f8")
	if out, err := extract.CombinedOutput(); err != nil {
		t.Skipf("no numpy: %v %s", err, out)
	}
	readings, err := os.ReadFile(problem + ".f8")
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	input, feed := io.Pipe()
	go func() {
		defer feed.Close()
		tick := time.NewTicker(*over / samples)
		defer tick.Stop()
		for k := range samples {
			at := k % 1000 * m * 8
			if _, err := feed.Write(readings[at : at+m*8]); err != nil {
				return
			}
			<-tick.C
		}
		<-stop
	}()
	defer close(stop)
	state := problem + ".state"
	address, process := fed(t, input, "online", "--matrix", problem+".W.npy", "--input", "f8", "--state", state, "--http", "127.0.0.1:0", "--density", "0.2", "--noise-var", "1e-6", "--s-range", "0.9,1.1")
	b := open(t, 1280, "light")
	b.do(chromedp.Navigate(address))
	for done := 0; done < samples; {
		time.Sleep(*over / 120)
		done = is[int](b, `+(/sample (\d+)/.exec(document.getElementById("run-text").textContent)?.[1] ?? 0)`)
		if _, err := chromedp.Call(b.ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
			t.Fatal(err)
		}
		size := int64(-1)
		if about, err := os.Stat(state); err == nil {
			size = about.Size()
		}
		t.Logf("%s sample %d: page %.2f MB, %d nodes, its process %s, server %s, state %d bytes", time.Now().Format(time.TimeOnly), done,
			is[float64](b, "performance.memory.usedJSHeapSize/1e6"), is[int](b, `document.querySelectorAll("*").length`), resident(renderer()), resident(process.Pid), size)
	}
}

// renderer is the process of a page of our browser: the largest, since browsers hold one in reserve.
func renderer() (largest int) {
	most := 0
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		said, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		pid, _ := strconv.Atoi(filepath.Base(folder))
		if !bytes.Contains(said, []byte("--type=renderer")) || !ours(pid) {
			continue
		}
		var kilobytes int
		if fmt.Sscan(resident(pid), &kilobytes); kilobytes > most {
			largest, most = pid, kilobytes
		}
	}
	return largest
}

// ours says whether a process descends from this one.
func ours(pid int) bool {
	for pid > 1 && pid != os.Getpid() {
		pid, _ = strconv.Atoi(status(pid, "PPid"))
	}
	return pid == os.Getpid()
}

// processorTime is what a process has used, in user and system mode: fields 14 and 15 of proc(5)'s stat, in hundredths.
func processorTime(pid int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// resident is the memory of a process, in Linux's words.
func resident(pid int) string { return status(pid, "VmRSS") }

// status is a line of what Linux says of a process.
func status(pid int, name string) string {
	all, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(all)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return "?"
}
