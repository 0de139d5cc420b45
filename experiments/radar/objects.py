"""What objects do to the focus of a radar image. The data are simulated.

    python experiments/radar/objects.py [--seeds 5]

A degree of pulses hears echoes from independent positions, or from objects: six echoes within three resolution cells each. The errors of the phases that calamp finds are taken apart into cosines along the
pulses. Each has a square of one, relative to what is stated, where error bars hold.
"""

import argparse
import warnings

import numpy as np
import radar
from scipy.fft import dct

import calamp

PULSES, BINS, NOISE = 117, 16, 0.06
WIDTH = PULSES - 1  # of the scene, in resolution cells


def columns(positions):
    """The phases of echoes from positions in resolution cells."""
    return np.exp(2j * np.pi * np.outer(np.linspace(-0.5, 0.5, PULSES), positions)) / np.sqrt(2 * WIDTH)


def normal(rng, *shape):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / np.sqrt(2)


def positions(rng, objects):
    """Two dozen echoes or fewer, at half a dozen objects or anywhere."""
    if objects:
        return (WIDTH * (rng.random((4, 1)) - 0.5) + 3 * (rng.random((4, 6)) - 0.5)).ravel()
    return WIDTH * (rng.random(max(2, rng.poisson(12))) - 0.5)


def errors(seed, objects):
    """Errors of the phases in standard deviations, as cosines."""
    rng = np.random.default_rng(seed)
    places = [positions(rng, objects) for _ in range(BINS)]
    Y = np.stack([columns(x) @ normal(rng, len(x)) for x in places], axis=1)
    Y = Y / np.sqrt(np.mean(np.abs(Y) ** 2)) + np.sqrt(NOISE) * normal(rng, PULSES, BINS)
    injected = np.exp(2j * np.pi * rng.random(PULSES))
    phases, sd, status, _ = radar.solve(columns((np.arange(2 * WIDTH) - WIDTH) / 2), Y * injected[:, None])
    left = radar.remaining(phases, injected)
    waves = dct(left / sd, norm="ortho")
    print(f"  {seed}: {status}, phases off by {radar.rms(left):.3f} rad, stated {np.median(sd):.3f}; squares of parabola and cubic {waves[2] ** 2:.1f}, {waves[3] ** 2:.1f}")
    return waves


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=5)
    args = options.parse_args()
    warnings.simplefilter("ignore", calamp.CalampWarning)
    for name, objects in (("independent positions", False), ("objects", True)):
        print(name)
        squares = np.mean([errors(seed, objects) ** 2 for seed in range(1, args.seeds + 1)], axis=0)
        print("  squares of cosines 2 to 8:", *squares[2:9].round(1), f"; all further ones {squares[9:].mean():.2f}")


if __name__ == "__main__":
    main()
