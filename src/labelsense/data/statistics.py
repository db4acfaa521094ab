"""What training needs to know of all rows before it begins: counts, so those of chunks add up."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from labelsense._label_input import read_labels, sorted_labels
from labelsense._typing import CSR, IntArray
from labelsense.data.adapt import are_counts
from labelsense.data.formats.base import Examples
from labelsense.errors import FormatError
from labelsense.features.counts import rows_with_each
from labelsense.features.streams import StreamedFeatures
from labelsense.labels import Vocabulary, move_columns

SPARE_WORDS = 10  # how many words are counted for each that will be a feature

Counts = Counter[Any] | IntArray  # by name, or by column number


@dataclass(frozen=True)
class Tabulate:
    """Turns rows of a file into a chunk: counts of words, or features, and labels, as CSR with their names."""

    features: StreamedFeatures

    def __call__(self, examples: Examples) -> Examples:
        n = len(examples)
        X, words = self.features.count(examples.X)
        Y, labels = examples.Y, examples.labels
        if isinstance(Y, list):
            Y, labels = read_labels(Y)  # type: ignore[assignment]  # names of a file are strings
        elif Y is None:
            Y, labels = sp.csr_array((n, 0), dtype=np.float32), None
        return Examples(X, Y, features=words, labels=labels, name=examples.name)


@dataclass
class Statistics:
    """Counts of the rows of chunks.

    Attributes
    ----------
    rows : int
    entries, label_entries : int
        The sums of the numbers of features, and of labels, of all rows.
    labels, rows_with : Counter or array
        How many rows have each label, and each feature.
    occurrences : Counter or None
        How often each word occurs, if features are words.
    are_counts : bool
        Whether all features are whole numbers, and none is negative.
    most_words : int or None
        With more different words than that, the rarest are forgotten until half are left: those that occur once so
        far, then twice, and so on. So a word that the result lacks, or counts too low, is a rare one. Up to this
        number, counts are exact.
    """

    rows: int
    entries: int
    label_entries: int
    labels: Counts
    rows_with: Counts
    occurrences: Counter[str] | None
    are_counts: bool
    most_words: int | None = None

    def __add__(self, other: Statistics) -> Statistics:
        total = copy.deepcopy(self)
        total += other
        return total

    def __iadd__(self, other: Statistics) -> Statistics:
        self.rows += other.rows
        self.entries += other.entries
        self.label_entries += other.label_entries
        self.labels = _added(self.labels, other.labels, "labels")
        self.rows_with = _added(self.rows_with, other.rows_with, "features")
        self.are_counts &= other.are_counts
        if self.occurrences is not None and other.occurrences is not None:
            self.occurrences.update(other.occurrences)
            self._forget_rare_words()
        return self

    def vocabulary(self) -> Vocabulary:
        """Return the labels in column order."""
        if isinstance(self.labels, Counter):
            return Vocabulary(sorted_labels(self.labels), len(self.labels))
        return Vocabulary(None, len(self.labels))

    def label_counts(self, vocabulary: Vocabulary) -> IntArray:
        """Return how many rows have each label, in column order."""
        if vocabulary.names is None:
            return np.pad(np.asarray(self.labels), (0, vocabulary.n_labels - len(self.labels)))
        counts = self.labels if isinstance(self.labels, Counter) else Counter[Any]()
        return np.array([counts[name] for name in vocabulary.names], np.int64)

    def _forget_rare_words(self) -> None:
        words = self.occurrences
        if words is None or self.most_words is None or len(words) <= self.most_words:
            return
        counts = np.fromiter(words.values(), np.int64, len(words))
        least = int(np.sort(counts)[-(self.most_words // 2)])
        kept = {word for word, count in words.items() if count > least} or {
            word for word, _ in words.most_common(self.most_words // 2)
        }
        assert isinstance(self.rows_with, Counter)
        rows_with = self.rows_with
        self.occurrences = Counter({word: words[word] for word in kept})
        self.rows_with = Counter({word: rows_with[word] for word in kept})


@dataclass(frozen=True)
class Count:
    """Counts the rows of a chunk, or some of them."""

    max_words: int | None = None

    def __call__(self, chunk: Examples, rows: IntArray | None = None) -> Statistics:
        X, Y = (M if rows is None else M[rows] for M in cast("tuple[Any, Any]", (chunk.X, chunk.Y)))
        labels: Counts = np.bincount(Y.indices, minlength=Y.shape[1])
        if chunk.labels is not None:
            labels = _named(chunk.labels, labels)
        rows_with: Counts = rows_with_each(X) if sp.issparse(X) else np.count_nonzero(X, axis=0)
        occurrences = None
        if chunk.features is not None:
            sums = np.bincount(X.indices, X.data.astype(np.float64), X.shape[1]).astype(np.int64)
            occurrences, rows_with = _named(chunk.features, sums), _named(chunk.features, rows_with)
        most = None if self.max_words is None else SPARE_WORDS * self.max_words
        entries = int(X.nnz) if sp.issparse(X) else X.size
        return Statistics(X.shape[0], entries, int(Y.nnz), labels, rows_with, occurrences, are_counts(X), most)


@dataclass(frozen=True)
class Finish:
    """Turns a chunk of counts into one of features, with a column for each label of the model."""

    features: StreamedFeatures
    vocabulary: Vocabulary

    def __call__(self, chunk: Examples) -> Examples:
        X = self.features.scale(chunk.X, chunk.features)
        return Examples(X, labels_in_columns(chunk, self.vocabulary), name=chunk.name)


def labels_in_columns(chunk: Examples, vocabulary: Vocabulary) -> CSR:
    """Return the labels of a chunk, with a column for each label of a model."""
    Y: Any = chunk.Y
    if chunk.labels is None:
        return move_columns(Y, np.arange(Y.shape[1]), vocabulary.n_labels)
    columns = np.array([vocabulary.column(name) for name in chunk.labels], np.int64)
    return move_columns(Y, columns, vocabulary.n_labels)


def _named(names: list[Any], counts: Any) -> Counter[Any]:
    """Return counts by name, of those that occur."""
    return Counter({name: count for name, count in zip(names, counts.tolist(), strict=True) if count})


def _added(left: Counts, right: Counts, what: str) -> Counts:
    if isinstance(left, Counter) and isinstance(right, Counter):
        left.update(right)
        return left
    if isinstance(left, Counter) or isinstance(right, Counter):
        named, numbered = (left, right) if isinstance(left, Counter) else (right, left)
        if not np.asarray(numbered).any():  # rows without any
            return named
        raise FormatError(f"Some parts of the data have {what} with names, and others {what} with numbers.")
    wide = max(len(left), len(right))
    left, right = (np.pad(counts, (0, wide - len(counts))) for counts in (left, right))
    left += right
    return left
