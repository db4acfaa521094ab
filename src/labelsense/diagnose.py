"""After training: which part of the method loses the labels that are missed, and what to spend on."""

from __future__ import annotations

import textwrap
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np

from labelsense._blocks import row_blocks
from labelsense._html import BLUE, ORANGE, html_bar, html_table
from labelsense._typing import CSR, FloatArray
from labelsense.compress.base import Operator
from labelsense.labels import top_k
from labelsense.metrics import ranking_figures, sparsity_error, squared_error
from labelsense.reconstruct import Decoder

WIDTH = 79
ROWS = 2048  # of a block


@dataclass(frozen=True)
class Diagnosis:
    """Where precision is lost, on rows that were not learned from. ``print`` it.

    The losses add up: ``best_possible - support_loss - decoding_loss - regression_loss == precision``.

    Attributes
    ----------
    k : int
        The losses are in P@k, as fractions.
    n_rows : int
        The rows it was measured on.
    precision : float
        P@k of the model, with its own support size: empty places count as misses.
    best_possible : float
        What no model can exceed, because rows have fewer than k labels.
    support_loss : float
        What is lost because at most ``n_nonzero`` labels are returned.
    decoding_loss : float
        What is lost on top when the true measurements A y are decoded: the fault of A and the decoder.
    regression_loss : float
        What is lost on top because the measurements are predicted, not known.
    half_precision : float
        P@k by only half of the measurements. What the second half gained, more will gain again in part.
    squared_error, perfect_squared_error : float
        The mean of ||y' - y||^2 for the model, and for decoding A y.
    regression_error : float
        The mean of ||H(x) - A y||^2, the first term of the paper's bound.
    sparsity_error : float
        The mean of sperr(k, y), its second term, for the k that the support size stands for.
    spend_on : {"more measurements", "a better learner", "a larger support"}
        The verdict.
    reason : str
        Why.

    Examples
    --------
    >>> from labelsense import CompressedLabelClassifier, HadamardCompressor
    >>> from labelsense.data import make_tagged_documents
    >>> X, Y = make_tagged_documents(n_samples=500, n_labels=200, random_state=0)
    >>> clf = CompressedLabelClassifier(HadamardCompressor(10), "ridge", random_state=0).fit(X[:400], Y[:400])
    >>> clf.diagnose(X[400:], Y[400:]).spend_on
    'more measurements'
    """

    k: int
    n_rows: int
    precision: float
    best_possible: float
    support_loss: float
    decoding_loss: float
    regression_loss: float
    half_precision: float
    squared_error: float
    perfect_squared_error: float
    regression_error: float
    sparsity_error: float
    spend_on: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data that ``json.dumps`` takes."""
        return asdict(self)

    def __str__(self) -> str:
        rows = [
            (f"best possible P@{self.k}", self.best_possible),
            ("- lost by the size of the support", self.support_loss),
            ("- lost in decoding, even with perfect regressions", self.decoding_loss),
            ("- lost by the regressions", self.regression_loss),
            (f"= P@{self.k} of the model, on {self.n_rows:,} rows", self.precision),
            ("  by half of the measurements", self.half_precision),
        ]
        lines = [f"{text:<52}{100 * value:7.1f}" for text, value in rows]
        errors = [
            ("squared error of the labels", self.squared_error),
            ("  with perfect regressions", self.perfect_squared_error),
            ("squared error of the measurements", self.regression_error),
            ("sparsity error of the labels", self.sparsity_error),
        ]
        lines += [f"{text:<52}{value:7.2f}" for text, value in errors]
        return "\n".join([*lines, textwrap.fill(f"Spend on {self.spend_on}: {self.reason}", WIDTH)])

    def _repr_html_(self) -> str:
        left = self.best_possible
        rows = [(f"best possible P@{self.k}", f"{100 * left:.1f}", html_bar(left, BLUE))]
        for name, loss in (
            ("lost by the size of the support", self.support_loss),
            ("lost in decoding, even with perfect regressions", self.decoding_loss),
            ("lost by the regressions", self.regression_loss),
        ):
            left -= loss
            rows.append((name, f"{100 * loss:.1f}", html_bar(loss, ORANGE, start=left)))
        rows.append((f"P@{self.k} of the model, on {self.n_rows:,} rows", f"{100 * left:.1f}", html_bar(left, BLUE)))
        table = html_table(["", "percent", ""], rows, strong=4)
        return f"{table}<p>Spend on <b>{escape(self.spend_on)}</b>: {escape(self.reason)}</p>"


def diagnose(operator: Operator, decoder: Decoder, H: FloatArray, Y: CSR, k: int) -> Diagnosis:
    """Diagnose predicted measurements H (n, m) of rows whose labels are Y (n, d).

    More measurements get the decoding loss, and of the regression loss as much as the second half of the measurements
    has gained: it shows what the next ones may still gain. A better learner gets the rest. The largest part decides.
    """
    state = decoder.prepare(operator)
    size, Z = decoder.support_size(state), operator.compress(Y)
    with decoder.one_warning() as quiet:
        scores = quiet.decode(state, H)
        perfect = quiet.decode(state, Z)
        half = _half_precision(operator, quiet, H, Y, k, size)
    precision, reachable = _precision(Y, scores, k), _precision(Y, perfect, k)
    labels = np.diff(Y.indptr)
    best, supported = (float(np.minimum(labels, most).mean() / k) for most in (k, min(k, size)))
    losses = {"support": best - supported, "decoding": supported - reachable, "regression": reachable - precision}
    spend_on, reason = _verdict(losses, precision - half, size, k)
    return Diagnosis(
        k=k,
        n_rows=len(H),
        precision=precision,
        best_possible=best,
        support_loss=losses["support"],
        decoding_loss=losses["decoding"],
        regression_loss=losses["regression"],
        half_precision=half,
        squared_error=squared_error(Y, scores),
        perfect_squared_error=squared_error(Y, perfect),
        regression_error=_mean_square(H, Z),
        sparsity_error=float(sparsity_error(Y, _sparsity(decoder, size)).mean()),
        spend_on=spend_on,
        reason=reason,
    )


def _verdict(losses: dict[str, float], gained: float, size: int, k: int) -> tuple[str, str]:
    by_measurements = min(max(gained, 0.0), max(losses["regression"], 0.0))
    shares = {
        "a better learner": losses["regression"] - by_measurements,
        "more measurements": losses["decoding"] + by_measurements,
        "a larger support": losses["support"],
    }
    reasons = {
        "a better learner": "the labels could be decoded from better predictions of the measurements; other features, "
        "more rows or KernelRidgeLearner.",
        "more measurements": f"decoding loses {100 * losses['decoding']:.1f} points even with perfect regressions, and "
        f"the second half of the measurements gained {100 * gained:.1f}; raise n_measurements.",
        "a larger support": f"at most {size} labels are returned for a row, and {k} are asked for; raise n_nonzero.",
    }
    spend_on = max(shares, key=lambda name: shares[name])
    return spend_on, f"{100 * shares[spend_on]:.1f} points of P@{k}. Reason: {reasons[spend_on]}"


def _half_precision(operator: Operator, decoder: Decoder, H: FloatArray, Y: CSR, k: int, size: int) -> float:
    """Return the P@k of decoding a random half of the measurements."""
    m = operator.n_measurements
    some = np.random.RandomState(0).permutation(m)[: max(1, m // 2)]
    state = decoder.prepare(operator.subset(some))
    part = operator.subset_measurements(H, some)
    return _precision(Y, decoder.path(state, part, [min(size, len(some))])[0], k)


def _mean_square(H: FloatArray, Z: FloatArray) -> float:
    """Return the mean over rows of the squared distance."""
    squares = (np.square(H[rows] - Z[rows], dtype=np.float64).sum() for rows in row_blocks(len(H), ROWS))
    return float(sum(squares)) / len(H)


def _precision(Y: CSR, scores: CSR, k: int) -> float:
    return ranking_figures(Y, top_k(scores, k), [k])[f"P@{k}"]


def _sparsity(decoder: Decoder, size: int) -> int:
    """Return the largest k with f(k) <= size, at least 1."""
    return max([k for k in range(1, size + 1) if decoder.output_sparsity(k) <= size], default=1)
