package watch

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/online"
)

func listen(t *testing.T, token string) *Server {
	t.Helper()
	s, err := Listen("127.0.0.1:0", token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// get asks for a path, with changes to the request.
func get(t *testing.T, s *Server, path string, change func(*http.Request)) (code int, kind, body string) {
	t.Helper()
	r, err := http.NewRequest("GET", "http://"+s.Address()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header.Get("Content-Type"), string(b)
}

func view() View {
	return View{Sequence: 7, Posterior: &online.Posterior{
		S: []float64{1, 0.98, 1.02}, SVar: []float64{1e-6, 4e-6, 9e-6}, Gain: []float64{1, 1 / 0.98, 1 / 1.02},
		Count: []float64{6, 6, 2}, ScaleSD: 0.001, Samples: 6,
		Flagged: []online.FlaggedSensor{{Sensor: 2, Reason: online.Zero}},
	}}
}

// TestHealthIsDocumented wants every field of /healthz in docs.
func TestHealthIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "online-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## The object of `/healthz`")
	fields := reflect.TypeFor[healthJSON]()
	for k := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(k).Tag.Get("json"), ",")
		if !strings.Contains(table, "\n| `"+name+"` |") {
			t.Errorf("the field %s is not in docs/online-json.md", name)
		}
	}
	if rows := strings.Count(table, "\n| `"); rows != fields.NumField() {
		t.Errorf("docs/online-json.md has %d fields, /healthz %d", rows, fields.NumField())
	}
}

func TestHealth(t *testing.T) {
	s := listen(t, "")
	s.Show(View{Sequence: online.NoSequence, Posterior: &online.Posterior{}})
	expect := func(code int, status string) {
		t.Helper()
		c, kind, body := get(t, s, "/healthz", nil)
		var h healthJSON
		if err := json.Unmarshal([]byte(body), &h); err != nil || c != code || h.Status != status || kind != "application/json" {
			t.Errorf("%d %s %s, expected %d %s; %v", c, kind, body, code, status, err)
		}
	}
	expect(200, "ok")
	for range unhealthyAfter {
		s.Sample(Sample{Reject: "unexplained"})
	}
	expect(503, "unhealthy")
	s.Sample(Sample{Committed: true})
	expect(200, "ok")
	for range unhealthyAfter { // nothing but what was there before
		s.Duplicate()
	}
	expect(503, "unhealthy")
	s.Sample(Sample{Committed: true})
	expect(200, "ok")
	for range unhealthyAfter {
		s.Refused()
	}
	expect(503, "unhealthy")
	s.Sample(Sample{Reject: "frozen"})
	expect(200, "ok")
	for range latestSamples { // as where every third sample is a real one
		s.Sample(Sample{Committed: true})
		s.Sample(Sample{Reject: "unexplained"})
		s.Sample(Sample{Reject: "unexplained"})
	}
	s.Sample(Sample{Committed: true})
	expect(503, "unhealthy")
	for k := range 2 * latestSamples {
		s.Sample(Sample{Committed: k%3 > 0, Reject: "no signal"})
	}
	expect(200, "ok")
}

func TestMetrics(t *testing.T) {
	s := listen(t, "")
	s.Sample(Sample{Committed: true, Iterations: 20, ScaleStep: 1.5, Solving: 3 * time.Millisecond, Saving: time.Millisecond})
	s.Sample(Sample{Reject: "not converged", Iterations: 500, ScaleStep: 1, Solving: time.Second})
	s.Refused()
	s.Duplicate()
	s.Show(view())
	code, kind, body := get(t, s, "/metrics", nil)
	if code != 200 || !strings.HasPrefix(kind, "text/plain") {
		t.Fatal(code, kind)
	}
	for _, line := range []string{
		"calamp_samples_total 2", "calamp_committed_total 1", "calamp_duplicates_total 1",
		`calamp_rejected_total{reason="not converged"} 1`, `calamp_rejected_total{reason="refused"} 1`,
		"calamp_iterations_sum 520", "calamp_solve_seconds_count 2", `calamp_solve_seconds_bucket{le="0.0032"} 1`,
		"calamp_commit_seconds_count 2", "calamp_scale_step 1", "calamp_scale_sd 0.001", "calamp_sensors_flagged 1",
		"calamp_learned_samples 6", "calamp_last_sequence 7",
		`calamp_s_sd{sensor="median"} 0.002`, `calamp_s_sd{sensor="worst"} 0.002`, "go_goroutines",
	} {
		if !strings.Contains(body, line) {
			t.Errorf("no %s", line)
		}
	}
}

func TestPosterior(t *testing.T) {
	s := listen(t, "")
	if code, _, _ := get(t, s, "/posterior", nil); code != 503 {
		t.Errorf("nothing to see: %d", code)
	}
	s.Show(view())
	code, kind, body := get(t, s, "/posterior", nil)
	var p posteriorJSON
	if err := json.Unmarshal([]byte(body), &p); err != nil || code != 200 || kind != "application/json" {
		t.Fatal(code, kind, err)
	}
	if *p.LastSeq != 7 || p.SSD[2] != 0.003 || p.Learned != 6 || fmt.Sprint(p.Flagged) != fmt.Sprint([]flaggedJSON{{2, online.Zero.String()}}) {
		t.Errorf("%+v", p)
	}
	byHeader := func(r *http.Request) { r.Header.Set("Accept", "application/x-npz") }
	for _, path := range []string{"/posterior?format=npz", "/posterior"} {
		code, kind, body := get(t, s, path, byHeader)
		if code != 200 || kind != "application/x-npz" {
			t.Fatal(code, kind)
		}
		file := filepath.Join(t.TempDir(), "p.npz")
		if err := os.WriteFile(file, []byte(body), 0o666); err != nil {
			t.Fatal(err)
		}
		a, err := dataset.LoadArray(file, "s_var")
		if err != nil || a.Data[1] != 4e-6 {
			t.Error(a, err)
		}
	}
	if code, _, _ := get(t, s, "/posterior?format=xml", nil); code != 400 {
		t.Error(code)
	}
	if code, kind, body := get(t, s, "/", nil); code != 200 || !strings.HasPrefix(kind, "text/html") || !strings.Contains(body, "page.js") {
		t.Error(code, kind)
	}
	if code, _, _ := get(t, s, "/healthy", nil); code != 404 {
		t.Error(code)
	}
}

// TestUnwatched: a run without --http has no server.
func TestUnwatched(t *testing.T) {
	var s *Server
	s.Show(view())
	s.Sample(Sample{})
	s.Refused()
	s.Duplicate()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
