package facts

import (
	"errors"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/online"
)

// StateFault gives the errors of state files their exit codes.
func StateFault(err error) error {
	if err == nil {
		return nil
	}
	e := &console.Exit{Code: console.Failed, Err: err}
	record, _ := errors.AsType[*online.RecordFault](err)
	switch {
	case errors.Is(err, online.ErrStateMismatch):
		e.Code = console.WrongUsage
		e.Hint = "give the model and matrix that the state was made with (calamp inspect shows the model), or begin a new state"
	case errors.Is(err, online.ErrStateDamaged):
		e.Code = console.WrongUsage
		e.Hint = "the file was left as it is; go on with a copy of it, or begin a new state under another name"
		if record != nil && record.Hint() != "" {
			e.Hint = record.Hint()
		}
	case errors.Is(err, online.ErrStateVersion), errors.Is(err, online.ErrNoState), errors.Is(err, online.ErrNoCheckpoint), errors.Is(err, online.ErrCheckpointLimit):
		e.Code = console.WrongUsage
	case errors.Is(err, online.ErrStateInUse):
		e.Hint = "one process at a time can have a state; what a running one has learned is at its --http address"
	}
	return e
}

// FlaggedSensor is a sensor that is not used, and why.
type FlaggedSensor struct {
	Sensor int    `json:"sensor"`
	Reason string `json:"reason"`
}
