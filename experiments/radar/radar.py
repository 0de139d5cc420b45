"""Autofocus of a radar as blind calibration: real pulses, phases injected, found again, and the image before and after.

    python experiments/radar/radar.py gotcha_pass1_az001_HH.mat [-o before-after.png]

Of one degree of circular synthetic-aperture radar, the strongest range bins are signals, pulses are sensors, and W is the phase of an echo
from each cross-range position by geometry. Each pulse gets a random phase, which is then found blindly, twice: by every other range bin and
by the rest. Where the two answers differ by more than their error bars say, or a run is not to be trusted, it exits with code 3. It takes
numpy and scipy.
"""

import argparse
import hashlib
import pathlib
import sys
import time
import warnings

import numpy as np
from scipy.io import loadmat

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import pictures

import calamp

# SHA-256 of the files of README.md: one degree of pass 1, HH, each.
KNOWN = {
    "gotcha_pass1_az001_HH.mat": "976b8299135af619147e013a4777437bc97cd74be3a570a8a1e7dc06c7c2b3b1",
    "gotcha_pass1_az002_HH.mat": "da9ca5a28761585c86769fb49582807a09ef6974a76f6ae17d979d2fa99e4edc",
}

LIGHT = 299792458.0  # m/s


def load(path):
    """Pulses (frequency × pulse), frequencies, unit vectors to the antenna, azimuths."""
    digest = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    if KNOWN.get(pathlib.Path(path).name, digest) != digest:
        sys.exit(f"{path}: SHA-256 is {digest}, expected {KNOWN[pathlib.Path(path).name]}")
    data = loadmat(path)["data"][0, 0]
    at = np.stack([data[name].ravel() for name in "xyz"], axis=1)
    return data["fp"], data["freq"].ravel(), at / np.linalg.norm(at, axis=1, keepdims=True), np.deg2rad(data["th"].ravel())


def cross_range(frequencies, look, azimuth):
    """W: pulses × positions across the line of sight, a resolution cell apart, over the whole width that pulses tell apart.

    What lies beyond has the phases of a position within, so no echo is outside of the columns of W.
    """
    middle = azimuth.mean()
    u = look @ [-np.sin(middle), np.cos(middle), 0]
    u -= u.mean()
    wavelength = LIGHT / frequencies.mean()
    cell = wavelength / 2 / np.ptp(u)
    positions = cell * (np.arange(len(u) - 1) - (len(u) - 1) / 2)
    return np.exp(4j * np.pi / wavelength * np.outer(u, positions)) / np.sqrt(len(positions))


def remaining(found, injected):
    """What is left of the phases without a constant and a slope, which turn and shift the image (radians)."""
    turn = found * injected.conj()
    n = 1 << 14
    slope = np.argmax(np.abs(np.fft.fft(turn, n)))
    turn *= np.exp(-2j * np.pi * slope / n * np.arange(len(turn)))
    return np.angle(turn * np.exp(-1j * np.angle(turn.sum())))


def rms(values):
    return np.sqrt(np.mean(values**2))


def solve(W, Y):
    """Unit phases of pulses, their standard deviations, status, reason and seconds of a run on these range bins."""
    began = time.time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calamp.CalampWarning)
        r = calamp.solve(W, Y / np.sqrt(np.mean(np.abs(Y) ** 2)), phase="free")
    # A pulse that is called broken has a standard deviation without bound; of a phase it is π/√3 at most.
    sd = np.sqrt(r.s_var / 2) / np.maximum(np.abs(r.s), np.finfo(float).tiny)
    return np.exp(1j * np.angle(r.gain)), np.minimum(sd, np.pi / np.sqrt(3)), r.status, r.reason, time.time() - began


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file")
    options.add_argument("--bins", type=int, default=48, help="range bins that are signals, half of them in each run (48)")
    options.add_argument("--seed", type=int, default=1, help="of the injected phases")
    options.add_argument("-o", "--output", help="a PNG: as received, with the injected phases, with those found taken off")
    args = options.parse_args()

    pulses, frequencies, look, azimuth = load(args.file)
    profile = np.fft.ifft(pulses, axis=0)  # range bins × pulses
    strongest = np.argsort(np.mean(np.abs(profile) ** 2, axis=1))[::-1][: args.bins]
    W = cross_range(frequencies, look, azimuth)
    injected = np.exp(2j * np.pi * np.random.default_rng(args.seed).random(pulses.shape[1]))
    halves = [solve(W, profile[strongest[h::2]].T * injected[:, None]) for h in (0, 1)]
    for phases, sd, status, reason, seconds in halves:
        off = rms(remaining(phases, injected))
        print(f"{status} in {seconds:.0f} s: phases are off by {off:.3f} rad (root mean square), stated {np.median(sd):.3f}; {reason}")

    (first, sd1, *_), (second, sd2, *_) = halves
    apart, stated = remaining(second, first), np.sqrt(sd1**2 + sd2**2)
    # The mean of both, and half of what they are apart as its standard deviation, or what is stated where that is more.
    mean = first * np.exp(0.5j * apart)
    sd = np.maximum(stated, rms(apart)) / 2
    left = remaining(mean, injected)
    print(f"the two answers are {rms(apart):.3f} rad apart, stated {np.median(stated):.3f}")
    print(f"coherence {np.abs(np.mean(np.exp(1j * left))):.3f}, without correction {np.abs(np.mean(injected)):.3f}")
    print(f"phases are off by {rms(left):.3f} rad, sd {np.median(sd):.3f}; {100 * np.mean(np.abs(left) < 1.96 * sd):.0f} % are within 95 % intervals")

    def image(phases):
        return np.abs(np.fft.fftshift(profile, axes=0) * phases @ W.conj())

    images = [image(1), image(injected), image(injected / mean)]
    for name, shown in zip(("as received", "phases injected", "calamp"), images):
        print(f"contrast (sd ÷ mean of the intensity), {name}: {np.std(shown**2) / np.mean(shown**2):.1f}")
    if args.output:
        # 40 dB below the brightest point is black; three range bins in one row.
        brightest = images[0].max()
        pictures.write(args.output, [1 + np.log10(np.maximum(i[: len(i) // 3 * 3].reshape(-1, 3, i.shape[1]).max(axis=1) / brightest, 1e-9)) / 2 for i in images])

    # A mean square of M phases varies by √(2/M) of itself, so its root by 1/√(2M); three of these are the limit.
    if any(status != "converged" for _, _, status, *_ in halves) or rms(apart / stated) > 1 + 3 / np.sqrt(2 * len(apart)):
        print("not to be trusted: a run did not converge, or the two answers differ by more than they state")
        sys.exit(3)


if __name__ == "__main__":
    main()
