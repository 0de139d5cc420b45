"""The command as a function: where it is, its arguments, its streams, its errors."""

from __future__ import annotations

import io
import json
import numbers
import os
import re
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence

import numpy as np

from ._matrix import Matrix, each, structured, table

WINDOWS = sys.platform == "win32"


class CalampError(RuntimeError):
    """The command failed, not for its input: a full disk, say."""


class CalampWarning(UserWarning):
    """What to know before trusting a result; ``Result.warnings`` has the same."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run in good order: ``result`` is what there was by then, with ``status`` "cancelled"."""

    def __init__(self, result: Any):
        super().__init__("interrupted: the exception's result is what there is")
        self.result = result


class NotConvergedWarning(CalampWarning):
    """A run ended without convergence; its result is marked."""


def executable() -> str:
    """The command: that of the environment variable CALAMP, or the one in this package."""
    given = os.environ.get("CALAMP")
    if given:
        return given
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "calamp.exe" if WINDOWS else "calamp")
    if not os.path.exists(path):
        raise CalampError(f"there is no command at {path}: this is not an installed wheel; set CALAMP to where it is")
    return path


# Flags whose values have words for True and False: what is learned where they are left out, and can be left aside.
SWITCHES = {"joint": "on", "faulty": "auto", "outliers": "auto", "offset": "auto"}

# Flags that are no keywords, since functions give back what these would print or write.
NO_KEYWORDS = ("output", "json", "quiet", "help", "csv")


def flags(options: Mapping[str, Any]) -> list[str]:
    """Keyword arguments as flags: s_range=(0.9, 1.1) is --s-range 0.9,1.1."""
    words: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if name in NO_KEYWORDS:
            raise TypeError(f"got an unexpected keyword argument {name!r}")
        if isinstance(value, (bool, np.bool_)) and name in SWITCHES:
            value = SWITCHES[name] if value else "off"
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
            continue
        if name in ("anchor", "reference") and isinstance(value, Mapping):
            value = [f"mean={float(s)!r}" if row == "mean" else f"sensor={int(row)}:{float(s)!r}" for row, s in value.items()]
        if name == "image" and isinstance(value, (list, tuple)):
            value = "x".join(str(int(v)) for v in value)
        repeated = value if name in ("anchor", "reference", "component") and isinstance(value, (list, tuple)) and not _is_numbers(value) else [value]
        for v in repeated:
            words += [flag, _word(name, v)]
    return words


def _is_numbers(value: Sequence[Any]) -> bool:
    return all(isinstance(v, (int, float, np.number)) for v in value)


def _word(name: str, value: Any) -> str:
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)  # type: ignore[return-value]
    try:
        return ",".join(repr(float(v)) if not _whole(v) else str(int(v)) for v in np.atleast_1d(value))
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}, expected a number, numbers or text") from None


def _whole(v: Any) -> bool:
    return isinstance(v, (int, np.integer))


def check_matrix(W: Any, or_complex: bool = False) -> Any:
    """W as something that can be handed on: a path, a matrix that is no table, or an array of real numbers, or complex ones."""
    if isinstance(W, (str, os.PathLike)):
        return os.fspath(W)
    if isinstance(W, (list, tuple)) and len(W) > 0 and all(np.ndim(w) == 2 or hasattr(w, "matmat") or hasattr(w, "tocsr") for w in W):
        W = each(W)  # one for every signal
    return structured(W) or check_array("W", table(W), 2, 3, or_complex=or_complex)


def sensors(W: Any) -> Optional[int]:
    """M, unless W is the path of a file."""
    return None if isinstance(W, (str, os.PathLike)) else (W.shape if hasattr(W, "shape") else np.shape(W))[-2]


def check_array(name: str, a: Any, *dimensions: int, or_complex: bool = False) -> np.ndarray:
    """a as an array of numbers of so many dimensions. What is masked is missing, NaN, where readings may be."""
    if isinstance(a, np.ma.MaskedArray):
        if name not in ("Y", "y") and np.any(np.ma.getmaskarray(a)):
            raise ValueError(f"{name} is masked in places, and only readings can be missing")
        a = np.asarray(a) if not np.any(np.ma.getmaskarray(a)) else a.astype(np.result_type(a.dtype, np.float32)).filled(np.nan)
    a = a if hasattr(a, "__array__") or not hasattr(a, "__dlpack__") else np.from_dlpack(a)
    a = np.asanyarray(a)
    if a.dtype.kind == "O" and all(isinstance(v, (numbers.Number, np.generic)) for v in a.flat):
        a = np.array(a.tolist())  # numbers one by one, as columns of a table may have them
    is_complex = a.dtype.kind == "c"
    if is_complex and not or_complex:
        raise ValueError(f"{name} is complex ({a.dtype}), expected real numbers")
    if a.dtype.kind not in "fiubc" or a.dtype.itemsize > (16 if is_complex else 8):
        raise ValueError(f"{name} is {what_of(a)}, expected floats, integers or bools")
    if a.ndim not in dimensions:
        raise ValueError(f"{name} has {a.ndim} dimensions, expected {' or '.join(map(str, dimensions))}")
    return a


def what_of(a: np.ndarray) -> str:
    """What an array is that holds no numbers: one of the type of a lone object, as None or a sparse matrix are."""
    return f"of type {type(a.item()).__name__}" if a.dtype.kind == "O" and a.ndim == 0 else f"of dtype {a.dtype}"


def file_of(a: Any) -> Optional[str]:
    """The .npy that a memory map is all of, so that it need not be copied."""
    if isinstance(a, str):
        return a
    if not isinstance(a, np.memmap) or a.filename is None or a.mode == "c":
        return None
    try:
        whole = np.lib.format.open_memmap(a.filename, mode="r")
    except (ValueError, OSError):
        return None
    same = whole.shape == a.shape and whole.dtype == a.dtype and whole.strides == a.strides and whole.offset == a.offset
    if not same:
        return None
    a.flush()
    return os.fspath(a.filename)


def passable(fd: int) -> int:
    """A descriptor above those of the standard streams, which the command has its own of: where a process has closed
    them, as joblib's workers do, new files get their numbers."""
    if fd > 2:
        return fd
    import fcntl

    above = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return above


def in_memory(name: str, a: Any) -> int:
    """A file in memory with an array in it, or with several under their names."""
    fd = passable(os.memfd_create(name))
    with open(fd, "w+b", closefd=False) as f:
        write(f, a)
    return fd


def write(f: Any, a: Any) -> None:
    """An array as a .npy, several under their names as a .npz."""
    if isinstance(a, Matrix):
        a.save(f)
    elif isinstance(a, dict):
        np.savez(f, **a)
    else:
        np.lib.format.write_array(f, np.asarray(a), allow_pickle=False)


# Keywords that take a file, in which an array can stand in its place.
FILE_KEYWORDS = ("noise_var", "sign", "density", "signal_mean", "signal_var", "groups", "basis", "s_from", "sensors", "gain_smooth", "gain_basis", "derivatives", "sensor_derivatives")


class Files:
    """Arrays in the place of files, as files for as long as the command runs."""

    def __init__(self) -> None:
        self.folder: Any = None

    def take(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The keywords, with paths in the place of arrays and results."""
        return {name: self._path(name, value) if name in FILE_KEYWORDS else self._network(name, value) for name, value in given.items()}

    def _network(self, name: str, value: Any) -> Any:
        """Weights, biases and activations of a network by name, in the place of prior="network:FILE"."""
        if name != "prior" or not isinstance(value, Mapping):
            return value
        return "network:" + self._new(name, ".npz", lambda f: np.savez(f, **value))

    def _path(self, name: str, value: Any) -> Any:
        if hasattr(value, "_npz"):  # a result
            return self._new(name, ".npz", lambda f: f.write(value._npz))
        made = value if isinstance(value, dict) else structured(value)
        if made is not None:
            path = self._new(name, ".npz", lambda f: write(f, made))
            return path if isinstance(made, dict) else f"{made.kind}:{path}"  # type: ignore[union-attr]
        if value is None or isinstance(value, (str, bool, os.PathLike)) or np.ndim(value) == 0:
            return value
        a = check_array(name, value, 2, 3, or_complex=True) if name.endswith("derivatives") else check_array(name, value, 1, 2)
        return self._new(name, ".npy", lambda f: write(f, np.ascontiguousarray(a)))

    def _new(self, name: str, end: str, fill: Callable[[Any], Any]) -> str:
        import tempfile

        self.folder = self.folder or tempfile.TemporaryDirectory(prefix="calamp-")
        path = os.path.join(self.folder.name, name + end)
        with open(path, "wb") as f:
            fill(f)
        return path

    def __enter__(self) -> "Files":
        return self

    def __exit__(self, *_: Any) -> None:
        if self.folder is not None:
            self.folder.cleanup()
            self.folder = None


def check_pair(W: Any, Y: np.ndarray) -> None:
    """Refuses W and Y of which one stands in the place of the other, or is transposed."""
    if not hasattr(W, "shape"):
        return
    m, n = W.shape[-2:]
    if len(W.shape) == 3 and Y.shape[0] == m and Y[0].size != W.shape[0]:
        raise ValueError(f"W is {W.shape[0]}×{m}×{n} and Y has {Y[0].size} signals, expected a matrix for each of them")
    if Y.shape[0] != m and n == Y.shape[0]:
        raise ValueError(f"W is {m}×{n} and Y has {Y.shape[0]} rows, expected {m}, one for each sensor; W looks transposed: W.T")
    if Y.shape[0] != m:
        return  # the command says what
    # The columns of readings are combinations of those of W, but for the gains. Where Y is much the wider one, and has hardly more in the
    # n columns of W than a matrix of P columns has in n readings of it, n/M by chance and n/P since they are made of it, it is the matrix.
    if not isinstance(W, np.ndarray) or W.ndim != 2 or np.iscomplexobj(W) or np.iscomplexobj(Y) or Y.ndim != 2 or not 8 * n <= m <= 10**4 or Y.shape[1] < 8 * n:
        return
    y = np.nan_to_num(np.asarray(Y, float))[:, :1000]
    if not (np.isfinite(W).all() and np.isfinite(y).all()) or not y.any():
        return
    q, _ = np.linalg.qr(np.asarray(W, float))
    explained = np.sum((q.T @ y) ** 2) / np.sum(y**2)
    if explained < 1.5 * (n / m + n / y.shape[1]):
        raise ValueError(f"W ({m}×{n}) and Y ({m}×{Y.shape[1]}) look swapped: calamp.solve(W, Y) takes the matrix first, and these readings have no more to do with it than chance")


class Inputs:
    """Arrays on their way to the command: as open files in memory where the system has these (Linux), as files where
    they are files already, else as a problem on standard input."""

    def __init__(self, arrays: Mapping[str, Any]):
        self.arrays = dict(arrays)
        self.fds: list[int] = []
        self.words: list[str] = []
        self.stdin: Optional[dict[str, Any]] = None
        self.folder: Any = None  # of files, where there are none in memory
        paths = {name: file_of(a) for name, a in arrays.items()}
        parts = set(arrays) == {"W", "Y"}
        try:
            if isinstance(W := self.arrays["W"], Matrix):
                readings = {name: a for name, a in self.arrays.items() if name != "W"}
                self.words = ["--matrix", f"{W.kind}:{self._file('W', W)}", "--readings", self._file("Y", readings)]
            elif parts and (hasattr(os, "memfd_create") or all(paths.values())):
                for name, flag in (("W", "--matrix"), ("Y", "--readings")):
                    self.words += [flag, paths[name] or self._in_memory(name, self.arrays[name])]
            else:
                self.words, self.stdin = ["-"], {n: np.load(a, mmap_mode="r") if isinstance(a, str) else a for n, a in arrays.items()}
        except BaseException:
            self.close()
            raise

    def _file(self, name: str, a: Any) -> str:
        if hasattr(os, "memfd_create"):
            return self._in_memory(name, a)
        import tempfile

        self.folder = self.folder or tempfile.TemporaryDirectory(prefix="calamp-")
        path = os.path.join(self.folder.name, name + ".npz")
        with open(path, "wb") as f:
            write(f, a)
        return path

    def _in_memory(self, name: str, a: Any) -> str:
        self.fds.append(in_memory(name, a))
        return f"/dev/fd/{self.fds[-1]}"

    def feed(self, pipe: Any) -> None:
        """Writes the problem, for a thread: the command may end before it has read all."""
        try:
            with pipe:
                np.savez(pipe, **self.stdin)  # type: ignore[arg-type]
        except (BrokenPipeError, OSError):
            pass

    def close(self) -> None:
        for fd in self.fds:
            os.close(fd)
        self.fds = []
        if self.folder is not None:
            self.folder.cleanup()
            self.folder = None

    def __enter__(self) -> "Inputs":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def start(words: Sequence[str], fds: Iterable[int] = (), **streams: Any) -> subprocess.Popen:
    """Starts the command, out of reach of the terminal's Ctrl-C: it is given once, by us."""
    apart: dict[str, Any] = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP} if WINDOWS else {"start_new_session": True, "pass_fds": tuple(fds)}  # type: ignore[attr-defined]
    try:
        return subprocess.Popen([executable(), *words], **apart, **streams)
    except OSError as e:
        raise CalampError(f"the command cannot be started: {e}") from e


def interrupt(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.send_signal(signal.CTRL_BREAK_EVENT if WINDOWS else signal.SIGINT)  # type: ignore[attr-defined]


class Reader(threading.Thread):
    """Reads a stream to its end, or a line of it, beside everything else."""

    def __init__(self, stream: Any, line: Optional[Callable[[bytes], None]] = None, once: bool = False):
        super().__init__(daemon=True)
        self.stream, self.line, self.once, self.data = stream, line, once, b""
        # Not join and is_alive: a join that Ctrl-C interrupts takes the thread for one that has ended (Python 3.11).
        self.done = threading.Event()
        self.start()

    def run(self) -> None:
        try:
            if self.once:
                self.data = self.stream.readline()
                return
            with self.stream:
                if self.line is None:
                    self.data = self.stream.read()
                else:
                    for line in self.stream:
                        self.line(line)
        finally:
            self.done.set()


# Paths in messages that the caller has not given.
_PASSED = re.compile(r"(?:(?:[a-z]+:)?/dev/fd/\d+(?:, )?)+: |^-: |^standard input: ")


# Files that stand for keywords, and flags, which are keywords here.
_FILES = re.compile(r"\S*calamp-[^/\s]*[/\\](\w+)\.np[yz]")
_TWICE = re.compile(r"\b(\w+):? \1\b(?=:)")
_FLAGS = re.compile(r"--([a-z][a-z0-9-]*[a-z0-9])(?: (auto|off|per-sensor|reading|signal|laplace|nonnegative|normal|lognormal|known|free)\b)?")


def in_python(text: str) -> str:
    """What the command says, with keywords for flags."""
    words = _FLAGS.sub(lambda m: m[1].replace("-", "_") + (f'="{m[2]}"' if m[2] else ""), _FILES.sub(r"\1", text))
    return _TWICE.sub(r"\1", words)


def words_of(text: str) -> str:
    """The command's errors without its name, without the files that we have made, without what to type in a shell, and with keywords for flags."""
    lines = [line[len("calamp: ") :] if line.startswith("calamp: ") else line for line in text.strip().splitlines()]
    lines = [_PASSED.sub("", line) for line in lines if not line.startswith("warning: ") and not line.startswith("hint: calamp ")]
    return "\n".join(map(in_python, lines)) or "no reason was given"


def unknown(text: str) -> Optional[str]:
    """What Python says of a keyword that there is none of, where that is the error."""
    found = re.search(r"unknown flag: --([\w-]+)", text)
    if not found:
        return None
    meant = re.search(r"did you mean --([\w-]+)\?", text)
    name = found[1].replace("-", "_")
    return f"got an unexpected keyword argument {name!r}" + (f"; did you mean {meant[1].replace('-', '_')!r}?" if meant else "")


class Finished:
    """What a run of the command has left."""

    def __init__(self, code: int, stdout: bytes, stderr: str, output: bytes, events: list[dict[str, Any]]):
        self.code, self.stdout, self.stderr, self.output, self.events = code, stdout, stderr, output, events

    def check(self) -> "Finished":
        """Raises what the exit code says; 3 and 130 are the caller's matter where there is a result."""
        if self.code == 2 and (text := unknown(self.stderr)):
            raise TypeError(text)
        if self.code == 2:
            raise ValueError(words_of(self.stderr))
        if self.code not in (0, 3, 130) or self.code != 0 and not self.stdout and not self.output:
            if self.code == 130:
                raise KeyboardInterrupt
            raise CalampError(words_of(self.stderr))
        return self

    def json(self) -> dict[str, Any]:
        return json.loads(self.stdout)


def run(words: Sequence[str], inputs: Optional[Inputs] = None, output: bool = False, show: Optional[Callable[[dict[str, Any]], None]] = None) -> Finished:
    """Runs the command to its end. With output, what -o gives is read. show is called with each event of --progress
    json, in this thread. Ctrl-C ends the command in good order, and what it has then is what comes back; a second one
    ends it at once."""
    words = [*words, *(inputs.words if inputs else [])]
    fds = list(inputs.fds) if inputs else []
    readers: list[Reader] = []
    events: list[dict[str, Any]] = []
    noise: list[str] = []

    def line(raw: bytes) -> None:
        if raw.startswith(b'{"iteration"'):
            events.append(json.loads(raw))
        else:
            noise.append(raw.decode("utf-8", "replace"))

    target = None
    if output and WINDOWS:
        import tempfile

        target = tempfile.TemporaryDirectory()
        words += ["-o", os.path.join(target.name, "R.npz")]
    elif output:
        read, write = map(passable, os.pipe())
        fds.append(write)
        words += ["-o", f"/dev/fd/{write}"]
    feeding = inputs is not None and inputs.stdin is not None
    try:
        process = start(words, fds, stdin=subprocess.PIPE if feeding else subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except BaseException:
        if output and not WINDOWS:
            os.close(read)
        raise
    finally:
        if output and not WINDOWS:
            os.close(write)
    if feeding:
        threading.Thread(target=inputs.feed, args=(process.stdin,), daemon=True).start()  # type: ignore[union-attr]
    readers = [Reader(process.stdout), Reader(process.stderr, line)]
    result = Reader(open(read, "rb", buffering=0)) if output and not WINDOWS else None
    if result:
        readers.append(result)
    shown, given = 0, False
    try:
        while True:
            try:
                for reader in readers:
                    while not reader.done.wait(0.1):
                        while show and shown < len(events):
                            shown += 1
                            show(events[shown - 1])
                process.wait()
                break
            except KeyboardInterrupt:
                if given:
                    raise
                given = True
                interrupt(process)
    except BaseException:
        process.kill()
        process.wait()
        raise
    if target is not None:
        with target:
            try:
                with open(words[-1], "rb") as f:
                    data = f.read()
            except FileNotFoundError:
                data = b""
    else:
        data = result.data if result else b""
    while show and shown < len(events):
        shown += 1
        show(events[shown - 1])
    return Finished(process.returncode, readers[0].data, "".join(noise), data, events)


def arrays_of(npz: bytes) -> dict[str, np.ndarray]:
    """The arrays of an archive that is stored, not deflated: read-only, and without a copy where the bytes are aligned.

    numpy's vdot hands an unaligned array to BLAS as it is, and some BLAS then end with a segmentation fault.
    """
    import zipfile

    arrays = {}
    with zipfile.ZipFile(io.BytesIO(npz)) as archive:
        for entry in archive.infolist():
            # Local header: 30 bytes, then name and extra field, whose lengths are at 26 and 28.
            at = entry.header_offset
            at += 30 + int.from_bytes(npz[at + 26 : at + 28], "little") + int.from_bytes(npz[at + 28 : at + 30], "little")
            head = io.BytesIO(npz[at : at + 4096])
            np.lib.format.read_magic(head)
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(head)
            count = int(np.prod(shape, dtype=np.int64))
            flat = np.frombuffer(npz, dtype, count, at + head.tell()) if count else np.zeros(0, dtype)
            if not flat.flags.aligned:
                flat = flat.copy()
                flat.flags.writeable = False
            arrays[entry.filename[: -len(".npy")]] = flat.reshape(shape, order="F" if fortran else "C")
    return arrays


class Progress:
    """A line about a run that takes longer than a second: in a notebook, or where standard error is a terminal."""

    def __init__(self, forced: bool):
        self.begin = self.last = time.monotonic()
        self.forced, self.handle, self.drawn = forced, None, False
        self.notebook = _in_notebook()

    def __call__(self, event: dict[str, Any]) -> None:
        now = time.monotonic()
        if now - self.last < 0.1 or not self.forced and now - self.begin < 1:
            return
        self.last = now
        change = event.get("change")
        text = f"iteration {event['iteration']}, change {change:.0e}" if change else f"iteration {event['iteration']}"
        if self.notebook:
            from IPython.display import HTML, display

            bar = HTML(f'<progress value="{event["fraction"]:.3f}" style="width:24em"></progress> {text}')
            if self.handle is None:
                self.handle = display(bar, display_id=True)
            else:
                self.handle.update(bar)
        else:
            done = int(24 * event["fraction"])
            sys.stderr.write(f"\r[{'#' * done}{'.' * (24 - done)}] {text:<36}")
            sys.stderr.flush()
        self.drawn = True

    def close(self) -> None:
        if not self.drawn:
            return
        if self.notebook:
            from IPython.display import HTML

            if self.handle is not None:
                self.handle.update(HTML(""))
        else:
            sys.stderr.write("\r" + " " * 64 + "\r")


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


def shown(progress: Any) -> tuple[Optional[Callable[[dict[str, Any]], None]], Callable[[], None]]:
    """How progress is shown, and how that ends."""
    if callable(progress):
        return progress, lambda: None
    if progress is False or progress is None and not (_in_notebook() or sys.stderr is not None and sys.stderr.isatty()):
        return None, lambda: None
    bar = Progress(forced=progress is True)
    return bar, bar.close


def version() -> dict[str, Any]:
    """The command's version, what it was built with, and the instruction set that its loops use."""
    return run(["version", "--json"]).check().json()
