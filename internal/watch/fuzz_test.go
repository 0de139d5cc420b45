package watch

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/calamp/calamp/online"
)

// FuzzHandlers asks a running stream for anything: no panic, and an end when the visitor goes.
func FuzzHandlers(f *testing.F) {
	s := &Server{live: newLive(), metrics: newMetrics()}
	s.health.started = time.Now()
	handler := s.handler()
	for _, target := range []string{"/", "/healthz", "/metrics", "/posterior", "/posterior?format=npz", "/posterior?format=xml", "/api/about", "/api/events", "/assets/page.js", "/assets/../x"} {
		f.Add("GET", target, "application/json", int64(3))
		f.Add("HEAD", target, "application/x-npz", int64(-1))
	}
	f.Fuzz(func(t *testing.T, method, target, accept string, sequence int64) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		r, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1/", nil)
		if err != nil {
			return
		}
		r.URL, r.RequestURI = u, target
		r.Header.Set("Accept", accept)
		switch sequence % 4 { // the stream goes on meanwhile
		case 0:
			v := view()
			v.Sequence = sequence
			s.Show(v)
		case 1:
			s.Sample(Sample{Sequence: sequence, X: []float64{0, 1}, Worst: []online.Residual{{Sensor: 1, Chi: -3}}, Committed: true, ScaleStep: 1})
		case 2:
			s.Refused()
		default:
			s.Duplicate()
		}
		if strings.Contains(u.Path, "events") {
			defer time.AfterFunc(5*time.Millisecond, leave).Stop()
		}
		const limit = 10 * time.Second
		late := time.AfterFunc(limit, func() { panic(method + " " + target + ": no answer within " + limit.String()) })
		defer late.Stop()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		const most = 1 << 20 // nothing here is larger
		if w.Body.Len() > most {
			t.Errorf("%s %s: %d bytes", method, target, w.Body.Len())
		}
	})
}
