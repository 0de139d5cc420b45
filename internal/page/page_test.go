package page

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/calamp/calamp/internal/report"
)

// TestSize: all that a visitor loads.
func TestSize(t *testing.T) {
	const most = 150_000
	total := len(report.Style)
	fs.WalkDir(assets, ".", func(_ string, entry fs.DirEntry, _ error) error {
		if info, err := entry.Info(); err == nil && !entry.IsDir() {
			total += int(info.Size())
		}
		return nil
	})
	t.Logf("%d bytes", total)
	if total > most {
		t.Errorf("%d bytes, at most %d", total, most)
	}
}

// TestVendored compares uPlot with the checksums of its README, and finds nothing that
// would load from elsewhere.
func TestVendored(t *testing.T) {
	readme, err := os.ReadFile("assets/uplot/README")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"uPlot.iife.min.js", "uPlot.min.css", "LICENSE"} {
		content, err := os.ReadFile("assets/uplot/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if sum := fmt.Sprintf("%x  %s", sha256.Sum256(content), name); !strings.Contains(string(readme), sum) {
			t.Errorf("the README does not say %s", sum)
		}
	}
	fs.WalkDir(assets, ".", func(name string, entry fs.DirEntry, _ error) error {
		if entry.IsDir() || strings.Contains(name, "uplot") {
			return nil
		}
		content, _ := assets.ReadFile(name)
		for _, word := range []string{"http://", "https://", "innerHTML", "eval(", "document.write"} {
			if strings.Contains(string(content), word) {
				t.Errorf("%s has %s", name, word)
			}
		}
		return nil
	})
}

// TestEveryFile: whatever the page names is served, with its kind.
func TestEveryFile(t *testing.T) {
	mux := http.NewServeMux()
	Handle(mux, About{Kind: Stream})
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/assets/page.js": "text/javascript; charset=utf-8", "/assets/common.js": "text/javascript; charset=utf-8", "/assets/run.js": "text/javascript; charset=utf-8",
		"/assets/theory.js": "text/javascript; charset=utf-8", "/assets/sweep.js": "text/javascript; charset=utf-8",
		"/assets/page.css": "text/css; charset=utf-8", "/assets/report.css": "text/css; charset=utf-8",
		"/assets/uplot/uPlot.iife.min.js": "text/javascript; charset=utf-8", "/assets/uplot/uPlot.min.css": "text/css; charset=utf-8", "/api/about": "application/json",
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != 200 || w.Header().Get("Content-Type") != kind || w.Body.Len() == 0 {
			t.Errorf("%s: %d %s", path, w.Code, w.Header().Get("Content-Type"))
		}
	}
	for _, path := range []string{"/assets/", "/assets/index.html", "/assets/../page.go", "/assets/%2e%2e/page.go", "/assets/..%2fpage.go", "/assets//etc/passwd", "/page.go", "//assets/page.js"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code == 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// TestBoardStaysSmall: a hundred thousand rows take no more room than two thousand, the
// first and the last are there, and they are evenly spaced.
func TestBoardStaysSmall(t *testing.T) {
	b := NewBoard()
	var s seen
	for i := range 100_000 {
		b.Row(float64(i), math.NaN())
		if i%997 == 0 {
			b.news(&s)
		}
	}
	if len(b.rows) > mostRows || len(b.rows) < mostRows/2 {
		t.Errorf("%d rows", len(b.rows))
	}
	for k, row := range b.rows {
		if row[0] != float64(k*b.stride) {
			t.Fatalf("row %d is %g", k, row[0])
		}
	}
	events, _ := b.news(&seen{})
	var rows struct {
		Fresh bool
		Rows  [][]*float64
		Last  []*float64
	}
	if err := json.Unmarshal(events[0].data, &rows); err != nil || !rows.Fresh || *rows.Last[0] != 99_999 || rows.Last[1] != nil || len(rows.Rows) != len(b.rows) {
		t.Error(err, rows.Fresh, rows.Last)
	}
}

// follower puts together what a page would from the events.
type follower struct{ rows [][]float64 }

func (f *follower) take(t *testing.T, data []byte) {
	var news struct {
		Fresh bool
		Rows  [][]float64
	}
	if err := json.Unmarshal(data, &news); err != nil {
		t.Fatal(err)
	}
	if news.Fresh {
		f.rows = nil
	}
	f.rows = append(f.rows, news.Rows...)
}

// TestNewsAddUp: who hears all news, in pieces of any size, has the rows of the board.
func TestNewsAddUp(t *testing.T) {
	b := NewBoard()
	var s seen
	var f follower
	for i := range 3 * mostRows {
		b.Row(float64(i))
		if i%(1+i/700) == 0 {
			events, _ := b.news(&s)
			f.take(t, events[0].data)
		}
	}
	events, _ := b.news(&s)
	for _, e := range events {
		f.take(t, e.data)
	}
	if !slices.EqualFunc(f.rows, b.rows, slices.Equal[[]float64]) {
		t.Errorf("%d rows heard of, %d there", len(f.rows), len(b.rows))
	}
}

// TestEvents: what was there before, what comes, and the end.
func TestEvents(t *testing.T) {
	b := NewBoard()
	b.Head(Head{Name: "<script>alert(1)</script>\n\nevent: run.end", S: Numbers{1.5, math.NaN()}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { ServeEvents(w, r, Source{"run", b}) }))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, "GET", server.URL, nil)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	next := func() (name, data string) {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = text
			}
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return name, text
			}
		}
		return "", ""
	}
	name, data := next()
	var head struct{ Name, S string }
	if err := json.Unmarshal([]byte(data), &head); err != nil || name != "run.head" || !strings.HasPrefix(head.Name, "<script>") || strings.Contains(data, "<script>") {
		t.Fatal(name, data, err)
	}
	raw, _ := base64.StdEncoding.DecodeString(head.S)
	if len(raw) != 16 || math.Float64frombits(binary.LittleEndian.Uint64(raw)) != 1.5 || !math.IsNaN(math.Float64frombits(binary.LittleEndian.Uint64(raw[8:]))) {
		t.Error(raw)
	}
	b.Row(1, 2)
	if name, data := next(); name != "run.rows" || data != `{"fresh":true,"rows":[[1,2]],"last":[1,2]}` {
		t.Error(name, data)
	}
	b.Frame(Frame{At: 7})
	if name, _ := next(); name != "run.frame" {
		t.Error(name)
	}
	b.End(map[string]string{"state": "done"})
	b.Close()
	if name, data := next(); name != "run.end" || data != `{"state":"done"}` {
		t.Error(name, data)
	}
	if name, _ := next(); name != "" {
		t.Error("after the end", name)
	}
}

// TestSlowVisitor: no other visitor waits for one who does not read.
func TestSlowVisitor(t *testing.T) {
	b := NewBoard()
	defer b.visit(make(chan struct{}, 1))()
	start := time.Now()
	for i := range 10_000 {
		b.Row(float64(i))
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Error(took)
	}
}

func TestShownSignals(t *testing.T) {
	at := func(i, k int) float64 { return float64(i%7 - 3*k) }
	for n, want := range map[int]int{20: 20, 784: 784, 5000: mostEntries, 512 * 512: 128 * 128} {
		signals := NewView(n).Signals(30, at)
		if len(signals) > mostPictures || len(signals[0].V) != want {
			t.Errorf("N = %d: %d signals of %d", n, len(signals), len(signals[0].V))
		}
		if s := signals[0]; s.At != nil && (len(s.At) != want || s.V[1] != 6) { // the largest of its stretch
			t.Error(n, s.V[:3], s.At[:3])
		}
	}
}
