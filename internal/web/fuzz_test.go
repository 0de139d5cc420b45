package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzGuard: no request comes in without the token, or under a foreign name, or from a foreign page, whatever the headers are.
func FuzzGuard(f *testing.F) {
	const secret = "0123456789abcdef"
	f.Add("GET", "/", "127.0.0.1", "", "", "", "", "")
	f.Add("GET", "/api/events", "localhost:80", "", "cross-site", "navigate", "", "")
	f.Add("GET", "/?token="+secret[1:], "example", "http://example", "none", "navigate", "Bearer x", "calamp=x")
	f.Add("POST", "/api/demo", "[::1]:80", "http://[::1]:80", "same-origin", "cors", "Basic "+secret, "")
	f.Fuzz(func(t *testing.T, method, target, host, origin, site, mode, authorization, cookie string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		r, err := http.NewRequest(method, "http://127.0.0.1/", nil)
		if err != nil {
			return
		}
		r.URL, r.Host = u, host
		for name, value := range map[string]string{
			"Origin": origin, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": "document", "Authorization": authorization, "Cookie": cookie,
		} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		for _, token := range []string{"", secret} {
			s := &Server{token: token}
			in := false
			s.guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { in = true })).ServeHTTP(httptest.NewRecorder(), r)
			switch {
			case !in:
			case token != "" && !strings.Contains(authorization, secret) && !strings.Contains(cookie, s.cookie()):
				t.Error("without the token")
			case token == "" && !isLoopback(hostOf(host)):
				t.Errorf("under the name %q", host)
			case origin != "" && !strings.Contains(strings.ToLower(origin), strings.ToLower(host)):
				t.Errorf("from %q", origin)
			case origin == "" && (site == "cross-site" || site == "same-site") && (method != http.MethodGet || mode != "navigate" || strings.HasPrefix(u.Path, asked)):
				t.Errorf("%s %s from elsewhere, %s", method, target, mode)
			}
		}
	})
}
