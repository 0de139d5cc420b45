"""In the manner of scikit-learn, without needing it."""

from __future__ import annotations

import hashlib
import inspect
from typing import Any, Optional

import numpy as np

from . import _command
from ._solve import apply, solve

# The keywords of solve that say what is known and how to solve; the others are of one run.
_OF_A_RUN = ("X0", "s0", "report", "progress", "save_model")
_KEYWORDS = {k: p for k, p in inspect.signature(solve).parameters.items() if p.kind is p.KEYWORD_ONLY and k not in _OF_A_RUN}

# What says something of s, in whose place predict puts the calibration of fit.
_OF_SENSORS = ("s_prior", "s_mean", "s_sd", "s_prior_mean", "s_prior_sd", "anchor")


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
        for name, keyword in _KEYWORDS.items():
            setattr(self, name, model.pop(name, keyword.default))
        for name, value in model.items():  # further flags of the command, which has no list here
            setattr(self, name, value)

    __init__.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, **more) for name, more in (("self", {}), ("W", {"default": None}))]
        + [*_KEYWORDS.values(), inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD)]
    )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if not (k.startswith("_") or k.endswith("_"))}

    def set_params(self, **params: Any) -> "BlindCalibrator":
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def _model(self) -> dict[str, Any]:
        """What was given, for solve."""
        return {k: v for k, v in self.get_params().items() if k != "W" and not (k in _KEYWORDS and v is _KEYWORDS[k].default)}

    def _matrix(self, sensors: int) -> Any:
        """W, for readings of so many sensors."""
        if self.W is None:
            raise ValueError("no matrix: BlindCalibrator(W)")
        return self.W

    def set_output(self, *, transform: Optional[str] = None) -> "BlindCalibrator":
        """What transform gives: "default", arrays, or "pandas", a DataFrame; None leaves it as it is."""
        if transform not in (None, "default", "pandas"):
            raise ValueError(f'transform is {transform!r}, expected "default" or "pandas"')
        if transform is not None:
            self._output = transform
        return self

    def _more_tags(self) -> dict[str, Any]:
        """What scikit-learn asks before 1.6."""
        return {"allow_nan": True, "no_validation": False}

    def __sklearn_tags__(self) -> Any:
        """What it asks from 1.6 on."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer", target_tags=TargetTags(required=False), transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(allow_nan=True),
        )  # fmt: skip

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "result_")

    def fit(self, Y: Any, y: Any = None) -> "BlindCalibrator":
        """Learns the calibration from readings Y (P×M)."""
        readings = _readings(Y)
        W = self._matrix(readings.shape[1])
        m = _command.sensors(W)
        if m not in (None, readings.shape[1]):
            hint = "; a row is a sample here: Y.T" if readings.shape[0] == m else ""
            raise ValueError(f"Y has {readings.shape[1]} columns and W {m} rows, one for each sensor{hint}")
        self.result_ = r = solve(W, readings.T, **self._model())
        self.gain_, self.s_, self.s_sd_ = r.gain, r.s, np.sqrt(r.s_var)
        self.broken_ = np.zeros(len(r.s), bool) if r.broken is None else r.broken > 0.5
        self.signals_, self.converged_, self.n_iter_ = r.x.T, bool(np.all(r.converged)), r.iterations
        self.n_features_in_ = readings.shape[1]
        self._seen = _digest(readings)
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
        readings = _readings(Y)
        if readings.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {readings.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input, a column for each sensor")
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
        """Signals (P×N) of other readings, solved with what fit found of the calibration, its error bars included, as the prior of each sensor.
        Those of the readings of fit are signals_."""
        return self._solved(self._fitted(Y)).x.T

    def score(self, Y: Any, y: Any = None) -> float:
        """The logarithm of the evidence of other readings, a reading: larger where the calibration and the model fit them better."""
        readings = self._fitted(Y)
        return float(self._solved(readings).summary["log_evidence"]) / max(1, np.count_nonzero(np.isfinite(readings)))

    def _solved(self, readings: np.ndarray) -> Any:
        if _digest(readings) == self._seen:
            return self.result_  # with the calibration as its prior they would count twice
        model = {k: v for k, v in self._model().items() if k not in _OF_SENSORS}
        return solve(self._matrix(readings.shape[1]), readings.T, **{**model, "s_from": self.result_})

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Those of the sensors: of fit's DataFrame, else sensor0, sensor1, …"""
        if input_features is not None:
            return np.asarray(input_features, object)
        return getattr(self, "feature_names_in_", np.array([f"sensor{i}" for i in range(self.n_features_in_)], object))

    def fit_transform(self, Y: Any, y: Any = None) -> Any:
        return self.fit(Y).transform(Y)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(['W', *(f'{k}={v!r}' for k, v in self._model().items())])})"


def _readings(Y: Any) -> np.ndarray:
    """Y as an array P×M, with errors in the words that scikit-learn has for them."""
    if hasattr(Y, "tocsr"):
        raise TypeError("Y is sparse, expected a dense array: a reading of 0 is not a missing one, which is NaN")
    readings = np.ma.asanyarray(Y) if isinstance(Y, np.ma.MaskedArray) else np.asarray(Y)
    if readings.dtype.kind == "O":
        readings = readings.astype(float)
    if readings.ndim == 1:
        raise ValueError("Y has 1 dimension, expected 2. Reshape your data: Y.reshape(1, -1) is one sample of all sensors")
    if readings.ndim == 2 and 0 in readings.shape:
        what = "sample" if readings.shape[0] == 0 else "feature"
        raise ValueError(f"Y has 0 {what}(s) (shape={readings.shape}) while a minimum of 1 is required.")
    return _command.check_array("Y", readings, 2, or_complex=True)


def _digest(readings: np.ndarray) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(readings, np.result_type(readings.dtype, float)).tobytes()).digest()
