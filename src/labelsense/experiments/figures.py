"""The figures. The only file that imports matplotlib; it reads results and knows nothing of runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelsense.experiments.claims import NAMES
from labelsense.experiments.results import Results
from labelsense.experiments.settings import CODE_MEASUREMENTS, CODES, DECODERS, KS
from labelsense.experiments.sparsity import FIT_AROUND_TEN, exponent

# Okabe and Ito's colours, which the colour-blind can tell apart; markers differ too.
STYLES = {
    "omp": ("#0072B2", "o"),
    "foba": ("#56B4E9", "v"),
    "cosamp": ("#D55E00", "s"),
    "lasso": ("#009E73", "D"),
    "correlation": ("#CC79A7", "X"),
}
CODE_K = 5
CODE_STYLES = {
    "omp": ("#0072B2", "o", "-", "compressed sensing, OMP"),
    "secoc": ("#009E73", "^", "-.", "SECOC, Hadamard averages"),
    "ecoc": ("#D55E00", "s", "--", "ECOC, random halves"),
}
DATASET_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
DATASET_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
LABELS = {"errors": "mean squared error", "precisions": "precision at k"}


def draw_all(every: Sequence[Results], folder: Path) -> dict[str, str]:
    """Write every figure as a PNG file; return the file names and what each shows."""
    plt = load_matplotlib()
    captions = {}
    for results in every:
        title = results.problem.title
        if not results.measurements:
            continue
        for what, words in (("errors", "Mean squared error"), ("precisions", "Mean precision at k")):
            name = f"{what}-{_slug(title)}.png"
            _draw_curves(plt, results, what, folder / name)
            captions[name] = (
                f"{title}: {words} against the output sparsity k, for each number of measurements m (rows of the "
                f"Hadamard matrix). Bands: the range over {len(results.seeds)} draws of A."
            )
    compared = [results for results in every if _has_gaussian(results)]
    if compared:
        _draw_compressors(plt, compared, folder / "compressors.png")
        captions["compressors.png"] = (
            "Mean squared error (mean over k = 1 to 10) against m: Hadamard rows (solid), Gaussian matrices (dashed)."
        )
    coded = [results for results in every if _code_points(results)]
    if coded:
        _draw_codes(plt, coded, folder / "output_codes.png")
        captions["output_codes.png"] = (
            f"Squared error of the {CODE_K} best labels against the number of subproblems: compressed sensing (OMP) "
            "and output codes, which average the votes of all subproblems. Bars: the range over the draws of the code."
        )
    _draw_sparsity(plt, every, folder / "sparsity.png")
    low, high = FIT_AROUND_TEN
    captions["sparsity.png"] = (
        "Output sparsity: the relative squared error of the best k-sparse approximation of the clipped least-squares "
        f"predictions, mean over the test half. r: the exponent of k^-r, fitted for k from {low} to {high}."
    )
    return captions


def _draw_curves(plt: Any, r: Results, what: str, path: Path) -> None:
    """Draw the paper's Figure 3 (errors) or 4 (precisions) for one data set, a panel for each m."""
    columns = min(2, len(r.measurements))
    rows = -(-len(r.measurements) // columns)
    size = (4.2 * columns + 0.3, 3.1 * rows + 0.7)
    figure, axes = plt.subplots(
        rows, columns, figsize=size, sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    for axis, m in zip(axes.flat, r.measurements, strict=False):
        axis.plot(KS, r.baseline[what], color="black", linewidth=1.8, label="one-against-all")
        for decoder in DECODERS:
            _draw_band(axis, KS, r.values(what, m, decoder), decoder)
        if what == "errors":
            axis.axhline(r.baseline["error_of_nothing"], color="0.45", linestyle=":", label="predicting nothing")
        axis.set_title(f"m = {m}")
        axis.set_xticks(KS)
        axis.grid(alpha=0.3)
    for axis in axes.flat[len(r.measurements) :]:
        axis.set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel(LABELS[what])
    for i, axis in enumerate(axes.flat[: len(r.measurements)]):
        if i + columns >= len(r.measurements):
            axis.set_xlabel("k")
            axis.tick_params(labelbottom=True)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(r.problem.title)
    _save(plt, figure, path)


def _draw_band(axis: Any, x: Any, values: Any, decoder: str, line: str = "-") -> None:
    colour, marker = STYLES[decoder]
    # FoBa is mostly OMP: larger hollow markers and no line, so that both are seen.
    hollow = {"markersize": 8, "markerfacecolor": "none"} if decoder == "foba" else {"markersize": 5}
    label = NAMES[decoder] if line == "-" else None
    looks = {"color": colour, "marker": marker, "linewidth": 1.3, "linestyle": "none" if decoder == "foba" else line}
    axis.plot(x, values.mean(axis=0), label=label, **looks, **hollow)
    axis.fill_between(x, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.2, linewidth=0)


def _draw_compressors(plt: Any, every: Sequence[Results], path: Path) -> None:
    figure, axes = _panels(plt, len(every))
    for axis, r in zip(axes, every, strict=True):
        for decoder in DECODERS:
            for compressor, line in (("hadamard", "-"), ("gaussian", "--")):
                values = [r.values("errors", m, decoder, compressor).mean(axis=1) for m in r.measurements]
                _draw_band(axis, r.measurements, np.transpose(values), decoder, line)
        axis.set_title(r.problem.title)
        axis.set_xticks(r.measurements)
        axis.set_xlabel("m")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("mean squared error")
    handles, labels = axes[0].get_legend_handles_labels()
    for line, label in (("-", "Hadamard"), ("--", "Gaussian")):
        handles.append(plt.Line2D([], [], color="black", linestyle=line))
        labels.append(label)
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    _save(plt, figure, path)


def _draw_sparsity(plt: Any, every: Sequence[Results], path: Path) -> None:
    figure, axis = plt.subplots(figsize=(6, 4.3), layout="constrained")
    for r, colour, line in zip(every, DATASET_COLOURS * len(every), DATASET_LINES * len(every), strict=False):
        curve = np.array(r.baseline["sparsity_errors"])
        ks = np.arange(1, len(curve) + 1)
        shown = curve > 1e-4
        label = f"{r.problem.title}: r = {exponent(curve, *FIT_AROUND_TEN):.2f}"
        axis.loglog(ks[shown], curve[shown], color=colour, linestyle=line, linewidth=2, label=label)
    axis.axvspan(*FIT_AROUND_TEN, color="0.9", zorder=0, label="where r is fitted")
    ks = np.array(FIT_AROUND_TEN)
    axis.plot(ks, 0.9 * (ks / ks[0]) ** -0.5, color="0.3", linewidth=1, label="$k^{-0.5}$")
    axis.set_xlabel("k")
    axis.set_ylabel("relative error of the best k labels")
    axis.grid(alpha=0.3, which="both")
    axis.legend(loc="lower left")
    _save(plt, figure, path)


def _draw_codes(plt: Any, every: Sequence[Results], path: Path) -> None:
    figure, axes = _panels(plt, len(every))
    for axis, r in zip(axes, every, strict=True):
        counts = _code_points(r)
        for decoder, (colour, marker, line, label) in CODE_STYLES.items():
            values = np.array([r.values("errors", m, decoder, CODES[decoder])[:, CODE_K - 1] for m in counts])
            means = values.mean(axis=1)
            bars = means - values.min(axis=1), values.max(axis=1) - means
            looks = {"color": colour, "marker": marker, "linestyle": line, "capsize": 3, "label": label}
            axis.errorbar(counts, means, bars, **looks)
        axis.axhline(r.baseline["errors"][CODE_K - 1], color="black", linewidth=1.8, label="one-against-all")
        axis.axhline(r.baseline["error_of_nothing"], color="0.45", linestyle=":", label="predicting nothing")
        axis.set_xscale("log", base=2)
        axis.set_xticks(counts, [str(m) for m in counts])
        axis.set_title(r.problem.title)
        axis.set_xlabel(f"subproblems (of {r.baseline['labels']})")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel(f"squared error, k = {CODE_K}")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    _save(plt, figure, path)


def _panels(plt: Any, count: int) -> tuple[Any, Any]:
    """Return a figure with so many panels, three beside each other at the most."""
    columns = min(3, count)
    rows = -(-count // columns)
    size = (max(3.5 * columns + 0.4, 5), 3 * rows + 0.8)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for axis in axes.flat[count:]:
        axis.set_visible(False)
    return figure, axes.flat[:count]


def _code_points(r: Results) -> list[int]:
    return [m for m in CODE_MEASUREMENTS if all(r.has(m, decoder, kind) for decoder, kind in CODES.items())]


def _has_gaussian(r: Results) -> bool:
    return bool(r.measurements) and all(r.has(m, d, "gaussian") for m in r.measurements for d in DECODERS)


def _save(plt: Any, figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "-", title.lower()).strip("-")


def load_matplotlib() -> Any:
    """Return pyplot, or say what to install."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(f'Drawing figures needs the extra: pip install "labelsense[plots]". ({error})') from error
    pyplot.switch_backend("agg")
    return pyplot
