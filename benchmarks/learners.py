"""How fast and how accurate the learners are, against the tools a user would pick instead.

    make bench-learners LABELSENSE_DATA=folder LABELSENSE_PEERS=peers.py

Every figure of a data set comes from one run on one machine: read the ratios, not the seconds. The peers run in an
environment of their own, by the script LABELSENSE_PEERS, which prints one JSON line for each; without it their columns
are left out. All get the same features, log(1 + count) idf with unit rows.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack

from labelsense import (
    CompressedLabelClassifier,
    HadamardCompressor,
    KernelRidgeLearner,
    LogTfidfTransformer,
    OMPDecoder,
    OneVsAllClassifier,
    RBFKernel,
    RidgeLearner,
    WhitenedCompressor,
)
from labelsense.data import make_tagged_documents
from labelsense.metrics import precision_at_k
from labelsense.regress.in_memory import as_design
from labelsense.regress.kernels import kernel_matrix

SHARED = Path(__file__).resolve().parents[2] / "shared"
DATA = Path(os.environ.get("LABELSENSE_DATA", SHARED / "data"))
PEERS = Path(os.environ.get("LABELSENSE_PEERS", SHARED / "tools" / "peers.py"))
SEEDS = range(6)


def load(name):
    parts = [
        sp.csr_array(sp.load_npz(DATA / name / f"{part}.npz")) for part in ("X_train", "Y_train", "X_test", "Y_test")
    ]
    X, Y, X_test, Y_test = (part.astype(np.float32) for part in parts)
    scaler = LogTfidfTransformer().fit(X)
    return scaler.transform(X), Y, scaler.transform(X_test), Y_test


def seconds(function):
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def precisions(Y, top):
    return np.array([100 * precision_at_k(Y, top, k) for k in (1, 3, 5)])


def cells(values):
    return " ".join(f"{value:5.2f}" for value in values)


def peers(name, wanted):
    """Run the peers on a data set; return their JSON lines."""
    if not (PEERS.is_file() and Path(".venv-peers/bin/python").is_file()):
        print("  (no peers: set LABELSENSE_PEERS and run make bench-learners)")
        return []
    command = [".venv-peers/bin/python", str(PEERS), str(DATA / name), *wanted]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    for row in rows:
        scores = " ".join(f"{row[f'P@{k}']:5.2f}" for k in (1, 3, 5))
        print(
            f"  {row['peer']:<38} {scores}   fit {row['fit_s']:7.2f} s   predict {row['predict_s']:6.2f} s", flush=True
        )
    return rows


def ours(title, model, data):
    """Fit and predict; print the line; return the times."""
    X, Y, X_test, Y_test = data
    _, fit = seconds(lambda: model.fit(X, Y))
    time.sleep(0.2)  # the threads of BLAS spin for a moment after their last product
    top, predict = seconds(lambda: model.predict_topk(X_test, 5))
    learner = model.learner_
    about = f"{getattr(learner, 'solver_', 'kernel')}, alpha {learner.alpha_:.3g}"
    print(
        f"  {title:<38} {cells(precisions(Y_test, top))}   fit {fit:7.2f} s   predict {predict:6.2f} s   ({about})",
        flush=True,
    )
    return fit, predict, precisions(Y_test, top)


def compressed(m, learner, seed=0):
    """Return a model with the paper's matrix and decoder."""
    return CompressedLabelClassifier(
        HadamardCompressor(m), learner, OMPDecoder(), refiner=None, random_state=seed, n_jobs=2
    )


def whitened(m, learner, seed=0):
    decoder = OMPDecoder(penalty=0.1)
    return CompressedLabelClassifier(WhitenedCompressor(m), learner, decoder, refiner=None, random_state=seed, n_jobs=2)


MATRICES = (compressed, whitened)


def verdict(what, value, sign, target):
    met = value >= target if sign == ">=" else value <= target
    print(f"  {'met   ' if met else 'MISSED'} {what} = {value:.2f}, target {sign} {target}", flush=True)


def eurlex():
    print("EURLex-4K, m = 400")
    rivals = peers("eurlex4k", ["pecos", "napkinxc", "omikuji"])
    data = load("eurlex4k")
    runs = {
        make: [
            ours(f"ridge 0.7, {make.__name__}, seed {seed}", make(400, RidgeLearner(0.7), seed), data) for seed in SEEDS
        ]
        for make in MATRICES
    }
    for make, rows in runs.items():
        print(f"  mean of {len(rows)} seeds, {make.__name__}: {cells(np.mean([row[2] for row in rows], axis=0))}")
    fit, predict = (min(run[i] for run in runs[whitened]) for i in (0, 1))
    loo, *_ = ours("ridge, leave-one-out, whitened", whitened(400, RidgeLearner("loo", random_state=0)), data)
    verdict(f"P@1 of ridge, mean of {len(SEEDS)} seeds", np.mean([run[2][0] for run in runs[whitened]]), ">=", 81.5)
    if rivals:
        verdict("fastest peer's fit / ours", min(row["fit_s"] for row in rivals) / fit, ">=", 3)
        verdict("leave-one-out fit / fastest peer's fit", loo / min(row["fit_s"] for row in rivals), "<=", 1)
        verdict("fastest peer's prediction / ours", min(row["predict_s"] for row in rivals) / predict, ">=", 10)
    verdict("leave-one-out fit / plain fit", loo / fit, "<=", 3.3)


def bare_kernel_ridge(X, m):
    """Return the seconds of the kernel matrix, spotrf and spotrs alone."""
    K, kernel_time = seconds(lambda: kernel_matrix(RBFKernel(1.0), as_design(X)))
    K = np.asfortranarray(np.tril(K).T)
    K[np.diag_indices_from(K)] += 0.3
    (L, _), factor = seconds(lambda: lapack.spotrf(K, lower=0, overwrite_a=1, clean=0))
    B = np.asfortranarray(np.random.default_rng(0).normal(size=(len(L), m)).astype(np.float32))
    _, solve = seconds(lambda: lapack.spotrs(L, B, lower=0, overwrite_b=1))
    return kernel_time, factor, solve


def kernel():
    print("EURLex-4K, kernel ridge, m = 400")
    data = load("eurlex4k")
    ours("kernel ridge 0.3, compressed, seed 0", compressed(400, KernelRidgeLearner("rbf", 0.3)), data)
    runs = [
        ours(f"kernel ridge 0.3, whitened, seed {seed}", whitened(400, KernelRidgeLearner("rbf", 0.3), seed), data)
        for seed in SEEDS[:3]
    ]
    fits = [run[0] for run in runs]
    for k, mean, target in zip((1, 3, 5), np.mean([run[2] for run in runs], axis=0), (83.0, 70.3, 58.8), strict=True):
        verdict(f"P@{k}, mean of {len(runs)} seeds", mean, ">=", target)
    kernel_time, factor, solve = bare_kernel_ridge(data[0], 400)
    print(f"  bare: kernel matrix {kernel_time:.2f} s, spotrf {factor:.2f} s, spotrs {solve:.2f} s")
    verdict("fit / (kernel matrix + spotrf + spotrs)", min(fits) / (kernel_time + factor + solve), "<=", 1.5)
    verdict("fit / (spotrf + spotrs)", min(fits) / (factor + solve), "<=", 1.5)
    half = 0.5 * 4e-9 * data[0].shape[0] ** 2
    low = whitened(400, KernelRidgeLearner("rbf", 0.3, max_memory=half, random_state=0))
    ours(f"the same within {half:.2f} GB, half of it", low, data)
    ours("kernel ridge, leave-one-out", whitened(400, KernelRidgeLearner("rbf", "loo", random_state=0)), data)


def debtags():
    print("debian_debtags, m = 150")
    rivals = peers("debian_debtags", ["pecos", "napkinxc", "omikuji"])
    data = load("debian_debtags")
    fit, *_ = ours("ridge, alpha held out", compressed(150, RidgeLearner("loo", random_state=0)), data)
    again = compressed(150, RidgeLearner("loo", random_state=0))
    fit = min(fit, ours("  again", again, data)[0])
    *_, best = ours("one-against-all at that alpha", OneVsAllClassifier(RidgeLearner(again.learner_.alpha_)), data)
    verdict("P@1 of one-against-all at the chosen alpha", best[0], ">=", 79)
    if rivals:
        verdict("fit with the choice of alpha / fastest peer's fit", fit / min(r["fit_s"] for r in rivals), "<=", 1)
    honest_choice(data)


def honest_choice(data):
    """Show how far the held-out estimate is from the error on the test rows."""
    X, Y, X_test, Y_test = data
    model = compressed(150, RidgeLearner("loo", random_state=0)).fit(X, Y)
    Z_test = model.compressor_.operator_.compress(Y_test)
    for alpha, estimate in model.learner_.alpha_errors_.items():
        true = ((compressed(150, RidgeLearner(alpha)).fit(X, Y).measure(X_test) - Z_test) ** 2).mean()
        print(f"    alpha {alpha:8.3f}: held-out error {estimate:.5f}, test error {true:.5f}", flush=True)


def yso():
    print("yso_finna_en_min5, m = 1000")
    data = load("yso_finna_en_min5")
    p = data[0].shape[1]
    fit, *_ = ours("ridge, alpha 1", compressed(1000, RidgeLearner(1.0)), data)
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")
    G = np.asfortranarray(np.eye(p, dtype=np.float32) * 2)
    _, factor = seconds(lambda: lapack.spotrf(G, lower=1, overwrite_a=1, clean=0))
    print(f"  bare spotrf of the {p} x {p} matrix: {factor:.2f} s")
    verdict("whole fit / bare factorisation", fit / factor, "<=", 1.5)


def decoding():
    print("Gain over HadamardCompressor and OMP for the same ridge regression: a fifth of the training rows held out")
    sets = [("bibtex", 100, 1.0), ("corel5k", 150, 1.0), ("debian_debtags", 150, 1.0), ("delicious", 200, 1.0)]
    variants = {
        "nonnegative": (compressed, OMPDecoder(nonnegative=True)),
        "whitened": (whitened, OMPDecoder()),
        "whitened, penalty 0.1": (whitened, OMPDecoder(penalty=0.1)),
        "whitened, penalty 0.2": (whitened, OMPDecoder(penalty=0.2)),
    }
    for name, m, alpha in [*sets, ("eurlex4k", 400, 0.7)]:
        X, Y, *_ = load(name)
        held_out = np.random.default_rng(0).permutation(X.shape[0]) < X.shape[0] // 5
        plain, gains = [], {title: [] for title in variants}
        for seed in SEEDS:
            models = {make: make(m, RidgeLearner(alpha), seed).fit(X[~held_out], Y[~held_out]) for make in MATRICES}
            plain.append(precisions(Y[held_out], models[compressed].predict_topk(X[held_out], 5)))
            for title, (make, decoder) in variants.items():
                models[make].decoder_ = decoder
                gains[title].append(precisions(Y[held_out], models[make].predict_topk(X[held_out], 5)) - plain[-1])
        print(f"  {name}, m = {m}: {cells(np.mean(plain, axis=0))}, {len(SEEDS)} seeds", flush=True)
        for title, rows in gains.items():
            error = np.std(rows, axis=0, ddof=1) / np.sqrt(len(rows))
            line = "   ".join(f"{gain:+5.2f} +- {e:.2f}" for gain, e in zip(np.mean(rows, axis=0), error, strict=True))
            print(f"    {title:<24} {line}", flush=True)


def growth():
    print("How the time of a fit grows: exponents of n, p and m, for each solver (made-up documents)")
    base = {"n": 3000, "p": 2000, "m": 100}
    for solver in ("primal", "dual", "cg"):
        line = []
        for letter, factors in (("n", (1, 2, 4)), ("p", (1, 2, 4)), ("m", (1, 4, 16))):
            times = []
            for factor in factors:
                size = {**base, letter: base[letter] * factor}
                X, _ = make_tagged_documents(size["n"], size["p"], 100, random_state=0)
                Z = np.random.default_rng(0).normal(size=(size["n"], size["m"])).astype(np.float32)
                learner = RidgeLearner(1.0, solver=solver)
                times.append(min(seconds(lambda X=X, Z=Z, learner=learner: learner.fit(X, Z))[1] for _ in range(3)))
            exponent = np.polyfit(np.log(factors), np.log(times), 1)[0]
            cells = " ".join(f"{t:6.3f}" for t in times)
            line.append(f"{letter} x {'/'.join(map(str, factors))}: {cells} s, ~{letter}^{exponent:.2f}")
        print(f"  {solver:<7} " + "   ".join(line), flush=True)


PARTS = {
    "eurlex": eurlex,
    "kernel": kernel,
    "debtags": debtags,
    "yso": yso,
    "decoding": decoding,
    "growth": growth,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"which of: {', '.join(PARTS)}")
    for part in parser.parse_args().parts:
        if part != "growth" and not DATA.is_dir():
            print(f"{part}: no data in {DATA}; set LABELSENSE_DATA")
        elif len(sys.argv) == 2:
            PARTS[part]()
        else:  # each part in a process of its own, so that peak memory is its own
            subprocess.run([sys.executable, __file__, part], check=False)


if __name__ == "__main__":
    main()
