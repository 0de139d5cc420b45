"""Signals and calibration from readings, all at once."""

from __future__ import annotations

import inspect
import os
import warnings
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import numpy as np

from . import _command, _labels
from ._result import Result, result_of

Number = Union[float, str]
Path = Union[str, "os.PathLike[str]"]


def solve(
    W: Any,
    Y: Any,
    *,
    density: Any = None,
    signal_mean: Any = None,
    signal_var: Any = None,
    s_range: Union[Sequence[float], str, None] = None,
    noise_var: Any = None,
    noise_at: Optional[str] = None,
    noise: Optional[str] = None,
    s_prior: Optional[str] = None,
    s_mean: Optional[float] = None,
    s_sd: Optional[float] = None,
    phase: Optional[Number] = None,
    s_phase: Any = None,
    s_prior_mean: Any = None,
    s_prior_sd: Any = None,
    sensors: Any = None,
    gain_smooth: Any = None,
    gain_basis: Any = None,
    prior: Union[str, Mapping[str, Any], None] = None,
    component: Any = None,
    slack: Optional[Number] = None,
    learn_components: bool = False,
    groups: Any = None,
    basis: Any = None,
    joint: Optional[str] = None,
    anchor: Any = None,
    s_from: Any = None,
    offset: Optional[Number] = None,
    faulty: Optional[Number] = None,
    outliers: Optional[Number] = None,
    saturation: Optional[float] = None,
    quantised: Optional[float] = None,
    sign: Optional[Number] = None,
    counts: Optional[float] = None,
    matrix_error: Optional[Number] = None,
    derivatives: Any = None,
    sensor_derivatives: Any = None,
    image: Optional[str] = None,
    model: Optional[Path] = None,
    save_model: Optional[Path] = None,
    max_iter: Optional[int] = None,
    tol: Optional[float] = None,
    damping: Optional[Number] = None,
    covariance: Optional[str] = None,
    variance: Optional[str] = None,
    precision: Optional[str] = None,
    threads: Optional[int] = None,
    X0: Any = None,
    s0: Any = None,
    report: Optional[Path] = None,
    progress: Union[bool, Callable[[dict[str, Any]], None], None] = None,
    **options: Any,
) -> Result:
    """Recovers the signals and the calibration of the sensors from readings Y = (W X + noise) / s.

    W (M×N) is an array (f4 stays f4), a memory map, a sparse matrix of scipy, a linear operator (of which a table is made), rows of a transform (:func:`calamp.hadamard`,
    :func:`calamp.dct`), or the path of a .npy, .npz or .mat, which is handed on without a copy. An array P×M×N, or a list of matrices, is one for every signal. Y (M×P or M) holds
    a signal in each column; what is NaN, or masked, is a missing reading. What you leave out of the model is learned from the readings. Every flag of ``calamp solve`` can be given with _ for -, True for one
    without a value: ``no_scale_step=True``; joint, faulty, outliers and offset take True and False too. anchor and component can be lists, and anchor, or reference, a dict of rows and their s, or of their mean: ``anchor={3: 1.02}``, ``anchor={"mean": 1}``.
    Where a flag takes a file an array will do: noise_var of every sensor (M) or reading (M×P), density, signal_mean and signal_var
    of every entry (N), groups (N), basis, gain_smooth (positions of sensors, M×d, or "index") and gain_basis (M×k); model is a .toml with what is known (docs/model.md), before which keywords go, and save_model is
    written with what was learned; s_from takes a former Result, s_prior_mean and s_prior_sd (M) say what is known of sensors.
    sensors (M integers, or a former Result) is the sensor that each row of W is read with, from 0: then all that is of sensors has a
    value for each of as many as there are, and ``Result.arrays["gain_row"]`` one for each row. M×2: two sensors read a row, whose
    s is the product of theirs (``Result.arrays["s_sensor"]``).

    W and Y can be DataFrames of pandas or DataArrays of xarray: ``Result.to_frame`` and ``Result.to_xarray`` have their labels. Rows of
    both that are labelled must be the same sensors in the same order.

    prior="network:FILE.npz", or a dict of W1, b1, activation1, W2, …, is a network that signals come out of, whose latents have the density, mean and
    variance; the arrays of the result then have latent and latent_var. slack is the
    variance of signals about what the network gives, "auto" to learn it.

    Where Y is complex, signals and gains are (W may be real): s_range is then the amplitudes', phase "known", "free", "auto" or the
    concentration of a von Mises distribution about 0, or about s_phase (M), which auto learns, and x, s, gain and residual are complex.

    With the truth, X0 (N×P) and s0 (M), ``Result.metrics`` has the errors. report is the path of an HTML page.

    progress: None shows a bar for runs of more than a second in a notebook or terminal, False none, a function is
    called with a dict an iteration (iteration, fraction, change, …).

    Errors of the input raise ValueError, a keyword that there is none of TypeError. A run that ends without convergence warns with
    NotConvergedWarning and returns what there is. Ctrl-C raises Interrupted, a KeyboardInterrupt whose ``result`` is what there is.
    """
    given = locals()
    keywords = {**{name: given[name] for name in KEYWORDS}, **options}
    labelled, arrays = _arrays_of(W, Y, X0, s0)
    if isinstance(sensors, (str, os.PathLike)) or hasattr(sensors, "_npz") or np.ndim(sensors) == 2:
        keywords["sensors"], sensors = sensors, None
    if s_prior_mean is not None and s_prior_sd is not None and np.ndim(s_prior_sd) == 0:
        s_prior_sd = np.full(np.shape(s_prior_mean), s_prior_sd)
    for name, known in (("s_phase", s_phase), ("s_prior_mean", s_prior_mean), ("s_prior_sd", s_prior_sd), ("sensors", sensors)):
        if known is not None:
            arrays[name] = _command.check_array(name, known, 1)
    return _result_of_command("solve", arrays, keywords, progress, again=True, labelled=labelled)


# Keywords of solve that are flags of the command: all but arrays that are parts of the problem, and what is of Python alone.
KEYWORDS = tuple(
    name
    for name, p in inspect.signature(solve).parameters.items()
    if p.kind is p.KEYWORD_ONLY and name not in ("s_phase", "s_prior_mean", "s_prior_sd", "sensors", "X0", "s0", "progress")
)


def _arrays_of(W: Any, Y: Any, X0: Any, s0: Any) -> tuple[_labels.Labels, dict[str, Any]]:
    """The arrays of a problem, checked, and the labels of their rows and columns."""
    arrays = {"W": _command.check_matrix(W, or_complex=True), "Y": _command.check_array("Y", Y, 1, 2, or_complex=True)}
    _command.check_pair(arrays["W"], arrays["Y"])
    for name, truth in (("X0", X0), ("s0", s0)):
        if truth is not None:
            arrays[name] = _command.check_array(name, truth, 1, 2, or_complex=True)
    return _labels.of(W, Y), arrays


def _result_of_command(name: str, arrays: dict[str, Any], keywords: dict[str, Any], progress: Any, again: bool, labelled: _labels.Labels) -> Result:
    """What a command makes of W and Y, with its warnings; again says that the result keeps them, for a report."""
    for word in ("matrix", "readings"):
        if word in keywords:
            raise TypeError(f"calamp.{name.replace('-', '_')}() got an unexpected keyword argument {word!r}: W and Y come first")
    show, close = _command.shown(progress)
    try:
        with _command.Files() as files, _command.Inputs(arrays) as inputs:
            words = [name, "--quiet", "--json", "--progress", "json", *_command.flags(files.take(keywords))]
            done = _command.run(words, inputs, output=True, show=show).check()
    except TypeError as e:
        raise TypeError(f"calamp.{name.replace('-', '_')}() {e}") from None
    finally:
        close()
    result = result_of(done, (arrays, keywords) if again else None, labelled)
    if done.code == 130:
        raise _command.Interrupted(result)
    why = result._code_of_reason()
    for w in result.warnings:
        kind = _command.NotConvergedWarning if done.code != 0 and w.code == why else _command.CalampWarning
        warnings.warn(f"{w.code}: {w.message}", kind, stacklevel=3)
    if done.code != 0 and why is None:
        warnings.warn(f"{result.status}: {result.reason}", _command.NotConvergedWarning, stacklevel=3)
    return result


def fit_matrix(
    W: Any,
    Y: Any,
    *,
    derivatives: Any = None,
    start: Optional[Sequence[float]] = None,
    step: Any = 1e-4,
    X0: Any = None,
    s0: Any = None,
    progress: Union[bool, Callable[[dict[str, Any]], None], None] = None,
    **options: Any,
) -> Result:
    """Recovers signals, calibration and what is not known of the matrix, W + theta[0] derivatives[0] + …, from readings.

    derivatives is an array (J×M×N, or M×N for one), or the path of such a .npy. theta begins at start, zeros by default, and is where the evidence of
    the readings has its maximum: ``Result.theta``, with ``theta_sd`` and ``theta_cov``. All else is as in :func:`calamp.solve`, whose
    keywords can be given.

    W can be a function as well, ``W(theta)``, of an array that begins at start: then derivatives are differences over ± step (a number, or one
    for each), and the fit is repeated about what it found until that is within a tenth of its standard deviation.
    """
    if callable(W):
        if derivatives is not None or start is None:
            raise TypeError("calamp.fit_matrix() with a function W(theta) takes start, and no derivatives")
        return _fit_function(W, Y, np.atleast_1d(np.asarray(start, float)), step, dict(X0=X0, s0=s0, progress=progress, **options))
    if derivatives is None:
        raise TypeError("calamp.fit_matrix() needs derivatives of W, or a function W(theta)")
    keywords = dict(derivatives=derivatives, start=start, **options)
    labelled, arrays = _arrays_of(W, Y, X0, s0)
    return _result_of_command("fit-matrix", arrays, keywords, progress, again=False, labelled=labelled)


def _fit_function(f: Callable[[np.ndarray], Any], Y: Any, theta: np.ndarray, step: Any, keywords: dict[str, Any]) -> Result:
    """Gauss and Newton's method: f is taken for linear about theta."""
    steps = np.broadcast_to(np.asarray(step, float), theta.shape)
    for _ in range(10):
        ahead = [(np.asarray(f(theta + h)) - np.asarray(f(theta - h))) / (2 * np.sum(h)) for h in np.diag(steps)]
        derivatives = np.stack(ahead)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            result = fit_matrix(np.asarray(f(theta)) - np.tensordot(theta, derivatives, 1), Y, derivatives=derivatives, start=theta, **keywords)
        moved, theta = np.abs(result.theta - theta), result.theta
        if np.all(moved <= 0.1 * result.theta_sd):
            break
    else:
        warnings.warn("theta still moves after ten fits", _command.NotConvergedWarning, stacklevel=3)
    for w in said:
        warnings.warn(w.message, stacklevel=3)
    return result


def apply(result: Result, Y: Any) -> np.ndarray:
    """Readings Y (M×P or M) corrected by a calibration: s y, and NaN for sensors that are broken."""
    y = _command.check_array("Y", Y, 1, 2, or_complex=np.iscomplexobj(result.s))
    y = y.astype(result.s.dtype)
    s, broken, offset = result.s, result.broken, result.arrays.get("offset")
    if (sensors := result.arrays.get("sensors")) is not None:  # that rows are read with
        s, broken, offset = (None if a is None else a[sensors] for a in (s, broken, offset))
    m = len(s)
    if y.shape[0] != m:
        hint = ": Y looks transposed" if y.ndim == 2 and y.shape[1] == m else ""
        raise ValueError(f"Y has {y.shape[0]} rows and the result is of {m} {'sensors' if sensors is None else 'rows'}{hint}")
    column = (slice(None),) + (None,) * (y.ndim - 1)
    if offset is not None:
        y = y - offset[column]
    z = s[column] * y
    if broken is not None:
        z[broken > 0.5] = np.nan
    return z
