"""What the advisor hands back: plain data, a table for people, and a picture."""

from __future__ import annotations

import textwrap
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

from sklearn.base import BaseEstimator, clone

from labelsense._html import BLUE, ORANGE, Curve, html_table, svg_chart
from labelsense.advisor.costs import Costs
from labelsense.advisor.figure import draw
from labelsense.advisor.sparsity import Sparsity
from labelsense.compress import HadamardCompressor
from labelsense.estimator import CompressedLabelClassifier
from labelsense.reconstruct import DECODERS
from labelsense.regress import Learner

WIDTH = 79


@dataclass(frozen=True)
class Option:
    """What to expect of one number of measurements. Precisions are fractions, by name: ``{"P@1": 0.8, ...}``.

    Attributes
    ----------
    n_measurements : int
    coherence : float
        mu(A) of the compressor that would be used.
    decoder, n_nonzero : str, int
        The best decoder and support size for so many measurements.
    decoders : dict
        The P@k that each decoder reached after learning from the sample.
    perfect, perfect_error : dict, float
        The precisions when the true measurements A y are decoded, and the mean squared error of that, relative to the
        mean number of labels.
    curve : dict
        The P@k on held-out rows after learning from so many rows.
    expected : dict
        The precisions to expect on new rows after learning from all rows.
    """

    n_measurements: int
    coherence: float
    decoder: str
    n_nonzero: int
    decoders: dict[str, float]
    perfect: dict[str, float]
    perfect_error: float
    curve: dict[int, float]
    expected: dict[str, float]


@dataclass(frozen=True)
class Advice:
    """What :func:`~labelsense.advisor.advise` recommends and expects. ``print`` it.

    Attributes
    ----------
    sparsity : Sparsity
        How sparse the labels are.
    options : tuple of Option
        What to expect of each number of measurements that was tried.
    n_measurements, decoder, n_nonzero, learner, features
        The recommendation; the features are those asked for.
    k : int
        The recommendation is by P@k.
    best_possible : dict
        The precisions that no model can exceed, because rows have too few labels.
    standard_error : float
        Of the expected P@1, from the number of held-out rows alone.
    costs : Costs
        The time and memory of the recommended fit.
    reasons : tuple of str
        Why.
    n_learned, n_held_out : int
        The rows of the trial.
    held_out : str
        As it was asked for.
    likeness : tuple of float
        The mean cosine of rows next to each other, and of rows at random.
    random_state : int
        Seed of the recommended A.
    seconds : float
        What the advice took.

    Examples
    --------
    >>> from labelsense.advisor import advise
    >>> from labelsense.data import make_tagged_documents
    >>> advice = advise(*make_tagged_documents(400, 200, 60, noise=0.1, random_state=0))
    >>> sorted(advice.recommended.expected)
    ['P@1', 'P@3', 'P@5']
    """

    sparsity: Sparsity
    options: tuple[Option, ...]
    n_measurements: int
    decoder: str
    n_nonzero: int
    learner: Learner = field(repr=False)
    features: BaseEstimator | str | None = field(repr=False)
    k: int
    best_possible: dict[str, float]
    standard_error: float
    costs: Costs
    reasons: tuple[str, ...]
    n_learned: int
    n_held_out: int
    held_out: str
    likeness: tuple[float, float]
    random_state: int
    seconds: float

    @property
    def recommended(self) -> Option:
        """The option with the recommended number of measurements."""
        return next(option for option in self.options if option.n_measurements == self.n_measurements)

    def make_classifier(self) -> CompressedLabelClassifier:
        """Return the recommended classifier, not fitted."""
        return CompressedLabelClassifier(
            HadamardCompressor(self.n_measurements, random_state=self.random_state),
            clone(self.learner),
            DECODERS[self.decoder](self.n_nonzero),
            refiner=None,
            features=clone(self.features, safe=False),
            random_state=self.random_state,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data that ``json.dumps`` takes; the learner and the features as text."""
        fields = asdict(self)
        fields["learner"] = _one_line(self.learner)
        if isinstance(self.features, BaseEstimator):
            fields["features"] = " ".join(repr(self.features).split())
        fields["options"] = [
            {**option, "curve": {str(size): value for size, value in option["curve"].items()}}
            for option in fields["options"]
        ]
        fields["reasons"], fields["likeness"] = list(self.reasons), list(self.likeness)
        return fields

    def plot(self, target: Any) -> Any:
        """Draw the expected precision against the number of measurements, into a file or on matplotlib axes."""
        return draw(self, target)

    def __str__(self) -> str:
        s, c = self.sparsity, self.costs
        point = 100 * self.standard_error
        decoder = f"{DECODERS[self.decoder].__name__}({self.n_nonzero})"
        memory = "not known for this learner"
        if c.model_bytes is not None and c.peak_bytes is not None:
            memory = f"model {_bytes(c.model_bytes)}, peak of the process while fitting {_bytes(c.peak_bytes)}"
        parts = [
            _paragraph(
                "Labels",
                f"{s.n_labels:,} labels, {s.n_rows:,} rows with {s.mean:.1f} labels each (median {s.median:g}, 95 % "
                f"have at most {s.most:g}). {s.half:,} labels make up half of the occurrences; "
                f"{s.without_rows:,} have no row.",
            ),
            _paragraph(
                "Trial",
                f"learned from {self.n_learned:,} rows, tested on {self.n_held_out:,} others: P@1 ± {point:.1f} "
                f"points. It took {self.seconds:.0f} s.",
            ),
            self._table(),
            _paragraph("Take", f"{self.n_measurements} measurements, {decoder}, {_one_line(self.learner)}."),
            *(_paragraph("", f"- {reason}") for reason in self.reasons),
            _paragraph(
                "Costs",
                f"compress {_seconds(c.compress_seconds)}, fit {_seconds(c.fit_seconds)} ({c.solver}), predict "
                f"{_seconds(c.predict_seconds)} per 1,000 rows. Memory: {memory}.",
            ),
        ]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        names, goal = list(self.best_possible), f"P@{self.k}"
        ms = [option.n_measurements for option in self.options]
        rows = [
            [f"{option.n_measurements:,}", *(f"{100 * option.expected[name]:.1f}" for name in names), option.decoder]
            for option in self.options
        ]
        table = html_table(["measurements", *names, "decoder"], rows, strong=ms.index(self.n_measurements))
        perfect, expected = (
            [100 * figures[goal] for figures in kind]
            for kind in ([option.perfect for option in self.options], [option.expected for option in self.options])
        )
        chart = svg_chart(
            [Curve("perfect regressions", ms, perfect, ORANGE), Curve("expected", ms, expected, BLUE)],
            "measurements (regressions to learn)",
            f"{goal} (%)",
            y_range=(0, 100),
            log_x=True,
        )
        reasons = "".join(f"<li>{escape(reason)}</li>" for reason in self.reasons)
        return f"{table}{chart}<ul>{reasons}</ul>"

    def _table(self) -> str:
        names = list(self.best_possible)
        head = "".join(f"{name:>6}" for name in names)
        wide = len(head) + 7
        lines = [
            f"{'':18}{'perfect regressions':^{wide}}  {'expected, all rows':^{len(head)}}",
            f"{'m':>9}{'mu(A)':>8} {head}  error {head}  decoder",
        ]
        for option in self.options:
            mark = "*" if option.n_measurements == self.n_measurements else " "
            perfect, expected = (
                "".join(f"{100 * values[name]:6.1f}" for name in names) for values in (option.perfect, option.expected)
            )
            lines.append(
                f" {mark}{option.n_measurements:>7}{option.coherence:8.2f} {perfect}{option.perfect_error:7.2f} "
                f"{expected}  {option.decoder}"
            )
        best = "".join(f"{100 * value:6.1f}" for value in self.best_possible.values())
        lines.append(f"{'best possible':>17} {best}")
        return "\n".join(["", *lines, ""])


def _paragraph(title: str, text: str) -> str:
    indent = " " * (10 if title else 12)
    first = f"{title:<10}" if title else " " * 10
    return textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)


def _one_line(learner: Learner) -> str:
    text = " ".join(repr(learner).split())
    return "RidgeLearner(alpha=1.0)" if text == "RidgeLearner()" else text  # scikit-learn leaves defaults out


def _bytes(number: float) -> str:
    return f"{number / 1e9:.2f} GB" if number >= 1e9 else f"{number / 1e6:.1f} MB"


def _seconds(number: float) -> str:
    return f"{number:.2f} s" if number < 10 else f"{number:.0f} s"
