package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"time"

	"gonum.org/v1/gonum/mat"
)

// gonumCommand is the argument with which this program is its own child.
const gonumCommand = "gonum-child"

// serveGonum does four passes with gonum for the parent process.
func serveGonum(args []string) error {
	if len(args) != 2 {
		return errors.New("this is how bench starts itself")
	}
	b := bench{cpu: args[1] == "true"}
	f, err := gonumPasses(args[0])
	if err != nil {
		return err
	}
	run := b.timed(f)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var name string
		var repeats int
		if _, err := fmt.Sscan(lines.Text(), &name, &repeats); err != nil {
			return err
		}
		var took time.Duration
		if took, err = run(repeats); err != nil {
			return err
		}
		fmt.Println(took.Seconds())
	}
	return lines.Err()
}

// gonumPasses is the iteration that numpy has, too, with the signals last.
func gonumPasses(directory string) (func(), error) {
	data := map[string][]float64{}
	for _, name := range []string{"shape", "W", "x", "c", "y"} {
		v, err := readFloats(directory, name)
		if err != nil {
			return nil, err
		}
		data[name] = v
	}
	m, n, p := int(data["shape"][0]), int(data["shape"][1]), int(data["shape"][2])
	w := mat.NewDense(m, n, data["W"])
	var w2, x, c mat.Dense
	w2.MulElem(w, w)
	x.CloneFrom(mat.NewDense(p, n, data["x"]).T())
	c.CloneFrom(mat.NewDense(p, n, data["c"]).T())
	y := mat.NewDense(m, p, data["y"])
	var z, v, r, h mat.Dense
	g, d := mat.NewDense(m, p, nil), mat.NewDense(m, p, nil)
	rows := func() {
		gs, ds, ys, zs, vs := g.RawMatrix().Data, d.RawMatrix().Data, y.RawMatrix().Data, z.RawMatrix().Data, v.RawMatrix().Data
		for i, v := range vs {
			inverse := 1 / (v + rowNoise)
			gs[i] = (ys[i] - (zs[i] - v*gs[i])) * inverse
			ds[i] = -inverse
		}
	}
	if p > 1 {
		return func() {
			v.Mul(&w2, &c)
			z.Mul(w, &x)
			rows()
			r.Mul(w.T(), g)
			h.Mul(w2.T(), d)
		}, nil
	}
	column := func(m *mat.Dense) *mat.VecDense {
		rows, _ := m.Dims()
		return mat.NewVecDense(rows, m.RawMatrix().Data)
	}
	z.ReuseAs(m, 1)
	v.ReuseAs(m, 1)
	r.ReuseAs(n, 1)
	h.ReuseAs(n, 1)
	xv, cv, zv, vv, gv, dv, rv, hv := column(&x), column(&c), column(&z), column(&v), column(g), column(d), column(&r), column(&h)
	return func() {
		vv.MulVec(&w2, cv)
		zv.MulVec(w, xv)
		rows()
		rv.MulVec(w.T(), gv)
		hv.MulVec(w2.T(), dv)
	}, nil
}
