"""Builds a wheel for this machine, for pip (PEP 517): with internal/release, as all wheels are built."""

import os
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["go", "run", "./internal/release", "-wheel", "-host", "-out", folder], cwd=ROOT, check=True)
        (name,) = (n for n in os.listdir(folder) if n.endswith(".whl"))
        with open(os.path.join(folder, name), "rb") as a, open(os.path.join(wheel_directory, name), "wb") as b:
            b.write(a.read())
    return name
