"""What a fit has chosen, what that was compared with, and what to expect of it."""

from __future__ import annotations

from typing import Any

from labelsense._storage import Parts, is_plain, require, storable
from labelsense.chooser import Choice
from labelsense.metrics import above, f1_score, reliability_curve
from labelsense.refine import Calibration

TABLE = 8  # settings that are shown, of those that were tried


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
    reliability : list of (float, float, int)
        Of twenty groups of candidates by probability: the mean of it, the share that is right, and how many there are.
    notes : list of str
        What else there is to say.
    """

    def __init__(
        self,
        chosen: dict[str, Any],
        tried: list[dict[str, Any]],
        judges: dict[str, dict[str, float]],
        expected: dict[str, float],
        reliability: list[tuple[float, float, int]],
        notes: list[str],
    ) -> None:
        self.chosen, self.tried, self.judges = chosen, tried, judges
        self.expected, self.reliability, self.notes = expected, reliability, notes

    def __str__(self) -> str:
        lines = ["chosen", *(f"  {key:<13} {value}" for key, value in self.chosen.items())]
        if self.tried:
            best = sorted(self.tried, key=lambda row: -sum(row[key] for key in ("P@1", "P@3", "P@5")))
            lines += [
                "",
                *_table(f"tried ({len(best)}, the best first)", {row["setting"]: row for row in best[:TABLE]}),
            ]
        if self.judges:
            lines += ["", *_table("on rows that nothing had learned from", self.judges)]
        if self.expected:
            figures = ", ".join(f"{key} {value:.4g}" for key, value in self.expected.items() if key != "rows")
            lines += ["", f"expected       {figures}", f"               measured on {self.expected['rows']:.0f} rows"]
        return "\n".join([*lines, *([""] if self.notes else []), *self.notes])

    def _to_parts(self) -> Parts:
        return dict(vars(self))

    @classmethod
    def _from_parts(cls, parts: Parts) -> Report:
        report = cls(
            **{name: parts[name] for name in ("chosen", "tried", "judges", "expected", "reliability", "notes")}
        )
        require(_is_data(list(vars(report).values())), "a report must be of plain values")
        return report


def report_fit(model: Any, choice: Choice | None, calibration: Calibration | None) -> Report:
    """Return what there is to say of a fitted classifier."""
    operator = model.compressor_.operator_
    scaling = model.features_ if model.features_ is not None else model.scaling_
    chosen = {
        "budget": model.budget,
        "features": "as they are" if scaling is None else type(scaling).__name__,
        "compressor": type(model.compressor_).__name__,
        "measurements": int(operator.n_measurements),
        "learner": _describe_learner(model.learner_),
        "decoder": type(model.decoder_).__name__,
        "refiner": "none" if model.refiner_ is None else f"{model.refiner_.n_candidates_} candidates a row",
    }
    tried = [] if choice is None else [{"setting": str(row), **row.figures} for row in choice.tried]
    if calibration is None:
        return Report(chosen, tried, {}, {}, [], [])
    P, Y = calibration.probabilities, calibration.truth
    curve = reliability_curve(Y, P)
    expected = {
        **calibration.figures[calibration.chosen],
        "F1": f1_score(Y, above(P, model.threshold_)),
        "ECE": curve.error,
        "recall": calibration.recall,
        "rows": float(calibration.n_rows),
    }
    chosen["refiner"] += f", {calibration.chosen}"
    bins = [
        (float(p), float(q), int(n)) for p, q, n in zip(curve.predicted, curve.observed, curve.n_pairs, strict=True)
    ]
    return Report(chosen, tried, calibration.figures, expected, bins, [])


def _describe_learner(learner: Any) -> str:
    kernel = f", {learner.kernel_}" if hasattr(learner, "kernel_") else ""
    alpha = f", alpha {learner.alpha_:g}" if hasattr(learner, "alpha_") else ""
    return f"{type(learner).__name__}{kernel}{alpha}"


def _table(title: str, rows: dict[str, dict[str, float]]) -> list[str]:
    width = max(len(title), *(len(name) + 2 for name in rows))
    head = f"{title:<{width}}    P@1    P@3    P@5"
    return [
        head,
        *(
            f"  {name:<{width - 2}} " + "".join(f" {100 * row[k]:6.2f}" for k in ("P@1", "P@3", "P@5"))
            for name, row in rows.items()
        ),
    ]


def _is_data(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_data, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_data(item) for key, item in value.items())
    return value is None or is_plain(value)
