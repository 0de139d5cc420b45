package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// build makes both commands in directory: the earlier one from a work tree
// that is removed afterwards, the later one from the files as they are now.
func build(ctx context.Context, commit, directory string) (b *pair, err error) {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, err
	}
	here, err := git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	hash, err := git(ctx, here, "rev-parse", "--verify", commit+"^{commit}")
	if err != nil {
		return nil, err
	}
	tree, err := os.MkdirTemp("", "calamp-before-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tree)
	if _, err := git(ctx, here, "worktree", "add", "--detach", tree, hash); err != nil {
		return nil, err
	}
	defer func() { // also after Ctrl-C
		_, e := git(context.WithoutCancel(ctx), here, "worktree", "remove", "--force", tree)
		err = errors.Join(err, e)
	}()
	b = &pair{
		before: filepath.Join(directory, "calamp-before"), after: filepath.Join(directory, "calamp-after"),
		directory: directory,
	}
	if err := errors.Join(compile(ctx, tree, b.before), compile(ctx, here, b.after)); err != nil {
		return nil, err
	}
	subject, err := git(ctx, here, "log", "-1", "--format=%h %s", hash)
	fmt.Printf("before: %s\n", subject)
	return b, err
}

// compile leaves out the paths and the revision, so that equal sources make
// equal files, and are compiled once.
func compile(ctx context.Context, tree, output string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", output, "./cmd/calamp")
	command.Dir = tree
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

func git(ctx context.Context, directory string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Dir = directory
	var complaints strings.Builder
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(arguments, " "), err, complaints.String())
	}
	return strings.TrimSpace(string(out)), nil
}
