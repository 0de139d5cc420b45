package report

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
)

var keep = flag.String("keep", "", "a folder to keep the test's reports in, for looking at them")

// blobs are N×P pictures of a few soft spots each, about a fifth of them not black.
func blobs(side, p int, rnd *rand.Rand) *mat.Dense {
	x := mat.NewDense(side*side, p, nil)
	for k := range p {
		for range 4 {
			r, c, size := rnd.Float64()*float64(side), rnd.Float64()*float64(side), 1+2*rnd.Float64()
			for i := range side * side {
				dr, dc := float64(i/side)-r, float64(i%side)-c
				if v := 1.5 - (dr*dr+dc*dc)/(2*size*size); v > 0 {
					x.Set(i, k, math.Min(2, x.At(i, k)+v))
				}
			}
		}
	}
	return x
}

// sparse are N×P signals with a fifth of the entries normal, the rest zero.
func sparse(n, p int, rnd *rand.Rand) *mat.Dense {
	x := mat.NewDense(n, p, nil)
	for i := range n {
		for k := range p {
			if rnd.Float64() < 0.2 {
				x.Set(i, k, rnd.NormFloat64())
			}
		}
	}
	return x
}

// recovered makes up a converged run on signals x with m sensors.
func recovered(x *mat.Dense, m int, rnd *rand.Rand) Report {
	const scale, sdX, sdS = 1.0013, 0.012, 0.004
	n, p := x.Dims()
	res := &calamp.Result{
		X: mat.NewDense(n, p, nil), XVar: mat.NewDense(n, p, nil), Residual: mat.NewDense(m, p, nil),
		ScaleSD: 0.001, Status: calamp.Converged, Iterations: 84, Wall: 2345 * time.Millisecond,
		Reason: "every signal changed by less than 1e-10",
	}
	for i := range n {
		for k := range p {
			res.X.Set(i, k, scale*x.At(i, k)+sdX*rnd.NormFloat64()*rnd.Float64())
			res.XVar.Set(i, k, sdX*sdX)
		}
	}
	truth := calamp.Truth{X: x, S: make([]float64, m)}
	for i := range m {
		truth.S[i] = 0.5 + rnd.Float64()
		sd := sdS * truth.S[i] * (0.5 + rnd.ExpFloat64())
		s := scale*truth.S[i] + sd*rnd.NormFloat64()
		res.S = append(res.S, s)
		res.SVar = append(res.SVar, sd*sd)
		res.Gain = append(res.Gain, 1/s)
		for k := range p {
			res.Residual.Set(i, k, rnd.NormFloat64())
		}
	}
	for range p {
		res.Converged = append(res.Converged, true)
		res.Change = append(res.Change, 1e-11)
	}
	for i := 1; i <= res.Iterations; i++ {
		t := float64(i)
		it := calamp.Iteration{
			Index: i, Change: math.Exp(-0.28*t) * (1 + 0.5*rnd.Float64()), MeanXVar: sdX*sdX + 0.3*math.Exp(-0.2*t),
			MeanSVar: sdS*sdS + 0.08*math.Exp(-0.15*t), Scale: 1, Damping: 0.3 * math.Exp(-t/30),
		}
		if i%2 == 0 {
			it.Scale = 1 + 0.1*math.Exp(-0.25*t)*math.Copysign(1, rnd.Float64()-0.5)
		}
		res.Trace = append(res.Trace, it)
	}
	return Report{
		Result: res, Truth: truth, Problem: Problem{M: m, N: n, P: p, Storage: "float64, dense"},
		Model: []Field{
			{"Density of the signals ρ", "0.2"},
			{"Mean, variance of non-zeros", "1.37, 1"},
			{"Calibration s", "uniform on [0.5, 1.5]"},
			{"Noise variance Δ", "1e-4"},
		},
		Metrics: []Field{{"MSE of x", "1.5e-4"}, {"MSE of x, scale fitted", "4.8e-5"}, {"1 − correlation of x", "3.1e-5"}, {"MSE of s", "2.2e-5"}},
		Version: "v0.1.0-test (go1.26)", Command: "calamp solve problem.npz --density 0.2 --s-range 0.5,1.5 --noise-var 1e-4 -o result.npz --report result.html",
	}
}

// demo is like what the demo command shows: pictures, truth and two baselines.
func demo() Report {
	rnd := rand.New(rand.NewPCG(1, 2))
	x := blobs(28, 20, rnd)
	r := recovered(x, 627, rnd)
	r.Title = "Demo: 20 pictures from 627 uncalibrated sensors"
	ignored, known := mat.DenseCopyOf(x), mat.DenseCopyOf(x)
	ignored.Apply(func(_, _ int, v float64) float64 { return math.Max(0, 0.8*v+0.35*rnd.NormFloat64()) }, x)
	known.Apply(func(_, _ int, v float64) float64 { return v + 0.005*rnd.NormFloat64() }, x)
	r.Baselines = []Baseline{
		{"gains ignored", ignored, []Field{{"MSE of x", "0.12"}, {"MSE of x, scale fitted", "0.11"}, {"1 − correlation of x", "0.14"}}},
		{"gains known", known, []Field{{"MSE of x", "2.4e-5"}, {"MSE of x, scale fitted", "2.4e-5"}, {"1 − correlation of x", "1.2e-5"}}},
	}
	for _, i := range []int{17, 404} { // two sensors that the model does not explain
		for k := range 20 {
			r.Result.Residual.Set(i, k, 4*r.Result.Residual.At(i, k))
		}
	}
	r.Result.Warnings = []calamp.Warning{{Code: calamp.SensorAtEdge, Message: "1 sensor has its s at an end of the range [0.5, 1.5]: its gain may lie outside", Sensors: []int{17}}}
	return r
}

// failing is a run that blew up, without truth, with readings missing.
func failing() Report {
	rnd := rand.New(rand.NewPCG(3, 4))
	r := recovered(sparse(300, 8, rnd), 120, rnd)
	r.Truth, r.Metrics, r.Title = calamp.Truth{}, nil, "Night run of 3 May"
	res := r.Result
	res.Status, res.Iterations, res.Reason = calamp.Diverged, 37, "the estimates grew past 1e6 times the prior's standard deviation at iteration 37"
	res.Trace = res.Trace[:37]
	for i := range res.Trace {
		t := float64(i)
		res.Trace[i].Change = 1e-3 * math.Exp(0.3*t)
		res.Trace[i].MeanXVar = 0.1 * math.Exp(0.4*t)
		res.Trace[i].Scale = 1
		res.Trace[i].Damping = 0.5
	}
	res.Trace[36].Change, res.Trace[36].MeanXVar = math.Inf(1), math.NaN()
	for k := range res.Converged {
		res.Converged[k], res.Change[k] = k%3 == 0, 0.4/float64(k+1)
	}
	for i := range 120 {
		for k := range 8 {
			res.Residual.Set(i, k, 30*res.Residual.At(i, k)*rnd.ExpFloat64())
			if (i+k)%7 == 0 {
				res.Residual.Set(i, k, 0)
				r.Problem.Missing++
			}
		}
	}
	res.Warnings = []calamp.Warning{
		{Code: calamp.TooFewMeasurements, Message: "α = 0.4 is below α_min = 0.47, and below α_CS = 0.52, for density 0.2 and 8 signals: no method can do it"},
		{Code: calamp.NothingLearned, Message: "the posterior of s is as wide as its prior"},
		{Code: calamp.SilentSensor, Message: "sensors without any reading that is not zero", Sensors: []int{0, 7, 14, 21, 28, 35, 42, 49, 56, 63, 70, 77, 84, 91}},
		{Code: calamp.SignalNotConverged, Message: "5 signals had not converged", Signals: []int{1, 2, 4, 5, 7}},
	}
	return r
}

// cases are the reports of all kinds of runs.
func cases() map[string]Report {
	made := func(seed uint64, n, p, m int) Report {
		rnd := rand.New(rand.NewPCG(seed, 0))
		return recovered(sparse(n, p, rnd), m, rnd)
	}
	known := made(5, 200, 3, 150)
	known.Result.ScaleSD, known.Result.SVar = 0, make([]float64, 150)
	stopped := made(6, 1000, 40, 500)
	stopped.Result.Status = calamp.NotConverged
	for k := range stopped.Result.Converged {
		stopped.Result.Converged[k] = k > 34
	}
	cancelled := made(7, 100, 2, 50)
	cancelled.Result.Status, cancelled.Result.Trace = calamp.Cancelled, nil
	unlearned := made(8, 100, 2, 50)
	unlearned.Result.Warnings = []calamp.Warning{{Code: calamp.NothingLearned, Message: "the posterior of s is as wide as its prior"}}
	dead := made(9, 64, 1, 30)
	for k := range dead.Result.Residual.RawRowView(4) {
		dead.Result.Residual.Set(4, k, 0)
	}
	signed := made(10, 144, 3, 100)
	signed.ImageShape = [2]int{9, 16}
	huge := made(11, 2000, 12, 10000)
	return map[string]Report{
		"demo": demo(), "failing": failing(), "one signal": made(12, 400, 1, 300), "one sensor": made(13, 10, 3, 1),
		"one entry": made(14, 1, 2, 20), "one of all": made(15, 1, 1, 1), "known": known, "stopped": stopped,
		"cancelled": cancelled, "unlearned": unlearned, "dead": dead, "signed": signed, "huge": huge,
		"empty": {Result: &calamp.Result{}},
	}
}

func write(t *testing.T, r Report) string {
	t.Helper()
	var buf bytes.Buffer
	if err := Write(&buf, r); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func TestEveryCase(t *testing.T) {
	for name, r := range cases() {
		t.Run(name, func(t *testing.T) {
			text := write(t, r)
			if *keep != "" {
				if err := os.WriteFile(filepath.Join(*keep, strings.ReplaceAll(name, " ", "-")+".html"), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := wellFormed(text); err != nil {
				t.Error(err)
			}
			for _, bad := range []string{"NaN", "Inf", "http:", "https:", "//", "<script", "@import", "url(", "ZgotmplZ", "%!", "MISSING"} {
				links := strings.ReplaceAll(withoutImages(text), `<a href="https://github.com/calamp/calamp/blob/main/docs/warnings/`, `<a href="`)
				if i := strings.Index(links, bad); i >= 0 {
					t.Errorf("%q in the page", bad)
				}
			}
			if len(text) > 2<<20 {
				t.Errorf("%d bytes", len(text))
			}
			t.Logf("%d kB", len(text)>>10)
		})
	}
}

// withoutImages removes the base64 text of pictures, in which any word may occur by
// chance.
func withoutImages(text string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "base64,")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		_, text, _ = strings.Cut(after, `"`)
	}
}

// wellFormed checks that all elements close in order. Void elements are written
// with a slash in the template, so that the page is XML too.
func wellFormed(text string) error {
	d := xml.NewDecoder(strings.NewReader(text))
	d.Entity = xml.HTMLEntity
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func TestSections(t *testing.T) {
	text := write(t, demo())
	at := 0
	for _, want := range []string{
		"<!DOCTYPE html>", "<h1>Demo: 20 pictures", "Converged in 84 iterations: 20 signals and 627 gains recovered", "±\u202f0.1\u202f%",
		"Took 2.3\u202fs", "<h2>Warnings", "sensor at edge", "Sensor 17.",
		"<h2>Calibration", "Calibration against the truth", "Errors of the calibration", "Are the error bars right?",
		"<h2>Signals", "<th scope=\"col\">gains ignored", "The first 10 of 20 signals as 28×28 pictures", "signal 0, true", "signal 9, gains known",
		"<h2>Residuals", "Residuals by sensor", "Worst explained", "at edge", "Least known", "<h2>Problem", "0.7997", "float64, dense", "uniform on [0.5, 1.5]",
		"<details><summary>What the run did</summary>", "<h3>Convergence", "Relative change", "Mean posterior variance", "Scale step", "Damping", "<footer>", "v0.1.0-test", "calamp solve problem.npz",
	} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing, or out of order", want)
		}
		at += i
	}
	if strings.Contains(text, "did not converge") {
		t.Error("a table of signals though all converged")
	}
	if n := strings.Count(text, "<img "); n != 40 {
		t.Errorf("%d pictures, want 10 signals of 4 sources", n)
	}
}

func TestVerdicts(t *testing.T) {
	all := cases()
	for name, want := range map[string][2]string{
		"demo":       {good, "See the warning below."},
		"failing":    {bad, "The run diverged after 37 iterations: the estimates diverged."},
		"stopped":    {bad, "without having converged: 35 of 40 signals were still changing"},
		"cancelled":  {doubtful, "The run was cancelled after 84 iterations."},
		"unlearned":  {bad, "the readings taught nothing about the sensors"},
		"known":      {good, "3 signals recovered, with the gains taken as known."},
		"one of all": {good, "1 signal and 1 gain recovered; the typical gain is known to ±"},
	} {
		r := all[name]
		r.complete()
		if v := r.verdict(); v.Level != want[0] || !strings.Contains(v.Text, want[1]) || v.Badge == "" {
			t.Errorf("%s: %+v", name, v)
		}
	}
	r := all["demo"]
	r.Result.Warnings = []calamp.Warning{{Code: calamp.UnexplainedVariance}}
	if v := r.verdict(); v.Level != doubtful || !strings.Contains(v.Text, "estimated") {
		t.Errorf("doubtful: %+v", v)
	}
}

func TestSignalsTable(t *testing.T) {
	text := write(t, cases()["stopped"])
	for _, want := range []string{"35 of 40 signals did not converge.", "The 30 furthest from it are listed."} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestHostileText(t *testing.T) {
	r := demo()
	evil := `"></svg><script>alert(1)</script>{{.}}`
	r.Title, r.Version, r.Command = evil, evil, evil
	r.Model = []Field{{evil, evil}}
	r.Baselines[0].Name = evil
	r.Result.Reason = evil
	r.Result.Warnings = []calamp.Warning{{Code: calamp.WarningCode(evil), Message: evil}}
	text := write(t, r)
	if strings.Contains(text, "<script") {
		t.Error("text was not escaped")
	}
	if err := wellFormed(text); err != nil {
		t.Error(err)
	}
}

func TestNoResult(t *testing.T) {
	if err := Write(io.Discard, Report{}); err == nil {
		t.Error("no error without a result")
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 0.79974: "0.7997", 1234567: "1.235·10⁶", 123456: "123456", -3.5e-9: "−3.5·10⁻⁹", math.Inf(1): dash, math.NaN(): dash,
	} {
		if got := number(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
	for want, values := range map[string][]float64{
		"27.40 2.04 0.67":     {27.4, 2.039, 0.6702},
		"0.4 3·10⁻¹¹ 1·10⁻¹¹": {0.4, 3e-11, 1e-11},
		"0.0 – 12.0":          {0, math.NaN(), 12},
		"–":                   {math.NaN()},
	} {
		if got := strings.Join(column(values, 3), " "); got != want {
			t.Errorf("%v are written %s, want %s", values, got, want)
		}
	}
	if got := percent(0.00412); got != "±\u202f0.41\u202f%" {
		t.Errorf("found %s", got)
	}
	if got := percent(3e-7); got != "a factor of 1 ± 3·10⁻⁷" {
		t.Errorf("found %s", got)
	}
	if got := list("sensor", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, 99); got != "sensors 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 2 more" {
		t.Errorf("found %s", got)
	}
}

// TestBrowser opens reports in a headless browser and looks for colours.
func TestBrowser(t *testing.T) {
	browser := findBrowser()
	if browser == "" {
		t.Skip("no chromium, chromium-browser or google-chrome in PATH")
	}
	if testing.Short() {
		t.Skip("starts a browser")
	}
	dir := t.TempDir()
	for name, r := range map[string]Report{"demo": demo(), "failing": failing()} {
		page := filepath.Join(dir, name+".html")
		if err := os.WriteFile(page, []byte(write(t, r)), 0o600); err != nil {
			t.Fatal(err)
		}
		for theme, width := range map[string]int{"light": 1200, "dark": 390} {
			shot := screenshot(t, browser, page, theme == "dark", width)
			colours, dark := looks(t, shot)
			if colours < 200 {
				t.Errorf("%s, %s: only %d colours on the page", name, theme, colours)
			}
			if dark != (theme == "dark") {
				t.Errorf("%s: the %s theme was not shown", name, theme)
			}
		}
	}
}

func findBrowser() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func screenshot(t *testing.T, browser, page string, dark bool, width int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	shot := fmt.Sprintf("%s-%d.png", strings.TrimSuffix(page, ".html"), width)
	scheme := 1
	if dark {
		scheme = 0
	}
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
		fmt.Sprintf("--blink-settings=preferredColorScheme=%d", scheme),
		"--user-data-dir="+t.TempDir(), "--screenshot="+shot, fmt.Sprintf("--window-size=%d,3000", width), "file://"+page)
	cmd.WaitDelay = 10 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return shot
}

// looks counts the colours of a screenshot, and says whether its corner is dark.
func looks(t *testing.T, path string) (colours int, dark bool) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	img, err := png.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[[3]uint32]bool{}
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			r, g, b, _ := img.At(x, y).RGBA()
			seen[[3]uint32{r >> 8, g >> 8, b >> 8}] = true
		}
	}
	r, g, bl, _ := img.At(b.Min.X, b.Min.Y).RGBA()
	return len(seen), r+g+bl < 3*0x4000
}

// Where the common scale is a convention, the page states no uncertainty of it.
func TestScaleThatIsAConvention(t *testing.T) {
	r := cases()["one signal"]
	if page := write(t, r); !strings.Contains(page, "the common scale to ±") {
		t.Error("no uncertainty of the common scale")
	}
	r.ScaleFree = true
	if page := write(t, r); strings.Contains(page, "the common scale to ±") || strings.Contains(page, "the run expects") || !strings.Contains(page, "the common scale is a convention") {
		t.Error("a convention has an uncertainty")
	}
}

// Where sensors have several rows, the numbers of sensors are not those of rows.
func TestWhatIsCounted(t *testing.T) {
	r := cases()["one signal"]
	if page := write(t, r); !strings.Contains(page, "Sensors are the rows of W and signals") {
		t.Error("sensors are not said to be rows")
	}
	r.Result.Sensors = make([]int, len(r.Result.S))
	if page := write(t, r); !strings.Contains(page, "Sensors are those that rows of W are read with") {
		t.Error("sensors with several rows are said to be rows")
	}
}
