"""What ``evaluate`` hands back: figures by name, the figures of each label, a table and a picture."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelsense._files import replacing
from labelsense._html import BLUE, ORANGE, Curve, html_table, svg_chart
from labelsense._plots import load_matplotlib
from labelsense._typing import CSR, DoubleArray, Label
from labelsense.errors import InputError
from labelsense.labels import top_k
from labelsense.metrics import LabelTable, Reliability
from labelsense.metrics.calibration import make_missed_share, make_reliability
from labelsense.metrics.ranking import rank_precision, ranking_figures
from labelsense.metrics.sets import f1_figures, make_label_table, micro_precision_recall

RANKS = 10  # places in the picture of the ranking
SEPARATORS = {".tsv": "\t", ".csv": ","}
AT_K = {
    "P": "precision",
    "recall": "recall",
    "nDCG": "nDCG",
    "PSP": "propensity-scored",
    "coverage": "labels covered",
}


class Evaluation(dict[str, float]):
    """Figures by name, as ``clf.evaluate`` describes them. ``print`` it.

    Attributes
    ----------
    n_rows : int
        The rows it was measured on.
    ks : list of int
        The cut-offs.
    labels : list
        The labels in column order.
    per_label : LabelTable
        Count, precision, recall and F1 of each label, by ``predict``.
    rank_precision : array (r,)
        How often the label at each place of the ranking is true.
    reliability : Reliability or None
        How often labels with similar probabilities are true, in a model with probabilities.

    Examples
    --------
    >>> from labelsense import CompressedLabelClassifier
    >>> from labelsense.data import make_tagged_documents
    >>> X, Y = make_tagged_documents(n_samples=500, n_labels=200, random_state=0)
    >>> result = CompressedLabelClassifier(random_state=0).fit(X[:400], Y[:400]).evaluate(X[400:], Y[400:])
    >>> sorted(result)[:3], result.per_label.n_true.shape
    (['ECE', 'F1', 'F1 macro'], (200,))
    """

    def __init__(
        self,
        figures: dict[str, float],
        n_rows: int,
        ks: Sequence[int],
        labels: Sequence[Label],
        per_label: LabelTable,
        rank_precision: DoubleArray,
        reliability: Reliability | None,
    ) -> None:
        super().__init__(figures)
        self.n_rows = n_rows
        self.ks = list(ks)
        self.labels = list(labels)
        self.per_label = per_label
        self.rank_precision = rank_precision
        self.reliability = reliability

    def write_labels(self, path: str | os.PathLike[str]) -> None:
        """Write a table with a row for each label to a file that ends in .tsv or .csv."""
        separator = check_table_name(path)
        with replacing(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=separator, lineterminator="\n")
            writer.writerow(["label", "count", "predicted", "precision", "recall", "f1"])
            for label, count, predicted, *shares in zip(self.labels, *self.per_label, strict=True):
                writer.writerow([label, count, predicted, *(f"{share:.4f}" for share in shares)])

    def plot(self, target: Any) -> None:
        """Draw the precision at each place and, of a model with probabilities, how reliable they are, into a file."""
        Figure = load_matplotlib()
        figure = Figure(figsize=(5 if self.reliability is None else 10, 4.5), layout="constrained")
        first, *others = np.atleast_1d(figure.subplots(1, 1 if self.reliability is None else 2))
        places = np.arange(1, len(self.rank_precision) + 1)
        first.bar(places, 100 * self.rank_precision, color=BLUE)
        first.set(xlabel="place", ylabel="true labels (%)", title="Precision by place", ylim=(0, 100), xticks=places)
        for axes in others:
            _draw_reliability(axes, self)
        figure.savefig(target, dpi=150)

    def __str__(self) -> str:
        title = f"{self.n_rows:,} rows, percent"
        lines = [f"{title:<22}" + "".join(f"{f'@{k}':>7}" for k in self.ks)]
        for name, words in AT_K.items():
            if f"{name}@{self.ks[0]}" in self:
                lines.append(f"{words:<22}" + "".join(f"{100 * self[f'{name}@{k}']:7.1f}" for k in self.ks))
        rows = {
            "predict": [
                f"F1 {self._percent('F1')} (micro {self._percent('F1 micro')}, macro {self._percent('F1 macro')})",
                f"precision {self._percent('precision')}, recall {self._percent('recall')}",
                f"{self['predicted labels']:.2f} labels a row, {self['labels']:.2f} are true; "
                f"{self._percent('empty rows')} % of the rows get none",
            ]
        }
        if "ECE" in self:
            rows["probabilities"] = [
                f"calibration error {100 * self['ECE']:.2f}",
                f"{self['expected labels']:.2f} labels expected a row, {self['labels']:.2f} are true; "
                f"{self._percent('missed')} % of these have no probability",
            ]
        for words, texts in rows.items():
            lines += ["", *(f"{words if i == 0 else '':<22}  {text}" for i, text in enumerate(texts))]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        at_k = [
            [words, *(f"{100 * self[f'{name}@{k}']:.1f}" for k in self.ks)]
            for name, words in AT_K.items()
            if f"{name}@{self.ks[0]}" in self
        ]
        ranking = html_table([f"{self.n_rows:,} rows, percent", *(f"@{k}" for k in self.ks)], at_k)
        counts = ("labels", "predicted labels", "expected labels")
        others = [
            [name, f"{value:.2f}" if name in counts else f"{100 * value:.1f} %"]
            for name, value in self.items()
            if "@" not in name
        ]
        return ranking + html_table(["predicted sets and probabilities", ""], others) + self._reliability_chart()

    def _reliability_chart(self) -> str:
        if self.reliability is None or not len(self.reliability.n_pairs):
            return ""
        predicted, observed, _ = (part.tolist() for part in self.reliability)
        curves = [Curve("what is meant", [0, 1], [0, 1], "gray", "4"), Curve("what is", predicted, observed, ORANGE)]
        return svg_chart(curves, "probability", "share that is true", y_range=(0, 1))

    def _percent(self, name: str) -> str:
        return f"{100 * self[name]:.1f}"


def check_table_name(path: str | os.PathLike[str]) -> str:
    """Return the separator of a table by the end of its name."""
    suffix = Path(path).suffix.lower()
    if suffix not in SEPARATORS:
        raise InputError(f"A table of labels must be a file that ends in .tsv or .csv. Got {os.fspath(path)}.")
    return SEPARATORS[suffix]


def evaluate_predictions(
    Y: CSR,
    unseen: Any,
    ks: Sequence[int],
    ranking: CSR,
    chosen: CSR,
    probabilities: CSR | None,
    weights: DoubleArray | None,
    labels: Sequence[Label],
) -> Evaluation:
    """Return how good predictions are.

    Parameters
    ----------
    Y : CSR (n, d)
        The true labels.
    unseen : array (n,)
        How many more each row has that have no column.
    ks : list of int
        Cut-offs.
    ranking : CSR (n, d)
        Scores that rank the labels.
    chosen : CSR (n, d)
        The labels that are predicted.
    probabilities : CSR (n, d), optional
        Of a model that has them.
    weights : array (d + 1,), optional
        What a hit of each label counts in propensity-scored precision, that of labels without column last.
    labels : list
        The labels in column order.
    """
    top = top_k(ranking, max(*ks, RANKS))
    precision, recall = micro_precision_recall(Y, chosen, unseen)
    f1 = f1_figures(Y, chosen, unseen)
    sizes = np.diff(chosen.indptr)
    figures = ranking_figures(Y, top, ks, unseen, weights) | {
        "F1": f1["samples"],
        "F1 micro": f1["micro"],
        "F1 macro": f1["macro"],
        "precision": precision,
        "recall": recall,
        "predicted labels": float(sizes.mean()),
        "empty rows": float((sizes == 0).mean()),
        "labels": float((np.diff(Y.indptr) + unseen).mean()),
    }
    curve = None
    if probabilities is not None:
        curve = make_reliability(probabilities, Y)
        figures |= {
            "ECE": curve.error,
            "expected labels": float(probabilities.sum(dtype=np.float64) / Y.shape[0]),
            "missed": make_missed_share(probabilities, Y, unseen),
        }
    return Evaluation(
        figures, Y.shape[0], ks, labels, make_label_table(Y, chosen), rank_precision(Y, top, RANKS), curve
    )


def _draw_reliability(axes: Any, evaluation: Evaluation) -> None:
    curve = evaluation.reliability
    assert curve is not None
    axes.plot([0, 1], [0, 1], color="0.5", linestyle=":", label="what is meant")
    axes.plot(curve.predicted, curve.observed, color=ORANGE, marker="o", label="what is")
    error, pairs = 100 * evaluation["ECE"], curve.n_pairs.sum()
    axes.set(
        xlabel="probability", ylabel="share that is true", title=f"Reliability: error {error:.2f} %, {pairs:,} pairs"
    )
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", framealpha=1)
