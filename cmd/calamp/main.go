// Command calamp calibrates sensors blindly from sparse signals: readings and a
// matrix in, signals, calibration and error bars out.
package main

import (
	"os"

	"github.com/calamp/calamp/internal/command"
)

func main() { os.Exit(command.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
