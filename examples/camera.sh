#!/bin/sh
# A camera with masks of ±1 before one detector, from readings to corrected readings. It needs calamp in the path
# and writes into the present folder.
set -eu

# 205 masks, 12 scenes of 256 pixels of which a tenth is bright, gains between 0.7 and 1.4, 40 dB of noise.
calamp simulate --matrix-kind sign --n 256 --alpha 0.8 --density 0.1 --p 12 --s-range 0.7,1.4 --noise-var 1e-5 --seed 1 -o camera.npz

# Is that enough? Theory says how many masks it takes.
calamp threshold --density 0.1 --p 12 --s-range 0.7,1.4 --noise-var 1e-5 --n 256 --m 205

# Nothing is said of scenes and gains, but that mask 7 was calibrated once: its s is known.
calamp solve camera.npz --anchor sensor=7:1.0583 -o result.npz --report report.html

# Later readings of the same camera, corrected by the gains that were found.
calamp apply result.npz camera.npz -o corrected.npy
calamp inspect result.npz
