"""A microphone array with unknown amplitudes and phases, solved and compared with the truth."""

import numpy as np

import calamp

rng = np.random.default_rng(1)
microphones, places, snapshots = 60, 100, 20

# W: the phase of a wave from each place to each microphone. X: three sources a snapshot.
W = np.exp(2j * np.pi * rng.random((microphones, places))) / np.sqrt(places)
X = np.zeros((places, snapshots), complex)
for k in range(snapshots):
    on = rng.choice(places, 3, replace=False)
    X[on, k] = rng.standard_normal(3) + 1j * rng.standard_normal(3)

gain = rng.uniform(0.7, 1.4, microphones) * np.exp(2j * np.pi * rng.random(microphones))
Z = W @ X
noise = rng.standard_normal(Z.shape) + 1j * rng.standard_normal(Z.shape)
Y = gain[:, None] * (Z + 1e-3 * noise)

r = calamp.solve(W, Y)  # W and Y are complex, and so is the problem

# Amplitude and phase common to all are a convention. Take them off, and compare.
factor = np.vdot(r.gain, gain) / np.vdot(r.gain, r.gain)
error = np.sqrt(np.mean(np.abs(factor * r.gain / gain - 1) ** 2))
print(f"{r.status}: gains to {100 * error:.2f} %")
assert r.status == "converged" and error < 0.02
