"""Rows in: texts, counts and images to the features that linear models need."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from labelsense._validation import check_choice
from labelsense.features.counts import LogTfidfTransformer
from labelsense.features.encoded import EncodedTexts, is_encoder
from labelsense.features.images import SURFHistogramTransformer
from labelsense.features.scaling import StandardColumns, UnitRows
from labelsense.features.text import is_vectoriser, text_characters, text_hashing, text_words

__all__ = [
    "FEATURES",
    "EncodedTexts",
    "LogTfidfTransformer",
    "SURFHistogramTransformer",
    "StandardColumns",
    "UnitRows",
    "is_encoder",
    "is_vectoriser",
    "make_features",
    "text_characters",
    "text_hashing",
    "text_words",
]

FEATURES: dict[str, Any] = {
    "words": text_words,
    "hashing": text_hashing,
    "characters": text_characters,
    "counts": LogTfidfTransformer,
    "unit": UnitRows,
    "standard": StandardColumns,
    "images": SURFHistogramTransformer,
    "none": lambda: None,
}


def make_features(features: Any) -> Any:
    """Return a fresh transformer for a transformer, an encoder of texts or a word.

    "words" is :func:`text_words`, "hashing" :func:`text_hashing`, "characters" :func:`text_characters`, "counts"
    :class:`LogTfidfTransformer`, "unit" :class:`UnitRows`, "standard" :class:`StandardColumns` and "images"
    :class:`SURFHistogramTransformer`. "none" is no transformer. An object with ``encode(list of str)`` makes
    :class:`EncodedTexts`.
    """
    if hasattr(features, "fit_transform"):
        return clone(features)
    if is_encoder(features):
        return EncodedTexts(features)
    return check_choice(features, "features", FEATURES)()
