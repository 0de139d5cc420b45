package web

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// listen serves a handler that says yes.
func listen(t *testing.T, token string) *Server {
	t.Helper()
	s, err := Listen("127.0.0.1:0", token)
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "yes") }))
	t.Cleanup(func() { s.Close() })
	return s
}

// get asks for a path, with changes to the request.
func get(t *testing.T, s *Server, path string, change func(*http.Request)) (code int, body string) {
	t.Helper()
	r, err := http.NewRequest("GET", "http://"+s.Address()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	change(r)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

func TestWhoMayAsk(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "nonsense"} {
		if s, err := Listen(address, ""); err == nil {
			s.Close()
			t.Errorf("%s without a token", address)
		}
	}
	s := listen(t, "")
	rebound := func(r *http.Request) { r.Host = "evil.example:80" }
	if code, _ := get(t, s, "/", rebound); code != 403 {
		t.Errorf("another name: %d", code)
	}
	local := func(r *http.Request) { r.Host = "localhost:80" }
	if code, _ := get(t, s, "/", local); code != 200 {
		t.Errorf("localhost: %d", code)
	}

	const secret = "0123456789abcdef"
	s = listen(t, secret)
	bearer := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", value) }
	}
	for value, want := range map[string]int{
		"": 401, "Bearer ": 401, "Bearer " + secret[1:]: 401, secret: 401, "Basic " + secret: 401, "Bearer" + secret: 401,
		"Bearer " + secret: 200, "bearer " + secret: 200, "BEARER  " + secret: 200,
	} {
		for _, path := range []string{"/", "/api/anything"} {
			if code, _ := get(t, s, path, bearer(value)); code != want {
				t.Errorf("%q: %d, expected %d", value, code, want)
			}
		}
	}
	if s, err := Listen("127.0.0.1:0", secret[1:]); !errors.Is(err, ErrToken) {
		s.Close()
		t.Errorf("a short token: %v", err)
	}
}

// TestForeignLinks: a link from elsewhere leads to a page, and to nothing that a page asks for, however it is written.
func TestForeignLinks(t *testing.T) {
	s := listen(t, "")
	for path, want := range map[string]int{
		"/": 200, "/healthz": 200, "/posterior?format=json": 200, "/metrics": 200, "/apis": 200,
		"/api/theory/trajectory?p=1000&lo=0.001&hi=1000": 403, "/api/events": 403, "//api/events": 403, "/x/../api/events": 403, "/%61pi/events": 403, "/api/jobs/1/result.npz": 403,
	} {
		for _, site := range []string{"cross-site", "same-site"} {
			code, _ := get(t, s, path, func(r *http.Request) {
				r.Header.Set("Sec-Fetch-Site", site)
				r.Header.Set("Sec-Fetch-Mode", "navigate")
				r.Header.Set("Sec-Fetch-Dest", "document")
			})
			if code != want {
				t.Errorf("%s %s: %d, expected %d", site, path, code, want)
			}
		}
		for _, site := range []string{"same-origin", "none"} { // our page, and who types an address
			if code, _ := get(t, s, path, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", site) }); code != 200 {
				t.Errorf("%s %s: %d", site, path, code)
			}
		}
	}
}

// TestForeignPages: what a browser says comes from another page is refused, a link that was followed is not.
func TestForeignPages(t *testing.T) {
	s := listen(t, "")
	for _, c := range []struct {
		headers string
		want    int
	}{
		{"", 200},
		{"Origin: http://" + s.Address(), 200},
		{"Sec-Fetch-Site: same-origin", 200},
		{"Sec-Fetch-Site: none", 200},
		{"Sec-Fetch-Site: cross-site, Sec-Fetch-Mode: navigate, Sec-Fetch-Dest: document", 200},
		{"Origin: http://evil.example", 403},
		{"Origin: null", 403},
		{"Origin: http://127.0.0.1:1", 403},
		{"Origin: http://" + s.Address() + ".evil.example", 403},
		{"Origin: http://" + s.Address() + ", Sec-Fetch-Site: cross-site", 200}, // no browser says both
		{"Sec-Fetch-Site: cross-site", 403},
		{"Sec-Fetch-Site: same-site, Sec-Fetch-Mode: no-cors", 403}, // another port of this machine
		{"Sec-Fetch-Site: cross-site, Sec-Fetch-Mode: navigate, Sec-Fetch-Dest: iframe", 403},
	} {
		code, _ := get(t, s, "/", func(r *http.Request) {
			for header := range strings.SplitSeq(c.headers, ", ") {
				if name, value, ok := strings.Cut(header, ": "); ok {
					r.Header.Set(name, value)
				}
			}
		})
		if code != c.want {
			t.Errorf("%q: %d, expected %d", c.headers, code, c.want)
		}
	}
}

// TestBrowserWithToken: a browser brings the token once, in the address, and then has a cookie without it.
func TestBrowserWithToken(t *testing.T) {
	const secret = "0123456789abcdef"
	s := listen(t, secret)
	jar, _ := cookiejar.New(nil)
	browser := http.Client{Jar: jar}
	ask := func(path string) (int, string) {
		t.Helper()
		answer, err := browser.Get("http://" + s.Address() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode, answer.Request.URL.String()
	}
	if code, _ := ask("/"); code != 401 {
		t.Error("without", code)
	}
	if code, _ := ask("/?token=" + secret[1:]); code != 401 {
		t.Error("with another one", code)
	}
	if code, at := ask("//evil.example/?token=" + secret); code != 200 || at != "http://"+s.Address()+"/" {
		t.Error(code, at)
	}
	if code, _ := ask("/api"); code != 200 {
		t.Error("with the cookie", code)
	}
	code, _ := get(t, s, "/", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookieName, Value: secret}) })
	if code != 401 {
		t.Error("the token as the cookie", code)
	}
}

// TestIdleConnections: connections that say nothing keep no visitor out.
func TestIdleConnections(t *testing.T) {
	s := listen(t, "")
	for range 200 {
		c, err := net.Dial("tcp", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	start := time.Now()
	if code, _ := get(t, s, "/", func(*http.Request) {}); code != 200 {
		t.Error(code)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("served after %v", took)
	}
}

// TestListeners: a thousand who wait for news, and as many who say nothing, keep no other visitor out; who is busy is not cut off.
func TestListeners(t *testing.T) {
	s, err := Listen("127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	work, ended := make(chan struct{}), make(chan struct{}, 2000)
	s.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/news":
			http.NewResponseController(w).Flush()
			Listening(r)
			<-r.Context().Done()
			ended <- struct{}{}
		case "/work":
			<-work
			fallthrough
		default:
			io.WriteString(w, "yes")
		}
	}))
	worked := make(chan int)
	go func() {
		code, _ := get(t, s, "/work", func(*http.Request) {})
		worked <- code
	}()
	for k := range 1000 {
		c, err := net.Dial("tcp", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /news HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := c.Read(make([]byte, 100)); err != nil {
			t.Fatalf("listener %d is not served: %v", k, err)
		}
		silent, err := net.Dial("tcp", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
	}
	if code, _ := get(t, s, "/", func(r *http.Request) { r.Close = true }); code != 200 {
		t.Error(code)
	}
	close(work)
	if code := <-worked; code != 200 {
		t.Errorf("who was busy was cut off: %d", code)
	}
	for k := range 1000 - mostConnections { // their handlers do not go on
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			t.Fatalf("only %d listeners were ended", k)
		}
	}
}

// TestMostConnections: a connection more than the limit is served when another
// one has gone, and closing does not wait for either.
func TestMostConnections(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limit(inner, 2)
	accepted := make(chan net.Conn)
	ended := make(chan error)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	for range 4 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first, second := <-accepted, <-accepted
	select {
	case <-accepted:
		t.Error("a third connection beside two")
	case <-time.After(50 * time.Millisecond):
	}
	first.Close()
	first.Close() // frees its slot once
	third := <-accepted
	l.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	second.Close()
	third.Close()
}

func TestToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(" abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if token, err := Token("@" + file); err != nil || token != "abc" {
		t.Error(token, err)
	}
	if token, err := Token("plain"); err != nil || token != "plain" {
		t.Error(token, err)
	}
	if _, err := Token("@" + file + "x"); err == nil {
		t.Error("no file")
	}
	if err := os.Truncate(file, 1<<20); err != nil { // a device without an end, as far as is read
		t.Fatal(err)
	}
	if _, err := Token("@" + file); err == nil || !strings.Contains(err.Error(), "expected a token") {
		t.Error(err)
	}
}
