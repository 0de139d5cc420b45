"""Matrices that are no tables: sparse ones, and rows of transforms."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np


class Matrix:
    """A matrix M×N that is never a table: what :func:`hadamard` and :func:`dct` make, for W. kind and arrays are those of
    ``calamp solve --matrix KIND:R.npz``; save(path) writes that file."""

    def __init__(self, kind: str, shape: tuple[int, int], arrays: dict[str, np.ndarray]):
        self.kind, self.shape, self.arrays = kind, shape, arrays

    def save(self, path: Any) -> None:
        np.savez(path, **self.arrays)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"<{self.kind} matrix, {self.shape[0]}×{self.shape[1]}>"


def _whole(name: str, values: Any, least: int, most: int) -> np.ndarray:
    """values as a list of whole numbers from least to most."""
    a = np.atleast_1d(values)
    if a.ndim != 1 or a.size == 0 or a.dtype.kind not in "iuf" or not np.all(a == np.round(a)):
        raise ValueError(f"{name}: expected whole numbers in a list, found an array of dtype {a.dtype} and shape {a.shape}")
    if a.min() < least or a.max() > most:
        raise ValueError(f"{name}: expected numbers from {least} to {most}, found {a.min()} to {a.max()}")
    return a.astype(np.int64)


def _rows(kind: str, rows: Any, n: int, signs: Any, permutation: Any) -> Matrix:
    arrays = {"n": np.int64(n), "rows": _whole("rows", rows, 0, n - 1)}
    if signs is not None:
        arrays["signs"] = _whole("signs", signs, -1, 1).astype(float)
        if arrays["signs"].shape != (n,) or not np.all(arrays["signs"]):
            raise ValueError(f"signs: expected {n} numbers that are 1 or -1")
    if permutation is not None:
        arrays["permutation"] = _whole("permutation", permutation, 0, n - 1)
        if not np.array_equal(np.sort(arrays["permutation"]), np.arange(n)):
            raise ValueError(f"permutation: expected every number from 0 to {n - 1} once")
    return Matrix(kind, (len(arrays["rows"]), n), arrays)


def hadamard(rows: Any, n: int, *, signs: Any = None, permutation: Any = None) -> Matrix:
    """Rows (M numbers from 0 to n-1) of the orthonormal Walsh–Hadamard transform of n entries, a power of 2, as the matrix
    W for :func:`calamp.solve`: W[µ, i] = T[rows[µ], permutation[i]]·signs[i]. signs are n numbers ±1, permutation is one
    of 0 … n-1. It is computed and never stored."""
    if n < 1 or n & (n - 1):
        raise ValueError(f"n is {n}, expected a power of 2")
    return _rows("hadamard", rows, n, signs, permutation)


def dct(rows: Any, n: int, *, signs: Any = None, permutation: Any = None) -> Matrix:
    """The same of the orthonormal cosine transform of type II, for any n."""
    if n < 1:
        raise ValueError(f"n is {n}, expected 1 or more")
    return _rows("dct", rows, n, signs, permutation)


def sparse(W: Any) -> Matrix:
    """A sparse matrix or array of scipy, as what scipy.sparse.save_npz writes of it."""
    csr = W.tocsr()
    if csr.dtype.kind not in "fiub":
        raise ValueError(f"W is sparse of dtype {csr.dtype}, expected real numbers")
    if not csr.has_canonical_format:  # entries that are there twice add up
        csr = csr.copy()
        csr.sum_duplicates()
    data = csr.data if csr.dtype.kind == "f" and csr.dtype.itemsize in (4, 8) else csr.data.astype(float)
    arrays = {
        "format": np.array(b"csr"), "shape": np.array(csr.shape, np.int64), "data": data,
        "indices": csr.indices, "indptr": csr.indptr,
    }  # fmt: skip
    return Matrix("sparse", csr.shape, arrays)


def each(matrices: Any) -> np.ndarray:
    """A matrix for every signal, arrays, sparse ones or linear operators, as P×M×N."""
    tables = [w.toarray() if hasattr(w, "tocsr") else np.asarray(table(w)) for w in matrices]
    for k, w in enumerate(tables):
        if w.shape != tables[0].shape:
            raise ValueError(f"W[{k}] is {'×'.join(map(str, w.shape))}, expected {'×'.join(map(str, tables[0].shape))}, as W[0]")
    return np.stack(tables)


def table(W: Any) -> Any:
    """The table of a linear operator, as those of scipy.sparse.linalg and PyLops are, which know their products alone; else W."""
    if hasattr(W, "matmat") and hasattr(W, "shape") and not hasattr(W, "__array__") and not hasattr(W, "tocsr"):
        return np.asarray(W.matmat(np.eye(W.shape[1], dtype=np.result_type(getattr(W, "dtype", None) or float, np.float32))))
    return W


def structured(W: Any) -> Optional[Matrix]:
    """W where it is a matrix without a table, else None."""
    if isinstance(W, Matrix):
        return W
    return sparse(W) if hasattr(W, "tocsr") else None
