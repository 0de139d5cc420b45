"""The pages of docs/guides run as they are written: their code in one process a page, their commands between."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import warnings

import calamp
import pytest
from calamp import _command

GUIDES = pathlib.Path(__file__).parents[2] / "docs" / "guides"

# Errors that the tables of the pages state, and some room: they depend on rounding.
BOUNDS = {
    "single-pixel-camera": dict(blind=0.16, known=0.06),
    "a-stream": {"gains, 10 samples": 0.006, "gains, 50": 0.002, "gains, 10 after the change": 0.002, "gains, 80": 0.002, "last spectrum": 0.006},
    "microphone-array": dict(blind=0.006, known=0.006, gains=0.003, readings=0.01),
    "imager": dict(gains=0.055, smooth=0.05),
    "radar": dict(phases=0.004, stated=0.004),
}

# Runs that nothing is compared with end after a few iterations, but where pictures are drawn: the same by the command, and gains ignored.
SHORTER = {
    "single-pixel-camera": {"--report camera.html": "--report camera.html --max-iter 20", "(W, Y, **fixed)": "(W, Y, max_iter=20, **fixed)"},
    "imager": {"--report imager.html": "--report imager.html --max-iter 20", "**fixed, **model": "**fixed, **{**model, 'max_iter': 20}"},
}


def blocks(page):
    return re.findall(r"^```(python|sh)\n(.*?)^```$", (GUIDES / f"{page}.md").read_text(encoding="utf-8"), re.S | re.M)


@pytest.mark.parametrize("page", BOUNDS)
def test_guide(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for data in (GUIDES.parents[1] / "experiments" / page).glob("*.npz"):
        shutil.copy(data, tmp_path)
    shorter = {} if os.environ.get("GUIDES") else SHORTER.get(page, {})
    content = "".join(code for _, code in blocks(page))
    assert all(content.count(long) == 1 for long in shorter)
    for language, code in blocks(page):
        whole = code
        for long, short in shorter.items():
            code = code.replace(long, short)
        if language == "python":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", calamp.CalampWarning)
                exec(compile(code, f"{page}.md", "exec"), names)
            continue
        for line in code.splitlines():
            words = shlex.split(line)
            assert words[0] == "calamp"
            done = subprocess.run([_command.executable(), *words[1:]], capture_output=True, encoding="utf-8")
            cut = line not in whole.splitlines()  # it may not have converged by then
            assert done.returncode == 0 or cut and done.returncode == 3, done.stderr
    for name, bound in BOUNDS[page].items():
        assert names["errors"][name] <= bound, names["errors"]
    for flag in {"-o", "--report"} & set(words):
        assert (tmp_path / words[words.index(flag) + 1]).exists()
    assert names.get("flagged", {7, 31, 90}) == {7, 31, 90}
    if os.environ.get("GUIDES"):  # a folder for the arrays that pictures are drawn from
        for file in tmp_path.glob("*-pictures.npz"):
            file.rename(pathlib.Path(os.environ["GUIDES"]) / file.name)


@pytest.mark.parametrize("path", sorted((GUIDES.parents[1] / "examples").glob("*.py")), ids=lambda p: p.name)
def test_example(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calamp.CalampWarning)
        exec(compile(path.read_text(encoding="utf-8"), path.name, "exec"), {"__name__": "__main__"})


def test_guides_are_short():
    for page in GUIDES.glob("*.md"):
        assert len(re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.S | re.M).split()) < 900
