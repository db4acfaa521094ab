"""Rows in: texts, counts and images to the features that linear models need."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from labelsense._validation import check_choice
from labelsense.features.counts import LogTfidfTransformer
from labelsense.features.images import SURFHistogramTransformer
from labelsense.features.scaling import StandardColumns, UnitRows
from labelsense.features.text import is_vectoriser, text_hashing, text_words

__all__ = [
    "FEATURES",
    "LogTfidfTransformer",
    "SURFHistogramTransformer",
    "StandardColumns",
    "UnitRows",
    "is_vectoriser",
    "make_features",
    "text_hashing",
    "text_words",
]

FEATURES: dict[str, Any] = {
    "words": text_words,
    "hashing": text_hashing,
    "counts": LogTfidfTransformer,
    "unit": UnitRows,
    "standard": StandardColumns,
    "images": SURFHistogramTransformer,
}


def make_features(features: Any) -> Any:
    """Return a fresh transformer for a transformer or a word.

    "words" is :func:`text_words`, "hashing" :func:`text_hashing`, "counts" :class:`LogTfidfTransformer`, "unit"
    :class:`UnitRows`, "standard" :class:`StandardColumns` and "images" :class:`SURFHistogramTransformer`.
    """
    if hasattr(features, "fit_transform"):
        return clone(features)
    return check_choice(features, "features", FEATURES)()
