package main

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/prior"
)

// arrays makes the files that a document takes from its reader, for the commands of <!-- before: … --> comments:
//
//	arrays take P.npz Y Y.csv               an array of a file
//	arrays draw 160x200 0.01 D.npy [SEED]   normal numbers of that standard deviation
//	arrays list 0.5,0.3*2 rho.npy           numbers, the second one twice
//	arrays network 120x24 N.npz             a layer of random weights
//	arrays gains P.npz Q.npz                the readings of P.npz as they are with the gains of Q.npz
//	arrays pairs P.npz pairs.npy            the readings of P.npz as they are where the sensors of its first rows are read two at a time, and which two each row then is
//	arrays pair P.npz ids.npy               the readings of P.npz as they are where two rows each have one gain, and which sensor each row then is
func arrays() {
	if err := makeArrays(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "arrays:", err)
		os.Exit(1)
	}
}

func makeArrays(args []string) error {
	switch what := args[0]; what {
	case "take":
		a, err := dataset.LoadArray(args[1], args[2])
		if err != nil {
			return err
		}
		return dataset.SaveArray(args[3], args[2], a)
	case "draw":
		sd, err := strconv.ParseFloat(args[2], 64)
		if err != nil {
			return err
		}
		var seed uint64
		if len(args) > 4 {
			if seed, err = strconv.ParseUint(args[4], 10, 64); err != nil {
				return err
			}
		}
		rows, columns, values := drawn(args[1], sd, seed)
		return dataset.SaveArray(args[3], "D", &dataset.Array{Info: dataset.Info{Shape: []int{rows, columns}}, Data: values})
	case "list":
		var values []float64
		for _, text := range strings.Split(args[1], ",") {
			text, times, _ := strings.Cut(text, "*")
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return err
			}
			count, _ := strconv.Atoi(times)
			values = append(values, slices.Repeat([]float64{v}, max(count, 1))...)
		}
		return dataset.SaveArray(args[2], "v", &dataset.Array{Info: dataset.Info{Shape: []int{len(values)}}, Data: values})
	case "network":
		entries, latents, weights := drawn(args[1], 1, 0)
		for i := range weights {
			weights[i] /= math.Sqrt(float64(latents))
		}
		n, err := prior.NewNetwork([]prior.Layer{{Rows: entries, Cols: latents, Weights: weights, Activation: prior.ReLU}}, prior.GaussBernoulli{Density: 0.3, SignalVar: 1}, 0)
		if err != nil {
			return err
		}
		return dataset.SaveNetwork(args[2], n)
	case "gains":
		q, err := dataset.Load(args[2])
		if err != nil {
			return err
		}
		return withGains(args[1], q.Truth.S)
	case "pairs":
		p, err := dataset.Load(args[1])
		if err != nil {
			return err
		}
		var ids []float64
		s, turned := slices.Clone(p.Truth.S), make([]float64, len(p.Truth.Phase))
		for i, row := 1, 0; row < len(s); i++ {
			for j := 0; j < i && row < len(s); j++ {
				ids = append(ids, float64(i), float64(j))
				s[row] = p.Truth.S[i] * p.Truth.S[j]
				if p.Complex {
					turned[row] = p.Truth.Phase[row] - (p.Truth.Phase[i] - p.Truth.Phase[j])
				}
				row++
			}
		}
		if err := withGains(args[1], s, turned...); err != nil {
			return err
		}
		return dataset.SaveArray(args[2], "sensors", &dataset.Array{Info: dataset.Info{Shape: []int{len(s), 2}}, Data: ids})
	case "pair":
		p, err := dataset.Load(args[1])
		if err != nil {
			return err
		}
		s, ids := p.Truth.S, make([]int, len(p.Truth.S))
		for mu := range s {
			s[mu], ids[mu] = s[mu/2*2], mu/2
		}
		if err := withGains(args[1], s); err != nil {
			return err
		}
		return dataset.SaveIntegers(args[2], "sensors", ids)
	default:
		return fmt.Errorf("there is no %s", what)
	}
}

// drawn are normal numbers of a size such as 160x200.
func drawn(size string, sd float64, seed uint64) (rows, columns int, values []float64) {
	fmt.Sscanf(size, "%dx%d", &rows, &columns)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range rows * columns {
		values = append(values, sd*rng.NormFloat64())
	}
	return rows, columns, values
}

// withGains changes the calibration of a problem to s, and its readings accordingly, which are turned by phases where they are complex.
func withGains(path string, s []float64, turned ...float64) error {
	p, err := dataset.Load(path)
	if err != nil {
		return err
	}
	for mu, own := range p.Truth.S {
		for k, y := range p.Y.RawRowView(mu) {
			p.Y.Set(mu, k, y*own/s[mu])
		}
		if len(turned) == 0 {
			continue
		}
		row, by := p.Y.RawRowView(mu), cmplx.Rect(1, turned[mu])
		for k := 0; k < len(row); k += 2 {
			y := by * complex(row[k], row[k+1])
			row[k], row[k+1] = real(y), imag(y)
		}
	}
	p.Truth.S, p.Truth.Phase = nil, nil
	return dataset.Save(path, p)
}
