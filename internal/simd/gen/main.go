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
	f32, f64 := entry{"F32", "float32", 4}, entry{"F64", "float64", 8}
	for _, v := range []isa{{name: "AVX2", lanes: 4, group: 3}, {name: "AVX512", lanes: 8, group: 5}} {
		for _, k := range []kernels{
			{isa: v, entry: f32},
			{isa: v, entry: f64},
			{isa: v, entry: f32, single: true},
			{isa: v, entry: f32, rows: true},
			{isa: v, entry: f64, rows: true},
			{isa: v, entry: f32, single: true, rows: true},
		} {
			for _, quadratic := range []bool{true, false} {
				k.forward1(quadratic)
				k.backward1(quadratic)
			}
			for _, squares := range []bool{false, true} {
				for signals := 1; signals <= v.group; signals++ {
					k.dot(signals, squares)
				}
				for signals := 1; signals <= k.axpyGroup(); signals++ {
					k.axpy(signals, squares)
				}
			}
		}
		wholes(v)
		kernels{isa: v}.drain()
		tile(v)
	}
	largest()
	toBytes()
	butterflies()
	fourier()
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
	phasorNodes()
	hinge()
	millsRatios()
	logisticNodes()
}
