"""What can be known beforehand, and problems to try."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Sequence

import numpy as np

from . import _command


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem with its truth: W (M×N), Y (M×P), X0 (N×P), s0 (M)."""

    W: np.ndarray
    Y: np.ndarray
    X0: Optional[np.ndarray]
    s0: Optional[np.ndarray]

    def __repr__(self) -> str:
        m, n = self.W.shape
        return f"<calamp.Problem: {self.Y.shape[1] if self.Y.ndim == 2 else 1} signals of {n} entries, {m} sensors>"


def simulate(n: Optional[int] = None, *, alpha: Optional[float] = None, m: Optional[int] = None, p: Optional[int] = None, seed: Optional[int] = None, **options: Any) -> Problem:
    """Draws a problem: n entries a signal, m = alpha n sensors, p signals; the model as in :func:`solve`, and every
    other flag of ``calamp simulate`` with _ for -."""
    words = ["simulate", "--quiet", *_command.flags(dict(n=n, alpha=alpha, m=m, p=p, seed=seed, **options)), "-o", "-"]
    a = _command.arrays_of(_command.run(words).check().stdout)
    # One's own to change, as results are not: to break a sensor, say.
    return Problem(*(np.array(a[k]) if k in a else None for k in ("W", "Y", "X0", "s0")))


def se_offline(alpha: float, p: int, **model: Any) -> dict[str, np.ndarray]:
    """State evolution of all signals at once: arrays iteration, mse_x, m_hat, mse_s. Keywords are the flags of
    ``calamp se offline``: density, s_range, noise_var, iterations, assume_density, …"""
    return _table(["se", "offline", "--quiet", "--csv", *_command.flags(dict(alpha=alpha, p=p, **model))])


def se_online(alpha: float, p: int, **model: Any) -> dict[str, np.ndarray]:
    """The same of a stream of p samples: arrays sample, iteration, mse_x, m_hat, mse_s."""
    return _table(["se", "online", "--quiet", "--csv", *_command.flags(dict(alpha=alpha, p=p, **model))])


def threshold(density: Any = None, p: Optional[int] = None, **model: Any) -> dict[str, Any]:
    """The numbers of sensors for each entry at which things change: alpha_min, alpha_cs, alpha_cal, … With a sequence
    of densities, an array of each. With n, the entries of a signal, and perhaps m, the sensors that there are, answer says it in a sentence."""
    if density is None or np.ndim(density) == 0:
        found = _command.run(["threshold", "--quiet", "--json", *_command.flags(dict(density=density, p=p, **model))]).check().json()
        return {k: v for k, v in found.items() if isinstance(v, (int, float)) or k == "answer"}
    rows = [threshold(float(d), p, **model) for d in density]
    names = sorted({k for row in rows for k in row})
    return {k: np.array([row.get(k, np.nan) for row in rows]) for k in names}


def _table(words: Sequence[str]) -> dict[str, np.ndarray]:
    lines = _command.run(words).check().stdout.decode().splitlines()
    names = lines[0].split(",")
    cells = [[float(c) if c else np.nan for c in line.split(",")] for line in lines[1:]]
    columns = np.array(cells, float).reshape(len(cells), len(names)).T
    whole = {"iteration", "sample"}
    return {k: column.astype(int) if k in whole else column for k, column in zip(names, columns)}
