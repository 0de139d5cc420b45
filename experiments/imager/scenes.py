"""Gains of a real imager from whole scenes: a pattern's gain is shared by all blocks that it is displayed on (sensors).

    python experiments/imager/scenes.py [-o before-after.png]

A signal is a square of K×K neighbouring blocks, so that each pattern is K² rows of W with one gain, and the edges of blocks are within the
signal. Signals are cosines in 14 bands of frequency, whose variances are learned. It prints how gains from two scenes agree with those from
two others, how readings that were left out are predicted, and how gains are found that were injected. It takes numpy and some minutes.
"""

import argparse
import pathlib
import sys
import time
import warnings

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import pictures

import calamp

SIDE, SCENE, BANDS = 33, 8, 14  # pixels of a block, lit blocks of a scene, each way
FILE = np.load(pathlib.Path(__file__).with_name("arizona_imager_4_scenes.npz"))
PATTERNS = len(FILE["W"])


def bands(side):
    """The band of each cosine of side×side pixels, as calamp groups --dct2 makes them: the mean, and rings of equal width in log frequency."""
    down, right = np.mgrid[:side, :side]
    frequency = np.hypot(down, right)
    ring = 1 + np.floor((BANDS - 1) * np.log(np.maximum(frequency, 1)) / np.log(np.sqrt(2) * side))
    return np.where(frequency == 0, 0, ring).astype(int).ravel()


def squares(k):
    """W of k×k blocks (k²·109 × pixels, row by row), and the pattern of each row."""
    W, pixel = np.zeros((k, k, PATTERNS, k * SIDE, k * SIDE)), np.arange(SIDE**2)
    for down in range(k):
        for right in range(k):
            W[down, right][:, down * SIDE + pixel % SIDE, right * SIDE + pixel // SIDE] = FILE["W"]
    return W.reshape(k * k * PATTERNS, -1), np.tile(np.arange(PATTERNS), k * k)


def readings(scenes, k):
    """Y of the squares of scenes (from 0), one column a square: blocks are counted from the bottom up in the file."""
    columns = []
    for scene in scenes:
        lit = {(int(x), int(y)): 404 * scene + i for i, (x, y) in enumerate(zip(FILE["block_x"], FILE["block_y"]))}
        for top in range(0, SCENE, k):
            for left in range(0, SCENE, k):
                columns.append(np.concatenate([FILE["Y"][:, lit[23 + left + right, 15 - top - down]] for down in range(k) for right in range(k)]))
    return np.stack(columns, axis=1)


def solve(k, Y, s=None):
    """A run with gains unknown, or with the calibration s of the patterns known."""
    W, pattern = squares(k)
    model = dict(sensors=pattern, basis=f"dct2:{k * SIDE}x{k * SIDE}", groups=bands(k * SIDE), density=1, signal_mean=0, max_iter=1000)
    if s is not None:
        Y, model = s[pattern, None] * Y, dict(s_range=(0.999999, 1.000001), algorithm="amp", faulty="off", outliers="off", noise_var="auto", signal_var="auto", **model)
    began = time.time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calamp.CalampWarning)
        r = calamp.solve(W, Y, **model)
    print(f"    {r.status} in {time.time() - began:.0f} s")
    return r


def left_out(k, Y, absent, s):
    """Error of readings that were left out, relative to what the mean brightness of each block leaves of them."""
    W, pattern = squares(k)
    image = solve(k, np.where(absent, np.nan, Y), s).arrays["signal"]
    blocks = image.reshape(k, SIDE, k, SIDE, -1)
    flat = np.broadcast_to(blocks.mean(axis=(1, 3), keepdims=True), blocks.shape).reshape(image.shape)
    z = s[pattern, None] * Y
    return np.linalg.norm((W @ image - z)[absent]) / np.linalg.norm((W @ flat - z)[absent])


def picture(k, image):
    """The squares of a scene, put together."""
    across = SCENE // k
    return image.reshape(k * SIDE, k * SIDE, across, across).transpose(2, 0, 3, 1).reshape(SCENE * SIDE, SCENE * SIDE)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("-o", "--output", help="a PNG of the first scene behind injected gains: gains ignored, and as found")
    args = options.parse_args()
    for k in (1, 2):
        print(f"signals of {k}×{k} blocks")
        halves = [solve(k, readings(pair, k)) for pair in ((0, 1), (2, 3))]
        (first, second), sd = [r.gain / r.gain.mean() for r in halves], [np.sqrt(r.s_var) / r.s for r in halves]
        print(f"  gains of scenes 1, 2 and of 3, 4: correlation {np.corrcoef(first, second)[0, 1]:.3f}, spread {100 * np.std(first):.1f} % and {100 * np.std(second):.1f} %, differ by {100 * np.std(first - second):.1f} %, stated {100 * np.median(np.hypot(*sd)):.1f} %; {100 * np.mean(np.abs(first - second) < 1.96 * np.hypot(*sd)):.0f} % inside")

        Y, rng = readings([2], k), np.random.default_rng(3)
        absent = rng.random(Y.shape) < 0.1
        print(f"  codes: {[w.code for r in halves for w in r.warnings]}")
        for name, gain in (("ignored", np.ones(PATTERNS)), ("of scenes 1, 2", first)):
            print(f"  scene 3, readings left out, gains {name}: {left_out(k, Y, absent, 1 / gain):.3f}")

        injected = np.exp(np.random.default_rng(1).uniform(np.log(0.67), np.log(1.5), PATTERNS))
        Y = np.tile(injected, k * k)[:, None] * readings([0], k)
        r = solve(k, Y)
        ratio, own = r.gain / injected, r.gain / injected / second  # of scenes that this one is not among
        print(f"  scene 1, gains from 0.67 to 1.5 injected: off by {100 * np.std(ratio / ratio.mean()):.1f} %, without the imager's own {100 * np.std(own / own.mean()):.1f} %, stated {100 * np.median(np.sqrt(r.s_var) / r.s):.1f} %")
    if args.output:
        images = [picture(k, a.arrays["signal"]) for a in (solve(k, Y, np.ones(PATTERNS)), r)]
        low, high = np.quantile(images[1], [0.005, 0.995])
        pictures.write(args.output, [(i / i.mean() * images[1].mean() - low) / (high - low) for i in images], enlarge=2)


if __name__ == "__main__":
    main()
