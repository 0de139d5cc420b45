"""Antennas at one frequency whose gains are not known, amplitude and phase: found from a few sources. The data are simulated.

    python experiments/array/antennas.py [--seeds 3] [--on-grid] [--problem P.npz] [-o before-after.png]

A line of antennas, or a circle of them, hears the same four directions in 200 snapshots. W is the phase of a plane wave at each antenna, one
column a direction of a grid; sources lie anywhere between its points, unless they are said to be on it. calamp is given W and Y alone. Beside it are the sparse spectral method of Li,
Lee and Bresler, gains ignored, and sparse recovery where gains are known.
"""

import argparse
import itertools
import pathlib
import sys
import time
import warnings

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import pictures

import calamp

ANTENNAS, SNAPSHOTS, SOURCES, COLUMNS = 24, 200, 4, 72
NOISE = 0.1  # its size, relative to that of a reading
GRID = np.arange(COLUMNS) * 2 / COLUMNS - 1


class Line:
    """Antennas half a wavelength apart along a line. A direction is the sine of its angle; 1 and -1 are the same to the line."""

    place = np.arange(ANTENNAS) / 2  # wavelengths

    def waves(self, direction):
        return np.exp(2j * np.pi * np.outer(self.place, direction)) / np.sqrt(ANTENNAS)

    def degrees(self, direction):
        return np.degrees(np.arcsin(np.clip(direction, -1, 1)))

    def shift(self, turn):
        """By how much directions are shifted, where a slope of phases is in gains that are off by turn (M)."""
        shifts = np.arange(-1, 1, 1e-4)
        return shifts[np.argmax(np.abs(np.exp(-2j * np.pi * np.outer(shifts, self.place)) @ turn))]


class Circle:
    """A direction finder: antennas on a circle, three wavelengths across. A direction is an azimuth, of -1 to 1 for a full turn."""

    place = 1.5 * np.exp(2j * np.pi * np.arange(ANTENNAS) / ANTENNAS)

    def waves(self, direction):
        towards = np.exp(1j * np.pi * np.asarray(direction))
        return np.exp(2j * np.pi * np.outer(self.place.conj(), towards).real) / np.sqrt(ANTENNAS)

    def degrees(self, direction):
        return 180 * direction

    def shift(self, turn):
        return 0.0  # no phases turn a circle


def between(a, b):
    """The difference of directions, which close at ±1."""
    return (a - b + 1) % 2 - 1


def simulate(array, rng, on_grid):
    """Directions, at least two resolution cells apart, gains (M) and readings (M×P)."""
    normal = lambda *shape: (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / np.sqrt(2)
    while True:
        directions = rng.uniform(-0.9, 0.9, SOURCES)
        if on_grid:
            directions = rng.choice(GRID[np.abs(GRID) < 0.9], SOURCES)
        if np.abs(between(directions[:, None], directions) + 2 * np.eye(SOURCES)).min() > 4 / ANTENNAS:
            break
    heard = array.waves(directions) @ (np.sqrt(rng.uniform(0.5, 2, (SOURCES, 1))) * normal(SOURCES, SNAPSHOTS))
    gain = rng.uniform(0.7, 1.4, ANTENNAS) * np.exp(2j * np.pi * rng.random(ANTENNAS))
    return directions, gain, gain[:, None] * (heard + NOISE * np.sqrt(np.mean(np.abs(heard) ** 2)) * normal(ANTENNAS, SNAPSHOTS))


def spectral(W, Y, rounds=2000):
    """Gains and signals of Li, Lee and Bresler (IEEE Trans. Inf. Theory 65, 2019), for signals that are sparse together.

    They are the null vector of A(s, X) = sY - WX. Power iterations of βI - AᴴA find it, from s = 1; after each, all but the largest rows of X
    are set to zero. It is given how many: two for a source, since that lies between two columns.
    """
    Y = Y / np.sqrt(np.sum(np.abs(Y) ** 2) / len(Y))
    W = W / np.linalg.norm(W, 2)
    beta = 1 + np.max(np.sum(np.abs(Y) ** 2, axis=1))  # at least the square of the norm of A
    s, X = np.ones(len(Y), complex), np.zeros((W.shape[1], Y.shape[1]), complex)
    for _ in range(rounds):
        rest = s[:, None] * Y - W @ X
        X = X + W.conj().T @ rest / beta
        s = s - np.sum(Y.conj() * rest, axis=1) / beta
        X[np.argsort(np.sum(np.abs(X) ** 2, axis=1))[: -2 * SOURCES]] = 0
        size = np.linalg.norm(s) / np.sqrt(len(s))
        s, X = s / size, X / size
    return 1 / s, X


def informed(S, Y):
    """Gains where the columns S of the sources are known: the same null vector, by the smallest singular value alone, without signals."""
    across = np.eye(len(S)) - S @ np.linalg.pinv(S)
    return 1 / np.linalg.eigh((Y.conj() @ Y.T) * across)[1][:, 0]


def strongest(size):
    """Places of the highest local maxima; the last is a neighbour of the first."""
    highest = (size >= np.roll(size, 1)) & (size > np.roll(size, -1))
    return np.argsort(np.where(highest, size, -1))[-SOURCES:]


def placed(r):
    """Directions of calamp's answer: the strongest rows, and how far beside them their sources lie."""
    top = strongest(np.sqrt(np.sum(np.abs(r.x) ** 2, axis=1)))
    return GRID[top] + 2 / COLUMNS * r.arrays.get("column_shift", np.zeros(COLUMNS))[top]


def peaks(X):
    """Directions of sparse signals: the strongest rows, each moved towards its stronger neighbour by their amplitudes."""
    size = np.sqrt(np.sum(np.abs(X) ** 2, axis=1))
    top = strongest(size)
    up, down, own = np.roll(size, -1)[top], np.roll(size, 1)[top], np.maximum(size[top], 1e-300)
    return GRID[top] + 2 / COLUMNS * np.where(up > down, up / (up + own), -down / (down + own))


def music(array, Y):
    """Directions by MUSIC (Schmidt, 1986) of readings whose gains were corrected: no grid but that of the search."""
    noise = np.linalg.svd(Y, full_matrices=False)[0][:, SOURCES:]
    fine = np.arange(-1, 1, 2e-4)
    return fine[strongest(1 / np.sum(np.abs(noise.conj().T @ array.waves(fine)) ** 2, axis=0))]


def off(array, found, directions, shift):
    """Root mean square error of directions (degrees) in their best order."""
    move = min((between(np.array(order) + shift, directions) for order in itertools.permutations(found)), key=lambda m: np.sum(m**2))
    return np.sqrt(np.mean((array.degrees(directions + move) - array.degrees(directions)) ** 2))


def aligned(array, found, gain):
    """Gains without the factor that is common to all, and without the slope that shifts directions; and that shift."""
    shift = array.shift(found * gain.conj())
    found = found * (array.waves(-shift)[:, 0] * np.sqrt(ANTENNAS) if shift else 1)
    return found * np.vdot(found, gain) / np.vdot(found, found), shift


def intervals(array, r, gain):
    """The part of 95 % intervals of amplitudes and phases that hold, the common factor and the shift aside."""
    left = aligned(array, r.gain, gain)[0] / gain
    sd = np.array([(r.arrays["s_rel_hi"] - r.arrays["s_rel_lo"]) / np.abs(r.s), r.arrays["phase_rel_hi"] - r.arrays["phase_rel_lo"]]) / 4
    return np.mean(np.abs([np.log(np.abs(left)), np.angle(left)]) < 1.96 * sd)


def run(array, seed, on_grid, problem=None):
    """Prints a line, and returns three pictures of direction over time: raw, corrected by calamp, corrected by the true gains."""
    directions, gain, Y = simulate(array, np.random.default_rng(seed), on_grid)
    W = array.waves(GRID)
    if problem:
        np.savez(problem, W=W, Y=Y)
    began = time.time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calamp.CalampWarning)
        blind = calamp.solve(W, Y)
        took = time.time() - began
        known = calamp.solve(W, Y / gain[:, None], s_range=(0.999999, 1.000001), phase="known", noise_var="auto", density="auto", signal_var="auto", faulty="off", outliers="off")
    theirs, signals = spectral(W, Y)
    found = {"calamp": (blind.gain, blind.x), "spectral": (theirs, signals), "gains ignored": (np.ones(ANTENNAS), W.conj().T @ Y), "gains known": (gain, known.x)}
    print(f"{type(array).__name__.lower()} {seed}: {blind.status} in {took:.0f} s, {100 * intervals(array, blind, gain):.0f} % of intervals hold")
    for name, (g, X) in found.items():
        same, shift = aligned(array, g, gain)
        error = np.linalg.norm(same - gain) / np.linalg.norm(gain)
        where = placed({"calamp": blind, "gains known": known}[name]) if name in ("calamp", "gains known") else peaks(X)
        print(f"  {name}: gains off by {100 * error:.1f} %, directions {off(array, where, directions, shift):.2f}°, by MUSIC {off(array, music(array, Y / g[:, None]), directions, shift):.2f}°")
    nearest = np.argsort(np.abs(between(GRID[:, None], directions)), axis=0)
    for name, S in {"the sources' own columns": array.waves(directions), "nearest columns": W[:, nearest[0]], "both nearest columns": W[:, nearest[:2].ravel()]}.items():
        same, _ = aligned(array, informed(S, Y), gain)
        print(f"  spectral, given {name}: gains off by {100 * np.linalg.norm(same - gain) / np.linalg.norm(gain):.1f} %")
    fine = array.waves(np.arange(-1, 1, 2 / 216))
    beams = [np.abs(fine.conj().T @ (Y / g[:, None])) for g in (np.ones(ANTENNAS), aligned(array, blind.gain, gain)[0], gain)]
    return [1 + np.log10(np.maximum(b[:, :100].T / b.max(), 1e-9)) for b in beams]  # 20 dB from white to black


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--on-grid", action="store_true", help="sources at points of the grid")
    options.add_argument("--problem", help="W and Y of the circle with seed 1, for calamp solve")
    options.add_argument("-o", "--output", help="a PNG of the circle with seed 1: as read, with the gains that calamp found, with the true ones")
    args = options.parse_args()
    for seed in range(1, args.seeds + 1):
        for array in (Circle(), Line()):
            first = seed == 1 and isinstance(array, Circle)
            images = run(array, seed, args.on_grid, args.problem if first else None)
            if first and args.output:
                pictures.write(args.output, images, enlarge=2)


if __name__ == "__main__":
    main()
