"""Signals that come out of a network."""

import calamp
import numpy as np


def test_network():
    rng = np.random.default_rng(1)
    n, n2, m, p = 200, 40, 100, 4
    layers = dict(W1=rng.normal(size=(n, n2)) / np.sqrt(n2), activation1="relu")
    h = rng.normal(size=(n2, p)) * (rng.random((n2, p)) < 0.3)
    x, W, s = np.maximum(layers["W1"] @ h, 0), rng.normal(size=(m, n)) / np.sqrt(n), rng.uniform(0.8, 1.2, m)
    r = calamp.solve(W, W @ x / s[:, None], s_range=(0.8, 1.2), prior=layers)
    assert r.status == "converged" and r.arrays["latent"].shape == r.arrays["latent_var"].shape == (n2, p)
    assert np.linalg.norm(r.x - x) < 0.02 * np.linalg.norm(x)
    assert np.linalg.norm(r.arrays["latent"] - h) < 0.02 * np.linalg.norm(h)
