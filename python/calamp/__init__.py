"""Blind calibration from sparse signals: y = (W x + noise) / s, with W known, x sparse, and s not known.

>>> import calamp
>>> p = calamp.simulate(n=300, alpha=0.8, p=5, seed=1)
>>> r = calamp.solve(p.W, p.Y)
>>> r.status
'converged'

The work is done by the command ``calamp``, which is part of this package: a process of its own, so that forks,
threads and interrupts do no harm. Arrays go to it through memory.
"""

from ._command import CalampError, CalampWarning, Interrupted, NotConvergedWarning, version
from ._matrix import Matrix, dct, hadamard
from ._result import Result, ResultWarning, load
from ._result import ResultWarning as Warning  # the name it had first; not in __all__, since it is one of Python's
from ._solve import apply, fit_matrix, solve
from ._sklearn import BlindCalibrator
from ._stream import Calibrator, Posterior
from ._theory import Problem, se_offline, se_online, simulate, threshold

__all__ = [
    "solve", "fit_matrix", "apply", "load", "Result", "ResultWarning", "Calibrator", "Posterior", "BlindCalibrator", "Matrix", "hadamard", "dct", "simulate", "Problem",
    "se_offline", "se_online", "threshold", "version", "CalampError", "CalampWarning", "NotConvergedWarning", "Interrupted",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*globals(), "__version__"]


def __getattr__(name: str) -> str:
    if name != "__version__":
        raise AttributeError(f"module 'calamp' has no attribute {name!r}")
    from importlib import metadata

    try:
        return metadata.version("calamp")
    except metadata.PackageNotFoundError:  # from a folder, with the command that CALAMP names
        return version()["version"].removeprefix("v")
