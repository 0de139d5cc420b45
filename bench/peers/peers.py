"""Compares calamp with what else there is, on the same instances: error, success, time.

    go build -o /tmp/calamp ./cmd/calamp && OPENBLAS_NUM_THREADS=1 python3 bench/peers/peers.py /tmp/calamp

needs numpy, scipy and scikit-learn (Debian: python3-sklearn), and Octave for the method of that name. It prints the table of docs/results/peers.md. Sparse recovery
is given how many entries of each signal are not zero, which calamp is not, and every method's common scale is corrected.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, OrthogonalMatchingPursuit

NOISE = 1e-6
DENSITY = 0.1
SUCCESS = 1e-4  # relative mean square error; noise alone leaves 1e-6 to 5e-6


def omp(W, Y, counts):
    """Orthogonal matching pursuit, given the number of entries of each signal."""
    fit = lambda k: OrthogonalMatchingPursuit(n_nonzero_coefs=max(1, counts[k]), fit_intercept=False).fit(W, Y[:, k]).coef_
    return np.column_stack([fit(k) for k in range(Y.shape[1])])


def l1(W, Y, counts):
    """ℓ1 with the weight that suits noise of this variance, then least squares on the largest entries."""
    x = np.zeros((W.shape[1], Y.shape[1]))
    for k in range(Y.shape[1]):
        weight = np.sqrt(2 * NOISE * np.log(W.shape[1])) * np.linalg.norm(W, axis=0).mean() / W.shape[0]
        c = Lasso(alpha=max(weight, 1e-6), fit_intercept=False, max_iter=3000, tol=1e-6).fit(W, Y[:, k]).coef_
        support = np.argsort(-abs(c))[: max(1, counts[k])]
        x[support, k] = np.linalg.lstsq(W[:, support], Y[:, k], rcond=None)[0]
    return x


def alternating(recover, rounds=100):
    """Signals as if the gains were right, gains by least squares as if the signals were, and so on."""

    def run(W, Y, counts, s0):
        s = np.ones(len(Y))
        for _ in range(rounds):
            x = recover(W, s[:, None] * Y, counts)
            z = W @ x
            new = (Y * z).sum(1) / np.maximum((Y * Y).sum(1), 1e-300)
            new *= len(s) / new.sum() if new.sum() > 0 else 1
            moved, s = abs(new - s).max(), new
            if moved < 1e-9:
                break
        return x

    return run


def spectral(W, Y, counts, s0, rounds=2000):
    """The sparse null vector (s, X) of s∘y_k - W x_k = 0, by truncated power iterations (after Li, Lee and
    Bresler, 2017), from s = 1 and what pursuit finds with it."""
    m, n = W.shape
    p = Y.shape[1]
    scale = np.sqrt((Y * Y).sum(1).mean())
    Yn = Y / scale
    s, x = np.ones(m), omp(W, Yn, counts)
    bound = np.linalg.norm(W, 2) ** 2 + (Yn * Yn).sum(1).max()
    for _ in range(rounds):
        e = s[:, None] * Yn - W @ x
        ds, dx = (Yn * e).sum(1) / bound, W.T @ e / bound
        new_s, x = s - ds, x + dx
        for k in range(p):
            x[np.argsort(-abs(x[:, k]))[max(1, counts[k]):], k] = 0
        size = np.sqrt((new_s**2).sum() / m)
        moved = abs(new_s / size - s).max()
        s, x = new_s / size, x / size
        if moved < 1e-12:
            break
    return x * scale


def oracle(X):
    """Least squares on the entries that are not zero, which are given."""

    def recover(W, Y, counts):
        x = np.zeros((W.shape[1], Y.shape[1]))
        for k in range(Y.shape[1]):
            on = np.flatnonzero(X[:, k])
            x[on, k] = np.linalg.lstsq(W[:, on], Y[:, k], rcond=None)[0]
        return x

    return recover


def convex(W, Y, counts, s0):
    """The ℓ1 program of Gribonval, Chardon and Daudet (2012): the least Σ|x| with s∘y_k = W x_k and Σs = M."""
    (m, n), p = W.shape, Y.shape[1]
    gains = sparse.vstack([sparse.diags(Y[:, k]) for k in range(p)])
    signals = sparse.block_diag([W] * p)
    ones = sparse.csr_matrix(np.r_[np.ones(m), np.zeros(2 * n * p)])
    rows = sparse.vstack([sparse.hstack([gains, -signals, signals]), ones]).tocsr()
    cost, bounds = np.r_[np.zeros(m), np.ones(2 * n * p)], [(None, None)] * m + [(0, None)] * (2 * n * p)
    found = linprog(cost, A_eq=rows, b_eq=np.r_[np.zeros(m * p), m], bounds=bounds, method="highs")
    if found.x is None:
        return np.zeros((n, p))
    parts = found.x[m:].reshape(2, p, n)
    return (parts[0] - parts[1]).T


def octave(low, high):
    """cal-AMP as one would write it in MATLAB (bench/octave/calamp.m), with the model given."""
    script = pathlib.Path(__file__).resolve().parents[1] / "octave" / "calamp.m"

    def run(W, Y, counts, s0):
        with tempfile.TemporaryDirectory() as d:
            shape = [*W.shape, Y.shape[1], DENSITY, 1, NOISE, low, high, 1e-8, 0.3]
            for name, array in (("shape", shape), ("W", W), ("y", Y)):
                np.asarray(array, float).tofile(f"{d}/{name}.f64")
            subprocess.run(["octave-cli", str(script), d, "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return np.fromfile(f"{d}/x-found.f64").reshape(W.shape[1], Y.shape[1])

    return run


def calamp(command, *flags):
    def run(W, Y, counts, s0):
        with tempfile.TemporaryDirectory() as d:
            np.savez(f"{d}/P.npz", W=W, Y=Y)
            subprocess.run([command, "solve", f"{d}/P.npz", "-o", f"{d}/R.npz", "-q", "--threads", "1", *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            r = np.load(f"{d}/R.npz")
            run.inside = np.mean((s0 >= r["s_lo"]) & (s0 <= r["s_hi"]))
            return r["x"]

    return run


def error(x, truth):
    """Relative mean square error after the best common scale."""
    scale = (x * truth).sum() / max((x * x).sum(), 1e-300)
    return ((scale * x - truth) ** 2).sum() / (truth**2).sum()


def table(runs, cases):
    """A row for each method: how often it succeeded, and its median error, in each case; and its time."""
    print("| method | " + " | ".join(f"{1 - half:g} to {1 + half:g}, α = {alpha:g}" for alpha, half in cases) + " | s inside 95 % | seconds |")
    print("| --- " * (len(cases) + 3) + "|")
    for name in dict.fromkeys(r["method"] for r in runs):
        mine = [r for r in runs if r["method"] == name]
        cells = []
        for alpha, half in cases:
            errors = [r["error"] for r in mine if r["alpha"] == alpha and r["half"] == half]
            cells.append(f"{sum(e < SUCCESS for e in errors)} of {len(errors)}, {np.median(errors):.1e}")
        inside = [r["inside"] for r in mine if r["inside"] is not None]
        cells.append(f"{100 * np.mean(inside):.0f} %" if inside else "–")
        print(f"| {name} | " + " | ".join(cells) + f" | {np.median([r['cpu_s'] for r in mine]):.2g} |")


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", RuntimeWarning)
    a = argparse.ArgumentParser()
    a.add_argument("command")
    a.add_argument("--seeds", type=int, default=10)
    a.add_argument("--json", help="write every single run here")
    o = a.parse_args()
    n, p, runs = 100, 10, []
    cases = [(alpha, half) for half in (0.05, 0.5) for alpha in (0.4, 0.6, 0.8)]
    for alpha, half in cases:
        given = ["--density", str(DENSITY), "--s-range", f"{1 - half},{1 + half}", "--noise-var", str(NOISE)]
        truth = {}  # of the instance
        methods = {
            "calamp, model given": calamp(o.command, *given),
            "calamp, nothing given": calamp(o.command),
            "alternating, pursuit": alternating(omp),
            "alternating, ℓ1": alternating(l1, rounds=30),
            "alternating, entries known": lambda W, Y, counts, s0: alternating(oracle(truth["x"]))(W, Y, counts, s0),
            "convex ℓ1 program": convex,
            "sparse spectral": spectral,
            "gains ignored, pursuit": lambda W, Y, counts, s0: omp(W, Y, counts),
            "gains ignored, ℓ1": lambda W, Y, counts, s0: l1(W, Y, counts),
            "gains known, pursuit": lambda W, Y, counts, s0: omp(W, s0[:, None] * Y, counts),
            "gains known, ℓ1": lambda W, Y, counts, s0: l1(W, s0[:, None] * Y, counts),
        }
        if shutil.which("octave-cli"):
            methods["cal-AMP in Octave, model given"] = octave(1 - half, 1 + half)
        for name, method in methods.items():
            errors, times = [], []
            for seed in range(1, o.seeds + 1):
                rng = np.random.default_rng(seed)
                m = round(alpha * n)
                W = rng.standard_normal((m, n)) / np.sqrt(n)
                x = rng.standard_normal((n, p)) * (rng.random((n, p)) < DENSITY)
                s = rng.uniform(1 - half, 1 + half, m)
                Y = (W @ x + np.sqrt(NOISE) * rng.standard_normal((m, p))) / s[:, None]
                truth["x"] = x
                start = time.process_time() + os.times().children_user + os.times().children_system
                found = method(W, Y, (x != 0).sum(0), s)
                times.append(time.process_time() + os.times().children_user + os.times().children_system - start)
                errors.append(error(found, x))
                runs.append({"alpha": alpha, "half": half, "method": name, "seed": seed, "error": errors[-1], "cpu_s": times[-1], "inside": getattr(method, "inside", None)})
            print(f"gains {1 - half:g} to {1 + half:g}, α = {alpha:g}, {name}: {np.median(errors):.1e}", file=sys.stderr)
    table(runs, cases)
    if o.json:
        with open(o.json, "w") as f:
            json.dump(runs, f, indent=0)


if __name__ == "__main__":
    main()
