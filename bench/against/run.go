package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A finished run of one of the commands.
type finished struct {
	code           int
	stdout, stderr []byte
	result         string // path of the result's .npz, which may not be there
	wall, cpu      time.Duration
}

func (b *pair) folder(p *problem) string {
	return filepath.Join(b.directory, filepath.FromSlash(p.name))
}

// execute runs a command in a folder. An exit code is no error.
func execute(ctx context.Context, binary, folder, input string, arguments []string) (*finished, error) {
	command := exec.CommandContext(ctx, binary, arguments...)
	command.Dir = folder
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if input != "" {
		file, err := os.Open(filepath.Join(folder, input))
		if err != nil {
			return nil, err
		}
		defer file.Close()
		command.Stdin = file
	}
	start := time.Now()
	err := command.Run()
	wall := time.Since(start)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	state := command.ProcessState
	return &finished{
		code: state.ExitCode(), stdout: stdout.Bytes(), stderr: stderr.Bytes(),
		wall: wall, cpu: state.UserTime() + state.SystemTime(),
	}, nil
}

// runs does all runs of a problem with one of the commands, in a folder of that name.
func (b *pair) runs(ctx context.Context, p *problem, binary, name string) ([]*finished, error) {
	folder := filepath.Join(b.folder(p), name)
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return nil, err
	}
	var all []*finished
	for i, arguments := range p.runs {
		result := fmt.Sprintf("R%d.npz", i+1)
		f, err := execute(ctx, binary, folder, p.input, append(arguments[:len(arguments):len(arguments)], "-o", result))
		if err != nil {
			return nil, err
		}
		f.result = filepath.Join(folder, result)
		err = errors.Join(
			os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.json", i+1)), f.stdout, 0o644),
			os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.err", i+1)), f.stderr, 0o644))
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// compare makes a problem and runs both commands on it.
func (b *pair) compare(ctx context.Context, p *problem) *comparison {
	c := &comparison{problem: p}
	if err := b.create(ctx, p); err != nil {
		c.differ("not made: %v", err)
		return c
	}
	before, err := b.runs(ctx, p, b.before, "before")
	if err != nil {
		c.differ("not run: %v", err)
		return c
	}
	after, err := b.runs(ctx, p, b.after, "after")
	if err != nil {
		c.differ("not run: %v", err)
		return c
	}
	for i := range before {
		c.run(before[i], after[i])
	}
	if p.state() {
		c.states(filepath.Join(b.folder(p), "before", stateFile), filepath.Join(b.folder(p), "after", stateFile))
	}
	return c
}
