"""Makes scipy.zip and octave.zip here, with what scipy reads in them (*.json).

scipy.zip: the .mat files that SciPy ships as test data (scipy/io/matlab/tests/data, BSD-3-Clause, (c) SciPy
Developers), as in Debian's python3-scipy 1.10.1. octave.zip: what octave.m has GNU Octave 7.3.0 write, with the
same in big-endian where its name ends in _big (Octave itself cannot write that; the bytes are swapped here).

    apt-get install python3-scipy octave-cli; python3 make.py
"""

import glob
import json
import os
import struct
import subprocess
import sys
import tempfile
import warnings
import zipfile
import zlib

import numpy as np
import scipy.io
import scipy.sparse

warnings.simplefilter("ignore")


def described(v):
    if scipy.sparse.issparse(v):
        v = v.toarray()
    if not isinstance(v, np.ndarray) or v.dtype.kind not in "fciubU" or v.dtype.kind == "U" and v.size != 1:
        return None
    if v.dtype.kind == "U":
        return {"text": str(v.ravel()[0])}
    flat = v.ravel(order="F")
    values = np.stack([flat.real, flat.imag], 1).ravel() if v.dtype.kind == "c" else flat
    out = [x if np.isfinite(x) else str(x) for x in values.astype(object)]
    return {"kind": v.dtype.kind, "shape": list(v.shape), "values": [bool(x) if isinstance(x, np.bool_) else x for x in out]}


def archive(name, paths):
    expected = {}
    with zipfile.ZipFile(name + ".zip", "w", zipfile.ZIP_DEFLATED) as z:
        for path in sorted(paths):
            info = zipfile.ZipInfo(os.path.basename(path))
            info.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(info, open(path, "rb").read())
            try:
                read = scipy.io.loadmat(path)
                expected[info.filename] = {k: described(v) for k, v in sorted(read.items()) if not k.startswith("__")}
            except Exception as e:
                expected[info.filename] = {"": f"{type(e).__name__}: {e}"}
    with open(name + ".json", "w") as f:
        json.dump(expected, f, indent=0, sort_keys=True, default=lambda x: x.item())


SIZES = {3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8, 17: 2, 18: 4}


def swapped(data):
    """Elements in the other byte order."""
    out = b""
    while data:
        word, = struct.unpack("<I", data[:4])
        if word >> 16:
            kind, size, start, end = word & 0xffff, word >> 16, 4, 8
            head = struct.pack(">I", word)
        else:
            kind, size = struct.unpack("<II", data[:8])
            start = 8
            end = start + size + (0 if kind == 15 else -size % 8)
            head = None
        body, rest = data[start:start + size], data[start + size:end]
        if kind == 15:
            body = zlib.compress(swapped(zlib.decompress(body)))
            size = len(body)
        elif kind == 14:
            body = swapped(body)
        else:
            w = SIZES.get(kind, 1)
            body = b"".join(body[i:i + w][::-1] for i in range(0, len(body), w))
        out += (head or struct.pack(">II", kind, size)) + body + rest
        data = data[end:]
    return out


def main():
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    archive("scipy", glob.glob(os.path.join(os.path.dirname(scipy.io.__file__), "matlab/tests/data/*.mat")))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["octave-cli", "--quiet", os.path.abspath("octave.m"), folder], check=True)
        for path in glob.glob(folder + "/*_v[67].mat"):
            data = open(path, "rb").read()
            data = b"MATLAB 5.0 MAT-file, written by Octave".ljust(116) + data[116:]  # without the date
            open(path, "wb").write(data)
            if os.path.basename(path).startswith("char"):
                continue  # in UTF-8, which has no byte order
            with open(path.replace("_v", "_big_v"), "wb") as f:
                f.write(data[:124] + b"\x01\x00MI" + swapped(data[128:]))
        archive("octave", glob.glob(folder + "/*.mat"))


if __name__ == "__main__":
    sys.exit(main())
