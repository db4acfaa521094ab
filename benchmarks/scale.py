"""Training past memory and past one process: what it takes, and whether the model stays the same.

make bench-scale                                          # everything, with a file of 5 GB: hours
python benchmarks/scale.py --only equal --gigabytes 0.05  # one part, at any size

Results are printed, and kept as JSON lines in benchmarks/scale.jsonl, from which benchmarks/schedule.py predicts.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelsense import load_model
from labelsense.data import Examples, write_examples

RESULTS = Path(__file__).with_name("scale.jsonl")
ROWS = 20_000  # made at once
WORDS, LABELS, LABEL_WORDS = 200_000, 4000, 3


def keep(part, **figures):
    """Print figures, and keep them."""
    print(f"{part}: " + ", ".join(f"{name} {value}" for name, value in figures.items()), flush=True)
    with RESULTS.open("a") as file:
        file.write(json.dumps({"part": part, **figures}) + "\n")


def zipf(rng, n, size):
    """Return numbers below n, of which number j is drawn about as often as 1 / (j + 1)."""
    return np.minimum((n ** rng.uniform(size=size)).astype(np.int64) - 1, n - 1)


def write_texts(path, gigabytes, seed=0):
    """Write texts of 60 words with 3 labels, each of which is told by its own words; return the number of rows."""
    rng, rows = np.random.default_rng(seed), 0

    def batches():
        nonlocal rows
        while not rows or path_size(path) < gigabytes * 1e9:
            labels = zipf(rng, LABELS, (ROWS, 3))
            telling = WORDS + LABEL_WORDS * labels[:, :, None] + rng.integers(0, LABEL_WORDS, (ROWS, 3, 4))
            words = np.concatenate([zipf(rng, WORDS, (ROWS, 48)), telling.reshape(ROWS, 12)], axis=1)
            rows += ROWS
            texts = [" ".join(f"w{word}" for word in row) for row in words.tolist()]
            yield Examples(texts, [[f"label {j}" for j in sorted(set(row))] for row in labels.tolist()])

    write_examples(path, batches())
    return rows


def path_size(path):
    """Return the size of a file that is being written under another name."""
    return max((file.stat().st_size for file in path.parent.glob(f"*{path.name}*")), default=0)


def command(*words, **options):
    """Run labelsense; return what it printed as JSON, its seconds, and the peak memory of it and its children."""
    script = (
        "import json, resource, sys, time; from labelsense import cli; sys.argv[0] = 'labelsense'\n"
        "try:\n    cli.main()\nexcept SystemExit as end:\n    assert not end.code, end\n"
        "who = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN\n"
        "peaks = [resource.getrusage(each).ru_maxrss / 1024 for each in who]\n"
        "print(json.dumps(peaks))"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words), "--json"],
        capture_output=True,
        text=True,
        check=True,
        **options,
    )
    report, peaks = map(json.loads, done.stdout.splitlines())
    return report, time.perf_counter() - start, *peaks


def refined(path, output, memory, **choices):
    """Train with refinement in a process of its own; return its seconds and the peak of its memory."""
    script = (
        "import json, logging, resource, sys; from pathlib import Path\n"
        "from labelsense._progress import verbosity; from labelsense import out_of_core\n"
        "out_of_core.EXPANSION = 1e6\n"  # in chunks, whatever the size
        "logging.basicConfig(format='%(asctime)s %(message)s', level=logging.INFO)\n"
        "path, output, memory, choices = sys.argv[1:]\n"
        "with verbosity(1):\n"
        "    out_of_core.train_file(Path(path), Path(output), json.loads(choices), memory=float(memory))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    words = [path, output, memory, json.dumps({"refiner": "auto", "hold_out": False, **choices})]
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)], stdout=subprocess.PIPE, text=True, check=True
    )
    return time.perf_counter() - start, float(done.stdout)


def big(folder, gigabytes):
    """Train on a file within 1.5 GB."""
    path = folder / "big.jsonl"
    rows = write_texts(path, gigabytes)
    report, seconds, peak, _ = command(
        "train", path, "-o", folder / "m", "--memory", "1.5G", "--no-hold-out", "--alpha", 1
    )
    keep(
        "big",
        GB=round(path.stat().st_size / 1e9, 2),
        rows=rows,
        seconds=round(seconds),
        peak_MB=round(peak),
        in_chunks=report.get("out_of_core", False),
    )


def equal(folder, gigabytes):
    """Train on a file in memory and in chunks."""
    path = folder / "some.jsonl"
    rows = write_texts(path, gigabytes)
    for name, limit in (("whole", "900G"), ("chunks", "1G")):
        report, seconds, peak, _ = command("train", path, "-o", folder / name, "--memory", limit, "--alpha", 1)
        keep(
            "equal",
            rows=rows,
            how=name,
            seconds=round(seconds, 1),
            peak_MB=round(peak),
            P1=report["P@1"],
            P5=report["P@5"],
        )
    whole, chunks = (load_model(folder / name) for name in ("whole", "chunks"))
    write_texts(folder / "others.jsonl", 0, seed=1)
    texts = [json.loads(line)["text"] for line in (folder / "others.jsonl").open()][:5000]
    H = [model.measure(texts) for model in (whole, chunks)]
    tops = [model.predict_topk(texts).labels for model in (whole, chunks)]
    keep(
        "equal",
        largest_difference=float(abs(H[0] - H[1]).max()),
        of=float(abs(H[0]).max()),
        same_top_5=float((tops[0] == tops[1]).all(axis=1).mean()),
    )


def growth(folder, gigabytes):
    """Train on an eighth, a quarter, half and all of a file."""
    for share in (1 / 8, 1 / 4, 1 / 2, 1):
        path = folder / "part.jsonl"
        rows = write_texts(path, share * gigabytes)
        options = ("--no-hold-out", "--alpha", 1, "--n-features", 20_000)
        _, seconds, peak, _ = command("train", path, "-o", folder / "m", "--memory", "1.5G", *options)
        keep(
            "growth",
            rows=rows,
            seconds=round(seconds, 1),
            peak_MB=round(peak),
            us_per_row=round(1e6 * seconds / rows, 1),
        )


def kills(folder, gigabytes):
    """Kill training, with refinement, at ten random moments, go on, and compare bytes."""
    path = folder / "killed.jsonl"
    write_texts(path, gigabytes)
    choices = {"n_measurements": 100, "alpha": 1.0, "n_features": 2000}
    seconds, _ = refined(path, folder / "expected", 1e9, **choices)
    expected, rng = (folder / "expected").read_bytes(), random.Random(0)
    script = (
        "import json, sys; from pathlib import Path; from labelsense import out_of_core\n"
        "out_of_core.EXPANSION = 1e6\n"
        "out_of_core.train_file(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]), memory=1e9)"
    )
    words = json.dumps({"refiner": "auto", "hold_out": False, **choices})
    for _ in range(10):
        moment = rng.uniform(0.05, 0.95) * seconds
        with subprocess.Popen([sys.executable, "-c", script, str(path), str(folder / "m"), words]) as process:
            try:
                process.wait(moment)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        left = (folder / ".m.scratch").exists()
        resumed, _ = refined(path, folder / "m", 1e9, **choices)
        keep(
            "kills",
            after_seconds=round(moment, 1),
            resumed_seconds=round(resumed, 1),
            of=round(seconds, 1),
            left=left,
            same_bytes=(folder / "m").read_bytes() == expected,
            scratch_left=(folder / ".m.scratch").exists(),
        )
        (folder / "m").unlink()


def workers(folder, gigabytes):
    """Train by one process, and by 1, 2 and 4 workers: seconds, bytes moved, peak memory, and whether bytes differ."""
    path = folder / "spread.jsonl"
    rows = write_texts(path, gigabytes)
    words = ["train", path, "--alpha", 1, "--no-hold-out", "--n-features", 10_000, "-m", 200]
    _, seconds, peak, _ = command(*words, "-o", folder / "m0", "--memory", "900G")
    keep("workers", rows=rows, workers=0, seconds=round(seconds, 1), client_MB=round(peak))
    for count in (1, 2, 4):
        report, seconds, client, worker = command(*words, "-o", folder / f"m{count}", "--workers", count)
        same = (folder / f"m{count}").read_bytes() == (folder / "m1").read_bytes()
        keep(
            "workers",
            rows=rows,
            workers=count,
            seconds=round(seconds, 1),
            training_seconds=round(report["seconds"], 1),
            client_MB=round(client),
            worker_MB=round(worker),
            same_bytes=same,
        )


def costs(folder, gigabytes):
    """Measure what the model of benchmarks/schedule.py is made of, on one core."""
    from labelsense._blocks import serially
    from labelsense.data.statistics import Count, Finish, Tabulate
    from labelsense.features import text_words
    from labelsense.features.streams import StreamedFeatures
    from labelsense.regress.in_memory import as_design

    path = folder / "costs.jsonl"
    write_texts(path, 0)
    texts = [json.loads(line) for line in path.open()]
    examples = Examples([row["text"] for row in texts], [row["labels"] for row in texts])
    features = StreamedFeatures(text_words(20_000))
    with serially():
        start = time.perf_counter()
        chunk = Tabulate(features)(examples)
        tabulated = time.perf_counter()
        counted = Count(20_000)(chunk)
        features.fit(counted.rows, counted.rows_with, counted.occurrences)
        finished = time.perf_counter()
        ready = Finish(features, counted.vocabulary())(chunk)
        made = time.perf_counter()
        P = np.ones((features.n_features, 100), np.float32)
        product = time.perf_counter()
        as_design(ready.X).normal_times(P, P[0], None)
        end = time.perf_counter()
    n, entries = len(texts), ready.X.nnz
    keep(
        "costs",
        bytes_per_row=round(path.stat().st_size / n),
        entries_per_row=round(entries / n, 1),
        tabulate_us_per_row=round(1e6 * (tabulated - start) / n, 2),
        count_us_per_row=round(1e6 * (finished - tabulated) / n, 2),
        finish_us_per_row=round(1e6 * (made - finished) / n, 2),
        step_ns_per_entry_and_measurement=round(1e9 * (end - product) / entries / 100, 4),
    )


def million(folder, gigabytes):
    """Train on a million rows with a million labels and 2^18 features, and measure on new rows.

    A label has a feature of its own, and each row those of its labels, and noise: all of its labels can be told.
    """
    rng, d, p = np.random.default_rng(0), 1_000_000, 2**18
    own = rng.integers(0, p, (d, 4))
    total = int(1_000_000 * gigabytes / 5)

    def rows(n):
        labels = zipf(rng, d, (n, 3))
        columns = np.concatenate([own[labels].reshape(n, 12), rng.integers(0, p, (n, 8))], axis=1)
        X = sp.csr_array(
            (np.ones(columns.size, np.float32), columns.ravel(), np.arange(0, columns.size + 1, 20)), (n, p)
        )
        Y = sp.csr_array((np.ones(labels.size, np.float32), labels.ravel(), np.arange(0, labels.size + 1, 3)), (n, d))
        Y.sum_duplicates()
        Y.data[:] = 1
        X.sum_duplicates()
        return Examples(X, Y)

    write_examples(folder / "million.xc", (rows(ROWS) for _ in range(max(1, total // ROWS))))
    test = rows(1000)
    seconds, peak = refined(folder / "million.xc", folder / "m", 8e9, alpha=1.0, n_measurements=1000)
    figures = load_model(folder / "m", mmap=True).evaluate(test.X, test.Y)
    possible = {k: float(np.minimum(np.diff(test.Y.indptr), k).mean() / k) for k in (1, 3, 5)}
    keep(
        "million",
        rows=max(1, total // ROWS) * ROWS,
        seconds=round(seconds),
        peak_MB=round(peak),
        model_MB=round((folder / "m").stat().st_size / 1e6),
        **{f"P@{k}": round(figures[f"P@{k}"], 4) for k in (1, 3, 5)},
        **{f"possible P@{k}": round(v, 4) for k, v in possible.items()},
    )


PARTS = {
    "costs": (costs, 0),
    "equal": (equal, 0.2),
    "growth": (growth, 1),
    "kills": (kills, 0.05),
    "workers": (workers, 0.2),
    "million": (million, 5),
    "big": (big, 5),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="by default all")
    parser.add_argument("--gigabytes", type=float, help="size of the file, instead of the part's own")
    options = parser.parse_args()
    for name in options.only:
        function, size = PARTS[name]
        folder = Path(tempfile.mkdtemp(dir=os.environ.get("LABELSENSE_BENCH")))
        try:
            function(folder, size if options.gigabytes is None else options.gigabytes)
        finally:
            shutil.rmtree(folder)
    print(f"peak memory of this script {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB")


if __name__ == "__main__":
    main()
