package calamp

import "github.com/calamp/calamp/internal/version"

// Version of the library, as in its tag without the v. What of it stays the same from one version to the next is in
// docs/stability.md.
const Version = version.Number
