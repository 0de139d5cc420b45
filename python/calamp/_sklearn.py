"""In the manner of scikit-learn, without needing it."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _command
from ._solve import apply, solve


class BlindCalibrator:
    """Calibrates sensors from readings, in the manner of scikit-learn: a row of Y is a sample, a column a sensor, so that Y is
    P×M, the transpose of what :func:`calamp.solve` takes.

    W (M×N) is the matrix; the other arguments are those of solve. After fit: gain_, s_, s_sd_ (M), broken_ (M),
    signals_ (P×N), converged_ (all signals did), n_iter_ and result_, which has everything.
    """

    def __init__(self, W: Any = None, **model: Any):
        self.W = W
        self.model = model

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"W": self.W, **self.model}

    def set_params(self, **params: Any) -> "BlindCalibrator":
        if "W" in params:
            self.W = params.pop("W")
        self.model.update(params)
        return self

    def fit(self, Y: Any, y: Any = None) -> "BlindCalibrator":
        """Learns the calibration from readings Y (P×M)."""
        if self.W is None:
            raise ValueError("no matrix: BlindCalibrator(W)")
        readings = _command.check_array("Y", Y, 2, or_complex=True)
        m = _command.sensors(self.W)
        if m not in (None, readings.shape[1]):
            hint = "; a row is a sample here: Y.T" if readings.shape[0] == m else ""
            raise ValueError(f"Y has {readings.shape[1]} columns and W {m} rows, one for each sensor{hint}")
        self.result_ = r = solve(self.W, readings.T, **self.model)
        self.gain_, self.s_, self.s_sd_ = r.gain, r.s, np.sqrt(r.s_var)
        self.broken_ = np.zeros(len(r.s), bool) if r.broken is None else r.broken > 0.5
        self.signals_, self.converged_, self.n_iter_ = r.x.T, bool(np.all(r.converged)), r.iterations
        self.n_features_in_ = len(r.s)
        return self

    def transform(self, Y: Any) -> np.ndarray:
        """Readings corrected by the calibration, s y; NaN for sensors that are broken."""
        if not hasattr(self, "result_"):
            raise ValueError("not fitted yet: fit comes first")
        return apply(self.result_, _command.check_array("Y", Y, 2, or_complex=True).T).T

    def fit_transform(self, Y: Any, y: Any = None) -> np.ndarray:
        return self.fit(Y).transform(Y)

    def __repr__(self) -> str:
        return f"BlindCalibrator({', '.join(['W' if k == 'W' else f'{k}={v!r}' for k, v in self.get_params().items()])})"
