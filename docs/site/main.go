// Command site makes the documentation a site that needs no server, and no script but for its search:
//
//	scripts/site DIR
//
// Its pages are the README and docs, with formulas set, in the style of the reports. A
// link that leads nowhere is an error.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", filepath.Join("..", ".."), "the repository")
	out := flag.String("out", "", "folder to write")
	flag.Parse()
	if *out == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: site -out DIR")
		os.Exit(2)
	}
	if err := build(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}
