"""Training past memory and past one process: what it takes, and whether the model stays the same.

make bench-scale                                       # everything, with a file of 5 GB: hours
python benchmarks/scale.py --only equal --share 0.1    # one part, with a tenth of its rows

Figures are printed, and kept as JSON lines in benchmarks/scale.jsonl, from which benchmarks/schedule.py predicts and
writes docs/scale.md. Trainings run in processes of their own, see benchmarks/watched.py. LABELSENSE_BENCH names the
folder for files, LABELSENSE_DATA that of the data sets.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from made import LABELS, ROWS, indicators, many_labels, write_texts, zipf

from labelsense import CompressedLabelClassifier, HadamardCompressor, OMPDecoder, RidgeLearner, load_model
from labelsense._blocks import serially
from labelsense._html import BLUE, ORANGE, Curve, svg_chart
from labelsense.data import Examples, write_examples
from labelsense.regress.in_memory import as_design

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("LABELSENSE_DATA", HERE.parents[1] / "shared" / "data"))
RESULTS = HERE / "scale.jsonl"
FIGURE = HERE.parent / "docs" / "figures" / "scale-growth.svg"
PIECES = 8
IN_MEMORY = 1e18
TEXTS = {"alpha": 1.0, "n_features": 2000, "n_measurements": 100, "hold_out": False, "held_out": "rows"}


def keep(part, **figures):
    """Print figures, and keep them."""
    print(f"{part}: " + ", ".join(f"{name} {value}" for name, value in figures.items()), flush=True)
    with RESULTS.open("a") as file:
        file.write(json.dumps({"part": part, "command": " ".join(sys.argv[1:]), **figures}) + "\n")


def train(path, output, choices, **settings):
    """Train in a process of its own; return what benchmarks/watched.py prints."""
    words = [sys.executable, HERE / "watched.py", path, output, json.dumps({"choices": choices, **settings})]
    done = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def keep_steps(part, found, **about):
    """Keep what each step of a training took, but for those that took next to nothing of it."""
    total = sum(row["seconds"] for row in found["steps"].values())
    for step, row in found["steps"].items():
        if row["seconds"] >= 1e-3 * total:
            keep(f"{part}, steps", **about, step=step, **row)


def compared(models, X):
    """Return how much the measurements of two models differ at most, and in how many rows what they predict is equal.

    Beyond the labels that are likely, probabilities are small and often nearly equal, so these may change places.
    """
    H = [model.measure(X) for model in models]
    tops = [model.predict_topk(X).labels for model in models]
    sets = [model.predict(X) for model in models]
    if sp.issparse(sets[0]):
        sets = [[row.tolist() for row in np.split(Y.indices, Y.indptr[1:-1])] for Y in sets]
    return {
        "largest_difference": float(abs(H[0] - H[1]).max()),
        "of": float(abs(H[0]).max()),
        "same_labels": float(np.mean([one == other for one, other in zip(*sets, strict=True)])),
        "same_top_5": float((tops[0] == tops[1]).all(axis=1).mean()),
    }


def equal(folder, n):
    """Train on a file in memory and in chunks, and compare the models on new rows."""
    path = folder / "some.jsonl"
    write_texts(path, n)
    for name, memory in (("in memory", IN_MEMORY), ("in chunks", 1e9)):
        found = train(path, folder / name, TEXTS, memory=memory)
        keep(
            "equal",
            MB=round(path.stat().st_size / 1e6),
            rows=n,
            how=name,
            seconds=found["seconds"],
            peak_MB=found["peak_MB"],
            **{f"expected P@{k}": round(found["expected"][f"P@{k}"], 4) for k in (1, 5)},
        )
    write_texts(folder / "others.jsonl", 5000, seed=1)
    texts = [json.loads(line)["text"] for line in (folder / "others.jsonl").read_text().splitlines()]
    keep("equal", **compared([load_model(folder / name) for name in ("in memory", "in chunks")], texts))


def growth(folder, n):
    """Train in chunks on an eighth, a quarter, half and all of some rows; draw it."""
    points = []
    for rows in (n // 8, n // 4, n // 2, n):
        write_texts(folder / "part.jsonl", rows)
        found = train(folder / "part.jsonl", folder / "m", TEXTS, memory=1.5e9)
        keep(
            "growth",
            rows=rows,
            seconds=found["seconds"],
            peak_MB=found["peak_MB"],
            ms_per_row=round(1e3 * found["seconds"] / rows, 3),
        )
        points.append((rows, found["seconds"]))
    x, y = zip(*points, strict=True)
    curves = [Curve("measured", x, y, BLUE), Curve("in proportion", (x[0], x[-1]), (y[0], 8 * y[0]), ORANGE, "4 3")]
    chart = svg_chart(curves, "rows", "seconds", y_range=(0, max(*y, 8 * y[0])))
    FIGURE.write_text(chart.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n")


def files_in(folder):
    """Return how many files there are in a folder, which may be none."""
    return sum(1 for file in folder.rglob("*") if file.is_file())


def killed_after(moment, path, folder, settings):
    """Kill training so many seconds after its first file; tell whether it had not ended before."""
    words = [sys.executable, HERE / "watched.py", path, folder / "m", settings]
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL) as process:
        while not files_in(folder / ".m.scratch") and process.poll() is None:  # Python is starting
            time.sleep(0.01)
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
    return not (folder / "m").exists()


def kills(folder, n, times=10):
    """Kill training at ten random moments, each time from the start, go on, and compare bytes."""
    path = folder / "killed.jsonl"
    write_texts(path, n)
    whole, rng = train(path, folder / "expected", TEXTS, memory=1e9), random.Random(0)
    expected = (folder / "expected").read_bytes()
    settings = json.dumps({"choices": TEXTS, "memory": 1e9})
    for _ in range(times):
        moment = rng.uniform(0.05, 0.95) * whole["seconds"]
        while not killed_after(moment, path, folder, settings):  # it was faster than the first time
            moment /= 2
            (folder / "m").unlink()
            shutil.rmtree(folder / ".m.scratch", ignore_errors=True)
        files = files_in(folder / ".m.scratch")
        resumed = train(path, folder / "m", TEXTS, memory=1e9)
        keep(
            "kills",
            rows=n,
            undisturbed_seconds=whole["seconds"],
            killed_after=round(moment, 1),
            files_left=files,
            resumed_seconds=resumed["seconds"],
            same_bytes=(folder / "m").read_bytes() == expected,
            scratch_left=(folder / ".m.scratch").exists(),
        )
        (folder / "m").unlink()


def eurlex(folder, n):
    """Train on eurlex4k in one process and by 2 workers; then kill one of these, twice, and compare bytes."""
    data = DATA / "eurlex4k"
    if not data.is_dir():
        sys.exit(f"eurlex: there is no folder {data}; set LABELSENSE_DATA")
    X, Y = (sp.csr_array(sp.load_npz(data / f"{letter}_train.npz"), dtype=np.float32)[:n] for letter in "XY")
    test = sp.csr_array(sp.load_npz(data / "X_test.npz"), dtype=np.float32)
    (folder / "parts").mkdir()
    cuts = np.linspace(0, X.shape[0], 9).astype(int)
    for i, (a, b) in enumerate(pairwise(cuts)):
        write_examples(folder / "parts" / f"part-{i}.xc", Examples(X[a:b], Y[a:b]))
    choices = {"features": "counts", "alpha": 1.0, "hold_out": False, "held_out": "rows"}
    one = CompressedLabelClassifier(
        learner=RidgeLearner(1.0, random_state=0), features="counts", held_out="rows", random_state=0, n_jobs=-1
    )
    start = time.perf_counter()
    one.fit(X, Y)
    seconds = round(time.perf_counter() - start, 1)
    found = train(folder / "parts", folder / "two", choices, workers=2)
    two = load_model(folder / "two")
    keep("eurlex", rows=X.shape[0], one_process_seconds=seconds, two_workers_seconds=found["training_seconds"])
    keep("eurlex", **compared([one, two], test))
    places = {
        "conjugate gradients": {"labelsense.regress.chunked._normal_times": 25},
        "ranker": {"labelsense.refine.label_blocks._Learn.__call__": 2},
    }
    train(folder / "parts", folder / "undisturbed", choices, workers=2, solver="cg")
    expected = (folder / "undisturbed").read_bytes()
    for step, kill in places.items():
        found = train(folder / "parts", folder / "killed", choices, workers=2, solver="cg", kill=kill)
        marks = [mark.unlink() for mark in folder.glob("killed in *")]
        keep(
            "eurlex, one worker killed",
            during=step,
            at_call=next(iter(kill.values())),
            was_killed=len(marks) == 1,
            seconds=found["seconds"],
            same_bytes=(folder / "killed").read_bytes() == expected,
        )


def workers(folder, n):
    """Train by one process, and by 1, 2 and 4 workers: seconds, bytes moved, peak memory, and whether bytes differ."""
    path = folder / "parts"
    path.mkdir()
    for i in range(PIECES):
        write_texts(path / f"part-{i}.jsonl", n // PIECES, seed=i)
    for how, changed, settings in (("plain", {"refiner": None}, {"solver": "cg"}), ("refined", {}, {})):
        found = train(path, folder / "m0", TEXTS | changed, memory=IN_MEMORY, **settings)
        about = {"rows": n, "how": how}
        keep("workers", **about, workers=0, seconds=found["training_seconds"], client_MB=found["peak_MB"])
        for count in (1, 2, 4):
            found = train(path, folder / f"m{count}", TEXTS | changed, workers=count, **settings)
            keep(
                "workers",
                **about,
                workers=count,
                seconds=found["training_seconds"],
                client_MB=found["peak_MB"],
                worker_MB=max(found["worker_peaks_MB"]),
                gradient_steps=found["gradient_steps"],
                same_bytes=(folder / f"m{count}").read_bytes() == (folder / "m1").read_bytes(),
            )
            keep_steps("workers", found, how=how, workers=count)


def costs(folder, n):
    """Measure what the model of benchmarks/schedule.py is made of: seconds of one core, whoever else uses it."""
    from labelsense.data.statistics import Count, Finish, Tabulate
    from labelsense.features import text_words
    from labelsense.features.streams import StreamedFeatures
    from labelsense.refine.ranker import Ranker
    from labelsense.refine.shortlist import Reconstruction, shortlist
    from labelsense.refine.sources import Centroids, Correlations

    path, m = folder / "costs.jsonl", 100
    write_texts(path, n)
    texts = [json.loads(line) for line in path.read_text().splitlines()]
    examples = Examples([row["text"] for row in texts], [row["labels"] for row in texts])
    features = StreamedFeatures(text_words(20_000))
    with serially(), Clock() as clock:
        chunk = Tabulate(features)(examples)
        clock.lap("tabulate")
        counted = Count(20_000)(chunk)
        features.fit(counted.rows, counted.rows_with, counted.occurrences)
        clock.lap("count")
        ready = Finish(features, counted.vocabulary())(chunk)
        clock.lap("finish")
        take_step(ready.X, m)  # what is made once
        step = take_step(ready.X, m, 5)
        rng = np.random.default_rng(0)
        draw = many_labels(rng)
        rows = draw(n)
        A = HadamardCompressor(1000, random_state=0).fit(rows.Y.shape[1]).operator_
        sources, reconstruction = [Correlations(A), Centroids.learn(rows.X, rows.Y)], Reconstruction.by(OMPDecoder(), A)
        shortlist(sources, reconstruction, rows.X[:10], A.compress(rows.Y[:10]), 50)  # what is made once
        H = A.compress(rows.Y)
        clock.lap("nothing")
        candidates, _ = shortlist(sources, reconstruction, rows.X, H, 50)
        clock.lap("candidates")
        Ranker.train(rows.X, rows.Y, candidates)
        clock.lap("ranker")
    cores = len(os.sched_getaffinity(0))
    with get_context("spawn").Pool(cores) as pool:
        pool.starmap(take_step, [(ready.X, m)] * cores)  # they begin at about the same time only the second time
        together = np.mean(pool.starmap(take_step, [(ready.X, m, 5)] * cores))
    entries, each = ready.X.nnz, {name: 1e6 * seconds / n for name, seconds in clock.seconds.items()}
    keep(
        "costs",
        bytes_per_row=round(path.stat().st_size / n),
        entries_per_row=round(entries / n, 1),
        **{f"{name}_us_per_row": round(each[name], 2) for name in ("tabulate", "count", "finish", "candidates")},
        step_ns_per_entry_and_measurement=round(1e9 * step / entries / m, 4),
        step_slower_on_all_cores=round(together / step, 2),
        ranker_ns_per_entry_of_a_pair=round(1e3 * each["ranker"] / (len(candidates) / n) / (rows.X.nnz / n), 2),
    )


def take_step(X, m, times=1):
    """Return the seconds that this process works for a step of conjugate gradients."""
    P = np.ones((X.shape[1], m), np.float32)
    start = time.process_time()
    with serially():
        for _ in range(times):
            as_design(X).normal_times(P, P[0], None)
    return (time.process_time() - start) / times


class Clock:
    """Seconds of this process, by name."""

    def __enter__(self):
        self.seconds, self.last = {}, time.process_time()
        return self

    def lap(self, name):
        """End a part, and begin the next."""
        now = time.process_time()
        self.seconds[name], self.last = now - self.last, now

    def __exit__(self, *_):
        pass


def million(folder, n):
    """Train with a million labels and 2^18 features, and measure on new rows."""
    rows = many_labels(np.random.default_rng(0))
    test = rows(2000)
    write_examples(folder / "million.xc", (rows(min(ROWS, n - start)) for start in range(0, n, ROWS)))
    choices = {"alpha": 1.0, "n_measurements": 300, "hold_out": False, "features": "none"}
    found = train(folder / "million.xc", folder / "m", choices, memory=6e9)
    keep_steps("million", found)
    model = load_model(folder / "m", mmap=True)
    start = time.perf_counter()
    figures = model.evaluate(test.X, test.Y)
    seconds = time.perf_counter() - start
    seen = test.Y @ (model.label_counts_ > 0)
    keep(
        "million",
        rows=n,
        seconds=found["seconds"],
        peak_MB=found["peak_MB"],
        model_MB=round((folder / "m").stat().st_size / 1e6),
        predict_ms_per_row=round(1e3 * seconds / 2000, 2),
        **{f"P@{k}": round(figures[f"P@{k}"], 4) for k in (1, 3, 5)},
        **{f"possible P@{k}": round(float(np.minimum(seen, k).mean() / k), 4) for k in (1, 3, 5)},
    )


def big(folder, n):
    """Train on a file of features, 5 GB, within 1.5 GB, without refinement."""
    rng, path = np.random.default_rng(0), folder / "big.xc"

    def rows(n):
        labels = zipf(rng, LABELS, (n, 3))
        columns = np.concatenate([labels, rng.integers(LABELS, 2 * LABELS, (n, 117))], axis=1)
        return Examples(indicators(columns, 2 * LABELS), indicators(labels, LABELS))

    write_examples(path, (rows(min(ROWS, n - start)) for start in range(0, n, ROWS)))
    choices = {"alpha": 1.0, "n_measurements": 50, "hold_out": False, "features": "none", "refiner": None}
    found = train(path, folder / "m", choices, memory=1.5e9)
    test = rows(5000)
    figures = load_model(folder / "m").evaluate(test.X, test.Y)
    keep(
        "big",
        GB=round(path.stat().st_size / 1e9, 2),
        rows=n,
        seconds=found["seconds"],
        peak_MB=found["peak_MB"],
        **{f"P@{k}": round(figures[f"P@{k}"], 4) for k in (1, 3)},
    )
    keep_steps("big", found)


PARTS = {  # and how many rows, of about 404 bytes where they are texts, and 800 in "big"
    "costs": (costs, 20_000),
    "equal": (equal, 500_000),
    "growth": (growth, 500_000),
    "kills": (kills, 40_000),
    "eurlex": (eurlex, 15_449),
    "workers": (workers, 200_000),
    "million": (million, 1_000_000),
    "big": (big, 6_000_000),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="by default all")
    parser.add_argument("--share", type=float, default=1.0, help="of the rows of each part")
    options = parser.parse_args()
    for name in options.only:
        function, rows = PARTS[name]
        sys.argv[1:] = ["--only", name] + (["--share", f"{options.share:g}"] if options.share != 1 else [])
        folder = Path(tempfile.mkdtemp(dir=os.environ.get("LABELSENSE_BENCH")))
        try:
            function(folder, max(1, int(options.share * rows)))
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
