// The documentation as a site: a module of its own, so that calamp does not depend on what reads Markdown.
module github.com/calamp/calamp/docs/site

go 1.26

require github.com/yuin/goldmark v1.7.13
