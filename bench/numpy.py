# The baselines in numpy. Started by the bench command with the size and the
# file of W (float64, row-major); answers "VARIANT REPEATS" on a line of its
# input with the seconds that took.
import sys, time
import numpy as np

m, n, p = (int(v) for v in sys.argv[1:4])
clock = time.thread_time if sys.argv[4] == "true" else time.perf_counter
w = np.fromfile(sys.argv[5]).reshape(m, n)
noise = 1e-6


def rows(y, omega, v):
    d = v + noise
    return (y - omega) / d, -1 / d


def four_pass(dtype, signals_first):
    w1 = w.astype(dtype)
    w2 = w1 * w1
    rng = np.random.default_rng(0)
    if p == 1:
        x, c = rng.normal(size=n).astype(dtype), rng.random(n).astype(dtype)
        y = (w1 @ x).astype(dtype)
        g = np.zeros(m, dtype)

        def run():
            nonlocal g
            v = w2 @ c
            g, dg = rows(y, w1 @ x - v * g, v)
            return -1 / (w2.T @ dg), w1.T @ g
    elif signals_first:
        x, c = rng.normal(size=(p, n)).astype(dtype), rng.random((p, n)).astype(dtype)
        y = x @ w1.T
        g = np.zeros((p, m), dtype)

        def run():
            nonlocal g
            v = c @ w2.T
            g, dg = rows(y, x @ w1.T - v * g, v)
            return -1 / (dg @ w2), g @ w1
    else:
        x, c = rng.normal(size=(n, p)).astype(dtype), rng.random((n, p)).astype(dtype)
        y = w1 @ x
        g = np.zeros((m, p), dtype)

        def run():
            nonlocal g
            v = w2 @ c
            g, dg = rows(y, w1 @ x - v * g, v)
            return -1 / (w2.T @ dg), w1.T @ g
    return run


def two_pass():
    rng = np.random.default_rng(0)
    x, c = rng.normal(size=(p, n)), rng.random((p, n))
    if p == 1:
        x, c = x[0], c[0]
    y = x @ w.T
    g = np.zeros_like(y)
    square = np.mean(w * w)

    def run():
        nonlocal g
        v = square * c.sum(axis=-1, keepdims=True)
        g, dg = rows(y, x @ w.T - v * g, v)
        return -1 / (square * (dg + 0 * y).sum(axis=-1)), g @ w

    return run


variants = {
    "f64": lambda: four_pass(np.float64, False),
    "f64-first": lambda: four_pass(np.float64, True),
    "f32": lambda: four_pass(np.float32, False),
    "f32-first": lambda: four_pass(np.float32, True),
    "two-pass": two_pass,
}
made = {}
for line in sys.stdin:
    name, repeats = line.split()
    if name not in made:
        made[name] = variants[name]()
        made[name]()
    run = made[name]
    start = clock()
    for _ in range(int(repeats)):
        run()
    print(clock() - start, flush=True)
