"""Rows in chunks, wherever these are: work goes to the chunks, and what comes back is small, or a sum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from labelsense._typing import IntArray, Rows

FAN_IN = 8  # how many results are added up before their sum is added to others


class Chunks(ABC):
    """Rows in chunks: on disk, or with the workers of a cluster.

    A chunk is any object; only functions of chunks look inside. They are called where the chunk is, so they must be
    such that a process can send them to another: functions of a module, or objects with a ``__call__``.

    Attributes
    ----------
    lengths : array
        How many rows each chunk has.
    """

    lengths: IntArray

    @abstractmethod
    def results(self, function: Callable[..., Any], items: Sequence[Any] | None = None) -> Iterator[Any]:
        """Yield ``function(chunk)``, or ``function(chunk, item)``, of each chunk, in order."""

    @abstractmethod
    def map(self, function: Callable[[Any], Any]) -> Chunks:
        """Return the chunks that a function makes of these, of as many rows, kept where these are."""

    def total(self, function: Callable[..., Any], items: Sequence[Any] | None = None) -> Any:
        """Return the sum of ``function`` of all chunks: arrays, numbers, or what else has ``+`` and ``+=``.

        It is the sum of a tree (:func:`tree_sum`): the same bytes wherever the chunks are.
        """
        return tree_sum(self.results(function, items))

    @property
    def n_rows(self) -> int:
        """The number of all rows."""
        return int(self.lengths.sum())


class ListChunks(Chunks):
    """Chunks in a list.

    Examples
    --------
    >>> from labelsense._chunks import ListChunks
    >>> ListChunks(["a", "bc"], [1, 2]).total(len)
    3
    """

    def __init__(self, chunks: Iterable[Any], lengths: Sequence[int] | IntArray) -> None:
        self.chunks, self.lengths = list(chunks), np.asarray(lengths, np.int64)

    def results(self, function: Callable[..., Any], items: Sequence[Any] | None = None) -> Iterator[Any]:
        return map(function, self.chunks) if items is None else map(function, self.chunks, items)

    def map(self, function: Callable[[Any], Any]) -> ListChunks:
        return ListChunks(map(function, self.chunks), self.lengths)


def split(values: Any, lengths: IntArray) -> list[Any]:
    """Return an array with an entry for each row in parts, one for each chunk."""
    return [values[stop - length : stop] for stop, length in zip(np.cumsum(lengths), lengths, strict=True)]


def split_rows(chosen: Rows, lengths: IntArray) -> list[IntArray]:
    """Return for each chunk which of its rows are among the chosen ones, which are ascending, or a slice."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    if isinstance(chosen, slice):
        start, stop, step = chosen.indices(int(starts[-1]))
        firsts = [start + max(0, -(-(a - start) // step)) * step for a in starts[:-1].tolist()]
        return [
            np.arange(first - a, min(stop, b) - a, step)
            for first, a, b in zip(firsts, starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        ]
    places = np.searchsorted(chosen, starts)
    return [chosen[a:b] - start for a, b, start in zip(places[:-1], places[1:], starts[:-1], strict=True)]


def tree_sum(results: Iterator[Any]) -> Any:
    """Return the sum of results: of groups of eight, of groups of eight of these sums, and so on.

    The shape of the tree depends on the number of results alone. At most one sum of each level is kept; the first
    result of a group is added to in place.
    """
    sums: list[Any] = []  # of the group that is not complete, at each level
    counts: list[int] = []
    for result in results:
        for level in range(len(sums) + 1):
            if level == len(sums):
                sums.append(None)
                counts.append(0)
            sums[level] = _added(sums[level], result)
            counts[level] += 1
            if counts[level] < FAN_IN:
                break
            result, sums[level], counts[level] = sums[level], None, 0
    total = None
    for partial in sums:
        total = partial if total is None else total if partial is None else _added(partial, total)
    return total


def _added(total: Any, result: Any) -> Any:
    if total is None:
        return result
    total += result
    return total
