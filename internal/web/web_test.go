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

// TestIdleConnections: connections that say nothing keep nobody out.
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
}
