"""Variational inference with NIFTy beside calamp, on its own ground, gains that are smooth over the sensors, and on ours, independent ones.

    python3 bench/peers/smooth.py /tmp/calamp FOLDER [SEEDS]

FOLDER has NIFTy (github.com/NIFTy-PPL/NIFTy, GPL-3.0-or-later), which is not here: pip install --no-deps --target FOLDER a clone of it. It takes numpy and scipy; without ducc0
the FFTs are SciPy's. Entries of the signals are a normal number times a log-normal one, which is as near as a smooth density comes to sparse ones; log gains are a
correlated field over the sensors, or independent. Noise, and how widely gains are spread, are given to NIFTy, and nothing to calamp.
"""

import importlib.util
import itertools
import os
import subprocess
import sys
import tempfile
import types

import numpy as np

M, N, P, NOISE = 80, 100, 10, 1e-4
ROUNDS, SAMPLES, SPREAD = 15, 4, 0.2


def problem(smooth, seed):
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((M, N)) / np.sqrt(N)
    X = rng.standard_normal((N, P)) * (rng.random((N, P)) < 0.1)
    gain = np.exp(SPREAD * np.sin(4 * np.pi * np.arange(M) / M)) if smooth else rng.uniform(0.67, 1.5, M)
    return W, X, gain, gain[:, None] * (W @ X) + np.sqrt(NOISE) * rng.standard_normal((M, P))


def without_ducc0():
    """NIFTy 9 imports ducc0 for spheres, which are not used here. Nothing but the number of threads is asked of it."""
    if "ducc0" not in sys.modules and importlib.util.find_spec("ducc0") is None:
        absent = sys.modules["ducc0"] = types.ModuleType("ducc0")
        absent.misc = types.SimpleNamespace(resize_thread_pool=lambda threads: None)


def nifty(W, Y, smooth):
    """Means of signals and gains, and standard deviations of log gains."""
    without_ducc0()
    import nifty.cl as ift

    class Linear(ift.LinearOperator):
        """A linear map with its adjoint, of arrays."""

        def __init__(self, domain, target, times, adjoint):
            self._domain, self._target = ift.makeDomain(domain), ift.makeDomain(target)
            self._capability, self._maps = self.TIMES | self.ADJOINT_TIMES, {self.TIMES: times, self.ADJOINT_TIMES: adjoint}

        def apply(self, x, mode):
            self._check_input(x, mode)
            return ift.makeField(self._tgt(mode), self._maps[mode](x.asnumpy()))

    ift.random.push_sseq_from_seed(1)
    signals, readings = ift.UnstructuredDomain((N, P)), ift.UnstructuredDomain((M, P))
    sizes = ift.ScalingOperator(ift.makeDomain(signals), 2.0) @ ift.FieldAdapter(signals, "size")
    x = ift.FieldAdapter(signals, "x") * sizes.exp()
    if smooth:
        sensors = ift.RGSpace(M)
        log = ift.SimpleCorrelatedField(sensors, 0.0, (1e-3, 1e-4), (SPREAD, SPREAD / 2), None, None, (-4, 1))
    else:
        sensors = ift.UnstructuredDomain(M)
        log = ift.ScalingOperator(ift.makeDomain(sensors), SPREAD) @ ift.FieldAdapter(sensors, "log gain")
    mixed = Linear(signals, readings, lambda v: W @ v, lambda v: W.T @ v) @ x
    gains = Linear(sensors, readings, lambda v: np.repeat(v.reshape(-1, 1), P, 1), lambda v: v.sum(1)) @ log.exp()
    likelihood = ift.GaussianEnergy(ift.makeField(readings, Y), ift.ScalingOperator(ift.makeDomain(readings), 1 / NOISE, float)) @ (mixed * gains)
    newton = ift.NewtonCG(ift.AbsDeltaEnergyController(0.1, iteration_limit=8, convergence_level=2))
    samples = ift.optimize_kl(likelihood, ROUNDS, SAMPLES, newton, ift.AbsDeltaEnergyController(0.05, iteration_limit=60, convergence_level=2), output_directory=None)
    (mean, _), (level, variance) = samples.sample_stat(x), samples.sample_stat(log)
    return mean.asnumpy(), np.exp(level.asnumpy()), np.sqrt(variance.asnumpy())


def calamp_by(command):
    def calamp(W, Y, smooth):
        with tempfile.TemporaryDirectory() as d:
            np.savez(f"{d}/P.npz", W=W, Y=Y)
            subprocess.run([command, "solve", f"{d}/P.npz", "-o", f"{d}/R.npz", "-q", "--threads", "1", *(["--gain-smooth", "index"] if smooth else [])], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            r = np.load(f"{d}/R.npz")
            return r["x"], r["gain"], np.sqrt(r["s_var"]) / r["s"]

    return calamp


def main():
    command, folder, *seeds = sys.argv[1:]
    sys.path.append(folder)
    for smooth, seed in itertools.product((True, False), range(1, int((seeds or [1])[0]) + 1)):
        W, X, gain, Y = problem(smooth, seed)
        for name, run in (("calamp", calamp_by(command)), ("NIFTy", nifty)):
            began = sum(os.times()[:4])
            x, found, sd = run(W, Y, smooth)
            scale = np.vdot(x, X) / np.vdot(x, x)
            off = np.log(found / gain) - np.median(np.log(found / gain))
            print(
                f"{'smooth' if smooth else 'independent'} gains, seed {seed}, {name}: x off by {np.sum((scale * x - X) ** 2) / np.sum(X**2):.1e} (mean square), "
                f"gains by {np.std(off):.4f}, {100 * np.mean(np.abs(off) < 1.96 * sd):.0f} % of gains inside 95 %, {sum(os.times()[:4]) - began:.1f} s of the processor",
                flush=True,
            )


if __name__ == "__main__":
    main()
