"""What spoke for a label of one row, and what against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._typing import FloatArray, Label
from labelsense.compress.base import Operator
from labelsense.refine.ranker import Ranker
from labelsense.regress import Learner

SHOWN = 12
OCCLUDED = 512  # features that are left out one at a time, those with the largest values, where weights cannot tell


@dataclass(frozen=True)
class Explanation:
    """What the features of a row contribute to the score of a label. ``print`` it.

    Attributes
    ----------
    label : label
        The label.
    score : float
        The least-squares estimate of the label alone by the measurements, a_j'H(x) / a_j'a_j; in the explanation of a
        ranker, its margin.
    constant : float
        What the score is without any feature.
    parts : list of (name, float)
        The contribution of each feature that the row has, the largest in absolute value first.
    exact : bool
        Whether constant and parts add up to the score, as with ridge. Where not, a part is what the score loses if the
        feature is left out.
    probability : float or None
        Of the label, in a model that has probabilities; 0 where it is no candidate.
    ranker : Explanation or None
        The same for the linear classifier of the label, in a refined model.
    """

    label: Label
    score: float
    constant: float
    parts: list[tuple[Any, float]]
    exact: bool
    probability: float | None = None
    ranker: Explanation | None = None

    def __str__(self) -> str:
        probability = "" if self.probability is None else f", probability {self.probability:.3f}"
        lines = [f"{self.label}{probability}", *self._lines("measurements")]
        return "\n".join([*lines, *(self.ranker._lines("ranker") if self.ranker else [])])

    def _lines(self, title: str) -> list[str]:
        shown = "  ".join(f"{name} {value:+.3f}" for name, value in self.parts[:SHOWN])
        others = sum(value for _, value in self.parts[SHOWN:])
        more = f"  {len(self.parts) - SHOWN} more {others:+.3f}" if len(self.parts) > SHOWN else ""
        end = "sum" if self.exact else "about"
        return [f"  {title}: {shown}{more}  constant {self.constant:+.3f}  {end} {self.score:.3f}"]


def explain_measurements(
    learner: Learner, operator: Operator, x: Any, j: int, label: Label, names: Any, predict: Any
) -> Explanation:
    """Explain the estimate of label j by the measurements of the row x (1, p)."""
    column = operator.columns([j])[:, 0].astype(np.float64)
    direction = column / max(float(column @ column), 1e-300)
    row = sp.csr_array(x)
    known = learner.combine_targets(direction)
    score = float(predict(x)[0].astype(np.float64) @ direction)
    if known is not None:
        weights, constant = known
        return Explanation(
            label, score, float(constant), _sorted(names, row.indices, row.data * weights[row.indices]), True
        )
    largest = np.argsort(-np.abs(row.data), kind="stable")[:OCCLUDED]
    without = sp.csr_array(sp.vstack([row] * (len(largest) + 1), format="csr"))
    for i, place in enumerate(largest):
        without.data[i * row.nnz + place] = 0
    without.data[len(largest) * row.nnz :] = 0
    without.eliminate_zeros()
    scores = predict(without if sp.issparse(x) else without.toarray()).astype(np.float64) @ direction
    return Explanation(
        label, score, float(scores[-1]), _sorted(names, row.indices[largest], score - scores[:-1]), False
    )


def explain_ranker(ranker: Ranker, x: Any, j: int, label: Label, names: Any) -> Explanation:
    """Explain the margin of label j for the row x (1, p)."""
    row = sp.csr_array(x)
    weights = ranker.weights[[j]].toarray()[0].astype(np.float64)
    values = row.data * weights[row.indices]
    constant = float(ranker.bias[j])
    used = values != 0
    return Explanation(
        label, float(values.sum()) + constant, constant, _sorted(names, row.indices[used], values[used]), True
    )


def _sorted(names: Any, columns: Any, values: FloatArray) -> list[tuple[Any, float]]:
    order = np.argsort(-np.abs(values), kind="stable")
    return [(names[columns[i]], float(values[i])) for i in order]
