"""Made-up documents with tags, as real ones are distributed."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from labelsense._typing import CSR
from labelsense._validation import check_count, check_real


def make_tagged_documents(
    n_samples: int = 1000,
    n_features: int = 2000,
    n_labels: int = 1000,
    *,
    labels_per_row: float = 4.0,
    words_per_row: float = 60.0,
    noise: float = 0.3,
    random_state: Any = None,
) -> tuple[CSR, CSR]:
    """Make word counts X (n, p) and label sets Y (n, d) that look like tagged documents.

    Label frequencies follow a power law. Labels come in topics, so that they are correlated: a document has one topic
    and takes most of its labels from it. Each label has a few words of its own; a document's words are drawn from
    those of its labels and, a fraction ``noise`` of them, from all words by Zipf's law. Every document has at least
    one label, and every label may occur or not.

    Parameters
    ----------
    n_samples, n_features, n_labels : int
        n, p and d; up to a million labels.
    labels_per_row, words_per_row : float
        Mean numbers of labels and of words of a document.
    noise : float
        The fraction of words that have nothing to do with the labels, from 0 to 1.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    X : CSR (n, p) of float32
        Word counts.
    Y : CSR (n, d) of float32
        1 where a document has a label.

    Examples
    --------
    >>> X, Y = make_tagged_documents(n_samples=100, n_labels=50, random_state=0)
    >>> X.shape, Y.shape
    ((100, 2000), (100, 50))
    """
    n = check_count(n_samples, "n_samples")
    p = check_count(n_features, "n_features")
    d = check_count(n_labels, "n_labels", low=2)
    noise = check_real(noise, "noise", low=0, high=1)
    rng = check_random_state(random_state)

    topic_size = max(2, min(50, d // 4))
    n_topics = -(-d // topic_size)
    topic_of_row = _zipf(rng, n_topics, n)

    n_picks = 1 + rng.poisson(max(check_real(labels_per_row, "labels_per_row", low=1) - 1, 0), n)
    row = np.repeat(np.arange(n), n_picks)
    in_topic = topic_of_row[row] * topic_size + _zipf(rng, topic_size, len(row))
    anywhere = _zipf(rng, d, len(row))
    label = np.where(rng.uniform(size=len(row)) < 0.7, in_topic, anywhere) % d
    Y = _count(row, label, (n, d))
    Y.data[:] = 1

    n_words = 1 + rng.poisson(max(check_real(words_per_row, "words_per_row", low=1) - 1, 0), n)
    row = np.repeat(np.arange(n), n_words)
    pick = Y.indptr[row] + (rng.uniform(size=len(row)) * np.diff(Y.indptr)[row]).astype(np.int64)
    own_words = 8
    own = (Y.indices[pick].astype(np.int64) * 2654435761 + rng.randint(own_words, size=len(row)) * 40503) % p
    word = np.where(rng.uniform(size=len(row)) < noise, _zipf(rng, p, len(row)), own)
    return _count(row, word, (n, p)), Y


def _count(row: Any, column: Any, shape: tuple[int, int]) -> CSR:
    """Return how often each pair occurs; indices have 32 bits where they fit, as some regressors want."""
    kind = sp.get_index_dtype(maxval=max(*shape, len(row)))
    counts = sp.csr_array((np.ones(len(row), np.float32), (row.astype(kind), column.astype(kind))), shape=shape)
    counts.sum_duplicates()
    return counts


def _zipf(rng: np.random.RandomState, n: int, size: int) -> Any:
    """Draw numbers below n, number i with probability proportional to 1 / (i + 1)."""
    weights = np.cumsum(1 / np.arange(1.0, n + 1))
    return np.searchsorted(weights, rng.uniform(size=size) * weights[-1])
