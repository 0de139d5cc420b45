package online

import (
	"maps"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/stream"
	"github.com/calamp/calamp/online"
)

// openState opens the state file and lets the calibrator go on from it.
func (r *onlineRun) openState() error {
	if r.keep.Path == "" {
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
	store, err := online.OpenStore(r.keep.Path, &id, &online.StoreOptions{ReadOnly: r.freeze, Repair: r.keep.Repairs()})
	if err != nil {
		return facts.StateFault(err)
	}
	r.store, r.loop.Store, r.closers = store, store, append(r.closers, store)
	if err := r.keep.Before(store); err != nil {
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
	r.Note("%s: going on after sample %d; %s learned from so far", r.keep.Path, saved.Sequence, console.Plural(int(saved.State.Samples), "sample"))
	return nil
}

// takeAnchor says where the scale is not held as it was, or as the command line says.
func (r *onlineRun) takeAnchor(before calamp.Anchor) error {
	now, c := r.anchor.Anchor, r.loop.Calibrator
	r.notePhase(before, now)
	switch {
	case r.anchor.Off:
		if before.Set() {
			r.Note("%s: the scale was held by %v, and is that of the model now", r.keep.Path, before)
		}
		return c.SetAnchor(calamp.Anchor{})
	case before.Set() && !now.Set():
		r.Note("%s: the scale is held by %v, as before; --anchor off lets go of it", r.keep.Path, before)
	case before.Set() && (before.Mean != now.Mean || !maps.Equal(before.Sensors, now.Sensors)):
		r.Warn("%s: the scale was held by %v, and is by %v now: x and s are on another scale than before", r.keep.Path, before, now)
	case !before.Set() && now.Set():
		r.Warn("%s: the scale was that of the model, and is held by %v now: x and s are on another scale than before", r.keep.Path, now)
	}
	return nil
}

// notePhase says where phases are not counted as they were, or as the command line says.
func (r *onlineRun) notePhase(before, now calamp.Anchor) {
	was, held := before.PhaseSensor()
	is, asked := now.PhaseSensor()
	switch {
	case held && !asked && !r.anchor.Off:
		r.Note("%s: phases are counted from that of sensor %d, as before; --anchor off lets go of it", r.keep.Path, was)
	case asked && (!held || was != is):
		r.Warn("%s: phases are counted from that of sensor %d now, and were not before", r.keep.Path, is)
	}
}
