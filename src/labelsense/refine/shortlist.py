"""The candidates of a row, and what each source says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labelsense import _kernels
from labelsense._blocks import map_rows, plain_algebra
from labelsense._progress import report_progress
from labelsense._typing import CSR, FloatArray, IntArray
from labelsense.compress.base import Operator
from labelsense.reconstruct import Decoder
from labelsense.refine.candidates import Candidates, concatenate
from labelsense.refine.ranker import csr_arrays
from labelsense.refine.sources import Source

SCORE_NUMBERS = 2**22  # rows times labels that are scored at a time, by each source
MOST_SCORED = 100_000  # labels up to which all of them are scored for each row


class Reconstruction(NamedTuple):
    """A, and a decoder that is prepared for it."""

    operator: Operator
    decoder: Decoder
    state: object

    @classmethod
    def by(cls, decoder: Decoder, operator: Operator) -> Reconstruction:
        """Prepare a decoder."""
        return cls(operator, decoder, decoder.prepare(operator))


def count_candidates(Y: CSR) -> int:
    """Return how many labels of a row to consider: 50, or more where rows have many, at most all.

    Twice the labels that all but one row in twenty have, and 30.
    """
    return candidates_for(np.diff(Y.indptr), Y.shape[1])


def candidates_for(label_numbers: IntArray, n_labels: int) -> int:
    """Return what :func:`count_candidates` does, for rows that have these numbers of labels."""
    most = float(np.quantile(label_numbers, 0.95)) if len(label_numbers) else 0.0
    return min(n_labels, max(50, int(2 * most) + 30))


def rows_at_once(n_labels: int) -> int:
    """Return how many rows each thread handles at a time.

    Examples
    --------
    >>> [rows_at_once(d) for d in (1000, 100_000, 1_000_000)]
    [256, 41, 256]
    """
    return 256 if n_labels > MOST_SCORED else max(1, min(256, SCORE_NUMBERS // n_labels))


def shortlist(
    sources: Sequence[Source],
    reconstruction: Reconstruction,
    X: CSR,
    H: FloatArray,
    k: int,
    neighbours: Sequence[Source] = (),
) -> tuple[Candidates, FloatArray]:
    """Return the candidates of each row, and for each source, the decoder, and neighbours, the scores of each of them.

    Candidates are the k labels with the largest weighted sum of standardised scores, and all that the decoder chooses.
    Where labels are too many for that, they are the k labels that the first source finds which can; the others, and the
    decoder, speak of these as if there were no other labels.
    """
    (operator, decoder, state), n = reconstruction, H.shape[0]
    d, heard = operator.n_labels, [*sources, *neighbours]
    weights = [source.weight for source in heard]
    if not n:
        return Candidates(np.zeros(1, np.int64), np.zeros(0, np.int32), d), np.zeros((len(heard) + 1, 0), np.float32)

    def tell(rows: slice) -> None:
        if rows.start:  # one block is no long work
            report_progress("candidates", rows.start / n)

    def choose(rows: slice) -> tuple[Candidates, FloatArray]:
        tell(rows)
        decoded = decoder.decode(state, H[rows])
        X_rows, H_rows = X[rows], H[rows]
        said = [source.rows(X_rows, H_rows) for source in heard]
        size = rows.stop - rows.start
        most = min(d, k + int(np.diff(decoded.indptr).max(initial=0)))
        labels, counts = np.empty((size, most), np.int32), np.empty(size, np.int64)
        values = np.empty((len(said) + 1, size, most), np.float32)
        if not _kernels.shortlist(said, weights, *csr_arrays(decoded), k, labels, counts, values):
            operator.correlate(H_rows)  # which refuses measurements that are too large
        kept = np.arange(most) < counts[:, None]
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Candidates(starts, labels[kept], d), values[:, kept]

    def find(rows: slice) -> tuple[Candidates, FloatArray]:
        tell(rows)
        X_rows, H_rows = X[rows], H[rows]
        candidates = next(found for source in heard if (found := source.find(X_rows, k)) is not None)
        values = [source.score(X_rows, H_rows, candidates) for source in heard]
        decoded = decoder.decode_among(operator, state, H_rows, candidates.starts, candidates.labels)
        return candidates, np.stack([*values, decoded])

    with plain_algebra:
        parts = map_rows(find if d > MOST_SCORED else choose, n, rows_at_once(d), -1)
    values = np.concatenate([values for _, values in parts], axis=1)
    if neighbours:
        values = np.insert(np.delete(values, -1, axis=0), len(sources), values[-1], axis=0)
    return concatenate([part for part, _ in parts]), values
