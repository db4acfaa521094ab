"""Classifiers of labels from rows in chunks: as many labels at a time as there is memory for their rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from labelsense._checkpoint import State, next_step
from labelsense._chunks import Chunks
from labelsense._progress import log
from labelsense._typing import CSR, DoubleArray, FloatArray, IntArray
from labelsense.refine.candidates import Candidates
from labelsense.refine.ranker import Ranker, Settings, compact_csr, rows_of_labels
from labelsense.refine.stage import as_rows

# Bytes of a pair of a row and a label, and of an entry of a row, on their way from chunks to classifiers: they are
# there twice while they are put together.
PAIR_BYTES, ENTRY_BYTES = 32, 16
WEIGHT_BYTES = 8
LEAST_BLOCKS = 8  # so that workers have something to share, and a process that is killed loses less


class LabelBlock(NamedTuple):
    """Labels that are learned together: from the first to before the last, each from every row, second row, ..."""

    first: int
    last: int
    strides: IntArray

    def among(self, labels: Any) -> NDArray[np.bool_]:
        """Tell which labels are of the block."""
        return (self.first <= labels) & (labels < self.last)


def train_ranker(
    chunks: Chunks, later: tuple[Any, State], n_labels: int, C: float, memory: float
) -> tuple[FloatArray, Ranker]:
    """Do what ``Ranker.train_twice`` does; of the first classifiers return only what they say of the later rows.

    Half of the memory is for rows, and half for weights. A label whose rows alone take more is learned from every
    second of them, or every third, and so on; where weights would take more, those are left out that are smallest
    beside the largest one of their label.

    Parameters
    ----------
    chunks : Chunks
        Pairs of rows, with X and Y, and of what :class:`~labelsense.refine.chunked.Shortlist` makes of them.
    later : pair
        The same for rows in memory, with which it goes on.
    n_labels : int
    C : float
        The weight of errors.
    memory : float
        How many bytes to take.
    """
    sizes = chunks.total(_Sizes(n_labels)) + _Sizes(n_labels)(later)
    blocks = label_blocks(sizes[0], sizes[1], chunks.total(_entries) + _entries(later), memory / 2)
    log("ranker: %d pairs of a row and a label, in %d blocks of labels", int(sizes[0].sum()), len(blocks))
    most = memory / 2 / WEIGHT_BYTES / max(1.0, sizes[1].sum())  # weights for an entry of a row of a label
    steps = [next_step("ranker") for _ in blocks]
    kept = [step.load() for step in steps]
    missing = [block for block, known in zip(blocks, kept, strict=True) if known is None]
    learning = chunks.regroup(_Select(n_labels), missing, _Learn(C, n_labels, most, later))
    margins, parts = np.empty(len(later[1]["labels"]), np.float32), []
    for block, step, known in zip(blocks, steps, kept, strict=True):
        state: State = next(learning) if known is None else known
        if known is None:
            step.finish(state)
        margins[block.among(later[1]["labels"])] = state.pop("margins")
        parts.append(_from_state(state))
    del kept
    return margins, Ranker.join(parts)


def label_blocks(pairs: DoubleArray, entries: DoubleArray, all_entries: float, memory: float) -> list[LabelBlock]:
    """Cut labels into blocks whose rows fit into memory.

    Parameters
    ----------
    pairs : array (d,)
        How many rows each label has, as a label or as a candidate.
    entries : array (d,)
        How many features these have in all.
    all_entries : float
        How many features all rows have: the rows of a block are never more.
    memory : float
    """
    whole = ENTRY_BYTES * all_entries
    if whole <= memory / 2:  # whichever rows they are
        room, needed = memory - whole, PAIR_BYTES * pairs
    else:
        room, needed = memory, PAIR_BYTES * pairs + ENTRY_BYTES * entries
    strides = np.maximum(1, np.ceil(needed / max(room, 1))).astype(np.int64)
    needed = needed / strides
    room = min(room, needed.sum() / LEAST_BLOCKS)
    cuts, filled = [0], 0.0
    for label, size in enumerate(needed.tolist()):
        if filled and filled + size > room:
            cuts.append(label)
            filled = 0.0
        filled += size
    cuts.append(len(pairs))
    return [LabelBlock(a, b, strides[a:b]) for a, b in pairwise(cuts)]


@dataclass(frozen=True)
class _Sizes:
    """The number of rows of each label, and of the features of these, (2, d)."""

    n_labels: int

    def __call__(self, chunk: tuple[Any, State]) -> DoubleArray:
        starts, rows, _ = _label_rows(chunk, self.n_labels)
        entries = np.diff(as_rows(chunk[0].X).indptr)[rows]
        running = np.concatenate([[0], np.cumsum(entries)])
        return np.stack([np.diff(starts), np.diff(running[starts])]).astype(np.float64)


def _entries(chunk: tuple[Any, State]) -> float:
    return float(as_rows(chunk[0].X).nnz)


@dataclass(frozen=True)
class _Select:
    """The rows of a chunk that are of a block of labels, and which of them are of which label, and have it."""

    n_labels: int

    def __call__(self, chunk: tuple[Any, State], block: LabelBlock) -> tuple[CSR, CSR]:
        starts, rows, has = _label_rows(chunk, self.n_labels)
        mine = slice(starts[block.first], starts[block.last])
        starts, rows, has = starts[block.first : block.last + 1] - starts[block.first], rows[mine], has[mine]
        kept = rows % np.repeat(block.strides, np.diff(starts)) == 0
        if not kept.all():
            starts = np.concatenate([[0], np.cumsum(kept)])[starts]
            rows, has = rows[kept], has[kept]
        needed, places = np.unique(rows, return_inverse=True)
        marks = sp.csr_array((has + np.uint8(1), places, starts), shape=(block.last - block.first, len(needed)))
        return as_rows(chunk[0].X[needed]), marks


@dataclass(frozen=True)
class _Learn:
    """The classifiers of a block of labels, of rows from all chunks, and then of those that come later."""

    C: float
    n_labels: int
    most: float
    later: tuple[Any, State]

    def __call__(self, parts: list[tuple[CSR, CSR]], block: LabelBlock) -> State:
        n_first = sum(rows.shape[0] for rows, _ in parts)
        parts.append(_Select(self.n_labels)(self.later, block))
        X = as_rows(sp.vstack([rows for rows, _ in parts], format="csr"))
        marks = sp.hstack([marks for _, marks in parts], format="csr")
        parts.clear()
        starts = np.concatenate([np.zeros(block.first, np.int64), marks.indptr.astype(np.int64)])
        rows, has = marks.indices.astype(np.int32), (marks.data > 1).astype(np.uint8)
        first, whole = Ranker.train_labels(X, starts, rows, has, n_first, Settings(C=self.C), block.first)
        whole = whole.largest(self.most * max(1, np.diff(X.indptr)[rows].sum()))
        return {"margins": first.margins(*self._outside(block)), **_as_state(whole)}

    def _outside(self, block: LabelBlock) -> tuple[CSR, Candidates]:
        """Return the later rows, and those of their candidates that are of a block, with numbers from 0 on."""
        rows, found = self.later
        mine = block.among(found["labels"])
        starts = np.concatenate([[0], np.cumsum(mine)])[found["starts"]]
        return as_rows(rows.X), Candidates(starts, found["labels"][mine] - block.first, block.last - block.first)


def _as_state(ranker: Ranker) -> State:
    weights = ranker.weights
    return {
        "data": weights.data,
        "indices": weights.indices.astype(np.int32),
        "starts": weights.indptr.astype(np.int64),
        "bias": ranker.bias,
        "features": np.array([weights.shape[1]]),
    }


def _from_state(state: State) -> Ranker:
    data, indices, starts, bias = (state[name] for name in ("data", "indices", "starts", "bias"))
    return Ranker(compact_csr(data, indices, starts, (len(bias), int(state["features"][0]))), bias)


def _label_rows(chunk: tuple[Any, State], n_labels: int) -> tuple[Any, Any, Any]:
    rows, found = chunk
    return rows_of_labels(rows.Y, Candidates(found["starts"], found["labels"], n_labels))
