"""Gains of pixels behind a fibre, found with its own transmission matrix, and with that of the fibre pressed otherwise.

    python experiments/fibre/gains.py article_MMF_disorder/Data [-o before-after.png]

fibre.py makes the problems, of measured matrices. Gains from 0.83 to 1.25 are injected.
"""

import argparse
import pathlib
import sys
import warnings

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import fibre
import pictures

import calamp


def aligned(found, truth):
    """found times the complex factor that brings it nearest to the truth: the common scale and phase are conventions."""
    return found * (np.vdot(found, truth) / np.vdot(found, found))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", help="Data of article_MMF_disorder")
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("-o", "--output", help="a PNG, of the first problem: |x|, and ten times its error with gains ignored, with the matrix of the neighbour, with its own")
    args = options.parse_args()
    warnings.simplefilter("ignore", calamp.CalampWarning)
    for position in (5.028, 5.04, 4.5):
        for seed in range(1, args.seeds + 1):
            W, own, _, X, s, Y, _, differs = fibre.problem(args.folder, position, seed)
            strips = [np.abs(X).T]
            for name, matrix, more in (
                ("gains ignored", own, dict(s_range=(0.999999, 1.000001), algorithm="amp", phase="known", faulty="off")),
                ("the neighbour's matrix", W, dict(s_range=(0.8, 1.2))),
                ("and matrix_error='auto'", W, dict(s_range=(0.8, 1.2), matrix_error="auto")),
                ("its own", own, dict(s_range=(0.8, 1.2))),
            ):
                r = calamp.solve(matrix, Y, **more)
                found, x = aligned(r.s, s), aligned(r.x, X)
                size = np.abs(aligned(r.s, s) / r.s).mean()
                inside = np.mean((s >= size * r.arrays["s_rel_lo"]) & (s <= size * r.arrays["s_rel_hi"])) if "s_rel_lo" in r.arrays else np.nan
                error = np.abs(x - X)
                print(
                    f"{position}, seed {seed}, W differs by {differs:.3f}, {name}: {r.status}; gains off by {100 * np.sqrt(np.mean(np.abs(found / s - 1) ** 2)):.2f} %, "
                    f"stated {100 * np.median(np.sqrt(r.s_var) / np.abs(r.s)):.2f} %, {100 * inside:.0f} % of |s| inside 95 %; x off by {np.linalg.norm(error) / np.linalg.norm(X):.4f}, "
                    f"squared error over variance {np.mean(error**2) / np.mean(r.x_var):.1f}; {', '.join(w.code for w in r.warnings)}"
                )
                if "matrix_error" not in more:
                    strips.append(10 * error.T)
            if args.output:
                gap = np.ones((1, len(X)))
                pictures.write(args.output, [np.vstack([row for s in strips for row in (s / np.abs(X).max(), gap)][:-1])], enlarge=8)
                args.output = None


if __name__ == "__main__":
    main()
