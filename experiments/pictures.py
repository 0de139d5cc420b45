"""Grey pictures of the experiments, without any library but numpy: tiles in a row, as a PNG."""

import struct
import zlib

import numpy as np


def write(path, tiles, enlarge=8, gap=8):
    """Writes images (arrays of one height, 0 black, 1 white) side by side, each pixel enlarge × enlarge."""
    rows = []
    for tile in tiles:
        grey = np.clip(255 * np.asarray(tile, float), 0, 255).astype(np.uint8)
        rows += [np.kron(grey, np.ones((enlarge, enlarge), np.uint8)), np.full((grey.shape[0] * enlarge, gap), 255, np.uint8)]
    image = np.hstack(rows[:-1])
    height, width = image.shape
    lines = b"".join(b"\0" + row.tobytes() for row in image)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))
