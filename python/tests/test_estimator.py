"""What scikit-learn, pandas and operators expect."""

import pickle
import sys
import types
import unittest
import warnings

import calamp
import numpy as np
import pytest

MODEL = dict(s_range=(0.8, 1.25), noise_var=1e-6)


@pytest.fixture(scope="module")
def p():
    return calamp.simulate(n=100, alpha=0.9, p=16, s_range=(0.8, 1.25), noise_var=1e-6, seed=3)


@pytest.fixture(scope="module")
def fitted(p):
    return calamp.BlindCalibrator(p.W, **MODEL).fit(p.Y[:, :12].T)


def test_predict_and_score(p, fitted):
    x = fitted.predict(p.Y[:, 12:].T)
    assert x.shape == (4, 100)
    scale = np.sum(x * p.X0[:, 12:].T) / np.sum(x * x)
    assert np.linalg.norm(scale * x - p.X0[:, 12:].T) < 0.01 * np.linalg.norm(p.X0[:, 12:])
    wrong = np.random.default_rng(1).permutation(p.Y[:, 12:].T, axis=1)
    assert fitted.score(p.Y[:, 12:].T) > fitted.score(wrong) + 1
    with pytest.raises(ValueError, match="expecting 90 features"):
        fitted.predict(p.Y[:50, 12:].T)


def test_scikit_learn(p, fitted):
    base = pytest.importorskip("sklearn.base")
    from sklearn.exceptions import NotFittedError
    from sklearn.pipeline import make_pipeline
    from sklearn.utils.validation import check_is_fitted

    copy = base.clone(fitted)
    assert copy.get_params()["s_range"] == MODEL["s_range"] and not hasattr(copy, "result_")
    assert copy.W is not fitted.W and np.array_equal(copy.W, fitted.W)
    with pytest.raises(NotFittedError):
        copy.transform(p.Y.T)
    check_is_fitted(fitted)
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)
    z = make_pipeline(copy).fit_transform(p.Y[:, :12].T)
    np.testing.assert_array_equal(z, fitted.transform(p.Y[:, :12].T))
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(p.Y[:, 12:].T), fitted.predict(p.Y[:, 12:].T))


class OfAnyWidth(calamp.BlindCalibrator):
    """scikit-learn's checks come with tables of several widths: a matrix for each."""

    def _matrix(self, sensors):
        return np.random.default_rng(0).normal(size=(sensors, sensors // 2 + 1))


# What cannot hold here, and why.
EXPECTED_FAILED_CHECKS = {
    "check_estimators_dtypes": "a snapshot whose readings are all 0 is refused",
    "check_complex_data": "readings can be complex",
    "check_methods_subset_invariance": "the model is learned from all samples that are given",
}


def test_check_estimator():
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    if hasattr(checks, "estimator_checks_generator"):  # from 1.6 on
        checks.check_estimator(OfAnyWidth(max_iter=10, faulty="off", outliers="off"), expected_failed_checks=EXPECTED_FAILED_CHECKS)
        return
    failed = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for estimator, check in checks.check_estimator(OfAnyWidth(max_iter=10, faulty="off", outliers="off"), generate_only=True):
            name = getattr(check, "func", check).__name__
            try:
                check(estimator)
            except unittest.SkipTest:
                pass
            except (AssertionError, ValueError, TypeError):
                if name not in EXPECTED_FAILED_CHECKS:
                    raise
                failed.add(name)
    assert failed == set(EXPECTED_FAILED_CHECKS)


def test_predict_the_readings_of_fit(p, fitted):
    """They count once."""
    np.testing.assert_array_equal(fitted.predict(p.Y[:, :12].T), fitted.signals_)
    assert np.isfinite(fitted.score(p.Y[:, :12].T))


def test_labels(p):
    pandas = pytest.importorskip("pandas")
    names = [f"pixel {i}" for i in range(len(p.Y))]
    y = pandas.DataFrame(p.Y[:, :12].T, columns=names, index=[f"frame {k}" for k in range(12)])
    b = calamp.BlindCalibrator(p.W, **MODEL).set_output(transform="pandas").fit(y)
    z = b.transform(y)
    assert list(z.columns) == names == list(b.get_feature_names_out()) and list(z.index) == list(y.index)
    np.testing.assert_array_equal(z.to_numpy(), calamp.apply(b.result_, p.Y[:, :12]).T)
    with pytest.raises(ValueError, match="other names"):
        b.transform(y[names[::-1]])
    assert not hasattr(b.fit(y.to_numpy()), "feature_names_in_")


def test_labels_of_results(p):
    """What W and Y are labelled with, a result has again, and rows of other sensors are refused."""
    pandas = pytest.importorskip("pandas")
    sensors = pandas.Index([f"pixel {i}" for i in range(len(p.Y))], name="pixel")
    w = pandas.DataFrame(p.W, index=sensors, columns=pandas.Index(range(100, 100 + p.W.shape[1]), name="place"))
    y = pandas.DataFrame(p.Y, index=sensors, columns=[f"frame {k}" for k in range(p.Y.shape[1])])
    plain = calamp.solve(p.W, p.Y, **MODEL)
    for r in (calamp.solve(w, y, **MODEL), pickle.loads(pickle.dumps(calamp.solve(w, y, **MODEL)))):
        x = r.to_frame("x")
        np.testing.assert_array_equal(x.to_numpy(), plain.x)
        assert x.index.equals(w.columns) and x.index.name == "place" and list(x.columns) == list(y.columns)
        assert r.to_frame().index.equals(sensors) and {"s", "s_var", "gain", "s_lo", "broken"} <= set(r.to_frame().columns)
        assert r.to_frame().loc["pixel 3", "gain"] == plain.gain[3]
        assert r.to_frame("residual").index.equals(sensors)
    assert list(plain.to_frame().index) == list(range(len(p.Y)))
    assert calamp.solve(w, p.Y[:, 0], **MODEL).to_frame().index.equals(sensors)
    with pytest.raises(ValueError, match="row 0 of W is labelled 'pixel 0' and that of Y"):
        calamp.solve(w, y[::-1], **MODEL)
    with pytest.raises(KeyError, match="expected one of"):
        plain.to_frame("z")


class DataArray:
    """What calamp uses of xarray's."""

    def __init__(self, data, dims, coords):
        self.data, self.dims, self.coords = data, dims, coords

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.data, dtype)


def test_dimensions_of_results(p, monkeypatch):
    xarray = types.SimpleNamespace(DataArray=DataArray, Dataset=lambda data, coords, attrs: types.SimpleNamespace(data=data, coords=coords, attrs=attrs))
    try:
        import xarray  # noqa: F811
    except ImportError:
        monkeypatch.setitem(sys.modules, "xarray", xarray)
    hours = np.arange(p.Y.shape[1]) * 3
    r = calamp.solve(xarray.DataArray(p.W, dims=("antenna", "source"), coords={}), xarray.DataArray(p.Y, dims=("antenna", "hour"), coords={"hour": hours}), **MODEL)
    data = r.to_xarray()
    if isinstance(data, types.SimpleNamespace):
        assert data.data["x"][0] == ("source", "hour") and data.data["s"][0] == ("antenna",)
    else:
        assert data.x.dims == ("source", "hour") and data.s.dims == ("antenna",)
    np.testing.assert_array_equal(data.coords["hour"], hours)


def test_linear_operator(p):
    linalg = pytest.importorskip("scipy.sparse.linalg")
    w = linalg.aslinearoperator(p.W)
    np.testing.assert_array_equal(calamp.solve(w, p.Y, **MODEL).s, calamp.solve(p.W, p.Y, **MODEL).s)


def test_apply_by_rows(p):
    """Readings of rows are corrected by the gains of their sensors."""
    q = calamp.simulate(n=100, m=120, p=8, s_range=(0.8, 1.25), noise_var=1e-6, seed=4)
    sensors = np.arange(120) // 2
    z = q.W @ q.X0
    gains = np.random.default_rng(2).uniform(0.8, 1.25, 60)
    y = z / gains[sensors][:, None]
    r = calamp.solve(q.W, y, sensors=sensors, **MODEL)
    assert len(r.s) == 60
    np.testing.assert_allclose(calamp.apply(r, y), r.s[sensors][:, None] * y)


def test_fit_function_of_theta():
    """An array whose spacing is wrong by a part in a thousand, in which W is not linear."""
    rng = np.random.default_rng(7)
    m, n, p = 90, 60, 6
    u, phase = rng.uniform(0, 0.5, m), rng.uniform(0, 2 * np.pi, m)

    def matrix(theta):
        return np.cos(2 * np.pi * np.outer(u, np.arange(n)) * (1 + theta[0]) + phase[:, None]) / np.sqrt(n / 2)

    x = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.15)
    s = rng.uniform(0.8, 1.25, m)
    y = (matrix([0.001]) @ x + 1e-3 * rng.normal(size=(m, p))) / s[:, None]
    r = calamp.fit_matrix(matrix, y, start=[0.0], s_range=(0.8, 1.25))
    assert abs(r.theta[0] - 0.001) < 4 * r.theta_sd[0] < 1e-3
    with pytest.raises(TypeError, match="takes start"):
        calamp.fit_matrix(matrix, y)
    with pytest.raises(TypeError, match="needs derivatives"):
        calamp.fit_matrix(matrix([0]), y)
