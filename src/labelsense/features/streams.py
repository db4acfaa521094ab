"""Features of rows that are never all in memory: count in chunks, learn from the counts, then scale the chunks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.pipeline import Pipeline, make_pipeline

from labelsense._typing import CSR
from labelsense.errors import InputError
from labelsense.features.counts import LogTfidfTransformer
from labelsense.labels import move_columns


class StreamedFeatures:
    """What :func:`~labelsense.features.make_features` returns, made to learn from sums over chunks of rows.

    The result is what ``fit_transform`` of all rows gives.

    Parameters
    ----------
    features : transformer or None
        ``text_words()``, ``text_hashing()``, a LogTfidfTransformer, or None for features that are used as they are.

    Attributes
    ----------
    n_features : int
        p, once it has learned.
    """

    n_features: int

    def __init__(self, features: Any) -> None:
        self.vectoriser: Any = None
        self.scaler: Any = None
        steps = [step for _, step in features.steps] if isinstance(features, Pipeline) else [features]
        if features is not None and steps:
            *first, last = map(clone, steps)
            if isinstance(last, LogTfidfTransformer) and len(first) <= 1:
                self.vectoriser, self.scaler = (first[0] if first else None), last
        known = isinstance(self.vectoriser, (CountVectorizer, HashingVectorizer, type(None)))
        if (features is not None and self.scaler is None) or not known or not _counts_plainly(self.vectoriser):
            raise InputError(
                "features must be 'words', 'hashing', 'counts' or None for rows that are not all in memory. "
                f"Got {features!r}."
            )

    @classmethod
    def fitted(cls, features: Any, n_features: int) -> StreamedFeatures:
        """Return those of a model that was fitted: they learn nothing more."""
        streamed = cls(features)
        steps = [step for _, step in features.steps] if isinstance(features, Pipeline) else [features]
        streamed.scaler, streamed.n_features = steps[-1], n_features
        if len(steps) == 2:
            streamed.vectoriser = steps[0]
        return streamed

    @property
    def takes_text(self) -> bool:
        """Whether rows are texts."""
        return self.vectoriser is not None

    @property
    def max_words(self) -> int | None:
        """How many words the features will be, at most; None if they are not words, or all words."""
        return self.vectoriser.max_features if isinstance(self.vectoriser, CountVectorizer) else None

    def count(self, X: Any) -> tuple[CSR, list[str] | None]:
        """Return the rows of a chunk as counts, and the words of its columns if it has columns of its own."""
        if self.vectoriser is None:
            return X, None
        if isinstance(self.vectoriser, HashingVectorizer):
            return sp.csr_array(self.vectoriser.transform(X)), None
        return count_words(self.vectoriser.build_analyzer(), X)

    def fit(self, n_rows: int, rows_with: Any, occurrences: Mapping[str, int] | None) -> Any:
        """Learn from how many rows have each feature and, of words, how often each occurs; return the transformer."""
        if isinstance(self.vectoriser, CountVectorizer):
            assert occurrences is not None
            words = _most_frequent(occurrences, self.vectoriser.max_features)
            if not words:
                raise InputError("X has no words: every text is empty, or has only words of one letter.")
            self.vectoriser.fixed_vocabulary_ = False
            self.vectoriser.vocabulary_ = {word: np.int64(j) for j, word in enumerate(words)}
            rows_with = np.array([rows_with[word] for word in words], np.int64)
        self.n_features = len(rows_with)
        if self.scaler is None:
            return None
        self.scaler.fit_frequencies(n_rows, rows_with)
        return self.scaler if self.vectoriser is None else make_pipeline(self.vectoriser, self.scaler)

    def scale(self, X: Any, words: Sequence[str] | None) -> Any:
        """Return the features of a chunk of counts."""
        p = self.n_features
        if words is not None:
            vocabulary = self.vectoriser.vocabulary_
            columns = np.array([vocabulary.get(word, -1) for word in words], np.int64)
            X = move_columns(X, columns, p)
        elif sp.issparse(X) and X.shape[1] < p:
            X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], p))
        return X if self.scaler is None else self.scaler.transform(X)


def count_words(analyse: Any, texts: Sequence[str]) -> tuple[CSR, list[str]]:
    """Return the counts of the words of texts, and the words, in the order in which they come."""
    places: defaultdict[str, int] = defaultdict()
    places.default_factory = places.__len__
    indices: list[int] = []
    indptr = [0]
    for text in texts:
        indices.extend(map(places.__getitem__, analyse(text)))
        indptr.append(len(indices))
    arrays = np.ones(len(indices), np.float32), np.array(indices, np.int32), np.array(indptr)
    X = sp.csr_array(arrays, shape=(len(texts), len(places)))
    X.sum_duplicates()
    return X, list(places)


def _counts_plainly(vectoriser: Any) -> bool:
    """Tell whether counts of words are all that is asked for: other settings need all rows."""
    settings = {} if vectoriser is None else vectoriser.get_params()
    plain = {"min_df": 1, "max_df": 1.0, "binary": False, "vocabulary": None}
    return all(settings.get(name, value) == value for name, value in plain.items())


def _most_frequent(occurrences: Mapping[str, int], most: int | None) -> list[str]:
    """Return the most frequent words in alphabetical order. Ties are broken as CountVectorizer does."""
    words = sorted(occurrences)
    if most is None or len(words) <= most:
        return words
    counts = np.array([occurrences[word] for word in words]).astype(np.float32)
    return [words[j] for j in np.sort((-counts).argsort()[:most])]
