"""What is asked of a model: suggestions, why, and how. Runs on threads, knows nothing of HTTP."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import Pipeline

from labelsense._typing import CSR, FloatArray, Label
from labelsense.estimator import CompressedLabelClassifier

Suggestion = tuple[Label, float]


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


class Reasons(NamedTuple):
    """Why a label has its score: parts that, with the constant, add up to it."""

    score: float
    constant: float
    columns: list[int]
    names: list[str]
    values: list[float]
    exact: bool
    probability: float | None


def explain(model: Any, document: Any, label: Label) -> Reasons | None:
    """Return what each feature of a document adds to the score of a label; None where the model cannot tell."""
    weights = getattr(getattr(model, "learner_", None), "coef_", None)
    if not isinstance(model, CompressedLabelClassifier) or weights is None:
        return None
    x = features_of(model, document)
    a = model.compressor_.operator_.columns([int(model.vocabulary_.columns_of([label], "label")[0])])[:, 0]
    a = a / max(float(a @ a), 1e-30)
    values = x.data * (np.asarray(weights)[x.indices] @ a)
    constant = float(np.asarray(model.learner_.intercept_) @ a)
    names = [feature_name(model, j) for j in x.indices.tolist()]
    total = float(values.sum()) + constant
    return Reasons(total, constant, x.indices.tolist(), names, values.tolist(), True, None)


def features_of(model: Any, document: Any) -> CSR:
    """Return a document as a sparse row of features."""
    return sp.csr_array(model._check_features(stack(model, [document])))


def feature_name(model: Any, column: int) -> str:
    """Return the word of a feature, or its name in training, or its number."""
    vectoriser = first_step(model.features_)
    words = getattr(vectoriser, "vocabulary_", None)
    if words is not None:
        return _words_of(vectoriser)[column]
    source = model if model.features_ is None else model.features_
    names = getattr(source, "feature_names_in_", None)
    return str(column) if names is None else str(names[column])


def first_step(features: Any) -> Any:
    """Return the transformer that sees the documents first."""
    while isinstance(features, Pipeline):
        features = features.steps[0][1]
    return features


def _words_of(vectoriser: Any) -> list[str]:
    words = vars(vectoriser).get("_labelsense_words")
    if words is None:
        words = sorted(vectoriser.vocabulary_, key=vectoriser.vocabulary_.__getitem__)
        vectoriser._labelsense_words = words
    return words


class Mark(NamedTuple):
    """A word of a text, from ``start`` to ``end`` in characters, and its feature."""

    start: int
    end: int
    column: int


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
    return [Mark(*span, columns[word]) for span, word in places if word in columns]


class Step(NamedTuple):
    """A step of a decoder: the labels that it took and dropped, those it has with their coefficients, what is left."""

    taken: list[int]
    dropped: list[int]
    coefficients: list[tuple[int, float]]
    residual: float


class Course(NamedTuple):
    """How a document came to its labels: the measurements, and the decoder's way from them."""

    measurements: list[float]
    steps: list[Step]


def follow(model: Any, document: Any) -> Course | None:
    """Return how the labels of a document are reconstructed, step by step; None for models that do not do so."""
    if not isinstance(model, CompressedLabelClassifier):
        return None
    parts, decoder = model._current(), model.decoder_
    h = model.measure(stack(model, [document]))
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
    return Course([float(value) for value in h[0]], steps)


def _step(operator: Any, h: FloatArray, length: float, labels: list[int], values: Any, before: set[int]) -> Step:
    fitted = operator.columns(labels) @ values if labels else np.zeros_like(h)
    left = float(np.linalg.norm(h - fitted)) / length if length else 0.0
    pairs = [(j, float(value)) for j, value in zip(labels, values, strict=True)]
    return Step(sorted(set(labels) - before), sorted(before - set(labels)), pairs, left)
