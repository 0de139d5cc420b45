//go:build !small

package imager

import _ "embed"

// file is the readings.
//
//go:embed arizona_imager_4_scenes.npz
var file []byte
