"""How fast data files are read, against scikit-learn and a bare pass; how much memory converting them takes.

    python benchmarks/formats.py

Makes a file in the Extreme Classification format in a temporary folder, which is removed at the end. Speeds are
megabytes of text a second: the best of several rounds in which the contestants take turns, on a smaller file of the
same kind. The bare pass reads the file in blocks and counts its lines. Each conversion runs in a process of its own,
whose peak memory is shown.
"""

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from labelsense.data import (
    Examples,
    make_tagged_documents,
    read_examples,
    stream_examples,
    write_examples,
)

TARGETS = ["out.libsvm", "out.xc", "out.xc.gz", "out"]  # the last is a folder of npz files
MEMORY = 500  # megabytes
RATIO = 10  # to scikit-learn


def documents(megabytes):
    """Yield about so many megabytes of tagged documents with tf-idf-like values: some 16 bytes a feature."""
    X, Y = make_tagged_documents(10_000, 100_000, 30_000, words_per_row=120, random_state=0)
    X.data = np.random.default_rng(0).random(X.nnz, dtype=np.float32)
    for _ in range(max(1, round(megabytes * 1e6 / (16 * X.nnz)))):
        yield Examples(X, Y)


def bare_pass(path):
    with path.open("rb", buffering=0) as file:
        while block := file.read(2**23):
            block.count(b"\n")


def measure_reading(folder, rounds):
    paths = {name: folder / f"small.{name}" for name in ("xc", "libsvm")}
    for path in paths.values():
        write_examples(path, documents(60))
    field = {
        "bare pass": lambda: bare_pass(paths["libsvm"]),
        "xc": lambda: read_examples(paths["xc"]),
        "libsvm": lambda: read_examples(paths["libsvm"]),
        "libsvm in batches": lambda: sum(len(batch) for batch in stream_examples(paths["libsvm"])),
        "load_svmlight_file": lambda: load_svmlight_file(str(paths["libsvm"]), multilabel=True, dtype=np.float32),
    }
    best = {}
    for _ in range(rounds):
        for name, function in field.items():
            start = time.perf_counter()
            function()
            best[name] = min(best.get(name, np.inf), time.perf_counter() - start)
    size = paths["libsvm"].stat().st_size / 1e6
    print(f"reading {size:.0f} MB")
    for name, seconds in best.items():
        print(f"  {name:<20} {size / seconds:8.0f} MB/s {best['load_svmlight_file'] / seconds:8.1f} times scikit-learn")
    return {name: best["load_svmlight_file"] / best[name] for name in ("xc", "libsvm")}


def peak_memory():
    """Return megabytes. What getrusage tells on Linux counts the process that started this one, too."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def convert(source, target):
    start = time.perf_counter()
    write_examples(target, stream_examples(source))
    print(json.dumps({"seconds": time.perf_counter() - start, "peak": peak_memory()}))


def measure_converting(folder, megabytes):
    source = folder / "large.xc"
    write_examples(source, documents(megabytes))
    size = source.stat().st_size / 1e6
    print(f"converting {size:.0f} MB of xc")
    peaks = {}
    for target in TARGETS:
        command = [sys.executable, __file__, "--convert", source, folder / target]
        figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        peaks[target] = figures["peak"]
        print(
            f"  to {target:<17} {size / figures['seconds']:8.0f} MB/s {figures['peak']:8.0f} MB at the peak", flush=True
        )
    return peaks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=1000, help="size of the file to convert")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--convert", nargs=2, type=Path, metavar=("FROM", "TO"), help="only convert a file")
    args = parser.parse_args()
    if args.convert:
        convert(*args.convert)
        return
    with tempfile.TemporaryDirectory() as name:
        ratios = measure_reading(Path(name), args.rounds)
        peaks = measure_converting(Path(name), args.megabytes)
    print()
    for name, ratio in ratios.items():
        print(f"{'met   ' if ratio >= RATIO else 'MISSED'} {name}: {ratio:.1f} times scikit-learn, target >= {RATIO}")
    for target, peak in peaks.items():
        print(f"{'met   ' if peak <= MEMORY else 'MISSED'} to {target}: {peak:.0f} MB, target <= {MEMORY}")


if __name__ == "__main__":
    main()
