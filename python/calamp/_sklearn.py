"""In the manner of scikit-learn, without needing it."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from . import _command
from ._solve import apply, solve


class BlindCalibrator:
    """Calibrates sensors from readings, in the manner of scikit-learn: a row of Y is a sample, a column a sensor, so that Y is
    P×M, the transpose of what :func:`calamp.solve` takes.

    W (M×N) is the matrix; the other arguments are those of solve. After fit: gain_, s_, s_sd_ (M), broken_ (M),
    signals_ (P×N), converged_ (all signals did), n_iter_ and result_, which has everything. It can be cloned, pickled, searched over
    and put into a pipeline; what is fitted with a DataFrame has feature_names_in_.
    """

    _estimator_type = "transformer"

    def __init__(self, W: Any = None, **model: Any):
        self.W = W
        self.model = model

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"W": self.W, **self.model}

    def set_params(self, **params: Any) -> "BlindCalibrator":
        if "W" in params:
            self.W = params.pop("W")
        self.model = {**self.model, **params}
        return self

    def set_output(self, *, transform: Optional[str] = None) -> "BlindCalibrator":
        """What transform gives: "default", arrays, or "pandas", a DataFrame; None leaves it as it is."""
        if transform not in (None, "default", "pandas"):
            raise ValueError(f'transform is {transform!r}, expected "default" or "pandas"')
        if transform is not None:
            self._output = transform
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "result_")

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
        self.n_features_in_ = readings.shape[1]
        names = getattr(Y, "columns", None)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.asarray(names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # of an earlier fit
        return self

    def _fitted(self, Y: Any) -> np.ndarray:
        """Readings of the sensors that the calibration is of."""
        if not hasattr(self, "result_"):
            try:
                from sklearn.exceptions import NotFittedError as kind
            except ImportError:
                kind = ValueError
            raise kind("not fitted yet: fit comes first")
        readings = _command.check_array("Y", Y, 2, or_complex=True)
        if readings.shape[1] != self.n_features_in_:
            raise ValueError(f"Y has {readings.shape[1]} columns, expected {self.n_features_in_}, one for each sensor")
        names = getattr(Y, "columns", None)
        if names is not None and list(getattr(self, "feature_names_in_", names)) != list(names):
            raise ValueError("the columns of Y have other names, or another order, than those of fit")
        return readings

    def transform(self, Y: Any) -> Any:
        """Readings corrected by the calibration, s y; NaN for sensors that are broken."""
        readings = self._fitted(Y)
        z = apply(self.result_, readings.T).T
        if getattr(self, "_output", "default") == "pandas":
            import pandas

            return pandas.DataFrame(z, index=getattr(Y, "index", None), columns=self.get_feature_names_out())
        return z

    def predict(self, Y: Any) -> np.ndarray:
        """Signals (P×N) of other readings, solved with what fit found of the calibration, its error bars included, as the prior of each sensor."""
        return self._solved(self._fitted(Y)).x.T

    def score(self, Y: Any, y: Any = None) -> float:
        """The logarithm of the evidence of other readings, a reading: larger where the calibration and the model fit them better."""
        readings = self._fitted(Y)
        return float(self._solved(readings).summary["log_evidence"]) / max(1, np.count_nonzero(np.isfinite(readings)))

    def _solved(self, readings: np.ndarray) -> Any:
        model = {k: v for k, v in self.model.items() if k not in ("s_prior", "s_mean", "s_sd", "s_prior_mean", "s_prior_sd", "anchor")}
        return solve(self.W, readings.T, **{**model, "s_from": self.result_})

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Those of the sensors: of fit's DataFrame, else sensor0, sensor1, …"""
        if input_features is not None:
            return np.asarray(input_features, object)
        return getattr(self, "feature_names_in_", np.array([f"sensor{i}" for i in range(self.n_features_in_)], object))

    def fit_transform(self, Y: Any, y: Any = None) -> Any:
        return self.fit(Y).transform(Y)

    def __repr__(self) -> str:
        return f"BlindCalibrator({', '.join(['W' if k == 'W' else f'{k}={v!r}' for k, v in self.get_params().items()])})"
