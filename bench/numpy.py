# The baselines in numpy. Started by the bench command with a directory of
# data (float64; W row-major, signals' side signal by signal, sensors' side
# sensor by sensor); answers "VARIANT REPEATS" on a line of its input with the
# seconds that took. "check-…" writes results for comparison in place of timing.
import sys, time
import numpy as np

directory = sys.argv[1]
clock = time.thread_time if sys.argv[2] == "true" else time.perf_counter


def load(name, *shape):
    return np.fromfile(f"{directory}/{name}.f64").reshape(*shape)


def save(name, values):
    np.asarray(values, np.float64).tofile(f"{directory}/{name}.f64")


shape = load("shape", -1)
m, n, p = (int(v) for v in shape[:3])


# --- The linear algebra, with a row function of one division. ---

row_noise = 1e-6


def rows(y, omega, v):
    d = v + row_noise
    return (y - omega) / d, -1 / d


class Passes:
    """Four products with W and its stored square; signals last or first."""

    def __init__(self, dtype, first):
        w = load("W", m, n).astype(dtype)
        x, c, y = load("x", p, n).astype(dtype), load("c", p, n).astype(dtype), load("y", m, p).astype(dtype)
        self.w, self.w2, self.first = w, w * w, first
        if p == 1:
            self.x, self.c, self.y = x[0], c[0], y[:, 0].copy()
        elif first:
            self.x, self.c, self.y = x, c, y.T.copy()
        else:
            self.x, self.c, self.y = x.T.copy(), c.T.copy(), y
        self.g = np.zeros_like(self.y)

    def forward(self, a, x):
        return x @ a.T if self.first else a @ x

    def backward(self, a, g):
        return g @ a if self.first else a.T @ g

    def run(self):
        v = self.forward(self.w2, self.c)
        self.g, d = rows(self.y, self.forward(self.w, self.x) - v * self.g, v)
        return self.backward(self.w, self.g), -1 / self.backward(self.w2, d)


def two_pass():
    """Scalar variances: W stands for its square by its mean."""
    w, x, c, y = load("W", m, n), load("x", p, n), load("c", p, n), load("y", m, p).T.copy()
    if p == 1:
        x, c, y = x[0], c[0], y[0]
    g = np.zeros_like(y)
    square = np.mean(w * w)

    def run():
        nonlocal g
        v = square * c.sum(axis=-1, keepdims=True)
        g, d = rows(y, (x @ w.T if p > 1 else w @ x) - v * g, v)
        return (g @ w if p > 1 else w.T @ g), -1 / (square * (d + 0 * y).sum(axis=-1))

    return run


def complex_passes():
    """The four products of a complex problem, by c128, with stored squares."""
    w = (load("W", m, n) + 1j * load("W", m, n)[::-1]) / np.sqrt(2)
    w2 = np.abs(w) ** 2
    x, c, y = load("x", p, n).T * (1 + 1j), load("c", p, n).T.copy(), load("y", m, p) * (1 + 1j)
    g = np.zeros_like(y)

    def run():
        nonlocal g
        v = w2 @ c
        g, d = rows(y, w @ x - v * g, v)
        return (g.conj().T @ w).conj().T, -1 / (w2.T @ d)

    return run


# --- The row function of blind calibration, and the denoiser. ---

tail = 42
# Nodes by the larger slope of the log-density at the ends, times half the
# distance: calamp's own rules, the worst sensor deciding for all.
limits = np.array([1, 4, 10, 20, 45, 76, 110])
legendre = [np.polynomial.legendre.leggauss(k) for k in (12, 16, 20, 24, 32, 40, 48, 64)]


def reach(slope, curvature):
    """Where slope·u - curvature·u²/2 has fallen to -tail."""
    return (slope + np.sqrt(slope * slope + 2 * tail * curvature)) / curvature


def gain_moments(count, tau, b, lo, hi):
    """log-norm, mean and variance of s^count exp(-tau s²/2 + b s) on [lo, hi]."""
    root = np.sqrt(b * b + 4 * count * tau)
    mode = np.clip(np.where(b >= 0, 0.5 * (b + root) / tau, 2 * count / (root - b)), lo, hi)
    slope = count / mode - tau * mode + b
    curvature = count / (mode * mode)
    left = np.maximum(lo - mode, -reach(-slope, tau + curvature))
    right = hi - mode
    for _ in range(3):
        right = np.minimum(right, reach(slope, tau + curvature / (1 + 2 / 3 * right / mode)))
    steepness = 0.5 * (right - left) * np.maximum(
        np.abs(slope - left * (tau + curvature / (1 + left / mode))),
        np.abs(slope - right * (tau + curvature / (1 + right / mode))),
    )
    x, w = legendre[np.searchsorted(limits, steepness.max())]
    half, middle = 0.5 * (right - left), 0.5 * (right + left)
    u = middle + half * x[:, None]
    v = u / mode
    weight = w[:, None] * np.exp(u * (slope - 0.5 * tau * u) + count * (np.log1p(v) - v))
    mass = weight.sum(axis=0)
    first = x @ weight / mass
    spread = x[:, None] - first
    variance = half * half * (weight * spread * spread).sum(axis=0) / mass
    log_norm = mode * (b - 0.5 * tau * mode) + count * np.log(mode) + np.log(half * mass)
    return log_norm, mode + middle + half * first, variance


def denoise(lam, sigma, density, power):
    """Posterior mean and variance of a Gauss–Bernoulli entry of mean zero."""
    ratio = power / sigma
    odds = np.log(density) - np.log1p(-density) + 0.5 * (lam * lam * ratio / (power + sigma) - np.log1p(ratio))
    on = 1 / (1 + np.exp(-odds))
    mean = lam * ratio / (1 + ratio)
    return on * mean, on * (power / (1 + ratio) + (1 - on) * mean * mean)


class Iteration(Passes):
    """All that one iteration of blind cal-AMP does, in four passes."""

    def __init__(self, blind=True):
        super().__init__(np.float64, True)
        self.blind = blind
        self.density, self.power, self.noise, self.lo, self.hi = shape[3:8]
        self.count = np.full(m, float(p))
        self.start()

    def forward(self, a, x):
        return x @ a.T if p > 1 else a @ x

    def backward(self, a, g):
        return g @ a if p > 1 else a.T @ g

    def start(self):
        self.x, self.c = np.zeros_like(self.x), np.full_like(self.x, self.density * self.power)
        self.g, self.d = np.zeros_like(self.y), np.zeros_like(self.y)
        self.centre = self.x

    def state(self):
        return [self.x, self.c, self.g, self.d, self.centre]

    def step(self, keep):
        v = self.forward(self.w2, self.c)
        omega = self.forward(self.w, self.x) - v * self.g
        inverse = 1 / (v + self.noise)
        scaled = self.y * inverse
        if self.blind:
            tau, b = self.y * scaled, omega * scaled
            if p > 1:
                tau, b = tau.sum(axis=0), b.sum(axis=0)
            self.log, self.s, self.s_var = gain_moments(self.count, tau, b, self.lo, self.hi)
            g, d = (self.s * self.y - omega) * inverse, np.minimum(0, self.s_var * scaled * scaled - inverse)
        else:
            g, d = (self.y - omega) * inverse, -inverse
        if keep:
            g, d = g + keep * (self.g - g), d + keep * (self.d - d)
        self.g, self.d = g, d
        sigma = -1 / self.backward(self.w2, d)
        self.centre = self.x + keep * (self.centre - self.x) if keep else self.x
        x, c = denoise(self.centre + sigma * self.backward(self.w, g), sigma, self.density, self.power)
        self.change = np.linalg.norm(x - self.x) / np.linalg.norm(x)
        if keep:
            c = c + keep * (self.c - c)
        self.x, self.c = x, c


def iteration():
    """Iterations near the start, where the posteriors of s are wide."""
    it = Iteration()
    it.step(0)
    saved, count = it.state(), 0

    def run():
        nonlocal count
        count += 1
        if count % 20 == 0:
            it.x, it.c, it.g, it.d, it.centre = saved
        it.step(0.9)

    return run


def calibrated():
    """Compressed sensing with known gains, until x changes by less than 1e-10."""
    it = Iteration(blind=False)

    def run():
        it.start()
        for iterations in range(500):
            it.step(0)
            if it.change < 1e-10:
                break
        save("x-found", it.x)
        save("iterations", [iterations + 1])

    return run


def check():
    passes = Passes(np.float64, True) if p > 1 else Passes(np.float64, False)
    r, sigma = passes.run()
    save("r", r)
    save("sigma", sigma)


def check_iteration():
    it = Iteration()
    it.step(0)
    for _ in range(3):
        it.step(0.9)
    save("x-found", it.x)


def moments():
    tau, b = load("tau", -1), load("b", -1)
    count = np.full(len(tau), shape[2])

    def run():
        log_norm, mean, variance = gain_moments(count, tau, b, shape[6], shape[7])
        return mean, variance

    return run


def check_moments():
    mean, variance = moments()()
    save("mean", mean)
    save("variance", variance)


def denoiser():
    lam, sigma = load("lambda", -1), load("sigma", -1)
    return lambda: denoise(lam, sigma, shape[3], shape[4])


variants = {
    "f64": lambda: Passes(np.float64, False).run,
    "f64-first": lambda: Passes(np.float64, True).run,
    "f32": lambda: Passes(np.float32, False).run,
    "f32-first": lambda: Passes(np.float32, True).run,
    "two-pass": two_pass,
    "c128": complex_passes,
    "iteration": iteration,
    "calibrated": calibrated,
    "moments": moments,
    "denoiser": denoiser,
    "check": lambda: check,
    "check-iteration": lambda: check_iteration,
    "check-moments": lambda: check_moments,
}
made = {}
for line in sys.stdin:
    name, repeats = line.split()
    if name not in made:
        made[name] = variants[name]()
    run = made[name]
    start = clock()
    for _ in range(int(repeats)):
        run()
    print(clock() - start, flush=True)
