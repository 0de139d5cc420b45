"""A stream whose samples have matrices of their own."""

import numpy as np
import pytest

import calamp

MODEL = dict(density=0.1, signal_mean=0, signal_var=1, noise_var=1e-6, s_range=(0.8, 1.2))


def problem():
    rng = np.random.default_rng(1)
    k, m, n, p = 4, 80, 100, 12
    W = rng.normal(size=(k, m, n)) / np.sqrt(n)
    x = (rng.random((n, p)) < 0.1) * rng.normal(size=(n, p))
    s = rng.uniform(0.8, 1.2, m)
    Y = np.stack([(W[j % k] @ x[:, j] + 1e-3 * rng.normal(size=m)) / s for j in range(p)], 1)
    return W, Y, x


def test_named_and_brought(tmp_path):
    W, Y, x = problem()
    state = str(tmp_path / "S.calamp")
    with calamp.Calibrator((80, 100), **MODEL) as brought, calamp.Calibrator(W, state=state, **MODEL) as first:
        own = [brought.absorb(Y[:, j], W[j % 4])["x"] for j in range(12)]
        named = [first.absorb(Y[:, j], j % 4)["x"] for j in range(5)]
    with calamp.Calibrator(list(W), state=state, **MODEL) as second:
        named += [second.absorb(Y[:, j], j % 4)["x"] for j in range(5, 12)]
    assert np.array_equal(own, named)
    assert np.mean((named[-1] - x[:, -1]) ** 2) < 1e-5


def test_wrong_matrices():
    W, Y, _ = problem()
    with calamp.Calibrator(W, **MODEL) as c:
        for wrong in (None, 4, -1, 0.5, W[0]):
            with pytest.raises(ValueError, match="which one the sample has, 0 to 3"):
                c.absorb(Y[:, 0], wrong)
        assert c.absorb(Y[:, 0], 0)["committed"]
    with calamp.Calibrator((80, 100), **MODEL) as c:
        for wrong, named in ((None, "missing"), (W[0].T, "100×80")):
            with pytest.raises(ValueError, match=f"matrix is {named}, expected that of the sample, 80×100"):
                c.absorb(Y[:, 0], wrong)
    with calamp.Calibrator(W[0], **MODEL) as c, pytest.raises(ValueError, match="W is one for all samples"):
        c.absorb(Y[:, 0], 0)
