"""What a fit has chosen, what that was compared with, and what to expect of it."""

from __future__ import annotations

import textwrap
from html import escape
from typing import Any

from labelsense._html import BLUE, ORANGE, Curve, html_table, svg_chart
from labelsense._storage import Parts, is_plain, require, storable
from labelsense._typing import CSR
from labelsense.chooser import Choice
from labelsense.features import FEATURES
from labelsense.labels import top_k
from labelsense.metrics import above, f1_score, ranking_figures, reliability_curve
from labelsense.ordering import HeldOut
from labelsense.refine import Calibration
from labelsense.refine.shortlist import MOST_SCORED

WIDTH = 79
TABLE = 8  # settings that are shown, of those that were tried
KS = (1, 3, 5)
PRECISIONS = tuple(f"P@{k}" for k in KS)
FIGURES = (*PRECISIONS, "F1", "ECE")
RANDOM, LAST = "rows at random", "the last rows"


@storable()
class Report:
    """What a fit has chosen and what to expect. ``print`` it.

    Parameters
    ----------
    chosen : dict
        The parts of the model, in words: "budget", "features", "compressor", "measurements", "learner", "decoder",
        "refiner".
    tried : list of dict
        Settings that were compared on rows left out of them: "setting", "P@1", "P@3", "P@5".
    judges : dict
        P@1, P@3 and P@5 of each source of refinement alone, and of all, on rows that nothing had learned from.
    expected : dict
        What to expect on new rows: "P@1", "P@3", "P@5", "F1" of ``predict``, "ECE" (the calibration error of
        probabilities), "recall" (the share of labels that are candidates), and "rows", on how many it was measured.
    expected_last : dict
        The same for the last rows, by a model of those before; empty where that was not tried. If rows come in time or
        in runs, new ones are like these.
    reliability : list of [float, float, int]
        Of twenty groups of candidates by probability: the mean of it, the share that is right, and how many there are.
    curve : list of dict
        "n_measurements", "P@1", "P@3", "P@5": what fewer measurements gave in the trials, without refinement, after
        learning from the few rows of these. Empty where no learner was chosen.
    notes : list of str
        What else there is to say.
    """

    def __init__(
        self,
        chosen: dict[str, Any],
        tried: list[dict[str, Any]],
        judges: dict[str, dict[str, float]],
        expected: dict[str, float],
        reliability: list[list[float]],
        notes: list[str],
        expected_last: dict[str, float] | None = None,
        curve: list[dict[str, float]] | None = None,
    ) -> None:
        self.chosen, self.tried, self.judges = chosen, tried, judges
        self.expected, self.reliability, self.notes = expected, reliability, notes
        self.expected_last, self.curve = expected_last or {}, curve or []

    def __str__(self) -> str:
        lines = ["chosen", *(f"  {key:<13} {value}" for key, value in self.chosen.items())]
        if self.tried:
            lines += ["", *_table(f"tried ({len(self.tried)}, the best first)", self._best(), PRECISIONS)]
        if self.judges:
            lines += ["", *_table("on rows that nothing had learned from", self.judges, PRECISIONS)]
        if self.expected:
            lines += ["", *_table("expected on new rows", self._expectations(), FIGURES)]
        return "\n".join([*lines, *([""] if self.notes else []), *(textwrap.fill(note, WIDTH) for note in self.notes)])

    def _repr_html_(self) -> str:
        def table(head: str, rows: dict[str, Any], names: tuple[str, ...]) -> str:
            cells = [[name, *(_percent(row, key) for key in names)] for name, row in rows.items()]
            return html_table([head, *names], cells)

        parts = [html_table(["chosen", ""], list(self.chosen.items()))]
        if self.expected:
            parts.append(table("expected on new rows", self._expectations(), FIGURES))
        if self.judges:
            parts.append(table("on rows that nothing had learned from", self.judges, PRECISIONS))
        if self.tried:
            parts.append(table(f"tried ({len(self.tried)}, the best first)", self._best(), PRECISIONS))
        if self.reliability:
            predicted, observed, _ = (
                [100 * value for value in column] for column in zip(*self.reliability, strict=True)
            )
            curves = [Curve("right", predicted, observed, BLUE), Curve("ideal", [0, 100], [0, 100], ORANGE, "4 3")]
            parts.append(svg_chart(curves, "probability (%)", "right (%)", y_range=(0, 100)))
        parts += [f"<p>{escape(note)}</p>" for note in self.notes]
        return "".join(parts)

    def _best(self) -> dict[str, dict[str, Any]]:
        best = sorted(self.tried, key=lambda row: -sum(row[key] for key in PRECISIONS))
        return {row["setting"]: row for row in best[:TABLE]}

    def _expectations(self) -> dict[str, dict[str, float]]:
        named = ((RANDOM, self.expected), (LAST, self.expected_last))
        return {f"{name} ({figures['rows']:,.0f})": figures for name, figures in named if figures}

    def _to_parts(self) -> Parts:
        return dict(vars(self))

    @classmethod
    def _from_parts(cls, parts: Parts) -> Report:
        report = cls(
            **{name: parts[name] for name in ("chosen", "tried", "judges", "expected", "reliability", "notes")},
            expected_last=parts.get("expected_last"),
            curve=parts.get("curve"),
        )
        require(_is_data(list(vars(report).values())), "a report must be of plain values")
        return report


def report_fit(
    model: Any,
    choice: Choice | None = None,
    calibration: Calibration | None = None,
    held_out: HeldOut | None = None,
) -> Report:
    """Return what there is to say of a fitted classifier."""
    chosen = describe_parts(
        model.budget,
        model.features if isinstance(model.features, str) else _first(model.features_, model.scaling_),
        model.compressor_,
        model.learner_,
        model.decoder_,
    )
    chosen["refiner"] = "none" if model.refiner_ is None else f"{model.refiner_.n_candidates_} candidates a row"
    report = Report(chosen, [], {}, {}, [], _notes(model, held_out or HeldOut()))
    if choice is not None:
        report.tried = [{"setting": str(row), **row.figures} for row in choice.tried]
        report.curve = choice.curve
    if calibration is not None:
        curve = reliability_curve(calibration.truth, calibration.probabilities)
        chosen["refiner"] += f", {calibration.chosen}"
        report.judges = calibration.figures
        report.expected = expectations(calibration.probabilities, calibration.truth, model.threshold_)
        report.expected["recall"] = calibration.recall
        if calibration.last is not None:
            report.expected_last = expectations(*calibration.last, model.threshold_)
        report.reliability = [
            [float(p), float(q), int(n)] for p, q, n in zip(curve.predicted, curve.observed, curve.n_pairs, strict=True)
        ]
    return report


def expectations(P: CSR, Y: Any, threshold: float) -> dict[str, float]:
    """Return the figures of probabilities P of rows with labels Y."""
    figures = ranking_figures(Y, top_k(P, max(KS)), KS)
    return {
        **{name: figures[name] for name in PRECISIONS},
        "F1": f1_score(Y, above(P, threshold)),
        "ECE": reliability_curve(Y, P).error,
        "rows": float(P.shape[0]),
    }


def _notes(model: Any, held_out: HeldOut) -> list[str]:
    notes = []
    if held_out.order is not None:
        notes.append(
            f"Order matters: {held_out.order}. If new rows come from elsewhere, or later, expect what the last rows "
            "get."
        )
    if model.refiner_ is not None and model.compressor_.operator_.n_labels > MOST_SCORED:
        notes.append(
            f"With more than {MOST_SCORED:,} labels the candidates of a row are those with the nearest centroids; "
            "measurements and decoder speak of these alone."
        )
    if model.updatable:
        notes.append("Only what can be updated was considered: ridge.")
        if model.refiner_ is not None:
            notes.append(
                "Updates are exact for regressions, label counts and centroids; classifiers of labels and "
                "probabilities stay as they are until refresh(X, y)."
            )
    return notes


def describe_parts(budget: str, features: Any, compressor: Any, learner: Any, decoder: Any) -> dict[str, Any]:
    """Return the parts of a model, in words. The compressor has been fitted."""
    return {
        "budget": budget,
        "features": _describe_features(features),
        "compressor": type(compressor).__name__,
        "measurements": int(compressor.operator_.n_measurements),
        "learner": _describe_learner(learner),
        "decoder": type(decoder).__name__,
    }


def _first(*values: Any) -> Any:
    """Return the first that is something."""
    return next((value for value in values if value is not None), None)


def _describe_features(features: Any) -> str:
    if features is None or features == "none":
        return "as they are"
    word = next((word for word, kind in FEATURES.items() if type(features) is kind), type(features).__name__)
    return features if isinstance(features, str) else word


def _describe_learner(learner: Any) -> str:
    parts = [getattr(learner, f"{name}_", getattr(learner, name, None)) for name in ("kernel", "alpha")]
    kernel, alpha = ("" if part is None else part for part in parts)
    words = [type(learner).__name__, str(kernel), f"alpha {alpha:.3g}" if isinstance(alpha, float) else ""]
    return ", ".join(filter(None, words))


def _table(title: str, rows: dict[str, dict[str, float]], names: tuple[str, ...]) -> list[str]:
    width = max(len(title), *(len(name) + 2 for name in rows))
    head = f"{title:<{width}} " + "".join(f"{name:>7}" for name in names)
    return [head, *(f"  {name:<{width - 2}} " + _cells(row, names) for name, row in rows.items())]


def _cells(row: dict[str, float], names: tuple[str, ...]) -> str:
    return "".join(f"{_percent(row, name):>7}" for name in names).rstrip()


def _percent(row: dict[str, float], name: str) -> str:
    return f"{100 * row[name]:.2f}" if name in row else ""


def _is_data(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_data, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_data(item) for key, item in value.items())
    return value is None or is_plain(value)
