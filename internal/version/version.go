// Package version is the one place that says which release this source is, or will be. The command, wheels,
// archives, manual pages, the site and CITATION.cff have their version from here; a tag must agree with it.
package version

// Number of the release, without the v of its tag.
const Number = "0.1.0"

// Development is the version of a build that is not of a release's tag.
const Development = "v" + Number + "-dev"
