"""What is asked of a model: suggestions, why, and how. Runs on threads, knows nothing of HTTP."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import Pipeline

from labelsense._typing import FloatArray, Label
from labelsense.estimator import CompressedLabelClassifier
from labelsense.explain import Explanation
from labelsense.labels import top_k
from labelsense.predictor import predict_measurements

Suggestion = tuple[Label, float]
REFINED = 50  # labels whose refinement is shown


def stack(model: Any, documents: Sequence[Any]) -> Any:
    """Return documents as the X of a model: texts, or rows of features."""
    return list(documents) if model.takes_text else sp.vstack(documents, format="csr")


def suggest(
    model: Any, documents: Sequence[Any], k: int, allow: list[Label] | None, block: list[Label] | None
) -> list[list[Suggestion]]:
    """Return the best labels of each document with scores from 0 to 1, best first; those of no score are left out."""
    top = model.predict_topk(stack(model, documents), k, allow=allow, block=block)
    scores = np.clip(np.nan_to_num(top.scores), 0.0, 1.0)
    return [
        [(label, score) for label, score in zip(labels, row, strict=True) if score > 0]
        for labels, row in zip(top.labels.tolist(), scores.tolist(), strict=True)
    ]


def explain(model: Any, document: Any, label: Label) -> Explanation | None:
    """Return what the features of a document add to the score of a label; None where the model cannot tell."""
    return model.explain(document, label) if isinstance(model, CompressedLabelClassifier) else None


def first_step(features: Any) -> Any:
    """Return the transformer that sees the documents first."""
    while isinstance(features, Pipeline):
        features = features.steps[0][1]
    return features


class Mark(NamedTuple):
    """A word of a text, from ``start`` to ``end`` in characters, and the name of its feature."""

    start: int
    end: int
    feature: Any


def mark_words(model: Any, text: str) -> list[Mark]:
    """Return where the words of a text are that the model knows; none where its features are not single words."""
    vectoriser = first_step(model.features_)
    settings = (vectoriser.analyzer, tuple(vectoriser.ngram_range), vectoriser.tokenizer)
    if settings != ("word", (1, 1), None):
        return []
    prepare = vectoriser.build_preprocessor()
    places = [(match.span(), prepare(match.group())) for match in re.finditer(vectoriser.token_pattern, text)]
    words = sorted({word for _, word in places})
    if isinstance(vectoriser, HashingVectorizer):
        hashed = [vectoriser.transform([word]).indices for word in words]
        columns = {word: int(found[0]) for word, found in zip(words, hashed, strict=True) if len(found)}
    else:
        columns = {word: vectoriser.vocabulary_[word] for word in words if word in vectoriser.vocabulary_}
    names = model._feature_names()
    return [Mark(*span, names[columns[word]]) for span, word in places if word in columns]


class Step(NamedTuple):
    """A step of a decoder: the labels that it took and dropped, those it has with their coefficients, what is left.

    ``left`` is what is left, number by number, and ``residual`` its length, as a share of that of the measurements.
    """

    taken: list[int]
    dropped: list[int]
    coefficients: list[tuple[int, float]]
    residual: float
    left: list[float]


class Change(NamedTuple):
    """What refinement made of a label: its score by the decoder, its probability, and why.

    ``places`` has its place among the candidates by every judge alone, the best being 1.
    """

    label: int
    before: float
    after: float
    places: dict[str, int]


class Refinement(NamedTuple):
    """How many labels were candidates, and what was made of the most probable ones."""

    n_candidates: int
    changes: list[Change]


class Course(NamedTuple):
    """How a document came to its labels: the measurements, the decoder's way from them, and refinement if there is."""

    measurements: list[float]
    steps: list[Step]
    refinement: Refinement | None


def follow(model: Any, document: Any) -> Course | None:
    """Return how the labels of a document are reconstructed, step by step; None for models that do not do so."""
    if not isinstance(model, CompressedLabelClassifier):
        return None
    parts, decoder = model._current(), model.decoder_
    x = model._check_features(stack(model, [document]))
    h = predict_measurements(parts.learner, x)
    sizes = range(1, min(decoder.support_size(parts.operator), parts.operator.n_labels) + 1)
    length = float(np.linalg.norm(h))
    steps: list[Step] = []
    before: set[int] = set()
    for found in decoder.path(parts.reconstruction.state, h, list(sizes)):
        labels, values = found.indices.tolist(), found.data
        if steps and set(labels) == before and np.allclose(values, [c for _, c in steps[-1].coefficients]):
            continue  # the decoder had ended
        steps.append(_step(parts.operator, h[0], length, labels, values, before))
        before = set(labels)
    refinement = None if parts.refiner is None else _refine(parts, x, h, steps)
    return Course([float(value) for value in h[0]], steps, refinement)


def _refine(parts: Any, x: Any, h: FloatArray, steps: list[Step]) -> Refinement:
    before = dict(steps[-1].coefficients) if steps else {}
    probabilities, judges = parts.refiner.opinions(x, h, parts.reconstruction)
    places = {
        name: dict(zip(M.indices.tolist(), M.data.astype(int).tolist(), strict=True)) for name, M in judges.items()
    }
    labels, values = top_k(probabilities, REFINED)
    changes = [
        Change(j, before.get(j, 0.0), value, {name: place[j] for name, place in places.items()})
        for j, value in zip(labels[0].tolist(), values[0].tolist(), strict=True)
        if j >= 0
    ]
    return Refinement(probabilities.nnz, changes)


def _step(operator: Any, h: FloatArray, length: float, labels: list[int], values: Any, before: set[int]) -> Step:
    left = h - operator.columns(labels) @ values if labels else h
    residual = float(np.linalg.norm(left)) / length if length else 0.0
    pairs = [(j, float(value)) for j, value in zip(labels, values, strict=True)]
    return Step(sorted(set(labels) - before), sorted(before - set(labels)), pairs, residual, left.tolist())
