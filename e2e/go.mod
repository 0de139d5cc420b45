// The page in a browser: a module of its own, so that who uses calamp does not depend on what drives browsers.
module github.com/calamp/calamp/e2e

go 1.26

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
)

require github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
