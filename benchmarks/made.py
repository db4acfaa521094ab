"""Data of any size for benchmarks/scale.py: made, not found."""

import numpy as np
import scipy.sparse as sp

from labelsense.data import Examples, write_examples

ROWS = 20_000  # made at once
WORDS, LABELS, LABEL_WORDS = 200_000, 4000, 3


def zipf(rng, n, size):
    """Return numbers below n, of which number j is drawn about as often as 1 / (j + 1)."""
    return np.minimum((n ** rng.uniform(size=size)).astype(np.int64) - 1, n - 1)


def write_texts(path, n, seed=0):
    """Write n texts of 60 words with 3 labels, each of which is told by its own words."""
    rng = np.random.default_rng(seed)

    def batches():
        for start in range(0, n, ROWS):
            size = min(ROWS, n - start)
            labels = zipf(rng, LABELS, (size, 3))
            telling = WORDS + LABEL_WORDS * labels[:, :, None] + rng.integers(0, LABEL_WORDS, (size, 3, 4))
            words = np.concatenate([zipf(rng, WORDS, (size, 48)), telling.reshape(size, 12)], axis=1)
            texts = [" ".join(f"w{word}" for word in row) for row in words.tolist()]
            yield Examples(texts, [[f"label {j}" for j in sorted(set(row))] for row in labels.tolist()])

    write_examples(path, batches())


def many_labels(rng):
    """Return what draws rows with a million labels and 2^18 features.

    A label has four features, and each row those of its labels, and noise: labels that were seen can be told.
    """
    d, p = 1_000_000, 2**18
    own = rng.integers(0, p, (d, 4))

    def draw(n):
        labels = zipf(rng, d, (n, 3))
        columns = np.concatenate([own[labels].reshape(n, 12), rng.integers(0, p, (n, 8))], axis=1)
        return Examples(*(indicators(places, width) for places, width in ((columns, p), (labels, d))))

    return draw


def indicators(places, width):
    """Return a matrix with ones at some places of each row."""
    n, each = places.shape
    M = sp.csr_array(
        (np.ones(places.size, np.float32), places.ravel(), np.arange(0, places.size + 1, each)), (n, width)
    )
    M.sum_duplicates()
    M.data[:] = 1
    return M
