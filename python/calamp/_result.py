"""What a run gives back."""

from __future__ import annotations

import html
import io
import json
import os
import zipfile
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Union

import numpy as np

from . import _command, _labels


@dataclass(frozen=True)
class ResultWarning:
    """Something to know before trusting a result. docs/trust.md explains every code."""

    code: str
    message: str
    sensors: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Result:
    """Signals and calibration, with error bars. Arrays cannot be written to; copy them first.

    x, x_var (N×P) are posterior means and variances of the signals; s, s_var, gain (M) those of the calibration
    (y = z/s), and 1/s. s lies between s_lo and s_hi with probability 0.95, the common scale's uncertainty included, and between
    s_rel_lo and s_rel_hi at a fixed scale; scale_sd is the relative standard deviation of that. residual (M×P)
    is of order one where the model explains a reading, broken (M) the probability that a sensor is broken. Of a complex
    problem x, s, gain and residual are complex, bounds of s are those of its modulus, and arrays has those of its phase.

    Of :func:`calamp.fit_matrix` theta, theta_sd (J) and theta_cov (J×J) are what was fitted of W. With sensor_derivatives theta and
    theta_sd (M×J) are those of every sensor, and theta_spread (J) how they are spread over the sensors. With matrix_error
    that is how wrong entries of W are. None elsewhere.

    arrays has all that the command wrote, by its names; summary what it printed; trace a line an iteration.
    """

    x: np.ndarray
    x_var: np.ndarray
    s: np.ndarray
    s_var: np.ndarray
    gain: np.ndarray
    converged: np.ndarray
    scale_sd: float
    s_lo: Optional[np.ndarray]
    s_hi: Optional[np.ndarray]
    s_rel_lo: Optional[np.ndarray]
    s_rel_hi: Optional[np.ndarray]
    residual: Optional[np.ndarray]
    broken: Optional[np.ndarray]
    density: Optional[float]
    signal_mean: Optional[float]
    signal_var: Optional[float]
    noise_var: Optional[float]
    s_range: Optional[tuple[float, float]]
    status: str
    reason: str
    iterations: int
    warnings: tuple[ResultWarning, ...]
    metrics: Mapping[str, float]
    summary: Mapping[str, Any] = field(repr=False)
    provenance: Mapping[str, Any] = field(repr=False)
    trace: Mapping[str, np.ndarray] = field(repr=False)
    arrays: Mapping[str, np.ndarray] = field(repr=False)
    _npz: bytes = field(repr=False)
    _inputs: Any = field(repr=False, default=None)
    _labelled: _labels.Labels = field(repr=False, default=_labels.Labels())

    @property
    def theta(self) -> Optional[np.ndarray]:
        return self.arrays.get("theta")

    @property
    def theta_sd(self) -> Optional[np.ndarray]:
        return self.arrays.get("theta_sd")

    @property
    def theta_cov(self) -> Optional[np.ndarray]:
        return self.arrays.get("theta_cov")

    @property
    def theta_spread(self) -> Optional[np.ndarray]:
        return self.arrays.get("theta_spread")

    @property
    def matrix_error(self) -> Optional[float]:
        found = self.arrays.get("matrix_error")
        return None if found is None else float(found)

    def __repr__(self) -> str:
        n, p = self.x.shape
        text = f"<calamp.Result: {self.status}; {p} signals of {n} entries, {len(self.s)} sensors, {self.iterations} iterations"
        return text + (f"; {len(self.warnings)} warnings>" if self.warnings else ">")

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the .npz that the command would have written, the same bytes; :func:`calamp.load` reads it."""
        if not os.fspath(path).endswith(".npz"):
            raise ValueError(f"{os.fspath(path)}: a result is saved as .npz, expected a name that ends so")
        with open(path, "wb") as f:
            f.write(self._npz)

    def __copy__(self) -> "Result":
        return self  # nothing of it can be changed

    def __deepcopy__(self, memo: Any) -> "Result":
        return self

    def report(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the report, an HTML page. It solves again, which gives the same; solve(…, report=path) does both at once."""
        if self._inputs is None:
            raise ValueError("this result comes from another process, without W and Y: solve(…, report=path) writes the report there")
        arrays, given = self._inputs
        with _command.Files() as files, _command.Inputs(arrays) as inputs:
            words = ["solve", "--quiet", "--json", *_command.flags({**files.take(given), "report": path})]
            _command.run(words, inputs).check()

    def __getstate__(self) -> dict[str, Any]:
        """Without W and Y, which may be large; the arrays are in the archive."""
        return {"npz": self._npz, "summary": self.summary, "trace": self.trace, "labels": self._labelled}

    def __setstate__(self, state: dict[str, Any]) -> None:
        other = _result(state["npz"], state["summary"], state["trace"], None)
        for name, value in other.__dict__.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_labelled", state.get("labels", _labels.Labels()))

    def _labelled_arrays(self) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """The arrays whose axes are entries, sensors and signals."""
        n, p = self.x.shape
        sizes = {"entry": n, "sensor": len(self.s), "signal": p}
        found = {name: (_labels.dimensions(name, a.shape, sizes), a) for name, a in self.arrays.items()}
        return {name: (dims, a) for name, (dims, a) in found.items() if dims is not None}

    def _axis(self, dim: str, length: int) -> _labels.Axis:
        """The labels of an axis; of sensors only where each is a row of W."""
        axis = getattr(self._labelled, dim)
        return axis if axis.labels is None or len(axis.labels) == length else _labels.Axis(axis.name)

    def to_frame(self, name: Optional[str] = None) -> Any:
        """A DataFrame of pandas with the labels of W and Y: of what is known of sensors, a row each, with s, gain, their bounds and
        broken; or of the array of that name, x, x_var, residual or another of arrays."""
        import pandas

        arrays = self._labelled_arrays()
        if name is not None and name not in arrays:
            raise KeyError(f"{name!r}: expected one of {', '.join(arrays)}")

        def index(dim: str, length: int) -> Any:
            axis = self._axis(dim, length)
            return pandas.Index(range(length) if axis.labels is None else axis.labels, name=axis.name)

        if name is None:
            columns = {k: a for k, (dims, a) in arrays.items() if dims == ("sensor",)}
            return pandas.DataFrame(columns, index=index("sensor", len(self.s)))
        dims, a = arrays[name]
        rows = index(dims[0], a.shape[0])
        return pandas.DataFrame(a, index=rows, columns=index(dims[1], a.shape[1])) if a.ndim == 2 else pandas.DataFrame({name: a}, index=rows)

    def to_xarray(self) -> Any:
        """A Dataset of xarray with signals, sensors and their error bars, and the dimensions and coordinates of W and Y. Dimensions
        without a name are entry, sensor and signal."""
        import xarray

        n, p = self.x.shape
        axes = {dim: self._axis(dim, length) for dim, length in (("entry", n), ("sensor", len(self.s)), ("signal", p))}
        names = {dim: axis.name or dim for dim, axis in axes.items()}
        data = {k: (tuple(names[d] for d in dims), a) for k, (dims, a) in self._labelled_arrays().items()}
        coords = {names[dim]: np.asarray(axis.labels) for dim, axis in axes.items() if axis.labels is not None}
        return xarray.Dataset(data, coords, {"status": self.status, "scale_sd": self.scale_sd})

    def _code_of_reason(self) -> Optional[str]:
        """The warning that says why the run ended as it did, which need not be said twice; None where none does."""
        return next((w.code for w in self.warnings if w.message == self.reason), None)

    def _repr_html_(self) -> str:
        n, p = self.x.shape
        spread = np.median(np.sqrt(self.s_var) / np.abs(self.s))
        rows = [
            ("status", self.status if self._code_of_reason() else f"{self.status}: {self.reason}"),
            ("problem", f"{p} signals with {n} entries, {len(self.s)} sensors (α = {len(self.s) / n:.3g})"),
            ("gains", f"typical uncertainty ±{100 * spread:.2g} %; common scale ±{100 * self.scale_sd:.2g} %"),
        ]
        model = [f"{k} {v:.4g}" for k in ("density", "signal_mean", "signal_var", "noise_var") if (v := getattr(self, k)) is not None]
        if self.s_range is not None:
            model.append(f"s in [{self.s_range[0]:.4g}, {self.s_range[1]:.4g}]")
        if model:
            rows.append(("model", ", ".join(model)))
        rows += [(w.code, w.message) for w in self.warnings]
        table = "".join(f'<tr><th style="text-align:left;white-space:nowrap">{html.escape(k)}</th><td style="text-align:left">{html.escape(v)}</td></tr>' for k, v in rows)
        return f'<div style="max-width:60em">{self._figure()}<table>{table}</table></div>'

    def _figure(self) -> str:
        """Sensors in the order of their gains, with their 95 % intervals at a fixed common scale, whose own
        would hide them, and how the run converged."""
        width, height, pad = 400, 170, 34
        gain = np.abs(self.gain)
        order = np.argsort(gain)
        lo, hi = (1 / self.s_rel_hi, 1 / self.s_rel_lo) if self.s_rel_lo is not None and self.s_rel_hi is not None else (gain, gain)
        broken = self.broken if self.broken is not None else np.zeros(len(self.s))
        shown = np.union1d(np.linspace(0, len(order) - 1, 200).astype(int), np.flatnonzero(broken[order] > 0.5)[:200])
        chosen = order[shown]
        low, high = float(np.min(lo)), float(np.max(hi))
        y = _scale(low, high, height - pad, 12)
        x = _scale(0, max(len(chosen) - 1, 1), pad + 14, width - 8)
        marks = "".join(
            f'<path d="M{x(k):.1f} {y(lo[i]):.1f}V{y(hi[i]):.1f}" stroke="{"#c33" if broken[i] > 0.5 else "#48a"}" stroke-opacity=".45"/>'
            f'<circle cx="{x(k):.1f}" cy="{y(gain[i]):.1f}" r="1.3" fill="{"#c33" if broken[i] > 0.5 else "#136"}"/>'
            for k, i in enumerate(chosen)
        )
        gains = _panel(width, height, pad, marks, f"{low:.3g}", f"{high:.3g}", f"{len(self.s)} sensors, by gain 1/s; 95 % intervals beside the common scale")
        change = np.asarray(self.trace.get("change", ()), float)
        change = np.where(change > 0, change, np.nan)
        if np.isfinite(change).sum() < 2:
            return gains
        logs = np.log10(change)
        low, high = float(np.nanmin(logs)), float(np.nanmax(logs))
        y, x = _scale(low, high, height - pad, 12), _scale(0, len(logs) - 1, pad + 14, width - 8)
        keep = np.unique(np.linspace(0, len(logs) - 1, 400).astype(int))
        points = " ".join(f"{x(k):.1f},{y(logs[k]):.1f}" for k in keep if np.isfinite(logs[k]))
        line = f'<polyline points="{points}" fill="none" stroke="#136" stroke-width="1.3"/>'
        return gains + _panel(width, height, pad, line, f"1e{low:.0f}", f"1e{high:.0f}", f"change of the signals, {len(logs)} iterations")


def _scale(low: float, high: float, at_low: float, at_high: float) -> Any:
    span = high - low or 1.0
    return lambda v: at_low + (v - low) / span * (at_high - at_low)


def _panel(width: int, height: int, pad: int, inside: str, low: str, high: str, title: str) -> str:
    text = 'font-family="sans-serif" font-size="11" fill="#555"'
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" style="background:#fff">'
        f'<path d="M{pad + 8} 8V{height - pad + 4}H{width - 4}" stroke="#999" fill="none"/>{inside}'
        f'<text x="{pad + 4}" y="{height - pad}" text-anchor="end" {text}>{low}</text><text x="{pad + 4}" y="16" text-anchor="end" {text}>{high}</text>'
        f'<text x="{width / 2}" y="{height - 8}" text-anchor="middle" {text}>{title}</text></svg>'
    )


def load(path: Union[str, "os.PathLike[str]"]) -> Result:
    """The result in a .npz that :meth:`Result.save` or ``calamp solve -o`` has written, with its warnings. What the command printed and the
    trace are not in it."""
    name = os.fspath(path)
    with open(path, "rb") as f:
        npz = f.read()
    try:
        with np.load(io.BytesIO(npz), allow_pickle=False) as z:
            missing = [k for k in ("x", "x_var", "s", "s_var", "gain", "converged", "scale_sd") if k not in z.files]
            said = json.loads(str(z["provenance"])) if "provenance" in z.files else {}
            converged = not missing and bool(np.all(z["converged"]))
    except (ValueError, OSError, zipfile.BadZipFile) as e:
        raise ValueError(f"{name} is no result of calamp: expected a .npz") from e
    if missing:
        raise ValueError(f"{name} is no result of calamp: it has no {', '.join(missing)}")
    # Files of streams, and of earlier versions, do not say how the run ended.
    ended = {"status": "converged" if converged else "not converged", "reason": f"read from {name}, which has no warnings", "iterations": 0, "warnings": []}
    return _result(npz, said.get("outcome") or ended, {}, None)


def result_of(done: _command.Finished, inputs: Any, labelled: _labels.Labels = _labels.Labels()) -> Result:
    names = [k for k in (done.events[0] if done.events else {}) if k != "fraction"]
    trace = {k: np.array([np.nan if e.get(k) is None else e[k] for e in done.events]) for k in names}
    return _result(done.output, done.json(), trace, inputs, labelled)


def _result(npz: bytes, summary: dict[str, Any], trace: Mapping[str, np.ndarray], inputs: Any, labelled: _labels.Labels = _labels.Labels()) -> Result:
    a = _command.arrays_of(npz)

    def number(name: str) -> Optional[float]:
        return float(a[name]) if name in a and a[name].ndim == 0 else None

    s_range = a.get("s_range")
    found = tuple(
        ResultWarning(w["code"], _command.in_python(w["message"]), tuple(w.get("sensors", ())), tuple(w.get("signals", ()))) for w in summary["warnings"]
    )
    return Result(
        **{k: a[k] for k in ("x", "x_var", "s", "s_var", "gain", "converged")},
        **{k: a.get(k) for k in ("s_lo", "s_hi", "s_rel_lo", "s_rel_hi", "residual", "broken")},
        **{k: number(k) for k in ("density", "signal_mean", "signal_var", "noise_var")},
        scale_sd=float(a["scale_sd"]),
        s_range=None if s_range is None else (float(s_range[0]), float(s_range[1])),
        status=summary["status"], reason=_command.in_python(summary["reason"]), iterations=summary["iterations"], warnings=found,
        metrics=summary.get("metrics", {}), summary=summary, provenance=json.loads(str(a["provenance"])) if "provenance" in a else {},
        trace=trace, arrays=a, _npz=npz, _inputs=inputs, _labelled=labelled,
    )  # fmt: skip
