"""Precision, cost and calibration of the defaults beside the rivals': the tables of README and docs/accuracy.md.

    make bench-accuracy LABELSENSE_DATA=folder LABELSENSE_PEERS=peers.py
    python benchmarks/accuracy.py [data set ...] [--budgets fast balanced accurate] [--seeds 3] [--write] [--runs file]

Each rival and each of our runs is a process of its own, one after another on one machine: read the ratios, not the
seconds. Rivals get log(1 + count) idf features with rows of unit length and their own defaults; ours get the data as
they are and choose. Nothing of either sees the test rows before they are scored. Without --write nothing is written.
With --runs, each run is kept in a file of JSON lines, and what is there is not run again: an hour can be cut in pieces.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelsense import CompressedLabelClassifier
from labelsense.labels import top_k
from labelsense.metrics import best_f1_threshold, calibration_error, f1_score, ranking_figures

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
DATA = Path(os.environ.get("LABELSENSE_DATA", SHARED / "data"))
PEERS = Path(os.environ.get("LABELSENSE_PEERS", SHARED / "tools" / "peers.py"))
PYTHON = ROOT / ".venv-peers" / "bin" / "python"
CHART = ROOT / "docs" / "figures" / "accuracy.png"
KS = (1, 3, 5)
# Runs a program, and then prints its peak memory in kB. (That of wait4 is never below that of the parent.)
WITH_PEAK = """
import re, runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""
RIVALS = {
    "bibtex": ["pecos", "omikuji", "napkinxc", "sklearn"],
    "corel5k": ["pecos", "omikuji", "napkinxc", "sklearn"],
    "delicious": ["pecos", "omikuji", "napkinxc", "sklearn"],
    "debian_debtags": ["pecos", "omikuji", "napkinxc"],
    "eurlex4k": ["pecos", "omikuji"],
    "yso_finna_en_min5": ["pecos", "omikuji"],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(RIVALS), metavar="data set")
    parser.add_argument("--budgets", nargs="+", default=["fast", "balanced", "accurate"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="write table and chart into the docs")
    parser.add_argument("--runs", type=Path, default=Path(os.devnull), help="file of runs to go on from")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # one of our runs, in a process of its own
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.names[0], args.one, args.seeds)))
        return
    rows, kept = [], Kept(args.runs)
    for name in args.names:
        rows += [show(row) for row in kept.get([name, "rivals"], lambda: rivals(name))]  # noqa: B023
        for budget in args.budgets:
            runs = [
                kept.get([name, budget, seed], lambda: one(name, budget, seed))  # noqa: B023
                for seed in range(args.seeds)
            ]
            rows.append(show(combine(name, budget, runs)))
    if args.write:
        write(rows)


class Kept:
    """Runs that were made, in a file of JSON lines: a key and what came out."""

    def __init__(self, path):
        self.path = path
        lines = path.read_text().splitlines() if path.is_file() else []
        self.found = {json.dumps(key): value for key, value in map(json.loads, lines)}

    def get(self, key, make):
        """Return what there is for a key, or make it and keep it."""
        word = json.dumps(key)
        if word not in self.found:
            self.found[word] = make()
            with self.path.open("a") as file:
                file.write(json.dumps([key, self.found[word]]) + "\n")
        return self.found[word]


def one(name, budget, seed):
    """Run one of ours in a process of its own."""
    return json.loads(run([sys.executable, __file__, name, "--one", budget, "--seeds", seed]))


def run(command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, cwd=ROOT).stdout


def rivals(name):
    """Run the rivals; return a row for each."""
    if not (PEERS.is_file() and PYTHON.is_file()):
        sys.exit("The rivals are missing: set LABELSENSE_PEERS and run make bench-accuracy.")
    rows = []
    for peer in RIVALS.get(name, ["pecos", "omikuji"]):
        lines = run([PYTHON, "-c", WITH_PEAK, PEERS, DATA / name, peer]).splitlines()
        peak = int(lines[-1]) / 1024  # of all kinds of a rival, which run in turn
        for found in (json.loads(line) for line in lines if line.startswith("{")):
            row = {"data": name, "who": found["peer"], **{f"P@{k}": found[f"P@{k}"] for k in KS}}
            row |= {"fit": found["fit_s"], "predict": found["predict_s"], "MB": found["model_MB"]}
            rows.append(row | {"peak MB": peak})
    return rows


def measure(name, budget, seed):
    """Fit and score one model of ours; return what was seen."""
    parts = [sp.load_npz(DATA / name / f"{part}.npz").tocsr() for part in ("X_train", "Y_train", "X_test", "Y_test")]
    X, Y, X_test, Y_test = (part.astype(np.float32) for part in parts)
    start = time.perf_counter()
    model = CompressedLabelClassifier(budget=budget, random_state=seed).fit(X, Y)
    fitted = time.perf_counter()
    model.predict_topk(X_test, k=max(KS))
    done = time.perf_counter()
    P = model.predict_proba(X_test)
    figures = ranking_figures(Y_test, top_k(P, max(KS)), KS)
    best, labels = best_f1_threshold(P, Y_test), model.predict(X_test)
    above = sp.csr_array((P.data >= best, P.indices, P.indptr), shape=P.shape)
    found = float(sp.csr_array(P > 0).multiply(Y_test > 0).sum())
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        size = (Path(folder) / "model").stat().st_size
    return {
        **{f"P@{k}": 100 * figures[f"P@{k}"] for k in KS},
        **{f"expected P@{k}": 100 * model.report_.expected[f"P@{k}"] for k in KS},
        "fit": fitted - start,
        "predict": done - fitted,
        "MB": size / 1e6,
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "m": model.compressor_.operator_.n_measurements,
        "learner": type(model.learner_).__name__,
        "ECE": 100 * calibration_error(Y_test, P),
        "probabilities / labels found": float(P.sum()) / max(1.0, found),
        "probabilities / labels": float(P.sum()) / float(Y_test.sum()),
        "F1 / best F1": f1_score(Y_test, labels) / f1_score(Y_test, sp.csr_array(above, dtype=np.float32)),
        "rows without label": 100 * float((np.diff(sp.csr_array(labels).indptr) == 0).mean()),
    }


def combine(name, budget, runs):
    """Return means over seeds, and the spread of the precisions. Times are of the first one: rivals run once, too."""
    numbers = {key: statistics.fmean(one[key] for one in runs) for key in runs[0] if key != "learner"}
    spread = max((statistics.stdev(one[f"P@{k}"] for one in runs) if len(runs) > 1 else 0.0) for k in KS)
    return {
        "data": name,
        "who": f"labelsense {budget}",
        **numbers,
        **{key: runs[0][key] for key in ("fit", "predict")},
        "seeds": len(runs),
        "spread": spread,
        "learner": runs[0]["learner"],
    }


def show(row):
    print(
        json.dumps({key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}),
        flush=True,
    )
    return row


def write(rows):
    """Put tables between the marks of the pages, and draw the chart beside them."""
    draw(rows, CHART)
    seeds = {row["seeds"] for row in rows if "seeds" in row}
    number = f"{'up to ' * (len(seeds) > 1)}{max(seeds)}"
    which = "Ours are of one seed." if seeds == {1} else f"Ours are means over {number} seeds."
    link = "[Costs, calibration, every rival](docs/accuracy.md): `make bench-accuracy` prints these."
    replace("README.md", "accuracy table", f"{short_table(rows)}\n\n{which} {link}")
    picture = "![Points of P@1 beyond the best rival](figures/accuracy.png)"
    detail = (
        "The spread is the largest standard deviation of P@1, P@3 and P@5 over seeds; the calibration error is that of "
    )
    detail += "all candidates; probabilities are summed beside the labels that were among the candidates."
    parts = [which, picture, long_table(rows), "## Ours in detail", detail, our_table(rows)]
    replace("docs/accuracy.md", "accuracy table", "\n\n".join(parts))


def replace(page, mark, text):
    path = ROOT / page
    before, rest = path.read_text().split(f"<!-- {mark} -->")
    after = rest.split(f"<!-- end of {mark} -->")[1]
    path.write_text(f"{before}<!-- {mark} -->\n{text}\n<!-- end of {mark} -->{after}")


def groups(rows):
    """Return the rows of each data set."""
    return {name: [row for row in rows if row["data"] == name] for name in dict.fromkeys(row["data"] for row in rows)}


def short_table(rows):
    lines = ["| P@1 P@3 P@5 | best rival, by column | fast | balanced (default) | accurate |", "|---|---|---|---|---|"]
    for name, group in groups(rows).items():
        best = " ".join(f"{max(row[f'P@{k}'] for row in group if 'ECE' not in row):.1f}" for k in KS)
        ours = {row["who"].split()[-1]: " ".join(f"{row[f'P@{k}']:.1f}" for k in KS) for row in group if "ECE" in row}
        cells = [ours.get(budget, "") for budget in ("fast", "balanced", "accurate")]
        lines.append(f"| {name} | {best} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def long_table(rows):
    lines = ["| data | who | P@1 | P@3 | P@5 | fit s | predict s | model MB | peak MB |", "|---" * 9 + "|"]
    for name, group in groups(rows).items():
        best = {k: max(row[f"P@{k}"] for row in group) for k in KS}
        for row in group:
            cells = [f"**{v:.1f}**" if (v := row[f"P@{k}"]) == best[k] else f"{v:.1f}" for k in KS]
            cells += [f"{row['fit']:.1f}", f"{row['predict']:.2f}", f"{row['MB']:.1f}", f"{row['peak MB']:.0f}"]
            lines.append(f"| {name} | {row['who']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def our_table(rows):
    lines = [
        "| data | budget | seeds | m | learner | fit s | predict s | model MB | peak MB | expected P@1 | P@1 | "
        "spread | calibration error % | probabilities / labels found | F1 / best F1 | rows without label % |",
        "|---" * 16 + "|",
    ]
    for row in rows:
        if "ECE" in row:
            numbers = [f"{row[key]:.1f}" for key in ("fit", "predict", "MB", "peak MB", "expected P@1", "P@1")]
            numbers += [f"{row['spread']:.2f}", f"{row['ECE']:.2f}", f"{row['probabilities / labels found']:.3f}"]
            numbers += [f"{row['F1 / best F1']:.3f}", f"{row['rows without label']:.1f}"]
            first = [row["data"], row["who"].split()[-1], str(row["seeds"]), f"{row['m']:.0f}", row["learner"]]
            lines.append("| " + " | ".join(first + numbers) + " |")
    return "\n".join(lines)


def draw(rows, path):
    """Draw P@1 of everyone on each data set, less that of the best rival."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["data"] for row in rows))
    figure = Figure(figsize=(7.5, 0.62 * len(names) + 1.2), layout="constrained")
    axes = figure.subplots()
    colours = {"fast": "#9ecae1", "balanced": "#3182bd", "accurate": "#08306b"}
    for place, name in enumerate(names):
        group = [row for row in rows if row["data"] == name]
        best = max((row["P@1"] for row in group if "ECE" not in row), default=0)
        for row in group:
            ours = "ECE" in row
            colour = colours[row["who"].split()[-1]] if ours else "#bbbbbb"
            axes.plot(
                row["P@1"] - best,
                place,
                "o" if ours else "|",
                color=colour,
                markersize=9 if ours else 14,
                zorder=2 + ours,
            )
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.axvline(0, color="#888888", linewidth=0.8)
    axes.set_xlabel("points of P@1 beyond the best rival (grey: rivals)")
    for word, colour in colours.items():
        axes.plot([], [], "o", color=colour, label=word)
    axes.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
