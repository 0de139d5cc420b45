package console

import (
	"context"
	"os"
	"os/signal"
	"slices"
)

// Interruptible is a context that ends at Ctrl-C, when a job's time is up, or when
// the terminal goes away. A second signal ends the process.
func Interruptible() (context.Context, context.CancelFunc) { return notified(endings) }

// Orderly is the same for a sweep, which finishes the points under way: warnings
// that a job's time will be up soon end it, too.
func Orderly() (context.Context, context.CancelFunc) {
	return notified(slices.Concat(endings, warnings))
}

func notified(signals []os.Signal) (context.Context, context.CancelFunc) {
	// Signals that whoever started us has us ignore, as nohup does, stay ignored.
	heeded := slices.DeleteFunc(slices.Clone(signals), signal.Ignored)
	ctx, stop := signal.NotifyContext(context.Background(), heeded...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
