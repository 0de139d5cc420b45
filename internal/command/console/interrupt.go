package console

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Interruptible is a context that ends at Ctrl-C, or when a job's time is up. A
// second one ends the process.
func Interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// Orderly is a context that ends when the sweep is to end in good order. A
// second signal ends the process.
func Orderly() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), endings...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
