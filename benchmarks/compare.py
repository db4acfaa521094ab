"""How fast this version is beside another one, in one run.

    make bench AGAINST=v0.1.0

Each version runs in a process of its own, in its own environment, and they take turns at every step, so that whatever
else the machine does slows both. Printed is the best of several rounds, in milliseconds. Ratios to the first version go
to ``benchmarks/history``.
"""

import argparse
import inspect
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
    """Return the functions to be timed, by name; they use only what all versions have."""
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
    return found


def work():
    """Time the steps whose names come in, one a line."""
    warnings.simplefilter("ignore")
    functions = steps()
    print("\t".join(functions), flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        functions[line.rstrip("\n")]()
        print(time.perf_counter() - start, flush=True)


class Version:
    """A process that times steps."""

    def __init__(self, python):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([python, __file__, "--work"], stdin=pipe, stdout=pipe, text=True)

    def answer(self):
        return self.process.stdout.readline().rstrip("\n")

    def time(self, name):
        print(name, file=self.process.stdin, flush=True)
        return float(self.answer())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", nargs="?", help="Python of the environment that the other version is installed in")
    parser.add_argument("--name", default="old", help="what to call it")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        return work()
    versions = [Version(args.old), Version(sys.executable)]
    names = [version.answer().split("\t") for version in versions][1]
    ratios = {}
    print(f"{'milliseconds':<32} {args.name[:12]:>12} {'new':>12} {'new / old':>10}")
    for name in names:
        rounds = [[version.time(name) for version in versions] for _ in range(args.rounds)]
        old, new = (1000 * min(times) for times in zip(*rounds, strict=True))
        ratios[name] = new / old
        print(f"{name:<32} {old:>12.1f} {new:>12.1f} {ratios[name]:>10.2f}", flush=True)
    if args.name == history.REFERENCE:
        print("wrote", history.write(ratios))
        for name, times in history.regressions(history.read()):
            print(f"WORSE  {name}: {times:.2f} times what the version before took")


if __name__ == "__main__":
    main()
