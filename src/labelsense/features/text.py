"""From texts to counts of words, or of characters."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.pipeline import Pipeline, make_pipeline

from labelsense.features.counts import LogTfidfTransformer

MAX_WORDS = 50_000
HASHED = 4096
MAX_RUNS = 100_000


def text_words(n_features: int = MAX_WORDS) -> Pipeline:
    """Return a transformer of texts: counts of the most frequent words, scaled by :class:`LogTfidfTransformer`.

    Examples
    --------
    >>> from labelsense.features import text_words
    >>> text_words().fit_transform(["a red apple", "a green apple"]).shape
    (2, 3)
    """
    return make_pipeline(CountVectorizer(max_features=n_features, dtype=np.float32), LogTfidfTransformer())


def text_hashing(n_features: int = HASHED) -> Pipeline:
    """Return a transformer of texts that learns nothing: counts of hashed words, scaled without idf.

    Use it where rows come in a stream: a model that is updated with ``partial_fit`` then equals one trained on all
    rows at once. An update keeps n_features^2 numbers, so they are few.
    """
    count = HashingVectorizer(n_features=n_features, alternate_sign=False, norm=None, dtype=np.float32)
    return make_pipeline(count, LogTfidfTransformer(use_idf=False))


def text_characters(n_features: int = MAX_RUNS) -> Pipeline:
    """Return a transformer of texts: counts of the most frequent runs of 3 to 5 characters within words, scaled.

    Use it where words have many forms, are misspelt or are not separated. There are more runs than words, so it is
    slower.

    Examples
    --------
    >>> from labelsense.features import text_characters
    >>> text_characters().fit_transform(["fox", "foxes"]).shape  # ' fo', 'fox', 'ox ', ' fox', 'fox ', ...
    (2, 15)
    """
    count = CountVectorizer(analyzer="char_wb", ngram_range=(3, 5), max_features=n_features, dtype=np.float32)
    return make_pipeline(count, LogTfidfTransformer())


def is_vectoriser(features: Any) -> bool:
    """Tell whether a transformer takes texts."""
    while isinstance(features, Pipeline):
        features = features.steps[0][1]
    return isinstance(features, (CountVectorizer, HashingVectorizer))
