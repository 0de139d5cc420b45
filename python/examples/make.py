"""Makes first.ipynb: cells are easier to read, and to compare, here."""

import json
import os

CELLS = [
    ("markdown", "# Unknown gains\n\n627 sensors see sparse signals, each through a gain of its own. We know how they see (`W`), not their gains."),
    ("code", "import numpy as np\nimport calamp\n\np = calamp.simulate(n=784, m=627, p=10, seed=1, s_range=(0.8, 1.25), noise_var=1e-4)\np.W.shape, p.Y.shape"),
    ("markdown", "Nothing but `W` and the readings is given: the model is learned. The picture shows the gains with their 95 % intervals, beside the common scale."),
    ("code", "r = calamp.solve(p.W, p.Y)\nr"),
    ("markdown", "The warning says that the readings do not determine the common scale of signals and gains. Give the range of s: then the intervals hold for the gains as they are."),
    ("code", "r = calamp.solve(p.W, p.Y, s_range=(0.8, 1.25))\ninside = np.mean((r.s_lo < p.s0) & (p.s0 < r.s_hi))\nerror = np.linalg.norm(r.x - p.X0) / np.linalg.norm(p.X0)\nassert r.status == 'converged' and error < 0.15 and inside > 0.8\nf'{error:.1%} error of the signals, {inside:.0%} of the true s in their intervals'"),
    ("markdown", "How many sensors does it take? State evolution says so beforehand."),
    ("code", "t = calamp.threshold(density=0.2, p=10, s_range=(0.8, 1.25))\nassert t['alpha_cal'] < 627 / 784\n{k: round(v, 3) for k, v in t.items() if k.startswith('alpha')}"),
    ("markdown", "The calibration, once found, corrects readings that come later."),
    ("code", "z = calamp.apply(r, p.Y)\nbefore, after = np.std(p.Y - p.W @ p.X0), np.std(z - p.W @ p.X0)\nassert after < before / 3\nf'readings were off by {before:.3f}, now by {after:.3f}'"),
]  # fmt: skip


def main():
    cells = []
    for k, (kind, text) in enumerate(CELLS):
        lines = text.splitlines(keepends=True)
        cell = {"cell_type": kind, "id": f"cell-{k}", "metadata": {}, "source": lines}
        cells.append({**cell, "execution_count": None, "outputs": []} if kind == "code" else cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "first.ipynb"), "w") as f:
        json.dump(book, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
