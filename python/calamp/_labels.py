"""Labels of rows and columns, as arrays of pandas and xarray have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

import numpy as np


@dataclass(frozen=True, eq=False)
class Axis:
    """What the axis of an array is called, and its labels; None for those that it has not."""

    name: Optional[str] = None
    labels: Any = None


@dataclass(frozen=True, eq=False)
class Labels:
    """Those of entries (N), rows of W (M) and signals (P)."""

    entry: Axis = Axis()
    sensor: Axis = Axis()
    signal: Axis = Axis()


def axes(a: Any) -> list[Axis]:
    """The axes of a DataFrame, a Series or a DataArray; of another array none."""
    if hasattr(a, "dims") and hasattr(a, "coords"):
        return [Axis(str(d), np.asarray(a.coords[d]) if d in a.coords else None) for d in a.dims]
    if not hasattr(a, "iloc"):
        return []
    return [_pandas(index) for index in a.axes]


def _pandas(index: Any) -> Axis:
    """Rows that are only numbered have no labels."""
    numbered = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
    return Axis(index.name, None if numbered else index)


def of(W: Any, Y: Any) -> Labels:
    """The labels of W (M×N) and Y (M×P or M), and a ValueError where rows of the two are other sensors, or in another order."""
    w, y = axes(W), axes(Y)
    if len(w) not in (0, 2):
        w = []
    of_w, of_y = (a[0] if a else Axis() for a in (w, y))
    if of_w.labels is not None and of_y.labels is not None:
        if len(of_w.labels) == len(of_y.labels) and not np.array_equal(np.asarray(of_w.labels), np.asarray(of_y.labels)):
            at = next(i for i, (a, b) in enumerate(zip(of_w.labels, of_y.labels)) if a != b)
            raise ValueError(f"row {at} of W is labelled {of_w.labels[at]!r} and that of Y {of_y.labels[at]!r}, expected the same sensors in the same order: Y.reindex(W.index) orders those of pandas")
    sensor = Axis(of_y.name or of_w.name, of_w.labels if of_y.labels is None else of_y.labels)
    return Labels(w[1] if w else Axis(), sensor, y[1] if len(y) == 2 else Axis())


# The axes of arrays of a result, by their names.
SIGNALS = ("x", "x_var")
READINGS = ("residual", "outlier")


def dimensions(name: str, shape: tuple[int, ...], sizes: dict[str, int]) -> Optional[tuple[str, ...]]:
    """What the axes of an array of a result are; None of one that has other axes."""
    dims: tuple[str, ...]
    if name in SIGNALS:
        dims = ("entry", "signal")
    elif name in READINGS:
        dims = ("sensor", "signal")
    elif name == "converged":
        dims = ("signal",)
    elif name in ("s", "s_var", "gain", "s_lo", "s_hi", "s_rel_lo", "s_rel_hi", "broken", "offset", "offset_var", "s_smooth"):
        dims = ("sensor",)
    else:
        return None
    return dims if shape == tuple(sizes[d] for d in dims) else None
