"""A real sinogram, of neutrons, whose detectors have offsets: the gain of a transmitted intensity is an offset of its logarithm.

    python experiments/tomography/sinogram.py sinogram_360_neutron_image.tif [-o sinogram.png]

The file is data/sinogram_360_neutron_image.tif of github.com/nghia-vo/sarepy (Apache-2.0); nothing is fetched, its SHA-256 is checked. Of 503 detectors and 459 angles every eighth detector about the object is taken, and
24 angles of half a turn. Offsets of 0.1 are added. There is no truth: images are compared with that of all detectors but two bad ones and their neighbours, at 115 angles.
"""

import argparse
import hashlib
import pathlib
import sys
import warnings

import numpy as np
from PIL import Image

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import pictures
from tomography import haar, strips

import calamp

SHA256 = "22f6b1efa88c32f7b346a76a7b8e72e96b530a9ae8a946c287d4ba08eb7b2377"
SIDE, PIXEL = 32, 10.5  # pixels of the image, and the width of one in detectors
TURN = 458  # rows of a whole turn


def attenuation(path):
    """-log(I / I0), with I0 of the detectors that see nothing but air; NaN where a detector reads nothing."""
    if hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest() != SHA256:
        raise SystemExit(f"{path}: expected a file of SHA-256 {SHA256}")
    read = np.array(Image.open(path), float)
    return -np.log(np.where(read > 0, read, np.nan) / np.median(np.c_[read[:, :60], read[:, 440:]]))


def axis(sinogram):
    """The place of the axis: half a turn later the object is mirrored there."""
    detectors = np.arange(sinogram.shape[1])
    mirrored = lambda c: np.interp(2 * c - detectors, detectors, sinogram[TURN // 2])
    return min(np.arange(230, 262, 0.25), key=lambda c: np.mean((sinogram[0] - mirrored(c))[100:400] ** 2))


def radon(detectors, rows, centre):
    """The strips of these detectors at the angles of these rows of the sinogram, about the axis."""
    return strips(SIDE, (detectors - centre) / PIXEL, 2 * np.pi * rows / TURN)


def ridge(W, y):
    """Least squares, with a hundredth of the mean square of a column beside it."""
    W, y = W[~np.isnan(y)], y[~np.isnan(y)]
    squares = W.T @ W
    return np.linalg.solve(squares + 0.01 * np.trace(squares) / len(squares) * np.eye(len(squares)), W.T @ y)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("sinogram")
    options.add_argument("-o", "--output", default=None, help="a PNG: all data, offsets ignored, offsets known, calamp")
    args = options.parse_args()
    sinogram = attenuation(args.sinogram)
    centre = axis(sinogram)

    good = np.setdiff1d(np.arange(74, 412), [313, 314, 315, 345, 346, 347])
    every = np.arange(0, TURN, 4)
    reference = ridge(radon(good, every, centre), sinogram[every][:, good].ravel())

    detectors, rows = np.arange(74, 412, 8), np.round(np.arange(24) * TURN / 48).astype(int)  # 314 and 346 are the bad ones
    rays, sensors = radon(detectors, rows, centre), np.tile(np.arange(len(detectors)), len(rows))
    offsets = 0.1 * np.random.default_rng(1).standard_normal(len(detectors))[sensors]
    Y = sinogram[rows][:, detectors].ravel() + offsets
    wavelets = np.kron(haar(SIDE), haar(SIDE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calamp.CalampWarning)
        found = calamp.solve(rays @ wavelets.T, Y, sensors=sensors, offset="auto", s_range=(0.999999, 1.000001))
    images = {"all data": reference, "offsets ignored": ridge(rays, Y), "offsets known": ridge(rays, Y - offsets), "calamp": wavelets.T @ np.ravel(found.x)}
    print(f"{found.status}; {len(Y)} readings, {np.isnan(Y).sum()} of them missing; warnings:", ", ".join(w.code for w in found.warnings))
    for name, image in images.items():
        print(f"{name}: differs by {100 * np.linalg.norm(image - reference) / np.linalg.norm(reference):.0f} %")
    print(f"stated: {100 * np.sqrt(np.sum(found.x_var)) / np.linalg.norm(reference):.0f} %")
    if args.output:
        pictures.write(args.output, [np.clip(i.reshape(SIDE, SIDE) / reference.max(), 0, 1) for i in images.values()], enlarge=5)


if __name__ == "__main__":
    main()
