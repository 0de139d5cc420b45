// Command stream calibrates sensors from samples that come one by one, and keeps what it learned in a file: interrupted
// and started again, it goes on from the latest sample.
package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// model is what is known of signals and sensors beforehand.
var model = struct {
	signal prior.GaussBernoulli
	gain   channel.Gain
}{
	prior.GaussBernoulli{Density: 0.2, SignalVar: 1},
	channel.Gain{Prior: channel.Uniform(0.7, 1.4), NoiseVar: 1e-5},
}

func main() {
	folder, err := os.MkdirTemp("", "calamp-stream")
	if err == nil {
		defer os.RemoveAll(folder)
		err = run(os.Stdout, filepath.Join(folder, "S.calamp"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, state string) error {
	// Twenty samples of 160 sensors stand for your instrument.
	in, err := teacher.Teacher{N: 200, M: 160, P: 20, Signal: model.signal, Gain: channel.Uniform(0.7, 1.4), NoiseVar: 1e-5}.Draw(1)
	if err != nil {
		return err
	}
	sample := func(k int) []float64 {
		y := make([]float64, 160)
		for mu := range y {
			y[mu] = in.Y.At(mu, k)
		}
		return y
	}
	for _, end := range []int{8, 20} { // a first run that stops after eight samples, and a second that goes on
		calibrator, first, err := follow(in.W, state, end, sample)
		if err != nil {
			return err
		}
		s, square := calibrator.Posterior().S, 0.0
		for mu, truth := range in.Truth.S {
			square += (s[mu]/truth - 1) * (s[mu]/truth - 1)
		}
		fmt.Fprintf(out, "samples %d to %d: s to 1 %%: %v\n", first, end-1, math.Sqrt(square/float64(len(s))) < 0.01)
	}
	return nil
}

// follow takes in the samples before end that the state has not, and returns the number of the first.
func follow(w operator.Operator, path string, end int, sample func(int) []float64) (*online.Calibrator, int64, error) {
	var opt online.Options
	calibrator, err := online.NewCalibrator(w, model.signal, model.gain, &opt)
	if err != nil {
		return nil, 0, err
	}
	id, err := online.Identify(w, model.signal, model.gain, &opt)
	if err != nil {
		return nil, 0, err
	}
	store, err := online.OpenStore(path, &id, nil)
	if err != nil {
		return nil, 0, err
	}
	defer store.Close()
	saved, err := store.Load()
	if err != nil {
		return nil, 0, err
	}
	if saved.State != nil {
		if err := calibrator.Restore(saved.State); err != nil {
			return nil, 0, err
		}
	}
	first := saved.Sequence + 1 // samples are numbered from 0
	for number := first; number < int64(end); number++ {
		if _, err := calibrator.Absorb(context.Background(), sample(int(number))); err != nil {
			return nil, 0, err
		}
		if err := store.Commit(calibrator.Snapshot(), number); err != nil { // state and number together
			return nil, 0, err
		}
	}
	return calibrator, first, nil
}
