// Package online calibrates from a stream: samples come one at a time, each is
// reconstructed at once, improves the posterior of the calibration, and is
// forgotten.
//
// [Calibrator] is online cal-AMP (M. Gabrié, J. Barbier, F. Krzakala and
// L. Zdeborová, "Blind calibration for compressed sensing: state evolution and
// an online algorithm", Algorithm 4, misprints corrected). Sample k is solved by
// the iteration of offline cal-AMP with P = 1, in which sensor µ inherits what
// the earlier samples said of its s: with D = V + Δ,
//
//	τ = τ_past + y²/D,   B = B_past + yω/D,   n = n_past + 1,
//	q(s) ∝ p(s) s^n exp(-τs²/2 + Bs),
//
// computed anew in every iteration from the inherited numbers. When the
// iteration has ended, and the sample is sane (see [Sanity]), τ, B and n become
// the next sample's past. That and a few scalars are the whole state, however
// long the stream.
//
// Some things are not in the paper. The global scale, which the readings do not
// fix, is rescaled jointly over all samples absorbed so far; the plain recursion
// carries the scale error of its first samples for ever. Sensors whose readings
// do not fit are masked, flagged and recalibrated on the side (see [Sanity]).
// Gains that drift are followed by a bank of random walks (see [Drift]), or the past is
// forgotten exponentially (see Options.Memory). Where samples contradict what was
// learned, it is found out what has changed (see [Fork] and [Change]). And samples that
// look similar count for less (see [Scene]).
package online
