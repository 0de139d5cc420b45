package page

import (
	"fmt"
	"net/http"
	"time"

	"github.com/calamp/calamp/internal/web"
)

// event is a piece of news, in JSON.
type event struct {
	name string
	data []byte
}

// Source is a board under a name: its events are called NAME.head, NAME.rows, NAME.frame
// and NAME.end.
type Source struct {
	Name  string
	Board *Board
}

const (
	// eventPause is between two batches of news: pictures are drawn 60 times a second
	// at most, and numbers are read more slowly.
	eventPause = 50 * time.Millisecond

	// heartbeat is after how long without news a word is said: so it is found out that
	// a visitor has gone.
	heartbeat = 15 * time.Second

	// eventTime is how long a visitor may take to accept a batch.
	eventTime = 10 * time.Second
)

// ServeEvents tells one visitor the news of boards as server-sent events, until the visitor goes or
// all of them are closed. What a visitor is too slow for is left out.
func ServeEvents(w http.ResponseWriter, r *http.Request, sources ...Source) {
	bell := make(chan struct{}, 1)
	for _, s := range sources {
		defer s.Board.visit(bell)()
	}
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Time{}) // the request is read
	w.Header().Set("Content-Type", "text/event-stream")
	known := make([]seen, len(sources))
	tick := time.NewTimer(0) // what there is already, at once
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-bell:
		case <-tick.C:
		}
		control.SetWriteDeadline(time.Now().Add(eventTime))
		if tell(w, sources, known) || control.Flush() != nil {
			return
		}
		web.Listening(r)
		select {
		case <-r.Context().Done():
			return
		case <-time.After(eventPause):
		}
		tick.Reset(heartbeat)
	}
}

// tell writes the news; over says that nothing more is to come.
func tell(w http.ResponseWriter, sources []Source, known []seen) (over bool) {
	over = true
	silent := true
	for k, s := range sources {
		events, closed := s.Board.news(&known[k])
		over = over && closed
		for _, e := range events {
			silent = false
			if _, err := fmt.Fprintf(w, "event: %s.%s\ndata: %s\n\n", s.Name, e.name, e.data); err != nil {
				return true
			}
		}
	}
	if silent {
		_, err := fmt.Fprint(w, ":\n\n")
		return err != nil || over
	}
	return over
}
