"""A matrix for every signal."""

import numpy as np
import pytest

import calamp


def problem():
    rng = np.random.default_rng(1)
    p, m, n = 8, 100, 150
    W = rng.normal(size=(p, m, n)) / np.sqrt(n)
    x = (rng.random((n, p)) < 0.15) * rng.normal(size=(n, p))
    s = rng.uniform(0.8, 1.2, m)
    return W, (np.einsum("pmn,np->mp", W, x) + 1e-3 * rng.normal(size=(m, p))) / s[:, None], x


def test_array_and_list():
    W, Y, x = problem()
    one = calamp.solve(W, Y, s_range=(0.8, 1.2))
    assert one.converged.all() and np.mean((one.x - x) ** 2) < 1e-4
    several = calamp.solve(list(W), Y, s_range=(0.8, 1.2))
    assert np.array_equal(one.x, several.x)


def test_linear_operators():
    sparse = pytest.importorskip("scipy.sparse")
    W, Y, x = problem()
    mixed = [sparse.csr_matrix(W[0]), sparse.linalg.aslinearoperator(W[1]), *W[2:]]
    assert np.allclose(calamp.solve(mixed, Y, s_range=(0.8, 1.2)).x, calamp.solve(W, Y, s_range=(0.8, 1.2)).x)


def test_refused():
    W, Y, _ = problem()
    with pytest.raises(ValueError, match="W is 7×100×150 and Y has 8 signals"):
        calamp.solve(W[:7], Y)
    with pytest.raises(ValueError, match=r"W\[1\] is 99×150, expected 100×150"):
        calamp.solve([W[0], W[1][:99], *W[2:]], Y)
