"""Rings in tomography: a gain for each detector, found from the sinogram, beside a stripe filter. The data are simulated.

    python experiments/tomography/tomography.py [--seeds 4] [-o before-after.png]

Detectors read parallel rays at all angles, and each has a gain of its own. W is the Radon transform of an image in Haar wavelets, and
sensors says which detector each row is read with. Nothing else is given, or that gains are within 0.7 and 1.4. Then the same image is read by
detectors of which two are dead, and by detectors with offsets.
"""

import argparse
import pathlib
import sys
import warnings

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import pictures

import calamp

SIDE, DETECTORS, ANGLES = 16, 24, 24


def strips(side, place, turn):
    """Strips of a pixel's width at these places, whose weights fall linearly from their middle, as the image is turned: rows angle by angle."""
    down, right = np.mgrid[:side, :side] - (side - 1) / 2
    along = np.cos(turn)[:, None, None] * right + np.sin(turn)[:, None, None] * down
    return np.maximum(0, 1 - np.abs(along[:, None] - place[:, None, None])).reshape(-1, side * side)


def radon(side, detectors, angles):
    """The strips of all detectors, and the detector of each row."""
    W = strips(side, np.arange(detectors) - (detectors - 1) / 2, np.pi * np.arange(angles) / angles)
    return W, np.tile(np.arange(detectors), angles)


def haar(n):
    """The orthonormal Haar transform of n values, a power of two."""
    if n == 1:
        return np.ones((1, 1))
    return np.vstack([np.kron(haar(n // 2), [1, 1]), np.kron(np.eye(n // 2), [1, -1])]) / np.sqrt(2)


def scene(side, rng):
    """Four rectangles of even brightness."""
    image = np.zeros((side, side))
    for _ in range(4):
        top, left = rng.integers(side // 5, 3 * side // 5, 2)
        height, width = rng.integers(2, side // 4, 2)
        image[top : top + height, left : left + width] += rng.uniform(0.3, 1)
    return image


def stripe_filter(Y, width=5):
    """The usual cure: each detector's mean over angles is made that of its neighbours, a running median (Rivers, 1998)."""
    mean = Y.mean(axis=0)
    around = np.pad(mean, width // 2, mode="edge")
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(around, width), axis=1)
    return Y * np.divide(smooth, mean, out=np.ones_like(mean), where=np.abs(mean) > 0.02 * np.abs(mean).max())


def aligned(found, truth):
    """found times the factor that brings it nearest to the truth: the common scale is a convention."""
    return found * np.vdot(found, truth) / max(np.vdot(found, found), 1e-300)


def run(seed):
    rng = np.random.default_rng(seed)
    rays, sensors = radon(SIDE, DETECTORS, ANGLES)
    wavelets = np.kron(haar(SIDE), haar(SIDE))
    W, image = rays @ wavelets.T, scene(SIDE, rng)
    s = np.exp(0.1 * rng.standard_normal(DETECTORS))
    clean = rays @ image.ravel()
    noisy = clean + 0.01 * np.sqrt(np.mean(clean**2)) * rng.standard_normal(len(clean))
    Y = noisy / s[sensors]

    known = dict(s_range=(0.999999, 1.000001), noise_var="auto", density="auto", signal_mean="auto", signal_var="auto", faulty="off", outliers="off")
    filtered = stripe_filter(Y.reshape(ANGLES, DETECTORS)).ravel()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calamp.CalampWarning)
        blind = calamp.solve(W, Y, sensors=sensors)
        given = calamp.solve(W, Y, sensors=sensors, gain_range=(0.7, 1.4))
        dead, offset = faulty(Y, sensors, rng)
        dead = calamp.solve(W, dead, sensors=sensors)
        offset = calamp.solve(W, offset, sensors=sensors, offset="auto")
        found = {
            "gains ignored": calamp.solve(W, Y, **known).x,
            "stripe filter": calamp.solve(W, filtered, **known).x,
            "calamp": blind.x,
            "range given": given.x,
            "two are dead": dead.x,
            "offsets": offset.x,
            "gains known": calamp.solve(W, noisy, **known).x,
        }
    images = {name: aligned(wavelets.T @ np.ravel(x), image.ravel()).reshape(SIDE, SIDE) for name, x in found.items()}
    errors = {name: np.linalg.norm(i - image) / np.linalg.norm(image) for name, i in images.items()}

    solved = {"calamp": blind, "range given": given, "two are dead": dead, "offsets": offset}
    return image, images, errors, {name: (r.status, inside(r, s), stated(r, image, errors[name])) for name, r in solved.items()}


def faulty(Y, sensors, rng):
    """The readings with two detectors that read nothing but noise, and with offsets of a tenth of their size."""
    size = np.sqrt(np.mean(Y**2))
    dead = np.where(np.isin(sensors, rng.choice(np.arange(8, 16), 2, replace=False)), 0.01 * size * rng.standard_normal(len(Y)), Y)
    return dead, Y + 0.1 * size * rng.standard_normal(DETECTORS)[sensors]


def stated(found, image, error):
    """The error of the image over that stated, both relative."""
    return error / np.sqrt(np.sum(found.x_var) / np.sum(np.square(found.x)))


def inside(found, s):
    """Of which detectors s is within its 95 % interval, at the best common scale."""
    relative, variance = found.s / s, found.s_var / found.s**2
    scale = np.sum(relative / variance) / np.sum(1 / variance)
    return np.abs(relative / scale - 1) < 1.96 * np.sqrt(variance)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=6)
    options.add_argument("-o", "--output", default=None, help="a PNG: truth, gains ignored, stripe filter, calamp, gains known")
    args = options.parse_args()
    held = {}
    for seed in range(1, args.seeds + 1):
        image, images, errors, runs = run(seed)
        print(f"{seed}: image errors", ", ".join(f"{name} {100 * e:.1f} %" for name, e in errors.items()))
        for name, (status, within, ratio) in runs.items():
            print(f"   {name}: {status}, s inside its 95 % intervals {100 * within.mean():.0f} %, the image's error over that stated {ratio:.1f}")
            if status == "converged":
                held.setdefault(name, []).append(within)
        if seed == 1 and args.output:
            pictures.write(args.output, [i / image.max() for name, i in [("truth", image), *images.items()] if name not in ("range given", "two are dead", "offsets")])
    for name, of in held.items():
        print(f"{name}: {len(of)} converged, s inside {100 * np.mean(of):.0f} %")


if __name__ == "__main__":
    main()
