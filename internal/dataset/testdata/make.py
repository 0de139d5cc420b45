"""Writes the files that the tests of package dataset read.

Run by the tests into a temporary folder where numpy is there, and once, by
hand (python3 make.py . with numpy 1.24.2), for the copies checked in here.
"""

import os
import sys

import numpy as np

folder = sys.argv[1]


def path(name):
    return os.path.join(folder, name)


def values(kind, count):
    """numbers that every type holds exactly"""
    k = np.arange(count)
    if kind == "b1":
        return k % 3 == 0
    if kind[0] == "f":
        return (k - 2) / 4
    if kind[0] == "i":
        return k - 2
    return k


def every_type():
    arrays = {}
    for kind in "b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8".split():
        for end, little in ((">", "big"), ("<", "little")):
            for order in "CF":
                a = values(kind, 6).reshape(2, 3).astype(end + kind)
                arrays[f"{kind}_{little}_{order}"] = np.array(a, order=order)
    arrays["cube_F"] = np.array(values("f8", 24).reshape(2, 3, 4), order="F")
    arrays["scalar"] = np.array(2.5)
    arrays["scalar_int"] = np.int32(360)
    arrays["vector"] = values("f8", 5)
    arrays["empty"] = np.zeros((0, 3))
    arrays["extremes"] = np.array([6e-8, 65504, -6.1e-5, np.inf, -np.inf, np.nan], "f2")
    return arrays


every = every_type()
np.savez(path("types_stored.npz"), **every)
np.savez_compressed(path("types_deflated.npz"), **every)
np.savez(
    path("refused.npz"),
    complex64=np.zeros(2, "c8"),
    complex128=np.zeros(2, "c16"),
    object=np.array([1, "a"], object),
    text=np.array(["a", "bc"]),
    bytes=np.array([b"a", b"bc"]),
    date=np.array(["2020-01-01"], "M8[D]"),
    table=np.zeros(2, [("a", "<f8"), ("b", "<i4")]),
    longdouble=np.zeros(2, np.longdouble),
)
for version in (1, 2, 3):
    with open(path(f"version{version}.npy"), "wb") as f:
        a = np.array(values("f8", 6).reshape(2, 3), order="F")
        np.lib.format.write_array(f, a, version=(version, 0))

# A problem with 5 sensors, 4 entries and 3 signals; one reading is missing.
w = (np.arange(20).reshape(5, 4) - 7) / 8
y = (np.arange(15).reshape(5, 3) - 3) / 4
y[1, 2] = np.nan
x0 = np.arange(12).reshape(4, 3)
s0 = 1 + np.arange(5) / 8
np.savez_compressed(path("problem.npz"), W=w, Y=y, X0=x0.astype("i2"), s0=s0)
np.savez(
    path("problem_single.npz"),
    W=np.asfortranarray(w.astype(">f4")),
    Y=np.asfortranarray(y.astype(">f8")),
    X0=np.asfortranarray(x0.astype("u1")),
    s0=s0.reshape(5, 1),
)
np.save(path("W.npy"), w.astype("f4"))
np.save(path("Y.npy"), np.asfortranarray(y))
np.save(path("vector.npy"), y[:, 0])
