"""``python -m calamp`` and the script ``calamp`` are the command itself."""

import os
import subprocess
import sys

from ._command import WINDOWS, executable


def main() -> None:
    words = [executable(), *sys.argv[1:]]
    if WINDOWS:
        sys.exit(subprocess.call(words))
    os.execv(words[0], words)


if __name__ == "__main__":
    main()
