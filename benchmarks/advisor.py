"""What the advisor predicts, and what happens: precision on the test rows, peak memory and time of the fit.

    python benchmarks/advisor.py --data folder [names]

Each data set is a folder with X_train, Y_train, X_test and Y_test as .npz. The advisor sees the training rows only. The
fit runs in a fresh process that loads X and Y and fits a classifier without settings, which chooses what was advised;
its peak memory is read right after the fit. What is predicted of it is the part of the regressions.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelsense import CompressedLabelClassifier
from labelsense.metrics import precision_at_k

DATA = os.environ.get("LABELSENSE_DATA", str(Path(__file__).resolve().parents[2] / "shared" / "data"))
PARTS = ("X_train", "Y_train", "X_test", "Y_test")
NAMES = ("delicious", "bibtex", "eurlex4k", "debian_debtags", "yso_finna_en_min5", "corel5k")


def load(folder, parts=PARTS):
    return [sp.csr_array(sp.load_npz(folder / f"{part}.npz")).astype(np.float32) for part in parts]


def peak_memory():
    """Return the peak memory of this process; ru_maxrss would begin with that of the process that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def fit(folder, seed):
    """Fit and print what it took as JSON: what the fresh process does."""
    X, Y = load(Path(folder), PARTS[:2])
    clf = CompressedLabelClassifier(random_state=seed)
    start = time.perf_counter()
    clf.fit(X, Y)
    seconds = time.perf_counter() - start
    peak = peak_memory()
    X_test, Y_test = load(Path(folder), PARTS[2:])
    top = clf.predict_topk(X_test, 5)
    precision = {f"P@{k}": precision_at_k(Y_test, top, k) for k in (1, 3, 5)}
    print(json.dumps({"seconds": seconds, "peak": peak, **precision}))


def compare(name, folder, seed):
    from labelsense.advisor import advise  # here, so that the fresh process is a user's

    advice = advise(*load(folder, PARTS[:2]), random_state=seed)
    print(f"\n{name}, seed {seed}\n{advice}\n", flush=True)
    command = [sys.executable, __file__, "--fit", str(folder), "--seed", str(seed)]
    real = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    expected, costs = advice.expected, advice.costs
    row = [name, advice.n_measurements]
    row += [100 * expected["P@1"], 100 * real["P@1"], 100 * expected["P@5"], 100 * real["P@5"]]
    return [*row, costs.peak_bytes / 1e6, real["peak"] / 1e6, costs.fit_seconds, real["seconds"], advice.seconds]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES, help="data sets; all of them by default")
    parser.add_argument("--data", default=DATA, help="the folder that has them (LABELSENSE_DATA)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        return fit(options.fit, options.seed)
    rows = []
    for name in options.names:
        folder = Path(options.data) / name
        if folder.is_dir():
            rows.append(compare(name, folder, options.seed))
        else:
            print(f"{name}: no folder {folder}; set LABELSENSE_DATA")
    print("predicted / measured")
    print(f"{'data':<18}{'m':>6}{'P@1':>15}{'P@5':>15}{'peak MB':>18}{'fit s':>16}{'advice s':>10}")
    for name, m, *pairs, took in rows:
        shown = [f"{a:.1f} / {b:.1f}" for a, b in zip(pairs[::2], pairs[1::2], strict=True)]
        print(f"{name:<18}{m:>6}{shown[0]:>15}{shown[1]:>15}{shown[2]:>18}{shown[3]:>16}{took:>10.1f}")


if __name__ == "__main__":
    main()
