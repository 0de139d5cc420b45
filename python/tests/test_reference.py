"""docs/reference/python.md is what the docstrings say."""

import pathlib
import subprocess
import sys


def test_reference():
    page = subprocess.run([sys.executable, str(pathlib.Path(__file__).parents[1] / "reference.py"), "-check"], capture_output=True, encoding="utf-8")
    assert page.returncode == 0, page.stderr
