"""Images through a trained decoder: its own and real sandals, from 100, 150 and 250 sensors with unknown gains.

    python experiments/decoder/decoder.py DECODER [-o images.png] [--csv images.csv] [--seed 1]

DECODER is the file of weights that README.md names, or a .npz with W1, b1, W2, b2 of a decoder of Fashion-MNIST (20 latents, 400 ReLUs, 784 sigmoids). The sandals are those of calamp demo. Ten images a problem, gains within a factor of 3, Δ = 1e-6; latents and slack are learned. CALAMP is the command.
"""

import argparse
import csv
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import pictures

IMAGES, RANGE, NOISE, SHOWN = 10, (3**-0.5, 3**0.5), 1e-6, 6
CALAMP = os.environ.get("CALAMP", "calamp")
COLUMNS = ["images", "prior", "sensors", "exit", "status", "warnings", "nmse", "pixels_inside", "s_inside", "slack", "iterations"]


# SHA-256 of the file of README.md, and where its arrays are (HDF5 keeps them as they are; W transposed).
KNOWN = "1028a1c730cae5a2f9b0abe80fafcd5039f018141f6b75bf3926f3ddd3566b4a"
ARRAYS = {"W1": (1337200, (20, 400)), "b1": (1333184, (400,)), "W2": (1371248, (400, 784)), "b2": (2625648, (784,))}


def weights(path):
    """W1, b1, W2, b2 of the decoder."""
    if path.endswith(".npz"):
        return dict(np.load(path))
    data = pathlib.Path(path).read_bytes()
    if hashlib.sha256(data).hexdigest() != KNOWN:
        sys.exit(f"{path}: SHA-256 is {hashlib.sha256(data).hexdigest()}, expected {KNOWN}")
    return {name: np.frombuffer(data, "<f4", np.prod(shape), at).reshape(shape).T for name, (at, shape) in ARRAYS.items()}


def calamp(*args):
    done = subprocess.run([CALAMP, *map(str, args), "--json"], capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(done.stderr)
    return done.returncode, json.loads(done.stdout)


def images(folder, decoder, rng):
    """Images that the decoder draws, and real sandals (784×10)."""
    hidden = np.maximum(0, decoder["W1"] @ rng.standard_normal((decoder["W1"].shape[1], IMAGES)) + decoder["b1"][:, None])
    drawn = 1 / (1 + np.exp(-decoder["W2"] @ hidden - decoder["b2"][:, None]))
    path = folder / "sandals.npz"
    calamp("simulate", "--signals", "sandals", "--p", IMAGES, "--m", 1, "-o", path)
    return {"drawn": drawn, "real": np.load(path)["X0"]}


def solved(folder, network, X, sensors, prior, seed):
    """The recovered images, and what is said of them; as they are with gains taken for one, too: the readings' smallest solution."""
    rng = np.random.default_rng(seed)
    N = len(X)
    W = rng.standard_normal((sensors, N)) / np.sqrt(N)
    s = rng.uniform(*RANGE, sensors)
    Y = (W @ X + np.sqrt(NOISE) * rng.standard_normal((sensors, X.shape[1]))) / s[:, None]
    problem, result = folder / "P.npz", folder / "R.npz"
    np.savez(problem, W=W, Y=Y)
    flags = ["--prior", f"network:{network}", "--slack", "auto"] if prior == "decoder" else ["--prior", "nonnegative"]
    code, said = calamp("solve", problem, *flags, "--s-range", ",".join(map(str, RANGE)), "--noise-var", NOISE, "-o", result)
    r = np.load(result)
    scale = np.sum(r["x"] * X) / np.sum(r["x"] ** 2)
    found, sd = scale * r["x"], scale * np.sqrt(r["x_var"])
    some = sd > 1e-6
    row = {
        "images": None, "prior": prior, "sensors": sensors, "exit": code, "status": said["status"], "warnings": " ".join(w["code"] for w in said.get("warnings") or []),
        "nmse": f"{np.sum((found - X) ** 2) / np.sum(X**2):.2g}", "pixels_inside": f"{np.mean(abs(found - X)[some] < 1.96 * sd[some]):.3f}",
        "s_inside": f"{np.mean((r['s_rel_lo'] <= s / scale) & (s / scale <= r['s_rel_hi'])):.3f}", "slack": f"{said['slack']:.2g}" if "slack" in said else "",
        "iterations": said["iterations"],
    }
    return row, found, np.linalg.lstsq(W, Y, rcond=None)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("decoder")
    parser.add_argument("-o", "--out", default="images.png")
    parser.add_argument("--csv", default="images.csv")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sensors", type=int, nargs="+", default=[100, 150, 250, 400])
    args = parser.parse_args()
    shown = {}
    with tempfile.TemporaryDirectory() as name, open(args.csv, "w", newline="") as file:
        folder = pathlib.Path(name)
        decoder = weights(args.decoder)
        network = folder / "N.npz"
        np.savez(network, **decoder | {"activation1": "relu", "activation2": "sigmoid"})
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        for kind, X in images(folder, decoder, np.random.default_rng(args.seed)).items():
            for sensors in args.sensors:
                for prior in ["decoder", "pixels"]:
                    row, found, raw = solved(folder, network, X, sensors, prior, args.seed)
                    row["images"] = kind
                    table.writerow(row)
                    file.flush()
                    print(*row.values(), flush=True)
                    shown[kind, sensors, prior] = found
                    shown[kind, sensors, "raw"] = raw
            shown[kind, "truth"] = X
    tiles = lambda X: [np.clip(x.reshape(28, 28), 0, 1) for x in X.T[:SHOWN]]
    at = 150 if 150 in args.sensors else args.sensors[0]
    rows = [X for kind in ["drawn", "real"] for X in (shown[kind, at, "raw"], shown[kind, at, "pixels"], shown[kind, at, "decoder"], shown[kind, "truth"])]
    columns = [np.vstack([np.pad(t, 1, constant_values=1) for t in column]) for column in zip(*map(tiles, rows))]
    pictures.write(args.out, columns, enlarge=3, gap=2)


if __name__ == "__main__":
    main()
