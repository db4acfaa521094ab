"""How fast labels are decoded: against scikit-learn, SPAMS, one transform and one matrix product.

    make bench

One thread. Rows are noisy measurements of 2k-sparse label vectors; every decoder returns 2k labels, CoSaMP k. All
figures are microseconds a row and, after the slash, multiples of the dense product A'H by BLAS on the same rows,
taken in the same run: the best of several rounds in which the contestants take turns.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.linear_model import lars_path, orthogonal_mp
from threadpoolctl import threadpool_limits

from labelsense import CoSaMPDecoder, FoBaDecoder, HadamardCompressor, LassoDecoder, OMPDecoder

try:
    import spams
except ImportError:
    spams = None

# labels d, measurements m, sparsity k, rows; the targets of OMP and of a transform, as multiples of the product
SIZES = [
    (983, 200, 5, 2000, 1.4, 10),
    (983, 200, 10, 2000, None, 10),
    (4000, 400, 5, 800, 0.55, 20),
    (4000, 400, 10, 800, None, 20),
    (31_000, 800, 5, 120, 0.25, 30),
    (31_000, 800, 10, 120, None, 30),
    (1_000_000, 1000, 5, 12, None, None),
]
CACHE = 2**15  # numbers of a block of correlations that stay in cache


def measurements(operator, k, n, seed=0):
    rng = np.random.default_rng(seed)
    H = np.zeros((n, operator.n_measurements), np.float32)
    for h in H:
        h[:] = operator.columns(rng.choice(operator.n_labels, 2 * k, replace=False)).sum(axis=1)
    noise = rng.normal(size=H.shape)
    return (H + 0.5 * noise * np.sqrt(2 * k / operator.n_measurements)).astype(np.float32)


def aligned(shape):
    """Return an array that starts on a cache line, as the decoders' buffers do."""
    size = int(np.prod(shape))
    raw = np.empty(size + 16, np.float32)
    start = -raw.ctypes.data // 4 % 16
    return raw[start : start + size].reshape(shape)


def contestants(operator, H, k):
    """Yield (name, function, rows it handles); the slow ones get fewer rows."""
    d, n = operator.n_labels, len(H)
    state = operator.kernel()
    out = aligned((max(1, min(n, CACHE // operator.order)), operator.order))

    def transform():
        for start in range(0, n, len(out)):
            block = H[start : start + len(out)]
            state.correlate(block, out[: len(block)])

    yield "transform", transform, n
    for name, decoder in [
        ("OMP", OMPDecoder(2 * k)),
        ("FoBa", FoBaDecoder(2 * k)),
        ("LARS", LassoDecoder(2 * k)),
        ("CoSaMP", CoSaMPDecoder(k)),
    ]:
        yield name, lambda decoder=decoder: decoder.decode(state, H), n
    if d > 100_000:
        return  # A alone would take gigabytes
    A = operator.columns(np.arange(d))
    C = np.empty((min(n, 512), d), np.float32)

    def product():
        for start in range(0, n, 512):
            block = H[start : start + 512]
            np.matmul(block, A, out=C[: len(block)])

    yield "product", product, n
    few = max(2, min(20, 200_000 // d))
    tall, double = np.asfortranarray(A), A.astype(np.float64)
    targets = H[:few].T.astype(np.float64)
    yield "sklearn OMP", lambda: orthogonal_mp(double, targets, n_nonzero_coefs=2 * k, precompute=False), few
    yield "sklearn LARS", lambda: lars_path(double, targets[:, 0], method="lasso", max_iter=2 * k), 1
    if spams is not None:
        some = min(n, max(10, 400_000 // d))
        columns = np.asfortranarray(H[:some].T)
        yield "SPAMS", lambda: spams.omp(columns, tall, L=2 * k, numThreads=1), some


def measure(operator, H, k, rounds):
    best = {}
    field = list(contestants(operator, H, k))
    for turn in range(rounds):
        for name, function, rows in field:
            if turn > 1 and ("sklearn" in name or name == "SPAMS"):
                continue
            start = time.perf_counter()
            function()
            best[name] = min(best.get(name, np.inf), 1e6 * (time.perf_counter() - start) / rows)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    if spams is None:
        print("SPAMS is not installed here: pip install spams-bin adds its column.")
    names = ["product", "transform", "OMP", "FoBa", "LARS", "CoSaMP", "SPAMS", "sklearn OMP", "sklearn LARS"]
    print(f"{'labels':>9} {'m':>5} {'k':>3} " + " ".join(f"{name:>16}" for name in names))
    verdicts = []
    warnings.simplefilter("ignore")  # scikit-learn's, about the ends of its paths
    with threadpool_limits(1):
        for d, m, k, n, omp_target, transform_target in SIZES:
            operator = HadamardCompressor(n_measurements=m, random_state=0).fit(d).operator_
            best = measure(operator, measurements(operator, k, n), k, args.rounds)
            product = best.get("product")
            cells = []
            for name in names:
                value = best.get(name)
                ratio = "" if not value or not product or name == "product" else f" / {value / product:.2f}"
                cells.append(f"{f'{value:.1f}{ratio}' if value else '-':>16}")
            print(f"{d:>9} {m:>5} {k:>3} " + " ".join(cells), flush=True)
            if product:
                where = f"d={d} k={k}"
                verdicts.append((f"{where}: product / transform", product / best["transform"], ">=", transform_target))
                if omp_target:
                    verdicts.append((f"{where}: OMP / product", best["OMP"] / product, "<=", omp_target))
                verdicts.append((f"{where}: scikit-learn OMP / OMP", best["sklearn OMP"] / best["OMP"], ">=", 100))
                if "SPAMS" in best:
                    verdicts.append((f"{where}: SPAMS / OMP", best["SPAMS"] / best["OMP"], ">=", 1))
    print()
    for what, ratio, sign, target in verdicts:
        met = ratio >= target if sign == ">=" else ratio <= target
        print(f"{'met   ' if met else 'MISSED'} {what} = {ratio:.2f}, target {sign} {target}")


if __name__ == "__main__":
    main()
