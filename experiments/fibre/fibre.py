"""A problem of a multimode fibre that is pressed: python3 fibre.py FOLDER POSITION SEED writes P.npz, D.npy and own.npy.

FOLDER has the files TM_modes_*.npz of github.com/wavefrontshaping/article_MMF_disorder (Data, MIT licence, 110 modes to 110 modes):
transmission matrices measured one after the other while a fibre was pressed from the side, by a stage at POSITION in mm. Signals are a few
points of light among 110 at the input, sensors are 165 pixels of a camera, each a random combination of output modes, with unknown
gains. Readings are those of the matrix at POSITION; the matrix of P.npz is that at 5.02. D.npy (3×165×110) are the directions in which the
six matrices about it differ from it, the largest first. own.npy is the matrix at POSITION. Nothing is fetched; the files' SHA-256 are checked.
"""

import glob
import hashlib
import os
import sys

import numpy as np

REST, ABOUT = 5.02, (5.0, 5.004, 5.008, 5.012, 5.016, 5.024)
SHA256 = "fba45b08a15e4461dffbc9874cc955870d4ef2772865c8ceb6dd0ea7ef757f43"
MODES, PIXELS, SNAPSHOTS, DENSITY, NOISE = 110, 165, 8, 0.15, 1e-3


def measured(folder):
    """All matrices by position."""
    paths = sorted(glob.glob(os.path.join(folder, "TM_modes_*.npz")))
    total = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as f:
            total.update(hashlib.sha256(f.read()).digest())
    if total.hexdigest() != SHA256:
        raise SystemExit(f"{folder}: {len(paths)} files TM_modes_*.npz, of SHA-256 {total.hexdigest()}, expected the 52 of {SHA256}")
    return {float(os.path.basename(path)[9:-4]): np.load(path)["TM_corr_modes"] for path in paths}


def aligned(a, b):
    """b with the phase and the size of a: an interferometer tells neither."""
    v = np.vdot(b, a)
    return b * (v / abs(v)) * np.linalg.norm(a) / np.linalg.norm(b)


def normal(rng, *shape):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / np.sqrt(2)


def problem(folder, position, seed):
    """The matrix of the rest position and that of another, three directions between them, signals, gains and readings at the position, and how well the directions fit."""
    all_of_them, rng = measured(folder), np.random.default_rng(seed)
    given = all_of_them[REST] * np.sqrt(MODES) / np.linalg.norm(all_of_them[REST])
    at = {x: aligned(given, t) for x, t in all_of_them.items()}
    points, _ = np.linalg.qr(normal(rng, MODES, MODES))
    camera = normal(rng, PIXELS, MODES) / np.sqrt(MODES)
    differences = np.array([(at[x] - given).ravel() for x in ABOUT])
    _, _, directions = np.linalg.svd(np.hstack([differences.real, differences.imag]), full_matrices=False)
    half = given.size
    D = [np.linalg.norm(given) * (v[:half] + 1j * v[half:]).reshape(given.shape) for v in directions[:3]]
    seen = lambda t: camera @ t @ points
    X = normal(rng, MODES, SNAPSHOTS) * (rng.random((MODES, SNAPSHOTS)) < DENSITY)
    s = rng.uniform(0.8, 1.2, PIXELS)
    Y = (seen(at[position]) @ X + NOISE * normal(rng, PIXELS, SNAPSHOTS)) / s[:, None]
    step = (at[position] - given).ravel()
    theta = directions[:3] @ np.hstack([step.real, step.imag]) / np.linalg.norm(given)
    differs = np.linalg.norm(step) / np.linalg.norm(given)
    return seen(given), seen(at[position]), np.array([seen(d) for d in D]), X, s, Y, theta, differs


def main():
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    W, own, D, X, s, Y, theta, differs = problem(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
    np.savez("P.npz", W=W, Y=Y, x0=X, s0=s)
    np.save("D.npy", D)
    np.save("own.npy", own)
    print("nearest theta", " ".join(f"{v:.4f}" for v in theta), "leaves", f"{np.sqrt(differs**2 - theta @ theta):.4f}")
    print(f"the matrix at {sys.argv[2]} differs from that at {REST:g} by {differs:.4f} of its size")


if __name__ == "__main__":
    main()
