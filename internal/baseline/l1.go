package baseline

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/operator"
)

// lpSolver is the program that L1 runs, from COIN-OR.
const lpSolver = "clp"

var (
	// errNoLPSolver says that the program is not installed.
	errNoLPSolver = errors.New("there is no " + lpSolver + " in the path (Debian: coinor-clp)")
	// errTooLarge says that the linear program would take too long.
	errTooLarge = errors.New("too large a problem for a linear program")
)

// mostTerms bounds the number of non-zero coefficients of the linear program, 2MNP.
const mostTerms = 3e6

// L1 solves the convex program of R. Gribonval, G. Chardon and L. Daudet, "Blind
// calibration for compressed sensing by convex optimization" (2012):
//
//	min Σ|x|   such that   diag(s)Y = WX,   Σs = M·E[s].
//
// It models no noise, and takes of the priors only the mean of s.
func L1(ctx context.Context, p *calamp.Problem) (*calamp.Result, error) {
	gain, err := gainOf(p)
	if err != nil {
		return nil, err
	}
	w, ok := p.W.(operator.Matrix)
	if !ok {
		return nil, fmt.Errorf("the linear program needs the entries of W, which %T does not give", p.W)
	}
	program, err := exec.LookPath(lpSolver)
	if err != nil {
		return nil, errNoLPSolver
	}
	m, n := w.Dims()
	_, signals := p.Y.Dims()
	if 2*float64(m)*float64(n)*float64(signals) > mostTerms {
		return nil, errTooLarge
	}
	folder, err := os.MkdirTemp("", "calamp-l1-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	mean, _ := gain.Moments()
	input, output := filepath.Join(folder, "l1.mps"), filepath.Join(folder, "solution.txt")
	if err := writeProgram(input, w, p.Y, mean*float64(m)); err != nil {
		return nil, err
	}
	start := time.Now()
	said, err := exec.CommandContext(ctx, program, input, "-primalTolerance", "1e-9", "-dualTolerance", "1e-9", "-solve", "-solution", output).CombinedOutput()
	if err != nil {
		return nil, errors.Join(ctx.Err(), fmt.Errorf("%s: %w: %s", lpSolver, err, lastLine(said)))
	}
	res := emptyResult(m, n, signals)
	res.Wall = time.Since(start)
	return res, readSolution(output, res)
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

func emptyResult(m, n, p int) *calamp.Result {
	return &calamp.Result{
		X: mat.NewDense(n, p, nil), XVar: mat.NewDense(n, p, nil),
		S: make([]float64, m), SVar: make([]float64, m), Gain: make([]float64, m),
		Converged: make([]bool, p),
	}
}

// writeProgram writes the linear program in free MPS format. x is the difference
// of two positive columns, P… and N….
func writeProgram(path string, w operator.Matrix, y *mat.Dense, sum float64) error {
	rows, err := matrixOf(w)
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriter(f)
	m, n := w.Dims()
	_, p := y.Dims()
	fmt.Fprint(out, "NAME L1 FREE\nROWS\n N COST\n E SUM\n")
	for mu := range m {
		for k := range p {
			fmt.Fprintf(out, " E R%d\n", mu*p+k)
		}
	}
	fmt.Fprintln(out, "COLUMNS")
	for k := range p {
		for i := range n {
			writeSignal(out, "P", 1, k, i, rows, y)
			writeSignal(out, "N", -1, k, i, rows, y)
		}
	}
	for mu := range m {
		fmt.Fprintf(out, " S%d SUM 1\n", mu)
		for k, v := range y.RawRowView(mu) {
			if !math.IsNaN(v) && v != 0 {
				fmt.Fprintf(out, " S%d R%d %s\n", mu, mu*p+k, exact(-v))
			}
		}
	}
	fmt.Fprintf(out, "RHS\n RHS SUM %s\nBOUNDS\n", exact(sum))
	for mu := range m {
		fmt.Fprintf(out, " FR BND S%d\n", mu)
	}
	fmt.Fprintln(out, "ENDATA")
	return errors.Join(out.Flush(), f.Close())
}

// writeSignal writes the column of a signal's entry. A missing reading has no equation.
func writeSignal(out io.Writer, name string, sign float64, k, i int, w, y *mat.Dense) {
	m, n := w.Dims()
	_, p := y.Dims()
	fmt.Fprintf(out, " %s%d COST 1\n", name, k*n+i)
	for mu := range m {
		if v := w.At(mu, i); v != 0 && !math.IsNaN(y.At(mu, k)) {
			fmt.Fprintf(out, " %s%d R%d %s\n", name, k*n+i, mu*p+k, exact(sign*v))
		}
	}
}

func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func matrixOf(w operator.Matrix) (*mat.Dense, error) {
	m, n := w.Dims()
	out := mat.NewDense(m, n, nil)
	for mu := range m {
		if err := w.RowInto(out.RawRowView(mu), mu); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readSolution fills a result from what the program wrote: its verdict, then a
// line for each column that is not zero.
func readSolution(path string, r *calamp.Result) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%s wrote no solution: %w", lpSolver, err)
	}
	n, _ := r.X.Dims()
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Scan()
	r.Reason = strings.TrimSpace(lines.Text())
	if strings.HasPrefix(r.Reason, "Optimal") || strings.HasPrefix(r.Reason, "optimal") {
		r.Status = calamp.Converged
		for k := range r.Converged {
			r.Converged[k] = true
		}
	}
	for lines.Scan() {
		words := strings.Fields(strings.TrimLeft(lines.Text(), " *"))
		if len(words) < 3 {
			continue
		}
		name := words[1]
		j, errIndex := strconv.Atoi(name[1:])
		v, errValue := strconv.ParseFloat(words[2], 64)
		if err := errors.Join(errIndex, errValue); err != nil {
			return fmt.Errorf("solution of %s: %q: %w", lpSolver, lines.Text(), err)
		}
		switch name[0] {
		case 'S':
			r.S[j] = v
		case 'P':
			r.X.Set(j%n, j/n, r.X.At(j%n, j/n)+v)
		case 'N':
			r.X.Set(j%n, j/n, r.X.At(j%n, j/n)-v)
		}
	}
	for mu, s := range r.S {
		if s != 0 {
			r.Gain[mu] = 1 / s
		}
	}
	return lines.Err()
}
