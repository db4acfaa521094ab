"""What the advisor hands back: plain data, a table for people, and a picture."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from typing import Any

from sklearn.base import clone

from labelsense._html import BLUE, ORANGE, Curve, html_table, svg_chart
from labelsense.advisor.costs import Costs
from labelsense.advisor.figure import draw
from labelsense.advisor.sparsity import Sparsity
from labelsense.estimator import CompressedLabelClassifier

WIDTH = 79
SHARE = 0.01  # of the best precision, that fewer measurements may lose


@dataclass(frozen=True)
class Option:
    """What a number of measurements gives, without refinement. Precisions are fractions, by name: ``{"P@1": 0.8}``.

    Attributes
    ----------
    n_measurements : int
    perfect : dict
        The precisions when the true measurements A y are decoded.
    measured : dict
        The precisions of rows out of sample, after learning from the few rows of the trials.
    """

    n_measurements: int
    perfect: dict[str, float]
    measured: dict[str, float]


@dataclass(frozen=True)
class Advice:
    """What :func:`~labelsense.advisor.advise` recommends and expects. ``print`` it.

    Attributes
    ----------
    sparsity : Sparsity
        How sparse the labels are.
    chosen : dict
        The parts of the classifier in words, as in ``report_.chosen`` of one that has been fitted.
    tried : list of dict
        Settings that were compared, as in ``report_.tried``.
    n_measurements : int
        How many of them it will have.
    options : tuple of Option
        What other numbers of measurements give.
    k : int
        What is said of the options is about P@k.
    expected : dict
        What to expect on new rows after learning from all, as in ``report_.expected``; P@1, P@3 and P@5 are
        extrapolated if the sample has fewer.
    expected_last : dict
        The same for the last rows, by a model of those before, of the sample; empty if their order does not matter.
    best_possible : dict
        The precisions that no model can exceed, because rows have too few labels.
    standard_error : float
        Of the expected P@1, from the number of rows alone.
    costs : Costs
        The time and memory of the fit.
    order : str or None
        How the order of rows matters, if it does.
    reasons : tuple of str
        Why.
    n_learned : int
        The rows of the rehearsal.
    seconds : float
        What the advice took.

    Examples
    --------
    >>> from labelsense.advisor import advise
    >>> from labelsense.data import make_tagged_documents
    >>> advice = advise(*make_tagged_documents(400, 200, 60, noise=0.1, random_state=0), budget="fast")
    >>> advice.chosen["compressor"], advice.n_measurements
    ('WhitenedCompressor', 60)
    """

    sparsity: Sparsity
    classifier: CompressedLabelClassifier = field(repr=False)
    chosen: dict[str, Any]
    tried: list[dict[str, Any]]
    n_measurements: int
    options: tuple[Option, ...]
    k: int
    expected: dict[str, float]
    expected_last: dict[str, float]
    best_possible: dict[str, float]
    standard_error: float
    costs: Costs
    order: str | None
    reasons: tuple[str, ...]
    n_learned: int
    seconds: float

    @property
    def recommended(self) -> Option:
        """The option with the recommended number of measurements."""
        return next(option for option in self.options if option.n_measurements == self.n_measurements)

    @property
    def fewest(self) -> Option:
        """The option with the fewest measurements within one percent of the best P@k that was measured."""
        goal = f"P@{self.k}"
        top = max(option.measured[goal] for option in self.options)
        return next(option for option in self.options if option.measured[goal] >= (1 - SHARE) * top)

    def make_classifier(self) -> CompressedLabelClassifier:
        """Return the recommended classifier, not fitted: its fit equals one that chooses by itself."""
        return clone(self.classifier)

    def because(self, reasons: Sequence[str]) -> Advice:
        """Return the advice with reasons."""
        return replace(self, reasons=tuple(reasons))

    def to_dict(self) -> dict[str, Any]:
        """Return all fields but the classifier as plain data that ``json.dumps`` takes."""
        fields = asdict(replace(self, classifier=None))  # type: ignore[arg-type]
        del fields["classifier"]
        return fields | {"options": list(fields["options"]), "reasons": list(self.reasons)}

    def plot(self, target: Any) -> Any:
        """Draw the precision against the number of measurements, into a file or on matplotlib axes."""
        return draw(self, target)

    def __str__(self) -> str:
        s, c = self.sparsity, self.costs
        chosen = self.chosen
        memory = "not known for this learner"
        if c.model_bytes is not None and c.peak_bytes is not None:
            memory = f"{_bytes(c.model_bytes)}, and {_bytes(c.peak_bytes)} for the process while they are learned"
        parts = [
            _paragraph(
                "Labels",
                f"{s.n_labels:,} labels, {s.n_rows:,} rows with {s.mean:.1f} labels each (median {s.median:g}, 95 % "
                f"have at most {s.most:g}). {s.half:,} labels make up half of the occurrences; "
                f"{s.without_rows:,} have no row.",
            ),
            _paragraph("Take", "what a fit without settings takes:"),
            *(f"{'':12}{name:<13} {value}" for name, value in chosen.items()),
            *(_paragraph("", f"- {reason}") for reason in self.reasons),
            _paragraph(
                "Expect", f"{_percent(self.expected)} (P@1 ± {100 * self.standard_error:.1f}) on rows at random."
            ),
        ]
        if self.expected_last:
            parts.append(
                _paragraph("", f"{_percent(self.expected_last)} on the last rows, by a model of those before.")
            )
        parts += [
            _paragraph(
                "Costs",
                f"fit {_seconds(c.fit_seconds)} (regressions: {c.solver}), predict {_seconds(c.predict_seconds)} per "
                f"1,000 rows. Memory of the regressions: {memory}. This took {self.seconds:.0f} s.",
            ),
            self._table(),
        ]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        names, goal = list(self.best_possible), f"P@{self.k}"
        ms = [option.n_measurements for option in self.options]
        rows = [
            [f"{option.n_measurements:,}", *(f"{100 * option.measured[name]:.1f}" for name in names)]
            for option in self.options
        ]
        table = html_table(["measurements", *names], rows, strong=ms.index(self.n_measurements))
        perfect, measured = (
            [100 * figures[goal] for figures in kind]
            for kind in ([option.perfect for option in self.options], [option.measured for option in self.options])
        )
        chart = svg_chart(
            [Curve("perfect regressions", ms, perfect, ORANGE), Curve("measured, not refined", ms, measured, BLUE)],
            "measurements (regressions to learn)",
            f"{goal} (%)",
            y_range=(0, 100),
            log_x=True,
        )
        chosen = html_table(["take", ""], list(self.chosen.items()))
        reasons = "".join(f"<li>{escape(reason)}</li>" for reason in self.reasons)
        return f"{chosen}<p>{escape(_percent(self.expected))}</p><ul>{reasons}</ul>{table}{chart}"

    def _table(self) -> str:
        names = list(self.best_possible)
        head = "".join(f"{name:>6}" for name in names)
        wide = len(head)
        lines = [
            f"{'not refined, of a few rows':<26}{'measured':>{wide}}  {'perfect regressions':>{wide}}",
            f"{'measurements':>26}{head}  {head}",
        ]
        for option in self.options:
            mark = "*" if option.n_measurements == self.n_measurements else " "
            measured, perfect = (
                "".join(f"{100 * values[name]:6.1f}" for name in names) for values in (option.measured, option.perfect)
            )
            lines.append(f"{mark:>16}{option.n_measurements:>10}{measured}  {perfect}")
        best = "".join(f"{100 * value:6.1f}" for value in self.best_possible.values())
        lines.append(f"{'best possible':>26}{'':{wide}}  {best}")
        return "\n".join(["", *lines])


def _paragraph(title: str, text: str) -> str:
    indent = " " * (10 if title else 12)
    first = f"{title:<10}" if title else " " * 10
    return textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)


def _percent(figures: dict[str, float]) -> str:
    shown = [name for name in ("P@1", "P@3", "P@5", "F1", "ECE") if name in figures]
    return ", ".join(f"{name} {100 * figures[name]:.1f}" for name in shown)


def _bytes(number: float) -> str:
    return f"{number / 1e9:.2f} GB" if number >= 1e9 else f"{number / 1e6:.1f} MB"


def _seconds(number: float) -> str:
    return f"{number:.2f} s" if number < 10 else f"{number:.0f} s"
