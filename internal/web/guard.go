package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// cookieName is the cookie of browsers that came with the token. It holds a hash: who
// reads the browser's store does not have the token.
const cookieName = "calamp"

// guard lets in who may come in. A page of the web that this machine's browser
// shows could make it ask 127.0.0.1 under another name (DNS rebinding): where
// there is no token, the name must be this machine's. It could also ask under the right
// name: what a browser says comes from another page is refused, whatever it asks for.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("X-Frame-Options", "SAMEORIGIN")
		switch {
		case s.token == "" && !isLoopback(hostOf(r.Host)):
			http.Error(w, "ask for 127.0.0.1 or localhost", http.StatusForbidden)
		case foreign(r):
			http.Error(w, "pages from elsewhere may not ask", http.StatusForbidden)
		case s.token != "" && s.takesToken(w, r):
		case s.token != "" && !s.authorised(r):
			h.Set("WWW-Authenticate", `Bearer realm="calamp"`)
			http.Error(w, "a bearer token is needed, or in a browser ?token=…", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// asked is where pages ask the server to do something for them. Links lead to pages and files that are elsewhere.
const asked = "/api/"

// foreign says whether a browser asks for a page that is not ours. Browsers say so in
// Sec-Fetch-Site, which pages cannot set, and in Origin; other programs send neither. A link that was
// followed may come from anywhere, and a page can follow its own without a click: so it may show a page, and not have the
// server compute, or tell news.
func foreign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		return err != nil || !strings.EqualFold(u.Host, r.Host)
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	followed := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return !followed || strings.HasPrefix(path.Clean("/"+r.URL.Path), asked)
}

func hostOf(hostPort string) string {
	if host, _, err := net.SplitHostPort(hostPort); err == nil {
		return host
	}
	return strings.Trim(hostPort, "[]")
}

// takesToken answers a browser that comes with the token in its address: it gets a
// cookie, and the address without the token.
func (s *Server) takesToken(w http.ResponseWriter, r *http.Request) bool {
	given := r.URL.Query().Get("token")
	if r.Method != http.MethodGet || given == "" || !same(given, s.token) {
		return false
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: s.cookie(), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	w.Header().Set("Location", "/") // and not where the request says: it could be anywhere
	w.WriteHeader(http.StatusSeeOther)
	return true
}

func (s *Server) cookie() string {
	sum := sha256.Sum256([]byte("calamp page " + s.token))
	return hex.EncodeToString(sum[:])
}

// authorised looks for the token. The name of the scheme is the same in any case of
// letters (RFC 9110, section 11.1).
func (s *Server) authorised(r *http.Request) bool {
	if c, err := r.Cookie(cookieName); err == nil && same(c.Value, s.cookie()) {
		return true
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return same(strings.TrimLeft(given, " "), s.token) && strings.EqualFold(scheme, "Bearer")
}

// same compares in a time that tells nothing of a token, not even its length.
func same(given, token string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
