"""Calibration from a stream of samples, one at a time, that is kept on the disk."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import tempfile
import urllib.request
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np

from . import _command


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known of the sensors: s, s_var, gain (M), count, how many samples each has learned from, and flagged: not 0 where
    one is not used. Of a complex stream s and gain are complex. samples is how many samples were learned from, last the number of the last one.
    theta and theta_sd (M×J) are of sensor_derivatives."""

    s: np.ndarray
    s_var: np.ndarray
    gain: np.ndarray
    count: np.ndarray
    flagged: np.ndarray
    scale_sd: float
    samples: int
    last: int
    theta: Optional[np.ndarray] = None
    theta_sd: Optional[np.ndarray] = None

    def __repr__(self) -> str:
        return f"<calamp.Posterior: {len(self.s)} sensors, {self.samples} samples, common scale ±{100 * self.scale_sd:.2g} %>"


class Calibrator:
    """Takes in samples one at a time; each is solved at once, improves the calibration, and is forgotten.

    W (M×N) is a matrix as in :func:`calamp.solve`; where it is complex, or phase is given, samples are. Where each sample has another one, W is all of them (K×M×N, or a
    list), of which absorb is given one's number, or (M, N), and absorb is given the matrix. With state, a path, what was learned is in that file before absorb
    returns, and the next Calibrator with the same W, model and state goes on from it. sensors (M integers) is the sensor that each row is read with. Keywords are the flags of
    ``calamp online`` with _ for -. ::

        with calamp.Calibrator(W, state="rig.calamp", s_range=(0.8, 1.2), noise_var=1e-4) as c:
            for y in readings:
                line = c.absorb(y)     # line["x"], line["committed"], line["chi2"], …
            c.posterior().gain
    """

    def __init__(self, W: Any, state: Union[str, "os.PathLike[str]", None] = None, **options: Any):
        self._brought = tuple(map(int, W)) if isinstance(W, tuple) and len(W) == 2 and all(np.ndim(v) == 0 for v in W) else None
        if self._brought is None:
            W = _command.check_matrix(W, or_complex=True)
        self._count = None if isinstance(W, str) else len(W) if getattr(W, "ndim", 2) == 3 else 0
        self._complex = "phase" in options or getattr(W, "dtype", np.dtype(float)).kind == "c"
        self._process: Optional[subprocess.Popen] = None
        self._owner = os.getpid()
        self._sensors = self._brought[0] if self._brought else _command.sensors(W)
        self._folder = tempfile.TemporaryDirectory(prefix="calamp-")
        try:
            self._start(W, state, options)
        except BaseException:
            self._folder.cleanup()
            raise

    def _start(self, W: Any, state: Any, options: dict[str, Any]) -> None:
        self._token = secrets.token_urlsafe(24)
        token = os.path.join(self._folder.name, "token")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(self._token)
        path, fds = "sample:%dx%d" % self._brought if self._brought else _command.file_of(W), []
        if path is None and hasattr(os, "memfd_create"):
            fds.append(_command.in_memory("W", W))
            path = f"/dev/fd/{fds[0]}"
        elif path is None:
            path = os.path.join(self._folder.name, "W")
            with open(path, "wb") as f:
                _command.write(f, W)
        if isinstance(W, _command.Matrix):
            path = f"{W.kind}:{path}"
        words = ["online", "--matrix", path, "--input", "c16" if self._complex else "f8", "--emit-x", "--http", "127.0.0.1:0", "--http-token", "@" + token]
        if state is not None:
            words += ["--state", os.fspath(state)] + ([] if options.get("freeze") else ["--after", "last"])
        files = _command.Files()
        files.folder = self._folder
        words += _command.flags(files.take(options))
        try:
            self._process = p = _command.start(words, fds, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        finally:
            for fd in fds:
                os.close(fd)
        self._said: list[str] = []
        # The address comes when the state was read, before the first sample.
        for raw in p.stderr:  # type: ignore[union-attr]
            line = raw.decode("utf-8", "replace")
            self._said.append(line)
            address = re.match(r"calamp: http://(\S+?)/healthz", line)
            if address:
                self._address = address[1]
                break
        self._reader = _command.Reader(p.stderr, lambda raw: self._hear(raw.decode("utf-8", "replace")))
        if not hasattr(self, "_address"):
            self._fail()

    def _hear(self, line: str) -> None:
        self._said = self._said[-50:] + [line]

    def _fail(self) -> None:
        """The command has ended: says why."""
        p = self._process
        assert p is not None
        code = p.wait()
        self._reader.join()
        self._end()
        text = _command.words_of("\n".join(s.rstrip() for s in self._said if not s.startswith("calamp: assumed")))
        raise (ValueError if code == 2 else _command.CalampError)(text)

    def absorb(self, y: Any, matrix: Any = None) -> dict[str, Any]:
        """Takes in the readings of one sample (M; NaN where one is missing), with the number of its matrix or the matrix itself where each has another, and says what became of it: the fields of
        docs/online-json.md, with x (N), the signal, as an array. What it taught is safe when this returns."""
        p = self._open()
        y = _command.check_array("y", y, 1, or_complex=self._complex)
        if self._sensors is not None and len(y) != self._sensors:
            raise ValueError(f"y has {len(y)} readings, expected {self._sensors}, one for each sensor")
        raw = np.ascontiguousarray(y, "<c16" if self._complex else "<f8").tobytes() + self._matrix(matrix)
        try:
            p.stdin.write(raw)  # type: ignore[union-attr]
            p.stdin.flush()  # type: ignore[union-attr]
        except (BrokenPipeError, OSError):
            self._fail()
        # An interrupt must not leave this sample's line for the next one.
        line = self._line()
        if not line:
            self._fail()
        found = json.loads(line)
        if "x" in found:
            x = np.array(found["x"], float)
            found["x"] = x[:, 0] + 1j * x[:, 1] if self._complex else x
        return found

    def _matrix(self, matrix: Any) -> bytes:
        """What follows the readings in a frame."""
        if self._brought:
            w = _command.check_array("matrix", [] if matrix is None else matrix, 1, 2, or_complex=self._complex)
            if w.shape != self._brought:
                raise ValueError(f"matrix is {'×'.join(map(str, w.shape)) if w.size else 'missing'}, expected that of the sample, {self._brought[0]}×{self._brought[1]}")
            return np.ascontiguousarray(w, "<c16" if self._complex else "<f8").tobytes()
        if self._count == 0 and matrix is not None:
            raise ValueError("W is one for all samples: leave out matrix")
        if self._count and (matrix is None or np.ndim(matrix) > 0 or int(matrix) != matrix or not 0 <= matrix < self._count):
            raise ValueError(f"matrix is {matrix}, expected which one the sample has, 0 to {self._count - 1}")
        return b"" if matrix is None else np.array(matrix, "<f8").tobytes()

    def _line(self) -> bytes:
        p = self._process
        assert p is not None
        interrupted = None
        reader = _command.Reader(p.stdout, once=True)
        while True:
            try:
                if reader.done.wait(1):
                    break
            except KeyboardInterrupt as e:
                interrupted = e
        if interrupted:
            raise interrupted
        return reader.data

    def posterior(self) -> Posterior:
        """What is known of the sensors after the last sample."""
        self._open()
        request = urllib.request.Request(f"http://{self._address}/posterior", headers={"Authorization": f"Bearer {self._token}", "Accept": "application/x-npz"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # this machine is not behind a proxy
        with opener.open(request, timeout=60) as answer:
            a = dict(_command.arrays_of(answer.read()))
        if "phase" in a:  # s and gain are sizes
            turn = np.exp(1j * a["phase"])
            a["s"], a["gain"] = a["s"] * turn, a["gain"] / turn
        theta = {k: a[k].reshape(len(a["s"]), -1) for k in ("theta", "theta_sd") if k in a}
        return Posterior(
            **{k: a[k] for k in ("s", "s_var", "gain", "count", "flagged")},
            scale_sd=float(a["scale_sd"]), samples=int(a["learned_samples"]), last=int(a["last_seq"]), **theta,
        )  # fmt: skip

    def _open(self) -> subprocess.Popen:
        if self._process is None:
            raise ValueError("this Calibrator is closed")
        if os.getpid() != self._owner:
            raise RuntimeError("a Calibrator belongs to the process that made it: make one after the fork")
        return self._process

    def close(self) -> None:
        """Ends the stream; the state is on the disk already."""
        p = self._process
        if p is None or os.getpid() != self._owner:
            return
        try:
            p.stdin.close()  # type: ignore[union-attr]
        except (BrokenPipeError, OSError):
            pass
        p.wait()
        self._end()

    def _end(self) -> None:
        p, self._process = self._process, None
        if p is not None:
            for stream in (p.stdin, p.stdout):
                try:
                    stream.close()  # type: ignore[union-attr]
                except (BrokenPipeError, OSError):
                    pass
            self._reader.join()
        self._folder.cleanup()

    def __enter__(self) -> "Calibrator":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # the interpreter may be ending
            pass
