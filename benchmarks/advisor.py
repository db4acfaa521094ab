"""What the advisor predicts, and what happens: precision on the test rows, memory, model size and time of the fit.

    python benchmarks/advisor.py --data folder [names]

Each data set is a folder with X_train, Y_train, X_test and Y_test as .npz; features are log(1 + count) idf with unit
rows. The advisor sees the training rows only; it is told to hold out runs where info.json says that the test rows are
other sources ("split": "... by source ..."). The fit runs in a fresh process that loads X and Y and fits; its peak
memory is read right after the fit.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelsense import CompressedLabelClassifier, HadamardCompressor, LogTfidfTransformer, RidgeLearner
from labelsense.metrics import precision_at_k
from labelsense.reconstruct import DECODERS

DATA = os.environ.get("LABELSENSE_DATA", str(Path(__file__).resolve().parents[2] / "shared" / "data"))
PARTS = ("X_train", "Y_train", "X_test", "Y_test")
NAMES = ("delicious", "bibtex", "eurlex4k", "debian_debtags", "yso_finna_en_min5", "corel5k")


def load(folder):
    X, Y, X_test, Y_test = (sp.csr_array(sp.load_npz(folder / f"{part}.npz")).astype(np.float32) for part in PARTS)
    scaler = LogTfidfTransformer().fit(X)
    return scaler.transform(X), Y, scaler.transform(X_test), Y_test


def peak_memory():
    """Return the peak memory of this process; ru_maxrss would begin with that of the process that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def fit(folder, settings):
    """Fit as advised and print what it took as JSON: what the fresh process does."""
    X, Y = (sp.load_npz(Path(folder) / f"{part}.npz") for part in PARTS[:2])
    clf = CompressedLabelClassifier(
        HadamardCompressor(settings["n_measurements"], random_state=settings["random_state"]),
        RidgeLearner(settings["alpha"]),
        DECODERS[settings["decoder"]](settings["n_nonzero"]),
        refiner=None,
    )
    start = time.perf_counter()
    clf.fit(X, Y)
    seconds = time.perf_counter() - start
    peak = peak_memory()
    X_test, Y_test = (sp.load_npz(Path(folder) / f"{part}.npz") for part in PARTS[2:])
    top = clf.predict_topk(X_test, 5)
    precision = {f"P@{k}": precision_at_k(Y_test, top, k) for k in (1, 3, 5)}
    size = clf.learner_.coef_.nbytes + clf.learner_.intercept_.nbytes
    print(json.dumps({"seconds": seconds, "peak": peak, "size": size, **precision}))


def compare(name, folder, seed):
    from labelsense.advisor import advise  # here, so that the fresh process is a user's

    data = load(folder)
    about = folder / "info.json"
    apart = about.is_file() and "by source" in json.loads(about.read_text()).get("split", "")
    held_out = "runs" if apart else "rows"
    advice = advise(data[0], data[1], random_state=seed, held_out=held_out)
    print(f"\n{name}, seed {seed}, {held_out} held out\n{advice}\n", flush=True)
    settings = {**advice.to_dict(), "alpha": advice.learner.alpha}
    wanted = {key: settings[key] for key in ("n_measurements", "random_state", "alpha", "decoder", "n_nonzero")}
    with tempfile.TemporaryDirectory() as place:
        for part, M in zip(PARTS, data, strict=True):
            sp.save_npz(Path(place) / f"{part}.npz", M, compressed=False)
        command = [sys.executable, __file__, "--fit", place, json.dumps(wanted)]
        real = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    expected, costs = advice.recommended.expected, advice.costs
    row = [name, advice.n_measurements]
    row += [100 * expected["P@1"], 100 * real["P@1"], 100 * expected["P@5"], 100 * real["P@5"]]
    row += [costs.peak_bytes / 1e6, real["peak"] / 1e6, costs.model_bytes / 1e6, real["size"] / 1e6]
    return [*row, costs.compress_seconds + costs.fit_seconds, real["seconds"], advice.seconds]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES, help="data sets; all of them by default")
    parser.add_argument("--data", default=DATA, help="the folder that has them (LABELSENSE_DATA)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fit", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        return fit(options.fit[0], json.loads(options.fit[1]))
    rows = []
    for name in options.names:
        folder = Path(options.data) / name
        if folder.is_dir():
            rows.append(compare(name, folder, options.seed))
        else:
            print(f"{name}: no folder {folder}; set LABELSENSE_DATA")
    print("predicted / measured")
    print(f"{'data':<18}{'m':>6}{'P@1':>15}{'P@5':>15}{'peak MB':>18}{'model MB':>16}{'fit s':>15}{'advice s':>10}")
    for name, m, *pairs, took in rows:
        shown = [f"{a:.1f} / {b:.1f}" for a, b in zip(pairs[::2], pairs[1::2], strict=True)]
        print(f"{name:<18}{m:>6}{shown[0]:>15}{shown[1]:>15}{shown[2]:>18}{shown[3]:>16}{shown[4]:>15}{took:>10.1f}")


if __name__ == "__main__":
    main()
