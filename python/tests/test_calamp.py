"""Tests of the package: pytest python/tests, with the command in CALAMP or in the installed wheel."""

import importlib.util
import html
import json
import multiprocessing
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import warnings

import calamp
import numpy as np
import pytest
from calamp import _command

MODEL = dict(density=0.2, signal_mean=0, signal_var=1, s_range=(0.95, 1.05), noise_var=1e-6)
POSIX = sys.platform != "win32"


@pytest.fixture(scope="module")
def p():
    return calamp.simulate(n=100, alpha=0.9, p=6, seed=3)


@pytest.fixture(scope="module")
def r(p):
    return calamp.solve(p.W, p.Y, **MODEL)


def command(*words, **kw):
    return subprocess.run([_command.executable(), *map(str, words)], capture_output=True, **kw)


def test_solve(p, r):
    assert r.status == "converged" and r.converged.all() and r.x.shape == (100, 6) and r.s.shape == (90,)
    assert np.linalg.norm(r.x - p.X0) < 0.02 * np.linalg.norm(p.X0)
    assert np.mean((r.s_lo < p.s0) & (p.s0 < r.s_hi)) > 0.85
    np.testing.assert_allclose(r.gain, 1 / r.s, rtol=1e-15)
    assert len(r.trace["change"]) == r.iterations == r.trace["iteration"][-1]
    assert r.provenance["command"] == "calamp solve --density 0.2 --noise-var 1e-06 --s-range 0.95,1.05 --signal-mean 0 --signal-var 1"
    assert "converged" in repr(r)
    with pytest.raises(ValueError):
        r.x[0, 0] = 1
    with pytest.raises(AttributeError):
        r.x = 1


@pytest.mark.parametrize("seed", range(20))
def test_same_bytes_as_the_command(tmp_path, seed):
    kinds = [dict(), dict(density=0.1), dict(s_range=(0.8, 1.2)), dict(noise_var=1e-3), dict(matrix_kind="sign")]
    q = calamp.simulate(n=40 + seed, alpha=1, p=3, seed=seed, **kinds[seed % 5])
    W = [q.W, q.W.astype("f4"), np.asfortranarray(q.W), q.W.astype(">f8")][seed % 4]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        r = calamp.solve(W, q.Y, **(MODEL if seed % 2 else {}))
    np.savez(tmp_path / "P.npz", W=W, Y=q.Y)
    done = command("solve", tmp_path / "P.npz", "-o", tmp_path / "R.npz", *_command.flags(MODEL if seed % 2 else {}))
    assert done.returncode in (0, 3), done.stderr
    r.save(tmp_path / "A.npz")
    assert (tmp_path / "A.npz").read_bytes() == (tmp_path / "R.npz").read_bytes()
    with np.load(tmp_path / "R.npz") as z:
        for name in z:
            np.testing.assert_array_equal(z[name], r.arrays[name])


@pytest.mark.parametrize("dtype", ["c16", "c8"])
def test_complex(tmp_path, dtype):
    p = calamp.simulate(n=100, alpha=0.9, p=4, seed=3, complex=True, phase=20, s_range=(0.5, 1.5), noise_var=1e-6)
    r = calamp.solve(p.W.astype(dtype), p.Y, phase=20, X0=p.X0, s0=p.s0)
    assert r.status == "converged" and r.x.dtype == r.s.dtype == r.gain.dtype == np.complex128 and r.x.shape == (100, 4)
    assert r.metrics["x_mse_scaled"] < 3e-6 and "phase_lo" in r.arrays and "NaN" not in r._repr_html_()
    z = calamp.apply(r, p.Y)
    assert np.allclose(z, p.s0[:, None] * p.Y, atol=0.1)
    nominal = np.linspace(-1, 1, 90)
    turned = calamp.solve(p.W, p.Y * np.exp(-1j * nominal)[:, None], phase=20, s_phase=nominal)
    assert np.allclose(turned.s, r.s * np.exp(1j * nominal), atol=0.05)
    with pytest.raises(ValueError, match="phase"):
        calamp.solve(np.real(p.W), np.real(p.Y), phase=20)
    with pytest.raises(ValueError, match="Y is complex"):
        calamp.apply(calamp.solve(np.real(p.W), np.real(p.Y), max_iter=5, tol=0), p.Y)


def test_complex_stream(tmp_path):
    p = calamp.simulate(n=100, alpha=0.9, p=4, seed=3, complex=True, s_range=(0.5, 1.5), noise_var=1e-6)
    for W in p.W, p.W.astype("c8"):
        with calamp.Calibrator(W, density=0.2, signal_var=1, noise_var=1e-6, s_range=(0.5, 1.5)) as c:
            for y in p.Y.T:
                line = c.absorb(y)
            got = c.posterior()
        assert line["x"].dtype == got.s.dtype == complex and line["x"].shape == (100,)
        turn = np.vdot(got.s, p.s0)  # their phases are free, so the common one is a convention
        assert np.allclose(got.s * got.gain, 1) and np.allclose(got.s * turn / abs(turn), p.s0, atol=0.1)
    with pytest.raises(ValueError, match="y is complex"), calamp.Calibrator(np.real(p.W), density=0.2) as c:
        c.absorb(p.Y[:, 0])
    b = calamp.BlindCalibrator(p.W, noise_var=1e-6).fit(p.Y.T)
    assert b.converged_ and b.transform(p.Y.T).dtype == complex


def test_on_standard_input(p, r, monkeypatch):
    """As on systems without files in memory."""
    monkeypatch.delattr(os, "memfd_create", raising=False)
    assert calamp.solve(p.W, p.Y, **MODEL)._npz == r._npz


def test_truth(p):
    r = calamp.solve(p.W, p.Y, X0=p.X0, s0=p.s0, **MODEL)
    assert 0 < r.metrics["x_mse"] < 1e-4


def test_bad_input(p):
    cases = [
        (lambda: calamp.solve(p.W, p.Y[:7]), "Y is 7×6 but W has 90 rows (sensors): expected 90×P"),
        (lambda: calamp.solve(p.W, p.Y.T), "Y looks transposed"),
        (lambda: calamp.solve(p.W * np.nan, p.Y), "W: row 0, column 0 is NaN"),
        (lambda: calamp.solve(p.W, p.Y, density=2), 'density "2": expected a number in (0, 1]'),
        (lambda: calamp.solve(1j * p.W, p.Y), "and W is complex: a complex W needs complex readings"),
        (lambda: calamp.solve(p.W, [["a"]]), "Y is of dtype <U1"),
        (lambda: calamp.solve(p.W[None], p.Y), "W is 1×90×100 and Y has 6 signals, expected a matrix for each"),
        (lambda: calamp.solve(p.W[None, None], p.Y), "W has 4 dimensions, expected 2 or 3"),
        (lambda: calamp.solve(p.W[0], p.Y), "W has 1 dimensions, expected 2 or 3"),
        (lambda: calamp.solve("nowhere.npy", p.Y), "nowhere.npy: no such file"),
        (lambda: calamp.simulate(n=10, p=2), "alpha"),
        (lambda: calamp.threshold(0.2, -1), "p "),
        (lambda: calamp.apply(calamp.solve(p.W, p.Y, **MODEL), p.Y.T), "Y looks transposed"),
    ]
    for call, words in cases:
        with pytest.raises(ValueError) as e:
            call()
        assert words in str(e.value), str(e.value)
        assert "/dev/fd" not in str(e.value)
    with pytest.raises(TypeError):
        calamp.solve(p.W, p.Y, density=object())


def test_scipy_sparse(p):
    sparse = pytest.importorskip("scipy.sparse")
    W = np.where(np.random.default_rng(1).random(p.W.shape) < 0.3, p.W, 0)
    y = W @ p.X0 / p.s0[:, None]
    dense = calamp.solve(W, y, **MODEL)
    for a in (sparse.csr_matrix(W), sparse.csc_array(W), sparse.coo_matrix(W)):
        r = calamp.solve(a, y, **MODEL)
        assert r.summary["matrix"].startswith("sparse") and np.max(np.abs(r.x - dense.x)) < 1e-6 * np.max(np.abs(dense.x))
    with pytest.raises(ValueError, match="complex"):
        calamp.solve(sparse.csr_matrix(W + 1j), y)


def test_rows_of_a_transform(tmp_path, monkeypatch):
    """They are those of the command's files, and of the table that they stand for."""
    rng = np.random.default_rng(2)
    n, m = 128, 100
    rows, signs, permutation = rng.choice(n, m, replace=False), rng.choice([-1, 1], n), rng.permutation(n)
    w = calamp.hadamard(rows, n, signs=signs, permutation=permutation)
    table = np.array([[1.0]])
    while len(table) < n:
        table = np.kron([[1, 1], [1, -1]], table)
    table = table[np.ix_(rows, permutation)] / np.sqrt(n) * signs
    x = np.where(rng.random((n, 5)) < 0.2, rng.standard_normal((n, 5)), 0)
    s = rng.uniform(0.95, 1.05, m)
    y = table @ x / s[:, None]
    r = calamp.solve(w, y, X0=x, s0=s, **MODEL)
    assert r.status == "converged" and r.metrics["x_mse"] < 1e-4 and w.shape == (m, n)
    w.save(tmp_path / "R.npz")
    np.save(tmp_path / "Y.npy", y)
    done = command("solve", "--matrix", f"hadamard:{tmp_path}/R.npz", "--readings", tmp_path / "Y.npy", "-o", tmp_path / "S.npz", *_command.flags(MODEL))
    assert done.returncode == 0 and (tmp_path / "S.npz").read_bytes() == calamp.solve(w, y, **MODEL)._npz
    assert calamp.BlindCalibrator(w, **MODEL).fit(y.T).converged_
    with calamp.Calibrator(w, **MODEL) as c:
        assert c.absorb(y[:, 0])["x"].shape == (n,)
    c = calamp.dct([0, 3, 5], 6)
    assert c.shape == (3, 6) and "dct" in repr(c)
    for call, words in (
        (lambda: calamp.hadamard(rows, 100), "power of 2"),
        (lambda: calamp.hadamard([0, n], n), "rows: expected numbers from 0 to 127"),
        (lambda: calamp.dct([0.5], 4), "whole numbers"),
        (lambda: calamp.dct([0], 4, signs=[1, 0, 1, 1]), "1 or -1"),
        (lambda: calamp.dct([0], 4, permutation=[0, 1, 1, 2]), "once"),
        (lambda: calamp.solve(w, y[1:]), "99"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    monkeypatch.delattr(os, "memfd_create", raising=False)  # as on systems without files in memory
    assert calamp.solve(w, y, X0=x, s0=s, **MODEL)._npz == r._npz


def test_warnings(p):
    with pytest.warns(calamp.NotConvergedWarning, match="iteration limit 3"):
        r = calamp.solve(p.W, p.Y, max_iter=3, **MODEL)
    assert r.status == "not converged" and "signal-not-converged" in [w.code for w in r.warnings]
    with pytest.warns(calamp.CalampWarning, match="scale-from-gains"):
        calamp.solve(p.W, p.Y)


def test_matrix_on_the_disk(p, r, tmp_path):
    """A path and a memory map are handed on; parts of one are copied."""
    np.save(tmp_path / "W.npy", p.W)
    assert calamp.solve(tmp_path / "W.npy", p.Y, **MODEL)._npz == r._npz
    W = np.load(tmp_path / "W.npy", mmap_mode="r")
    assert _command.file_of(W) == str(tmp_path / "W.npy")
    for part in (W[1:], W[:, ::-1], W.T, W[:45]):
        assert _command.file_of(part) is None
    assert calamp.solve(W, p.Y, **MODEL)._npz == r._npz
    assert calamp.solve(W[:60], p.Y[:60], **MODEL)._npz == calamp.solve(p.W[:60], p.Y[:60], **MODEL)._npz


def test_progress(p):
    seen = []
    r = calamp.solve(p.W, p.Y, progress=seen.append, **MODEL)
    assert [e["iteration"] for e in seen] == list(range(1, r.iterations + 1)) and seen[-1]["fraction"] > 0.9

    def stop(event):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        calamp.solve(p.W, p.Y, progress=stop, **MODEL)


def test_bar(p, capsys, monkeypatch):
    calamp.solve(p.W, p.Y, progress=True, max_iter=3000, tol=0, **MODEL)
    assert "iteration" in capsys.readouterr().err


@pytest.mark.skipif(not POSIX, reason="signals cannot be sent there")
def test_interrupt(p):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts its background jobs without
    timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt) as stopped:
        calamp.solve(p.W, p.Y, tol=0, max_iter=10**8, **MODEL)
    r = stopped.value.result
    assert isinstance(stopped.value, calamp.Interrupted)
    assert r.status == "cancelled" and r.x.shape == (100, 6) and time.monotonic() - begin < 20
    assert np.linalg.norm(r.x - p.X0) < 0.02 * np.linalg.norm(p.X0)


def test_report(r, tmp_path):
    r.report(tmp_path / "R.html")
    assert b"<html" in (tmp_path / "R.html").read_bytes()
    page = r._repr_html_()
    assert "<svg" in page and "converged" in page


def test_pickle(r, tmp_path):
    q = pickle.loads(pickle.dumps(r))
    assert q._npz == r._npz and q.status == r.status and q.warnings == r.warnings
    np.testing.assert_array_equal(q.x, r.x)
    with pytest.raises(ValueError, match="another process"):
        q.report(tmp_path / "R.html")


def test_apply(p, r, tmp_path):
    np.save(tmp_path / "Y.npy", p.Y)
    r.save(tmp_path / "R.npz")
    assert command("apply", tmp_path / "R.npz", tmp_path / "Y.npy", "-o", tmp_path / "Z.npy").returncode == 0
    np.testing.assert_array_equal(np.load(tmp_path / "Z.npy"), calamp.apply(r, p.Y))
    assert calamp.apply(r, p.Y[:, 0]).shape == (90,)
    # Offsets, broken sensors and missing readings.
    broken, offset, Y = np.zeros(90), np.linspace(-1, 1, 90), p.Y.copy()
    broken[3], Y[5, 1] = 0.9, np.nan
    np.save(tmp_path / "Y.npy", Y)
    np.savez(tmp_path / "R.npz", **{**r.arrays, "broken": broken, "offset": offset, "offset_var": np.full(90, 1e-4)})
    assert command("apply", tmp_path / "R.npz", tmp_path / "Y.npy", "-o", tmp_path / "Z.npy").returncode == 0
    want = r.s[:, None] * (Y - offset[:, None])
    want[3] = np.nan
    np.testing.assert_array_equal(np.load(tmp_path / "Z.npy"), want)


def one(seed):
    q = calamp.simulate(n=40, alpha=1, p=3, seed=seed)
    return calamp.solve(q.W, q.Y, threads=1, **MODEL).s


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("not on this system")
    here = [one(seed) for seed in range(8)]
    with multiprocessing.get_context(method).Pool(8) as pool:
        for a, b in zip(here, pool.map_async(one, range(8)).get(300)):
            np.testing.assert_array_equal(a, b)


@pytest.mark.skipif(not POSIX, reason="needs file descriptors")
def test_closed_standard_streams():
    """New files get the numbers of standard streams where these are closed."""
    code = """if True:
        import os
        for fd in 0, 1, 2:
            os.close(fd)
        import calamp
        q = calamp.simulate(n=40, alpha=1, p=3, seed=1)
        s = calamp.solve(q.W, q.Y, density=0.2, s_range=(0.95, 1.05), noise_var=1e-6).s
        with calamp.Calibrator(q.W, density=0.2, noise_var=1e-6) as c:
            c.absorb(q.Y[:, 0])
        os._exit(17 if len(s) == 40 else 1)"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment).returncode == 17


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_nothing_stays_open(p):
    one(1)
    before, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    for _ in range(5):
        one(1)
        with pytest.raises(ValueError):
            calamp.solve(p.W, p.Y[:3])
        with calamp.Calibrator(p.W, **MODEL) as c:
            c.absorb(p.Y[:, 0])
    assert len(os.listdir("/proc/self/fd")) == before and threading.active_count() == threads


def test_stream(p, tmp_path):
    state = tmp_path / "S.calamp"
    with calamp.Calibrator(p.W, state=state, **MODEL) as c:
        for k in range(3):
            line = c.absorb(p.Y[:, k])
            assert line["seq"] == k + 1 and line["x"].shape == (100,)
        assert c.posterior().samples == 3
        with pytest.raises(ValueError, match="expected 90"):
            c.absorb(p.Y[:5, 0])
        with pytest.raises(_command.CalampError, match="in use"):
            calamp.Calibrator(p.W, state=state, **MODEL)
    with calamp.Calibrator(p.W, state=state, **MODEL) as c:
        for k in range(3, 6):
            assert c.absorb(p.Y[:, k])["committed"]
        q = c.posterior()
        assert q.samples == q.last == 6 and np.std(q.s / p.s0) < np.std(p.s0)
    with pytest.raises(ValueError, match="closed"):
        c.absorb(p.Y[:, 0])
    with pytest.raises(ValueError, match="another|other|differ"):
        calamp.Calibrator(2 * p.W, state=state, **MODEL)


def test_stream_of_shared_sensors(p, tmp_path):
    """Two rows a sensor, through an interruption."""
    ids = np.random.default_rng(38).permutation(np.repeat(np.arange(45), 2))
    Y = p.Y * (p.s0 / p.s0[:45][ids])[:, None]
    posteriors = []
    for parts in ((0, 6),), ((0, 2), (2, 6)):
        state = tmp_path / f"{len(parts)}.calamp"
        for first, end in parts:
            with calamp.Calibrator(p.W, state=state, sensors=ids, **MODEL) as c:
                for k in range(first, end):
                    assert c.absorb(Y[:, k])["committed"]
                q = c.posterior()
        posteriors.append(q)
    assert q.s.shape == (45,) and np.std(q.s / p.s0[:45]) < 0.1 * np.std(p.s0)
    assert np.array_equal(posteriors[0].s, posteriors[1].s) and np.array_equal(posteriors[0].s_var, posteriors[1].s_var)
    with pytest.raises(ValueError, match="none of the 90 rows of W is read with sensor 0"):
        calamp.Calibrator(p.W, sensors=ids + 1, **MODEL)


def test_stream_that_dies(p):
    c = calamp.Calibrator(p.W, **MODEL)
    c._process.kill()
    with pytest.raises(_command.CalampError):
        c.absorb(p.Y[:, 0])


def test_blind_calibrator(p, r):
    b = calamp.BlindCalibrator(p.W, **MODEL)
    assert b.fit(p.Y.T) is b and b.converged_ and b.signals_.shape == (6, 100)
    np.testing.assert_array_equal(b.s_, r.s)
    np.testing.assert_array_equal(b.transform(p.Y.T), calamp.apply(r, p.Y).T)
    with pytest.raises(ValueError, match="a row is a sample"):
        b.fit(p.Y)
    with pytest.raises(ValueError, match="not fitted"):
        calamp.BlindCalibrator(p.W).transform(p.Y.T)
    again = type(b)(**b.get_params()).set_params(density=0.3)
    assert again.get_params()["density"] == 0.3 and b.get_params()["density"] == 0.2


def test_theory():
    t = calamp.threshold(0.2, 5)
    assert t["alpha_min"] == 0.25 and 0.35 < t["alpha_cal"] < 0.36
    assert calamp.threshold([0.1, 0.2], 5)["alpha_min"].tolist() == [0.125, 0.25]
    se = calamp.se_offline(0.6, 2, density=0.2, iterations=5)
    assert list(se) == ["iteration", "mse_x", "m_hat", "mse_s"] and se["iteration"].tolist() == [1, 2, 3, 4, 5]
    assert set(calamp.se_online(0.6, 2, iterations=3)["sample"]) == {1, 2}


def test_simulated_problems_can_be_changed():
    q = calamp.simulate(n=40, alpha=1, p=3, seed=1)
    q.Y[3] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert "silent-sensor" in [w.code for w in calamp.solve(q.W, q.Y, **MODEL).warnings]


def test_version():
    v = json.loads(command("version", "--json").stdout)
    assert calamp.version() == v


def test_notebook():
    """The cells of the example, one after the other, without Jupyter; what they show must be fit for it."""
    path = os.path.join(os.path.dirname(__file__), "..", "examples", "first.ipynb")
    with open(path) as f:
        cells = json.load(f)["cells"]
    names = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            *before, last = "".join(cell["source"]).splitlines()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec("\n".join(before), names)
                shown = eval(last, names)
            assert shown is not None
            if hasattr(shown, "_repr_html_"):
                assert "<svg" in shown._repr_html_()


def test_documentation(monkeypatch, tmp_path):
    """The pieces of docs/python.md, as a reader would type them; what a piece takes is in the comment before it."""
    monkeypatch.chdir(tmp_path)
    path = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "python.md")
    if not os.path.exists(path):
        pytest.skip("the wheel alone")
    with open(path, encoding="utf-8") as f:
        pieces = re.findall(r"^(?:<!-- given: ([^\n]*) -->\n)?^```python\n(.*?)^```$", f.read(), re.S | re.M)
    assert len(pieces) >= 6
    names = {}
    for given, piece in pieces:
        if "joblib" in piece and importlib.util.find_spec("joblib") is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(given + "\n" + piece, names)
    assert os.path.exists("R.html") and names["r"].status == "converged"
    assert names["b"].converged_ and len(names["results"] if "results" in names else names["b"].gain_) > 1


def test_swapped(p):
    """W and Y in each other's place, or one of them transposed, are refused before anything is solved."""
    wide = calamp.simulate(n=200, alpha=0.8, p=10, seed=1)
    for W, Y, words in ((wide.Y, wide.W, "swapped"), (wide.W.T, wide.Y, "W looks transposed"), (wide.W, wide.Y.T, "Y looks transposed")):
        with pytest.raises(ValueError, match=words):
            calamp.solve(W, Y)
    with pytest.raises(ValueError, match="NaN"):
        calamp.solve(np.where(np.arange(6) == 2, np.nan, p.Y), p.W)
    many = calamp.simulate(n=12, alpha=5, p=40, s_range=(0.5, 2), seed=2)  # more signals than entries is no mistake
    assert calamp.solve(many.W, many.Y, s_range=(0.5, 2), noise_var=1e-6).x.shape == (12, 40)


def test_anchor_of_the_mean(p):
    assert abs(calamp.solve(p.W, p.Y, reference={"mean": 2.0}).s.mean() - 2) < 0.02


def test_anchor_of_rows(p):
    one, same = (calamp.solve(p.W, p.Y, max_iter=20, anchor=a) for a in ({3: 1.02, 5: 0.98}, ["sensor=3:1.02", "sensor=5:0.98"]))
    np.testing.assert_array_equal(one.x, same.x)


def test_threshold_answers():
    assert calamp.threshold(0.2, 8, noise_var=1e-3, n=256, m=200)["answer"].endswith("you have 200")


def test_saved_as_npz(r, tmp_path):
    with pytest.raises(ValueError, match="expected a name that ends so"):
        r.save(tmp_path / "R.h5")
    assert not list(tmp_path.iterdir())


def test_load(p, r, tmp_path):
    r.save(tmp_path / "R.npz")
    q = calamp.load(tmp_path / "R.npz")
    assert (q.status, q.iterations, q.warnings, q.noise_var) == (r.status, r.iterations, r.warnings, r.noise_var)
    np.testing.assert_array_equal(q.x, r.x)
    q.save(tmp_path / "Q.npz")
    assert (tmp_path / "Q.npz").read_bytes() == (tmp_path / "R.npz").read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calamp.solve(p.W, p.Y).save(tmp_path / "W.npz")
    assert [w.code for w in calamp.load(tmp_path / "W.npz").warnings] == ["scale-from-gains"]
    np.savez(tmp_path / "P.npz", W=p.W, Y=p.Y)
    words = [f"--{k.replace('_', '-')}={v if not isinstance(v, tuple) else ','.join(map(str, v))}" for k, v in MODEL.items()]
    command("solve", tmp_path / "P.npz", *words, "-o", tmp_path / "C.npz")
    c = calamp.load(tmp_path / "C.npz")
    assert c.status == "converged" and c.warnings == () and c.iterations == r.iterations
    np.testing.assert_array_equal(c.s, r.s)
    with pytest.raises(ValueError, match="no result"):
        calamp.load(tmp_path / "P.npz")


def test_copies(p, r):
    import copy

    for q in (copy.copy(r), copy.deepcopy(r), copy.deepcopy({"r": r})["r"], pickle.loads(pickle.dumps(r))):
        np.testing.assert_array_equal(q.s, r.s)
        assert q.status == r.status and q.warnings == r.warnings
    q = pickle.loads(pickle.dumps(p))
    np.testing.assert_array_equal(q.Y, p.Y)
    b = pickle.loads(pickle.dumps(calamp.BlindCalibrator(p.W, **MODEL).fit(p.Y.T)))
    np.testing.assert_array_equal(b.s_, r.s)


def test_names():
    # What runs from a folder has the command's version, an installed wheel its own, which is the same by PEP 440.
    number = calamp.version()["version"].removeprefix("v").split("-")[0]
    assert calamp.__version__.split("-")[0].split(".dev")[0] == number
    import builtins

    names = {}
    exec("from calamp import *", names)
    assert "__version__" in dir(calamp)
    assert names["solve"] is calamp.solve and not [k for k in calamp.__all__ if hasattr(builtins, k)]
    with pytest.raises(AttributeError):
        calamp.nothing


def test_masked(p):
    Y = p.Y.copy()
    Y[3, 1] = Y[7, 0] = np.nan
    masked = np.ma.masked_array(np.where(np.isnan(Y), 1e9, Y), np.isnan(Y))
    assert calamp.solve(p.W, masked, **MODEL)._npz == calamp.solve(p.W, Y, **MODEL)._npz
    with pytest.raises(ValueError, match="W is masked"):
        calamp.solve(np.ma.masked_array(p.W, p.W > 0.1), p.Y)


def test_arrays_in_the_place_of_files(p, r):
    def same(a, b):
        np.testing.assert_array_equal(a.x, b.x)

    model = {k: v for k, v in MODEL.items() if k != "noise_var"}
    m, n = p.W.shape
    assert calamp.solve(p.W, p.Y, noise_var=np.full(m, 1e-6), **model).arrays["noise_var"].shape == (m,)
    assert calamp.solve(p.W, p.Y, noise_var=np.full(p.Y.shape, 1e-6), **model).converged.all()
    densities = np.where(np.arange(n) < 50, 0.1, 0.3)
    same(calamp.solve(p.W, p.Y, **{**MODEL, "density": densities}), calamp.solve(p.W, p.Y, **{**MODEL, "density": list(densities)}))
    groups = (np.arange(n) % 2).tolist()
    assert calamp.solve(p.W, p.Y, groups=groups, s_range=(0.95, 1.05)).arrays["group_density"].shape == (2,)
    same(calamp.solve(p.W, p.Y, basis=np.eye(n), **MODEL), r)
    known = calamp.solve(p.W, p.Y[:, :3], s_from=r, density=0.2, noise_var=1e-6)
    assert np.std(known.s / p.s0) < 0.01
    given = calamp.solve(p.W, p.Y, s_prior_mean=p.s0, s_prior_sd=np.full(m, 0.01), density=0.2, noise_var=1e-6)
    assert given.scale_sd < 0.01
    with pytest.raises(ValueError, match=r"^noise_var") as e:
        calamp.solve(p.W, p.Y, noise_var=np.ones(5))
    assert "--" not in str(e.value) and "/" not in str(e.value).split("noise_var", 1)[1][:20]


def test_sensors_with_several_rows():
    rng = np.random.default_rng(38)
    n, rows, sensors = 120, 6, 20
    ids = rng.permutation(np.repeat(np.arange(sensors), rows))
    W, x, s = rng.normal(size=(len(ids), n)) / np.sqrt(n), rng.normal(size=n) * (rng.random(n) < 0.2), rng.uniform(0.8, 1.2, sensors)
    y = (W @ x + 1e-3 * rng.normal(size=len(ids))) / s[ids]
    r = calamp.solve(W, y, sensors=ids, X0=x, s0=s, s_range=(0.8, 1.2), density=0.2, signal_mean=0, signal_var=1, noise_var=1e-6)
    assert r.status == "converged" and r.s.shape == (sensors,) and r.residual.shape == (len(ids), 1)
    assert np.allclose(r.s, s, rtol=0.02) and r.metrics["x_mse_scaled"] < 1e-5 and r.summary["sensors"] == sensors
    assert np.array_equal(r.arrays["gain_row"], r.gain[ids]) and np.array_equal(r.arrays["sensors"], ids)
    assert np.array_equal(calamp.solve(W, y, sensors=r, s_range=(0.8, 1.2), density=0.2, signal_mean=0, signal_var=1, noise_var=1e-6).s, r.s)
    with pytest.raises(ValueError, match="sensors"):
        calamp.solve(W, y, sensors=ids + 0.5)
    with pytest.raises(ValueError, match="sensors"):
        calamp.solve(W, y, sensors=ids[1:])


def test_errors_are_in_words_of_python(p):
    with pytest.raises(TypeError, match="unexpected keyword argument 'densty'; did you mean 'density'"):
        calamp.solve(p.W, p.Y, densty=0.1)
    for bad, words in ((dict(density=2), "^density"), (dict(s_range=(2, 1)), "^s_range"), (dict(gain_range=(0.9, 1.1), s_prior="odd"), "^s_prior"), (dict(saturation=1, covariance="full"), "saturation needs covariance diagonal")):
        with pytest.raises(ValueError, match=words) as e:
            calamp.solve(p.W, p.Y, **bad)
        assert "--" not in str(e.value)
    assert _command.in_python("too many (--noise-var per-sensor, or --outliers off), --s-range") == 'too many (noise_var="per-sensor", or outliers="off"), s_range'
    noise = np.random.default_rng(1).normal(size=p.Y.shape)
    with pytest.warns(calamp.CalampWarning):
        r = calamp.solve(p.W, noise)
    assert r.warnings and not any("--" in w.message for w in r.warnings) and "--" not in r.reason


def test_nothing_is_said_twice(p):
    """Noise alone: why nothing was recovered is a warning, and stands once in it, and once in a notebook."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        r = calamp.solve(p.W, np.random.default_rng(1).normal(size=p.Y.shape))
    assert [w.category for w in said].count(calamp.NotConvergedWarning) == 1
    assert sum(r.reason in str(w.message) for w in said) == 1
    assert r._repr_html_().count(html.escape(r.reason)) == 1


def test_true_and_false(p):
    """What is learned where it is left out can be switched off, and on, in Python's words."""
    for name, on in _command.SWITCHES.items():
        assert _command.flags({name: False}) == [f"--{name}", "off"] and _command.flags({name: np.True_}) == [f"--{name}", on]
    assert _command.flags(dict(no_scale_step=False, emit_x=True, image=(4, 6))) == ["--emit-x", "--image", "4x6"]
    assert calamp.solve(p.W, p.Y, joint=False).summary["joint"] == "off"


def test_what_is_no_keyword(p):
    for name in ("output", "json", "quiet", "help", "matrix", "readings"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            calamp.solve(p.W, p.Y, **{name: "x.npz"})


def test_arrays_of_other_libraries(p, r):
    """Arrays that know DLPack alone, and columns of a table that hold numbers as objects."""

    class Tensor:
        def __init__(self, a):
            self.a, self.shape = a, a.shape

        def __dlpack__(self, **k):
            return self.a.__dlpack__(**k)

        def __dlpack_device__(self):
            return self.a.__dlpack_device__()

    for kind in (Tensor, lambda a: a.astype(object)):
        np.testing.assert_array_equal(calamp.solve(kind(p.W), kind(p.Y), **MODEL).x, r.x)
    with pytest.raises(ValueError, match="W is of type NoneType"):
        calamp.solve(None, p.Y)


def test_one_width_for_all_sensors(p):
    given = dict(s_prior_mean=p.s0, noise_var=1e-6)
    np.testing.assert_array_equal(calamp.solve(p.W, p.Y, s_prior_sd=0.01, **given).s, calamp.solve(p.W, p.Y, s_prior_sd=np.full(len(p.s0), 0.01), **given).s)


def test_short_reprs(p, r):
    with calamp.Calibrator(p.W, **MODEL) as c:
        c.absorb(p.Y[:, 0])
        shown = [repr(x) for x in (p, r, c.posterior(), calamp.dct([0, 1], 4))]
    assert all(len(s.splitlines()) == 1 and len(s) < 200 for s in shown), shown


def test_arrays_are_aligned(p, r):
    """numpy's vdot hands an array to BLAS as it lies in memory, and some BLAS crash where that is not aligned."""
    arrays = {k: v for k, v in vars(r).items() if isinstance(v, np.ndarray)}
    assert {"x", "s", "gain"} <= set(arrays) and all(v.flags.aligned for v in arrays.values())
    assert not any(v.flags.writeable for v in arrays.values())


def test_what_is_given_is_given_alone(p):
    """One keyword leaves the others learned."""
    free = calamp.solve(p.W, p.Y)
    for given in (dict(density=0.2), dict(noise_var=1e-6), dict(gain_range=(1 / 1.05, 1 / 0.95))):
        q = calamp.solve(p.W, p.Y, **given)
        scale = np.vdot(q.x, p.X0) / np.vdot(q.x, q.x)
        best = np.vdot(free.x, p.X0) / np.vdot(free.x, free.x)
        assert q.status == "converged" and np.linalg.norm(scale * q.x - p.X0) < 1.2 * np.linalg.norm(best * free.x - p.X0)


def test_sensor_derivatives(p):
    """Every sensor has a theta of its own."""
    rng = np.random.default_rng(41)
    m, n = p.W.shape
    d, theta = rng.normal(size=(m, n)) / np.sqrt(n), 0.02 * rng.normal(size=m)
    r = calamp.solve(p.W - theta[:, None] * d, p.Y, sensor_derivatives=d)
    assert r.status == "converged" and r.theta.shape == r.theta_sd.shape == (m, 1) and r.theta_spread.shape == (1,)
    assert np.mean(np.abs(r.theta[:, 0] - theta) < 1.96 * r.theta_sd[:, 0]) > 0.88
    with pytest.raises(ValueError, match="derivatives"):
        calamp.solve(p.W, p.Y, sensor_derivatives=d[1:])
    with calamp.Calibrator(p.W - theta[:, None] * d, s_range=(0.8, 1.2), sensor_derivatives=d) as c:
        for y in p.Y.T:
            c.absorb(y)
        assert c.posterior().theta.shape == c.posterior().theta_sd.shape == (m, 1)


def test_fit_matrix(p):
    """theta is where readings put it, and solve says before that W is not theirs."""
    d = np.random.default_rng(40).normal(size=(2, *p.W.shape)) / np.sqrt(p.W.shape[1])
    W = p.W - 0.03 * d[0] + 0.01 * d[1]
    with pytest.warns(calamp.CalampWarning, match="matrix-doubtful"):
        calamp.solve(W, p.Y, derivatives=d)
    f = calamp.fit_matrix(W, p.Y, derivatives=d)
    assert f.theta.shape == f.theta_sd.shape == (2,) and f.theta_cov.shape == (2, 2)
    assert np.all(np.abs(f.theta - [0.03, -0.01]) < 4 * f.theta_sd + 1e-4)
    with pytest.raises(ValueError, match="derivatives"):
        calamp.fit_matrix(W, p.Y, derivatives=d[:, 1:])


def test_blocks_of_a_stream():
    rng = np.random.default_rng(5)
    w = rng.normal(size=(120, 150)) / np.sqrt(150)
    s = rng.uniform(0.85, 1.15, 120)
    scene = rng.normal(size=150) * (rng.random(150) < 0.15)
    errors = []
    samples = []
    for _ in range(24):
        samples.append((w @ scene + 0.01 * rng.normal(size=120)) / s)
        scene = np.where(scene != 0, 0.97 * scene + 0.24 * rng.normal(size=150), 0)
    for block in (1, "auto"):
        with calamp.Calibrator(w, s_range=(0.8, 1.2), block=block) as c:
            for y in samples:
                c.absorb(y)
            found = c.posterior().s
        errors.append(np.std(found / s) / np.mean(found / s))
    assert errors[1] <= errors[0]
    with pytest.raises(ValueError, match="expected auto"):
        calamp.Calibrator(w, s_range=(0.8, 1.2), block="some")


def test_two_sensors_a_row(tmp_path):
    rng = np.random.default_rng(8)
    pairs = np.array([(i, j) for i in range(8) for j in range(i + 1, 8)])
    w = rng.normal(size=(28, 60)) / np.sqrt(60)
    x = rng.normal(size=(60, 30)) * (rng.random((60, 30)) < 0.06)
    s = rng.uniform(0.8, 1.2, 8)
    y = w @ x / (s[pairs[:, 0]] * s[pairs[:, 1]])[:, None] + 1e-4 * rng.normal(size=(28, 30))
    found = calamp.solve(w, y, sensors=pairs)
    ratio = found.arrays["s_sensor"] / s
    assert found.arrays["s_sensor"].shape == (8,) and np.std(ratio) < 0.01 * np.mean(ratio)
    np.savez(tmp_path / "B.npz", W=w, Y=y, sensors=pairs)  # where the problem file has them
    assert command("solve", tmp_path / "B.npz", "-o", tmp_path / "R.npz").returncode == 0
    np.testing.assert_array_equal(np.load(tmp_path / "R.npz")["s_sensor"], found.arrays["s_sensor"])
