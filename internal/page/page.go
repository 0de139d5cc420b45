// Package page is the web page that shows calibrations live, and what goes to it: its
// files, which are part of the program, and boards, from which it hears as
// server-sent events. It needs nothing from anywhere else, and knows nothing of how
// anything is computed.
package page

import (
	"embed"
	"encoding/json"
	"io/fs"
	"mime"
	"net/http"
	"path"

	"github.com/calamp/calamp/internal/report"
)

//go:embed assets
var assets embed.FS

// About says what a page is to show.
type About struct {
	Kind    string `json:"kind"` // Solver or Stream
	Version string `json:"version"`
	Upload  int64  `json:"upload"` // bytes that a problem may have
	Sweep   string `json:"sweep"`  // what sweep there is to look at; empty for none

	Fields []Field `json:"fields,omitempty"` // of the form that says what is known of a problem
}

// Field is one line of a form.
type Field struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	Title string `json:"title"` // what it is, in a sentence
	Like  string `json:"like"`  // what stands in it while nothing is said
}

// The kinds of page.
const (
	Solver = "solver" // calamp serve: problems, theory, sweeps
	Stream = "stream" // calamp online --http
)

// policy lets the page load its own files and nothing else, and be shown in no other
// page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; " +
	"connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handle has a multiplexer serve the page's files and what it asks first.
func Handle(mux *http.ServeMux, about About) {
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		file(w, "index.html")
	})
	fs.WalkDir(assets, "assets", func(name string, entry fs.DirEntry, _ error) error {
		if base := path.Base(name); !entry.IsDir() && path.Ext(base) != "" && base != "index.html" {
			mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, _ *http.Request) { file(w, name[len("assets/"):]) })
		}
		return nil
	})
	mux.HandleFunc("GET /assets/report.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		w.Write([]byte(report.Style))
	})
	mux.HandleFunc("GET /api/about", func(w http.ResponseWriter, _ *http.Request) { JSON(w, http.StatusOK, about) })
}

func file(w http.ResponseWriter, name string) {
	content, err := assets.ReadFile("assets/" + name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	kind := mime.TypeByExtension(path.Ext(name))
	switch path.Ext(name) { // a machine's own table may say otherwise
	case ".js":
		kind = "text/javascript; charset=utf-8"
	case ".css":
		kind = "text/css; charset=utf-8"
	case ".html":
		kind = "text/html; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Write(content)
}

// JSON answers with one object.
func JSON(w http.ResponseWriter, code int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(append(text, '\n'))
}
