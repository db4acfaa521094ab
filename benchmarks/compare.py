"""How fast this version is beside a matrix product, and beside another version, in one run.

    make bench
    make bench AGAINST=commit

Each version runs in a process of its own, in its own environment, on one thread, and they take turns at every step, so
that whatever else the machine does slows both. Printed is the best of several rounds, in milliseconds; multiples of the
product go to ``benchmarks/history``.
"""

import argparse
import inspect
import os
import subprocess
import sys
import time
import warnings

import history

SIZES = {"983 labels": (983, 200, 5, 1000), "31,000 labels": (31_000, 800, 5, 60)}  # d, m, k and rows
ROWS, FEATURES, LABELS = 4000, 2000, 1000


def paper(ls):
    """Return the paper's method, in versions that have nothing else and in those that refine by default."""
    known = inspect.signature(ls.CompressedLabelClassifier).parameters
    settings = {"refiner": None} if "refiner" in known else {}
    return ls.CompressedLabelClassifier("hadamard", "ridge", "omp", random_state=0, **settings)


def steps():
    """Return the functions to be timed, by name; they use only what a version has."""
    import numpy as np

    import labelsense as ls
    from labelsense.data import make_tagged_documents

    found = {}
    for size, (d, m, k, n) in SIZES.items():
        operator = ls.HadamardCompressor(n_measurements=m, random_state=0).fit(d).operator_
        rng = np.random.default_rng(0)
        H = np.array([operator.columns(rng.choice(d, 2 * k, replace=False)).sum(axis=1) for _ in range(n)])
        H = (H + 0.5 * np.sqrt(2 * k / m) * rng.normal(size=H.shape)).astype(np.float32)
        for decoder in (ls.OMPDecoder(10), ls.FoBaDecoder(10), ls.LassoDecoder(10), ls.CoSaMPDecoder(5)):
            name = f"{type(decoder).__name__}, {size}"
            found[name] = lambda decoder=decoder, operator=operator, H=H: decoder.decode(decoder.prepare(operator), H)
    X, Y = make_tagged_documents(ROWS, FEATURES, LABELS, random_state=0)
    dense = X[:, : FEATURES // 2].toarray().astype(np.float32)
    Z = ls.HadamardCompressor(n_measurements=200, random_state=0).fit(LABELS).operator_.compress(Y)
    for solver in ("primal", "dual", "cg"):
        ridge = ls.RidgeLearner(1.0, solver=solver)
        found[f"ridge by {solver}, sparse"] = lambda ridge=ridge: ridge.fit(X, Z)
        found[f"ridge by {solver}, dense"] = lambda ridge=ridge: ridge.fit(dense, Z)
    found["updates of ridge, sparse"] = lambda: ls.RidgeLearner(1.0).partial_fit(X, Z).coef_
    found["kernel ridge"] = lambda: ls.KernelRidgeLearner().fit(X[:2000], Z[:2000])
    clf = paper(ls).fit(X, Y)
    found["fit"] = lambda: paper(ls).fit(X, Y)
    found["predict"] = lambda: clf.predict_topk(X, 5)
    if "budget" in inspect.signature(ls.CompressedLabelClassifier).parameters:
        few = slice(0, 1000)
        refined = ls.CompressedLabelClassifier(budget="fast", random_state=0).fit(X[few], Y[few])
        found["fit, refined"] = lambda: ls.CompressedLabelClassifier(budget="fast", random_state=0).fit(X[few], Y[few])
        found["predict, refined"] = lambda: refined.predict_topk(X[few], 5)
    return found


def yardsticks():
    """Return the products that stand for the speed of the machine, by name: A'H of a size, and X'X."""
    import numpy as np

    rng = np.random.default_rng(0)
    found = {}
    for size, (d, m, _, n) in SIZES.items():
        H, A = rng.normal(size=(n, m)).astype(np.float32), rng.normal(size=(m, d)).astype(np.float32)
        found[f"product, {size}"] = lambda H=H, A=A: H @ A
    X = rng.normal(size=(ROWS, FEATURES // 2)).astype(np.float32)
    found["product"] = lambda: X.T @ X
    return found


def yardstick_of(step):
    """Return the name of the product that a step is a multiple of."""
    return next((f"product, {size}" for size in SIZES if step.endswith(size)), "product")


def work():
    """Say the version and the steps, then time those whose names come in, one a line."""
    import labelsense

    warnings.simplefilter("ignore")
    functions = steps()
    print("\t".join([labelsense.__version__, *functions]), flush=True)
    functions |= yardsticks()
    for line in sys.stdin:
        start = time.perf_counter()
        functions[line.rstrip("\n")]()
        print(time.perf_counter() - start, flush=True)


class Version:
    """A process that times steps."""

    def __init__(self, python, commit):
        env = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        command = [python, __file__, "--work"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.name, *self.steps = self._answer().split("\t")
        self.commit, self.ratios = commit, {}

    def time(self, step):
        print(step, file=self.process.stdin, flush=True)
        return float(self._answer())

    def _answer(self):
        return self.process.stdout.readline().rstrip("\n")


def measure(versions, step, rounds):
    """Return the best times of the versions at a step, NaN for one that does not have it, and of its yardstick."""
    yardstick = yardstick_of(step)
    times = [
        [
            *(version.time(step) if step in version.steps else float("nan") for version in versions),
            versions[-1].time(yardstick),
        ]
        for _ in range(rounds)
    ]
    return [1000 * min(column) for column in zip(*times, strict=True)]


def commit_of(name):
    return subprocess.run(
        ["git", "rev-parse", "--short=7", f"{name}^{{commit}}"], capture_output=True, text=True, check=True
    ).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", nargs="?", help="Python of the environment that the other version is installed in")
    parser.add_argument("--name", help="the commit that it is of")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        return work()
    versions = [Version(args.old, commit_of(args.name))] if args.old else []
    versions.append(Version(sys.executable, commit_of("HEAD")))
    heads = [f"{version.name} {version.commit}" for version in versions]
    print(f"{'milliseconds':<32}" + "".join(f" {head:>16}" for head in [*heads, "product", "/ product"]), end="")
    print(f" {'new / old':>10}" if args.old else "")
    for step in versions[-1].steps:
        *times, product = measure(versions, step, args.rounds)
        for version, best in zip(versions, times, strict=True):
            version.ratios[step] = best / product
        shown = "".join(f" {best:>16.2f}" for best in [*times, product, times[-1] / product])
        print(f"{step:<32}{shown}" + (f" {times[-1] / times[0]:>10.2f}" if args.old else ""), flush=True)
    for version in versions:
        known = {step: ratio for step, ratio in version.ratios.items() if step in version.steps}
        print("wrote", history.write(version.name, version.commit, known).name)
    for step, times in history.regressions(history.read()):
        print(f"WORSE  {step}: {times:.2f} times what the version before took")


if __name__ == "__main__":
    main()
