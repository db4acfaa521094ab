"""From the rows of a file to what a model takes, and what to make of them where nobody says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._typing import CSR
from labelsense._validation import check_choice
from labelsense.data.formats.base import Examples, label_lists, listed, widened
from labelsense.data.formats.fields import LABEL_KEYS
from labelsense.data.subjects import Subjects
from labelsense.features import FEATURES, SURFHistogramTransformer

# What can be made of each kind of rows, the default first.
FITTING = {"texts": ("words", "hashing", "characters"), "features": ("counts", "none"), "images": ("images",)}


def choose_features(examples: Examples, wanted: str = "auto") -> str:
    """Return what to make of X: a word for :func:`~labelsense.features.make_features`, or "none".

    By default words of texts, histograms of images, scaled counts where all features are counts, and else nothing.

    Examples
    --------
    >>> from labelsense.data import Examples
    >>> from labelsense.data.adapt import choose_features
    >>> choose_features(Examples(["a red fox"], [["fox"]]))
    'words'
    """
    return features_of_kind(examples.kind, wanted) or ("counts" if are_counts(examples.X) else "none")


def features_of_kind(kind: str, wanted: str) -> str | None:
    """Return what to make of rows of a kind, as :func:`choose_features`; None if that depends on the rows."""
    check_choice(wanted, "features", dict.fromkeys(["auto", *FEATURES, "none"]))
    fitting = FITTING[kind]
    if wanted == "auto":
        return None if kind == "features" else fitting[0]
    if wanted not in fitting:
        raise ValueError(f"features must be {_any_of(fitting)}: the rows are {kind}. Got {wanted}.")
    return wanted


def _any_of(words: tuple[str, ...]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def are_counts(X: Any) -> bool:
    """Tell whether all features are whole numbers, and none is negative."""
    values = X.data if sp.issparse(X) else X
    return bool(np.all(values >= 0) and np.all(values == np.round(values)))


def labels_of(examples: Examples) -> CSR | list[list[str]]:
    """Return the labels as training wants them: names where there are names, else the indicator matrix."""
    if not len(examples):
        raise ValueError(f"{examples.name} has no rows.")
    if examples.Y is None:
        sought = "" if examples.kind != "texts" else f" No field is called {listed(LABEL_KEYS)}."
        raise ValueError(f"{examples.name} has no labels to learn from or to compare with.{sought}")
    if isinstance(examples.Y, list) or examples.labels is None:
        return examples.Y
    return label_lists(examples.Y, examples.labels)


def with_uris(examples: Examples, subjects: Subjects | None) -> tuple[Examples, list[str]]:
    """Return examples with labels as a vocabulary has them, and the labels that it does not have.

    Labels may be URIs, or what subjects are called in one of the languages.
    """
    if subjects is None or examples.Y is None or (not isinstance(examples.Y, list) and examples.labels is None):
        return examples, []
    if isinstance(examples.Y, list):
        rows = [list(dict.fromkeys(map(subjects.resolve, row))) for row in examples.Y]
        used = dict.fromkeys(uri for row in rows for uri in row)
        return replace(examples, Y=rows), [uri for uri in used if uri not in subjects]
    return with_uris(replace(examples, Y=label_lists(examples.Y, examples.labels or []), labels=None), subjects)


def features_for(model: Any, examples: Examples) -> Any:
    """Return X as a fitted model takes it; rows of a format that does not state its width get the columns they lack."""
    takes = _kind_of(model)
    if takes is not None and examples.kind != takes:
        raise ValueError(f"{examples.name} holds {examples.kind}, and the model has learned from {takes}.")
    expected = getattr(model if model.features_ is None else model.features_, "n_features_in_", 0)
    return examples.X if isinstance(examples.X, list) else widened(examples.X, expected)


def labels_for(model: Any, examples: Examples) -> Any:
    """Return the labels as a fitted model was given them in training."""
    examples, _ = with_uris(examples, getattr(model, "subjects_", None))
    Y = labels_of(examples)
    return Y if isinstance(Y, list) or model.vocabulary_.names is not None else widened(Y, model.vocabulary_.n_labels)


def _kind_of(model: Any) -> str | None:
    """Return which kind of rows a model takes, None if its features could be of any kind."""
    if model.takes_text:
        return "texts"
    if isinstance(model.features_, SURFHistogramTransformer):
        return "images"
    return "features" if model.features_ is None or hasattr(model.features_, "n_features_in_") else None
