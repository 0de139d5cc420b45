package main

import "os"

func Example() {
	if err := run(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// converged
	// warning: scale-from-gains
	// gains to 1 %: true
}
