// Package watch shows a running calibration to the outside over HTTP: whether it
// is healthy, what it counts (for Prometheus), and what it has learned.
package watch

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/calamp/calamp/internal/page"
	"github.com/calamp/calamp/internal/web"
	"github.com/calamp/calamp/online"
)

// View is what there is to see after a sample.
type View struct {
	Sequence  int64 // of the last sample taken in, -1 for none
	Posterior *online.Posterior
}

// Sample is what there is to say of one sample.
type Sample struct {
	Sequence        int64
	X               []float64 // the signal, N, of a complex one the sizes of its entries; not kept
	Worst           []online.Residual
	ChiSquare       float64
	Committed       bool
	Reject          string // why not
	Iterations      int
	ScaleStep       float64 // factor by which it moved the common scale
	Solving, Saving time.Duration
}

// Server serves
//
//	/           a page that shows the stream live
//	/healthz    200 or 503, and JSON
//	/metrics    in Prometheus' format
//	/posterior  JSON, or .npz with ?format=npz or Accept: application/x-npz
//
// All its methods can be called on nil, where they do nothing.
type Server struct {
	web     *web.Server
	view    atomic.Pointer[View]
	health  health
	metrics *metrics
	live    *live
}

// Listen serves on address to those whom [web.Listen] lets in.
func Listen(address, token string) (*Server, error) {
	listening, err := web.Listen(address, token)
	if err != nil {
		return nil, err
	}
	s := &Server{web: listening, live: newLive()}
	s.health.started = time.Now()
	s.metrics = newMetrics()
	listening.Serve(s.handler())
	return s, nil
}

// Address is where the server listens.
func (s *Server) Address() string { return s.web.Address() }

// Close ends the server, requests under way within a second.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	s.live.board.Close()
	return s.web.Close()
}

// Show replaces what there is to see; the view must not change afterwards.
func (s *Server) Show(v View) {
	if s != nil {
		s.view.Store(&v)
	}
}

// Sample counts a sample.
func (s *Server) Sample(x Sample) {
	if s != nil {
		s.health.sample(x.Committed || x.Reject == online.Frozen.String(), x.Reject)
		s.metrics.sample(x)
		s.live.sample(x, s.view.Load())
	}
}

// Refused counts an input that was no sample.
func (s *Server) Refused() {
	if s != nil {
		s.health.sample(false, "refused")
		s.metrics.refused()
	}
}

// Duplicate counts a sample that came again.
func (s *Server) Duplicate() {
	if s != nil {
		s.health.duplicate()
		s.metrics.duplicate()
	}
}

// Notice tells something of the stream itself, and counts messages that never came.
func (s *Server) Notice(text string, missing int64) {
	if s != nil {
		s.health.say(text, missing)
		s.metrics.miss(missing)
	}
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.serveHealth)
	mux.HandleFunc("GET /metrics", s.serveMetrics)
	mux.HandleFunc("GET /posterior", s.servePosterior)
	page.Handle(mux, page.About{Kind: page.Stream})
	mux.HandleFunc("GET /api/events", s.live.serve)
	return mux
}
