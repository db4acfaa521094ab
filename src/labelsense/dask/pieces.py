"""Rows in pieces, of any kind that Dask knows, as chunks with the workers."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dask
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed, delayed
from distributed import Client

from labelsense._memory import available_memory
from labelsense._progress import log
from labelsense._typing import DoubleArray
from labelsense._validation import (
    check_binary,
    check_places,
    check_representable,
    check_same_length,
    check_weights,
    is_matrix,
)
from labelsense.dask.chunks import DaskChunks, Opaque, apply
from labelsense.data import Examples
from labelsense.data.splits import Split, split_files
from labelsense.data.statistics import Count, Tabulate
from labelsense.errors import InputError
from labelsense.features.streams import StreamedFeatures

ROW_SHARE = 0.6  # of a worker's memory that rows may take; Dask begins to move them to disk at this share
SOLVER_SHARE = 0.25  # of a worker's memory, and of what is free at the client, for what a step sends and adds up


class Rows(Sequence[Any]):
    """Rows in pieces that workers load: what :func:`read` returns.

    Attributes
    ----------
    pieces : list of Delayed
        Each gives Examples.
    """

    def __init__(self, pieces: list[Delayed]) -> None:
        self.pieces = pieces

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, place: Any) -> Any:
        return self.pieces[place]


def read(paths: Any, format: str | None = None, text_fields: Sequence[str] | None = None) -> Rows:
    """Return the rows of files, which the workers will load; see :func:`~labelsense.data.splits.split_files`.

    Examples
    --------
    >>> rows = read("docs/part-*.jsonl")  # doctest: +SKIP
    >>> DaskCompressedLabelClassifier(features="words").fit(rows)  # doctest: +SKIP
    """
    return Rows([delayed(_load, pure=False)(split) for split in split_files(paths, format, text_fields)])


def in_order(function: Callable[[Examples], Any], rows: Rows, client: Client) -> Iterator[Any]:
    """Yield a function of each piece, in order; few are waited for at a time, so that results do not pile up."""
    ahead = 2 * max(1, len(client.nthreads()))
    call = client.persist(delayed(Opaque(function), pure=False, traverse=False))
    waiting: deque[Any] = deque()
    for piece in rows.pieces:
        waiting.append(client.compute(delayed(apply, pure=False)(call, piece)))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def examples_of(X: Any, y: Any) -> list[Delayed]:
    """Return rows in pieces of any kind as delayed Examples."""
    if isinstance(X, Rows):
        if y is not None:
            raise InputError("y must be left out: what read returns has the labels.")
        return list(X.pieces)
    blocks = _blocks(X, "X")
    labels: list[Any] = [None] * len(blocks) if y is None else _blocks(y, "y")
    if len(labels) != len(blocks):
        raise InputError(
            f"X and y must have the same pieces. Got {len(blocks)} of X and {len(labels)} of y. Repartition one."
        )
    return [delayed(_examples, pure=False)(*pair) for pair in zip(blocks, labels, strict=True)]


def tabulate(pieces: list[Delayed], features: StreamedFeatures, client: Client) -> tuple[DaskChunks, bool]:
    """Return rows as chunks of counts with the workers, and whether they are sparse."""
    parts = list(client.persist([delayed(apply, pure=False)(Opaque(Tabulate(features)), piece) for piece in pieces]))
    facts = client.gather(client.compute([delayed(_facts, pure=False)(part) for part in parts]))
    sparse = {is_sparse for _, is_sparse in facts}
    if len(sparse) > 1:
        raise InputError("X must be dense in all blocks, or sparse in all. Got both.")
    return DaskChunks(parts, np.array([n for n, _ in facts], np.int64), client), sparse.pop()


def check_memory(raw: DaskChunks) -> tuple[DaskChunks, float]:
    """Return rows that know how much room is left, and how many bytes a solver may take.

    Rows that the workers have no room for are refused.
    """
    limits = [limit or math.inf for limit in raw.client.run_on_scheduler(_memory_limits)]
    if not limits:
        raise InputError("client must have workers. Got a scheduler without any. Start some first.")
    counted = raw.total(Count())
    rows = 8.0 * (counted.entries + counted.label_entries) + 24 * counted.rows
    log("%.2f GB of rows on %d workers, %.2f GB each", 1e-9 * rows, len(limits), 1e-9 * rows / len(limits))
    room = ROW_SHARE * sum(limits)
    if 2 * rows > room:  # as they came, and as features
        raise MemoryError(
            f"The rows take {2e-9 * rows:.1f} GB, and the {len(limits)} workers have room for {1e-9 * room:.1f} GB. "
            "Use more workers, workers with more memory, or fewer words (n_features)."
        )
    raw = DaskChunks(raw.parts, raw.lengths, raw.client, room - 2 * rows)
    return raw, SOLVER_SHARE * min(*limits, available_memory())


def _memory_limits(dask_scheduler: Any) -> list[int]:
    return [worker.memory_limit for worker in dask_scheduler.workers.values()]


def weights_of(sample_weight: Any, raw: DaskChunks, client: Client) -> DoubleArray | None:
    """Return the weights of all rows, one number for each, given in pieces or in memory."""
    if sample_weight is None:
        return None
    if in_pieces(sample_weight):
        sample_weight = np.concatenate(client.gather(client.compute(_blocks(sample_weight, "sample_weight"))))
    return check_weights(sample_weight, np.empty((raw.n_rows, 0)))


def in_pieces(X: Any) -> bool:
    """Tell whether rows are in pieces, and not in memory."""
    return isinstance(X, Rows) or dask.is_dask_collection(X) or (isinstance(X, list) and _are_delayed(X))


def _are_delayed(blocks: Any) -> bool:
    return bool(blocks) and all(isinstance(block, Delayed) for block in blocks)


def _blocks(values: Any, name: str) -> list[Delayed]:
    """Return a collection of Dask, or a list of delayed blocks, as such a list: one block for some rows."""
    if isinstance(values, list) and _are_delayed(values):
        return values
    if not dask.is_dask_collection(values) or not hasattr(values, "to_delayed"):
        raise InputError(
            f"{name} must be a dask array, series or bag, a list of delayed blocks, or what labelsense.dask.read "
            f"returns. Got {type(values).__name__}. For rows in memory use CompressedLabelClassifier."
        )
    if getattr(values, "ndim", 1) == 2:
        if not hasattr(values, "rechunk"):
            raise InputError(f"{name} must be a column of a dask data frame, or an array. Got a data frame.")
        return values.rechunk({1: -1}).to_delayed()[:, 0].tolist()
    return list(np.ravel(np.array(values.to_delayed(), dtype=object)))


def _load(split: Split) -> Examples:
    return split.read()


def _examples(X: Any, y: Any) -> Examples:
    """Return a piece of rows, checked; this runs with the worker."""
    if sp.issparse(X):
        X = sp.csr_array(check_places(X, "X"), dtype=np.float32)
        X.sum_duplicates()
    elif is_matrix(X):
        X = np.asarray(X)
    else:
        X = list(X)
    if not isinstance(X, list):
        check_representable(X, "DaskCompressedLabelClassifier")
    if y is not None:
        y = check_binary(y, "y") if is_matrix(y) else [list(row) for row in y]
        check_same_length(X, y)
    return Examples(X, y)


def _facts(chunk: Examples) -> tuple[int, bool]:
    return len(chunk), bool(sp.issparse(chunk.X))
