// Package dataset reads and writes the files of problems and results, in numpy's .npz and .npy, MATLAB's .mat (version 5 to
// 7), and readings also in CSV. It is what a program of your own needs; the command reads more with internal/dataset.
//
// A problem is a .npz or .mat with
//
//	W    M×N         measurement matrix, or P×M×N, one for every signal
//	Y    M×P, or M   readings; NaN where one is missing
//	X0   N×P, or N   true signals, optional
//	s0   M           true calibration, positive, optional (y = z/s)
//	o0   M           true offsets, optional (y = z/s + o)
//	s_prior_mean, s_prior_sd   M   what is known of the s of each sensor, optional; NaN where nothing is
//	sensors  M       the sensor that each row is read with, integers from 0, optional; then s0 and what is known of
//	                 sensors are of as many as there are
//
// All of them can be complex (c8 or c16), or Y alone of W and Y; then there can be
//
//	s_phase  M       nominal phases of the gains in radians
//
// or W and Y as two files. Arrays can be of any float, integer or bool type, in
// C or Fortran order and either byte order, stored or deflated.
//
// Every error of a reading function is an [InputError]; rows and columns in it
// count from 0, as they do in numpy, and lines of a CSV from 1, as they do in
// an editor.
package dataset

import (
	"io"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/operator"
)

// Problem is what a problem file holds: W (M×N), Y (M×P; NaN is a missing reading), the Truth or nil, what is Known of
// single sensors or nil, the Sensors of the rows or nil, and of complex problems Complex and the nominal Phases (M, in
// radians) or nil. Close it when done.
type Problem = dataset.Problem

// InputError says what is wrong with a file that was read: its Path, the Array, and the fault Err. All errors of this
// package's reading functions are of this type; those of writing are not.
type InputError = dataset.InputError

// Load reads a problem from the .npz or .mat at path, of which the arrays take at most half of the machine's memory once
// they are read, or four times the file.
func Load(path string) (*Problem, error) { return dataset.Load(path) }

// Read reads a problem in .npz or .mat format from r, all of it into memory. In errors, r is called name.
func Read(r io.Reader, name string) (*Problem, error) { return dataset.Read(r, name) }

// LoadParts reads a problem from the matrix that spec names ([OpenMatrix]) and a file with Y (.npy or CSV: a line for each
// sensor, an optional header line, and nothing or nan where a reading is missing). A .npz with the array Y will do as
// well, and then its X0, s0 and o0 are the truth.
func LoadParts(spec, readings string) (*Problem, error) { return dataset.LoadParts(spec, readings) }

// OpenMatrix reads the matrix that spec names: a file with W, or a kind and files as --matrix takes them. A table beyond
// budget bytes stays in its file, which is to be closed when done; file is nil else.
func OpenMatrix(spec string, budget int64) (w operator.Operator, file io.Closer, err error) {
	return dataset.OpenMatrix(spec, budget)
}

// LoadKnowledge reads what is known of the s of m sensors from the .npz or .mat at path: the arrays s_prior_mean and
// s_prior_sd (M each; NaN where nothing is known), or those of a result.
func LoadKnowledge(path string, m int) (*channel.Knowledge, error) {
	return dataset.LoadKnowledge(path, m)
}

// Save writes a problem to the .npz or, where its name says so, the .mat at path.
func Save(path string, p *Problem) error { return dataset.Save(path, p) }

// LoadResult reads what [SaveResult], or the command, wrote: estimates with their variances.
func LoadResult(path string) (*calamp.Result, error) { return dataset.LoadResult(path) }

// SaveResult writes r to the .npz or, where its name says so, the .mat at path, or to standard output when path is "-":
// the arrays that the command writes, but for the provenance. It writes nothing where a value is not finite.
func SaveResult(path string, r *calamp.Result) error { return dataset.SaveResult(path, r, nil) }
