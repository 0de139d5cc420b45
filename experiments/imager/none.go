//go:build small

package imager

var file []byte
