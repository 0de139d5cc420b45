"""Autofocus of a radar as blind calibration: real pulses, phases injected, found again, and the image before and after.

    python experiments/radar/radar.py data_3dsar_pass1_az001_HH.mat [more degrees] [-o before-after.png]

Of a degree or more of circular synthetic-aperture radar, the strongest range bins of sub-bands are signals, pulses are sensors, and W is the
phase of an echo from each cross-range position by geometry. Each pulse gets a random phase, which is then found blindly, twice: by every other
sub-band and by the rest. Where the two answers differ by more than their error bars say, focus aside, it exits with code 3. It takes numpy and scipy.
"""

import argparse
import concurrent.futures
import hashlib
import pathlib
import sys
import time
import warnings

import numpy as np
from scipy.fft import dct, idct
from scipy.io import loadmat

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import pictures

import calamp

# SHA-256 of the files of README.md: one degree of pass 1, HH, each.
KNOWN = {
    "data_3dsar_pass1_az001_HH.mat": "976b8299135af619147e013a4777437bc97cd74be3a570a8a1e7dc06c7c2b3b1",
    "data_3dsar_pass1_az002_HH.mat": "da9ca5a28761585c86769fb49582807a09ef6974a76f6ae17d979d2fa99e4edc",
    "data_3dsar_pass1_az003_HH.mat": "875aab9ba687d0e3b13921651aa76d6967581d00f55c7430cd091465816203bc",
    "data_3dsar_pass1_az004_HH.mat": "893683af22e5d6fc739d6155661e70737bbfc7bf22d6529db215e17dee13f2dd",
}

LIGHT = 299792458.0  # m/s
SUB_BANDS = 8  # for each degree: an echo at 75 m moves by half of a bin
BEND = 0.5  # rad, what phases of the middle of a bin and of its end may differ by: with 0.9 four degrees were off by 0.14 to 0.16 rad, with 0.5 by 0.10
FOCUS = 6  # for each degree: cosines along the pulses that objects hide; the first two are the constant and, nearly, the slope


def load(paths):
    """Pulses (frequency × pulse), frequencies, unit vectors to the antenna, azimuths, and the publisher's own correction as a factor."""
    pulses, looks, azimuths, corrections = [], [], [], []
    for path in map(pathlib.Path, paths):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if KNOWN.get(path.name, digest) != digest:
            sys.exit(f"{path}: SHA-256 is {digest}, expected {KNOWN[path.name]}")
        data = loadmat(path)["data"][0, 0]
        frequencies, af = data["freq"].ravel(), data["af"][0, 0]
        pulses.append(data["fp"])
        looks.append(np.stack([data[name].ravel() for name in "xyz"], axis=1))
        azimuths.append(np.deg2rad(data["th"].ravel()))
        corrections.append(np.exp(1j * (af["ph_correct"] - 4 * np.pi / LIGHT * np.outer(frequencies, af["r_correct"]))))
    looks = np.concatenate(looks)
    return np.hstack(pulses), frequencies, looks / np.linalg.norm(looks, axis=1, keepdims=True), np.concatenate(azimuths), np.hstack(corrections)


def cross_range(frequencies, look, azimuth):
    """W: pulses × positions across the line of sight, over the whole width that pulses tell apart, two for each resolution cell.

    What lies beyond has the phases of a position within, so no echo is outside of the columns of W, or further than a quarter of a cell from one.
    """
    middle = azimuth.mean()
    u = look @ [-np.sin(middle), np.cos(middle), 0]
    u -= u.mean()
    wavelength, count = LIGHT / frequencies.mean(), 2 * (len(u) - 1)
    cell = wavelength / 2 / np.ptp(u)
    positions = cell / 2 * (np.arange(count) - count / 2)
    return np.exp(4j * np.pi / wavelength * np.outer(u, positions)) / np.sqrt(count)


def parts(frequencies, look, azimuth, degrees):
    """Into how many parts the band is cut: so many that echoes stay in their bins, and so few that bins are short enough for the curvature of their middle to be that of their ends."""
    v = look @ [np.cos(azimuth.mean()), np.sin(azimuth.mean()), 0]
    shortest = LIGHT / (2 * np.ptp(frequencies) * v.mean())
    bend = 4 * np.pi / LIGHT * frequencies.mean() * np.ptp(v) * shortest / 2
    return min(SUB_BANDS * degrees, 2 * round(BEND / bend / 2))


def echoes(pulses, frequencies, look, azimuth, parts, bins):
    """The strongest range bins (pulses × bins) of so many parts of the band: of the parts with even numbers, and of those with odd ones.

    An echo x across the line of sight moves by xΔu in range while the antenna turns by Δu: by 1.3 m, or four range bins of the whole band, at 75 m
    in a degree. A part of the band has longer bins, 2.7 m for a degree. All parts have one W, whose positions are in wavelengths of the part. An echo
    at range r from the middle of the scene has the phase of r times the direction cosine v along the line of sight, which is not the same in all
    pulses: this curvature is known for the middle of each bin, and is taken off. That is a W for each bin.
    """
    length = len(pulses) // parts
    v = look @ [np.cos(azimuth.mean()), np.sin(azimuth.mean()), 0]
    ranges = -np.fft.fftfreq(length, 1 / length) * LIGHT / (2 * length * (frequencies[1] - frequencies[0]) * v.mean())
    profiles = []
    for part, f in zip(np.split(pulses[: parts * length], parts), np.split(frequencies[: parts * length], parts)):
        curvature = 4j * np.pi / LIGHT * f.mean() * np.outer(ranges, v - v.mean())
        profiles.append(np.fft.ifft(part, axis=0) * np.exp(-curvature))
    profile, part = np.concatenate(profiles), np.repeat(np.arange(parts), length)
    power = np.mean(np.abs(profile) ** 2, axis=1)
    return [profile[np.argsort(np.where(part % 2 == h, power, 0))[::-1][: bins // 2]].T for h in (0, 1)]


def remaining(found, injected):
    """What is left of the phases without a constant and a slope, which turn and shift the image (radians)."""
    turn = found * injected.conj()
    n = 1 << 14
    slope = np.argmax(np.abs(np.fft.fft(turn, n)))
    turn *= np.exp(-2j * np.pi * slope / n * np.arange(len(turn)))
    return np.angle(turn * np.exp(-1j * np.angle(turn.sum())))


def smooth(phases, degrees):
    """The focus: a parabola along the pulses, a cubic, and what is as smooth.

    Echoes of an object some resolution cells wide are as sparse with a phase that bends little along the pulses, since that spreads an echo over its neighbours: the cosine
    k by k/2 cells. Objects of three cells in a degree have as many more in more degrees. Entries that are independent a priori know nothing of objects, so that error bars leave this out (objects.py).
    """
    waves = dct(phases, norm="ortho")
    kept = np.zeros_like(waves)
    kept[2 : FOCUS * degrees] = waves[2 : FOCUS * degrees]
    return idct(kept, norm="ortho")


def rms(values):
    return np.sqrt(np.mean(values**2))


def solve(W, Y):
    """Unit phases of pulses, their standard deviations, status and reason of a run on these range bins."""
    r = calamp.solve(W, Y / np.sqrt(np.mean(np.abs(Y) ** 2)), phase="free", threads=1)
    # Half of a 95 % interval is 1.96 standard deviations. Amplitudes are known far better than phases, so that half of s_var would be too little.
    sd = (r.arrays["phase_rel_hi"] - r.arrays["phase_rel_lo"]) / 2 / 1.96
    return np.exp(1j * np.angle(r.gain)), sd, r.status, r.reason


def find(W, signals, injected, degrees):
    """Phases found by both halves of the signals, their standard deviation, and whether the two answers agree.

    The halves share no reading, so phases in which they agree are found, whatever entries do: single ones may change places with their neighbours for ever, and a run does not converge.
    """
    with concurrent.futures.ThreadPoolExecutor() as side_by_side:
        halves = list(side_by_side.map(lambda Y: solve(W, Y * injected[:, None]), signals))
    for phases, sd, status, reason in halves:
        print(f"{status}: phases are off by {rms(remaining(phases, injected)):.3f} rad (root mean square), stated {np.median(sd):.3f}; {reason}")
    (first, sd1, *_), (second, sd2, *_) = halves
    apart, stated = remaining(second, first), np.sqrt(sd1**2 + sd2**2)
    focus = smooth(apart, degrees)
    rest = apart - focus
    print(f"the two answers are {rms(apart):.3f} rad apart, of which focus {rms(focus):.3f}, the rest {rms(rest):.3f}, stated {np.median(stated):.3f}; {100 * np.mean(np.abs(apart) < 1.96 * stated):.0f} % are within 95 % intervals")
    # A mean square of M phases varies by √(2/M) of itself, so its root by 1/√(2M); three of these are the limit.
    agree = rms(rest / stated) < 1 + 3 / np.sqrt(2 * len(apart)) and all(status != "diverged" for _, _, status, _ in halves)
    # The mean of both, and half of what they are apart as its standard deviation, or what is stated where that is more; focus comes to it.
    return first * np.exp(0.5j * apart), np.hypot(np.maximum(stated, rms(rest)), rms(focus)) / 2, agree


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="+", help="degrees that follow each other")
    options.add_argument("--bins", type=int, help="range bins that are signals, half of them in each run (32 for each degree)")
    options.add_argument("--seed", type=int, default=1, help="of the injected phases")
    options.add_argument("-o", "--output", help="a PNG: as received, with the injected phases, with those found taken off")
    args = options.parse_args()
    warnings.simplefilter("ignore", calamp.CalampWarning)

    pulses, frequencies, look, azimuth, correction = load(args.files)
    degrees = len(args.files)
    W, signals = cross_range(frequencies, look, azimuth), echoes(pulses, frequencies, look, azimuth, parts(frequencies, look, azimuth, degrees), args.bins or 32 * degrees)
    injected = np.exp(2j * np.pi * np.random.default_rng(args.seed).random(pulses.shape[1]))
    began = time.time()
    found, sd, agree = find(W, signals, injected, degrees)
    print(f"both runs took {time.time() - began:.1f} s")
    left = remaining(found, injected)
    print(f"coherence {np.abs(np.mean(np.exp(1j * left))):.3f}, without correction {np.abs(np.mean(injected)):.3f}")
    print(f"phases are off by {rms(left):.3f} rad, sd {np.median(sd):.3f}; {100 * np.mean(np.abs(left) < 1.96 * sd):.0f} % are within 95 % intervals")

    def image(factor):
        return np.abs(np.fft.fftshift(np.fft.ifft(pulses * factor, axis=0), axes=0) @ W.conj())

    images = {"as received": image(1), "phases injected": image(injected), "calamp": image(injected / found), "the publisher's correction": image(correction)}
    for name, shown in images.items():
        print(f"contrast (sd ÷ mean of the intensity), {name}: {np.std(shown**2) / np.mean(shown**2):.1f}")
    if args.output:
        # 40 dB below the brightest point is black; two range bins in one row.
        shown = [images[name] / images["as received"].max() for name in ("as received", "phases injected", "calamp")]
        pictures.write(args.output, [1 + np.log10(np.maximum(i.reshape(-1, 2, i.shape[1]).max(axis=1), 1e-9)) / 2 for i in shown], enlarge=4)
    if not agree:
        print("not to be trusted: the two answers differ by more than they state")
        sys.exit(3)


if __name__ == "__main__":
    main()
