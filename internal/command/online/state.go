package online

import (
	"maps"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/stream"
	"github.com/calamp/calamp/online"
)

// maintain changes the state file, without a source of samples.
func (c *calibration) maintain() error {
	store, err := online.OpenStore(c.state, nil, &online.StoreOptions{Repair: c.repairs()})
	if err != nil {
		return facts.StateFault(err)
	}
	defer store.Close()
	if err := c.before(store); err != nil {
		return err
	}
	if c.restartAt > 0 {
		if err := c.renumber(store); err != nil {
			return err
		}
	}
	if c.checkpoint != "" {
		if err := c.keepCheckpoint(store); err != nil {
			return err
		}
	}
	return facts.StateFault(store.Close())
}

// repairs reports whether damaged records are to be replaced or removed.
func (c *calibration) repairs() bool { return c.rollback != "" || c.drop != "" }

// before does what is to be done to the state before samples come.
func (c *calibration) before(store *online.Store) error {
	if c.drop != "" {
		if err := store.Drop(c.drop); err != nil {
			return facts.StateFault(err)
		}
		c.Note("checkpoint %s removed", c.drop)
	}
	if c.checkpoint != "" {
		if err := store.CheckCheckpoint(c.checkpoint); err != nil {
			e := facts.StateFault(err).(*console.Exit)
			e.Code = console.WrongUsage
			return e.WithHint("--drop-checkpoint NAME removes one")
		}
	}
	if c.rollback == "" {
		return nil
	}
	was := "is kept as " + online.BeforeRollback
	if store.Fault() != nil {
		was = "was damaged, and is gone"
	}
	if err := store.Rollback(c.rollback); err != nil {
		return facts.StateFault(err)
	}
	saved, err := store.Load()
	if err != nil {
		return facts.StateFault(err)
	}
	c.Note("back to checkpoint %s: %s learned from, the last number is %d; the state before %s",
		c.rollback, console.Plural(int(saved.State.Samples), "sample"), saved.Sequence, was)
	return nil
}

// renumber does what --restart-at says.
func (c *calibration) renumber(store *online.Store) error {
	saved, err := store.Load()
	if err != nil {
		return facts.StateFault(err)
	}
	if err := store.Renumber(c.restartAt - 1); err != nil {
		return facts.StateFault(err)
	}
	c.Note("the next number is %d; it was %d before, and what was learned is as it was", c.restartAt, saved.Sequence+1)
	return nil
}

func (c *calibration) keepCheckpoint(store *online.Store) error {
	if err := store.Checkpoint(c.checkpoint); err != nil {
		return facts.StateFault(err)
	}
	c.Note("the state is kept as checkpoint %s", c.checkpoint)
	return nil
}

// openState opens the state file and lets the calibrator go on from it.
func (r *onlineRun) openState() error {
	if r.state == "" {
		return nil
	}
	id, err := r.fingerprintOf(r.in.w) // takes all ranks
	if err != nil {
		return err
	}
	if err := r.ranks.OfFirst(func() error { return r.openStore(id) }); err != nil || !r.ranks.On() {
		return err
	}
	if !r.freeze {
		r.loop.Store = sharedStore{&r.ranks, r.loop.Store}
	}
	return r.shareState()
}

// openStore opens the file itself.
func (r *onlineRun) openStore(id online.Identity) error {
	store, err := online.OpenStore(r.state, &id, &online.StoreOptions{ReadOnly: r.freeze, Repair: r.repairs()})
	if err != nil {
		return facts.StateFault(err)
	}
	r.store, r.loop.Store, r.closers = store, store, append(r.closers, store)
	if err := r.before(store); err != nil {
		return err
	}
	saved, err := stream.Resume(store, r.loop.Calibrator)
	if err != nil {
		return facts.StateFault(err)
	}
	if saved.State == nil {
		return nil
	}
	r.saved = online.Saved{Sequence: saved.Sequence, Time: saved.Time, Origin: saved.Origin}
	if err := r.takeAnchor(saved.State.Anchor); err != nil {
		return err
	}
	if r.freeze {
		return nil // every sample is reconstructed, whatever was taken in
	}
	r.loop.Last, r.earlier = saved.Sequence, int(saved.State.Samples)
	r.Note("%s: going on after sample %d; %s learned from so far", r.state, saved.Sequence, console.Plural(int(saved.State.Samples), "sample"))
	return nil
}

// takeAnchor says where the scale is not held as it was, or as the command line says.
func (r *onlineRun) takeAnchor(before calamp.Anchor) error {
	now, c := r.anchor.Anchor, r.loop.Calibrator
	r.notePhase(before, now)
	switch {
	case r.anchor.Off:
		if before.Set() {
			r.Note("%s: the scale was held by %v, and is that of the model now", r.state, before)
		}
		return c.SetAnchor(calamp.Anchor{})
	case before.Set() && !now.Set():
		r.Note("%s: the scale is held by %v, as before; --anchor off lets go of it", r.state, before)
	case before.Set() && (before.Mean != now.Mean || !maps.Equal(before.Sensors, now.Sensors)):
		r.Warn("%s: the scale was held by %v, and is by %v now: x and s are on another scale than before", r.state, before, now)
	case !before.Set() && now.Set():
		r.Warn("%s: the scale was that of the model, and is held by %v now: x and s are on another scale than before", r.state, now)
	}
	return nil
}

// notePhase says where phases are not counted as they were, or as the command line says.
func (r *onlineRun) notePhase(before, now calamp.Anchor) {
	was, held := before.PhaseSensor()
	is, asked := now.PhaseSensor()
	switch {
	case held && !asked && !r.anchor.Off:
		r.Note("%s: phases are counted from that of sensor %d, as before; --anchor off lets go of it", r.state, was)
	case asked && (!held || was != is):
		r.Warn("%s: phases are counted from that of sensor %d now, and were not before", r.state, is)
	}
}
