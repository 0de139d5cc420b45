// Command gen writes the assembly of the package kernel or vector, whichever -pkg names,
// with avo. It is a module of its own, so that calamp does not depend on avo:
//
//	go run . -out ../../kernel/kernels_amd64.s -stubs ../../kernel/kernels_amd64.go -pkg kernel
package main

import (
	"flag"
	"log"

	. "github.com/mmcloughlin/avo/build"
)

func main() {
	flag.Parse() // -out, -stubs and -pkg are defined by avo
	ConstraintExpr("!noasm")
	switch name := flag.Lookup("pkg").Value.String(); name {
	case "kernel":
		loops()
	case "vector":
		functions()
	default:
		log.Fatalf("there is nothing to generate for package %q", name)
	}
	Generate()
}

// loops writes the loops over W, for package kernel.
func loops() {
	for _, v := range []isa{{name: "AVX2", lanes: 4, group: 3}, {name: "AVX512", lanes: 8, group: 5}} {
		for _, e := range []entry{{"F32", "float32", 4}, {"F64", "float64", 8}} {
			k := kernels{isa: v, entry: e}
			for _, quadratic := range []bool{true, false} {
				k.forward1(quadratic)
				k.backward1(quadratic)
			}
			for signals := 1; signals <= v.group; signals++ {
				for _, squares := range []bool{false, true} {
					k.dot(signals, squares)
					k.axpy(signals, squares)
				}
			}
		}
	}
	butterflies()
	fourier4()
	sparse()
	read()
}

// functions writes the functions of sensors and entries, for package vector.
func functions() {
	logarithms()
	exponentials()
	gainIntegrals()
	gainPowers()
	gaussBernoulli()
	gainShapes()
	gainEnds()
}
