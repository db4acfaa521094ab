"""Precision against the number of measurements: plain pursuit, refined, and one regression per label.

    make bench-curve LABELSENSE_DATA=folder
    python benchmarks/curve.py [data set ...] [--write]

Scaling and learner are chosen once, on the training rows; then m goes from 20 to d in ten steps. The test rows are only
scored. With --write, the picture in README is drawn again.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelsense import CompressedLabelClassifier, OneVsAllClassifier, WhitenedCompressor
from labelsense.labels import top_k
from labelsense.metrics import precision_at_k

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("LABELSENSE_DATA", ROOT.parent / "shared" / "data"))
PICTURE = ROOT / "docs" / "figures" / "curve.png"
KS, STEPS, LEAST = (1, 3, 5), 10, 20
COLOURS = {"refined": "#08306b", "plain OMP": "#3182bd", "one against all": "#999999"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["bibtex", "delicious"], metavar="data set")
    parser.add_argument("--write", action="store_true", help="draw the picture of README")
    args = parser.parse_args()
    found = {name: measure(name) for name in args.names}
    if args.write:
        draw(found, PICTURE)


def measure(name):
    """Return for each method its numbers of measurements, and P@1, P@3 and P@5 for each of these."""
    parts = [sp.load_npz(DATA / name / f"{part}.npz").tocsr() for part in ("X_train", "Y_train", "X_test", "Y_test")]
    X, Y, X_test, Y_test = (part.astype(np.float32) for part in parts)
    chosen = CompressedLabelClassifier(random_state=0).fit(X, Y)
    learner, d = chosen.learner_.unfitted(), Y.shape[1]
    if chosen.scaling_ is not None:
        X, X_test = chosen.scaling_.transform(X), chosen.scaling_.transform(X_test)

    def precision(model):
        top = top_k(model.fit(X, Y).predict_scores(X_test), max(KS))
        return [100 * precision_at_k(Y_test, top, k) for k in KS]

    found = {"plain OMP": {}, "refined": {}, "one against all": {d: precision(OneVsAllClassifier(learner))}}
    show(name, "one against all", d, found["one against all"][d])
    for m in np.unique(np.geomspace(min(LEAST, d), d, STEPS).round().astype(int)).tolist():
        for method, refiner in (("plain OMP", None), ("refined", "auto")):
            model = CompressedLabelClassifier(
                WhitenedCompressor(m), learner, features="none", refiner=refiner, random_state=0
            )
            found[method][m] = precision(model)
            show(name, method, m, found[method][m])
    return found


def show(name, method, m, figures):
    print(
        f"{name:20s} {method:16s} m = {m:5d}   P@1 P@3 P@5 {figures[0]:5.1f} {figures[1]:5.1f} {figures[2]:5.1f}",
        flush=True,
    )


def draw(found, path):
    """Draw P@1 over m, a panel for each data set."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(found), 3.2), layout="constrained")
    for axes, (name, methods) in zip(np.atleast_1d(figure.subplots(1, len(found))), found.items(), strict=True):
        for method, colour in COLOURS.items():
            points = methods[method]
            if len(points) == 1:  # it has no m to choose
                (m, figures), least = next(iter(points.items())), min(methods["refined"])
                axes.plot([least, m], [figures[0]] * 2, "--", color=colour, linewidth=1.2, label=f"{method} ({m})")
            else:
                axes.plot(list(points), [f[0] for f in points.values()], "o-", color=colour, markersize=4, label=method)
        axes.set_xscale("log")
        ticks = list(methods["refined"])[::3]
        axes.set_xticks(ticks, [str(m) for m in ticks])
        axes.minorticks_off()
        axes.set_title(name, loc="left", fontsize=10)
        axes.set_xlabel("measurements m")
        axes.set_ylabel("P@1, test rows")
        axes.legend(frameon=False, fontsize=8, loc="lower right")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
