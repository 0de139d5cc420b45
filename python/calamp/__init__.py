"""Blind calibration from sparse signals: y = (W x + noise) / s, with W known, x sparse, and s not known.

>>> import calamp
>>> p = calamp.simulate(n=300, alpha=0.8, p=5, seed=1)
>>> r = calamp.solve(p.W, p.Y)
>>> r.status
'converged'

The work is done by the command ``calamp``, which is part of this package: a process of its own, so that forks,
threads and interrupts are nobody's trouble. Arrays go to it through memory.
"""

from ._command import CalampError, CalampWarning, NotConvergedWarning, version
from ._matrix import Matrix, dct, hadamard
from ._result import Result, Warning
from ._solve import apply, solve
from ._sklearn import BlindCalibrator
from ._stream import Calibrator, Posterior
from ._theory import Problem, se_offline, se_online, simulate, threshold

__all__ = [
    "solve", "apply", "Result", "Warning", "Calibrator", "Posterior", "BlindCalibrator", "Matrix", "hadamard", "dct", "simulate", "Problem",
    "se_offline", "se_online", "threshold", "version", "CalampError", "CalampWarning", "NotConvergedWarning",
]  # fmt: skip
