//go:build !amd64 || noasm

package kernel

func best() Level { return Go }
