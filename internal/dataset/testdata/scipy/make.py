"""Matrices that are no tables, as scipy writes and computes them: python3 make.py FOLDER.

The files here are of scipy 1.10.1 and numpy 1.24.2. products.npz holds what scipy's own
transforms make of the signals x (N×3), and of the sensors' side g (M×3)."""
import sys

import numpy
import scipy.fft
import scipy.linalg
import scipy.sparse

folder = sys.argv[1]
rng = numpy.random.default_rng(1)

table = numpy.where(rng.random((7, 9)) < 0.4, rng.normal(size=(7, 9)), 0)
table[3] = 0
scipy.sparse.save_npz(folder + "/csr.npz", scipy.sparse.csr_matrix(table))
scipy.sparse.save_npz(folder + "/csc.npz", scipy.sparse.csc_matrix(table), compressed=False)
scipy.sparse.save_npz(folder + "/single.npz", scipy.sparse.csr_matrix(table.astype("f4")))
scipy.sparse.save_npz(folder + "/coo.npz", scipy.sparse.coo_matrix(table))
twice = scipy.sparse.csr_matrix((numpy.ones(3), numpy.array([0, 2, 2]), numpy.array([0, 3])), shape=(1, 4))
scipy.sparse.save_npz(folder + "/twice.npz", twice)
long = scipy.sparse.csr_matrix(table)
long.indices, long.indptr = long.indices.astype("i8"), long.indptr.astype("i8")
scipy.sparse.save_npz(folder + "/long.npz", long)

products = {"table": table}
for name, n, m, transform, inverse in [
    ("hadamard", 16, 10, lambda u: scipy.linalg.hadamard(16) @ u / 4, lambda u: scipy.linalg.hadamard(16).T @ u / 4),
    ("dct", 15, 10, lambda u: scipy.fft.dct(u, norm="ortho", axis=0), lambda u: scipy.fft.idct(u, norm="ortho", axis=0)),
]:
    rows, signs, permutation = rng.permutation(n)[:m], rng.choice([-1, 1], n), rng.permutation(n)
    numpy.savez(folder + f"/{name}.npz", n=n, rows=rows, signs=signs, permutation=permutation)
    x, g = rng.normal(size=(n, 3)), rng.normal(size=(m, 3))
    u = numpy.zeros((n, 3))
    u[permutation] = signs[:, None] * x  # W_µi = T[rows_µ, permutation_i] signs_i
    v = numpy.zeros((n, 3))
    v[rows] = g
    products |= {name + "_x": x, name + "_g": g, name + "_Wx": transform(u)[rows], name + "_WTg": signs[:, None] * inverse(v)[permutation]}

a, b = rng.normal(size=(3, 4)), rng.normal(size=(2, 5))
numpy.save(folder + "/A.npy", a)
numpy.save(folder + "/B.npy", b)
x = rng.normal(size=(20, 3))
products |= {"kron_x": x, "kron_Wx": numpy.kron(a, b) @ x}
x = rng.normal(size=(12, 3))
products |= {"basis_x": x, "basis_Bx": scipy.fft.idctn(x.reshape(3, 4, 3), norm="ortho", axes=(0, 1)).reshape(12, 3)}
numpy.savez(folder + "/products.npz", **products)
