"""Rows in chunks, wherever these are: work goes to the chunks, and what comes back is small, or a sum."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
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

    @property
    def room(self) -> float:
        """How many bytes of other chunks can be kept where these are."""
        return math.inf

    @abstractmethod
    def results(self, function: Callable[..., Any], items: Sequence[Any] | None = None) -> Iterator[Any]:
        """Yield ``function(chunk)``, or ``function(chunk, item)``, of each chunk, in order."""

    @abstractmethod
    def map(
        self,
        function: Callable[..., Any],
        items: Sequence[Any] | None = None,
        lengths: IntArray | None = None,
        step: str = "features",
    ) -> Chunks:
        """Return the chunks that a function makes of these, kept where these are.

        Of as many rows, if no others are given. The step is what progress is reported of.
        """

    @abstractmethod
    def paired(self, *others: Any) -> Chunks:
        """Return tuples of a chunk of these, and of each of the others, which are kept in the same way."""

    def then(self, function: Callable[..., Any], items: Sequence[Any], lengths: IntArray) -> LazyChunks:
        """Return what a function makes of each chunk and its item, made again whenever it is needed."""
        return LazyChunks(self, function, items, lengths)

    def beside(self, *others: Chunks) -> LazyChunks:
        """Return tuples of a chunk of these, and of each of the others, put together whenever they are needed."""
        first, *rest = (_as_lazy(chunks) for chunks in (self, *others))
        pairs = first.chunks.paired(*(other.chunks for other in rest))
        each = _Each(tuple(lazy.function for lazy in (first, *rest)))
        return LazyChunks(pairs, each, list(zip(*(lazy.items for lazy in (first, *rest)), strict=True)), self.lengths)

    def regroup(
        self,
        select: Callable[..., Any],
        groups: Sequence[Any],
        combine: Callable[[list[Any], Any], Any],
        items: Sequence[Any] | None = None,
    ) -> Iterator[Any]:
        """Yield ``combine(parts, group)`` of each group: a shuffle.

        The parts are ``select(chunk, group)``, or ``select(chunk, item, group)``, of all chunks, in order.
        """
        for group in groups:
            yield combine(list(self.results(Bound(select, group), items)), group)

    def total(self, function: Callable[..., Any], items: Sequence[Any] | None = None) -> Any:
        """Return the sum of ``function`` of all chunks: arrays, numbers, or what else has ``+`` and ``+=``.

        It is the sum of a tree (:func:`tree_sum`): the same bytes wherever the chunks are.
        """
        return tree_sum(self.results(function, items))

    def long_total(self, function: Callable[..., Any], items: Sequence[Any], kind: str) -> Any:
        """Return a sum of arrays that takes long: where it can, it is kept as a step of this kind, and gone on with."""
        return self.total(function, items)

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

    def map(
        self,
        function: Callable[..., Any],
        items: Sequence[Any] | None = None,
        lengths: IntArray | None = None,
        step: str = "features",
    ) -> ListChunks:
        return ListChunks(self.results(function, items), self.lengths if lengths is None else lengths)

    def paired(self, *others: Any) -> ListChunks:
        return ListChunks(zip(self.chunks, *(other.chunks for other in others), strict=True), self.lengths)


class LazyChunks(Chunks):
    """What a function makes of each of other chunks and an item, made whenever it is needed.

    Parameters
    ----------
    chunks : Chunks
    function : callable
    items : sequence
        One for each chunk.
    lengths : array
        How many rows each chunk then has.
    """

    def __init__(self, chunks: Chunks, function: Callable[..., Any], items: Sequence[Any], lengths: IntArray) -> None:
        self.chunks, self.function, self.items, self.lengths = chunks, function, items, lengths

    def results(self, function: Callable[..., Any], items: Sequence[Any] | None = None) -> Iterator[Any]:
        return self.chunks.results(_Then(self.function, function), self._with(items))

    def map(
        self,
        function: Callable[..., Any],
        items: Sequence[Any] | None = None,
        lengths: IntArray | None = None,
        step: str = "features",
    ) -> Chunks:
        lengths = self.lengths if lengths is None else lengths
        return self.chunks.map(_Then(self.function, function), self._with(items), lengths, step)

    def total(self, function: Callable[..., Any], items: Sequence[Any] | None = None) -> Any:
        return self.chunks.total(_Then(self.function, function), self._with(items))

    def paired(self, *others: Any) -> Chunks:
        return self.beside(*others)

    def regroup(
        self,
        select: Callable[..., Any],
        groups: Sequence[Any],
        combine: Callable[[list[Any], Any], Any],
        items: Sequence[Any] | None = None,
    ) -> Iterator[Any]:
        return self.chunks.regroup(_Then(self.function, select), groups, combine, self._with(items))

    def _with(self, items: Sequence[Any] | None) -> list[Any]:
        if items is None:
            return [(item,) for item in self.items]
        return list(zip(self.items, items, strict=True))


@dataclass(frozen=True)
class Bound:
    """A function with its last argument."""

    function: Callable[..., Any]
    last: Any

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments, self.last)


@dataclass(frozen=True)
class _Then:
    """One function after another."""

    first: Callable[..., Any]
    second: Callable[..., Any]

    def __call__(self, chunk: Any, items: tuple[Any, ...], *groups: Any) -> Any:
        return self.second(self.first(chunk, items[0]), *items[1:], *groups)


@dataclass(frozen=True)
class _Each:
    """A function for each of a tuple of chunks."""

    functions: tuple[Callable[..., Any], ...]

    def __call__(self, chunks: tuple[Any, ...], items: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(f(chunk, item) for f, chunk, item in zip(self.functions, chunks, items, strict=True))


def _same(chunk: Any, item: None) -> Any:
    return chunk


def _as_lazy(chunks: Chunks) -> LazyChunks:
    if isinstance(chunks, LazyChunks):
        return chunks
    return chunks.then(_same, [None] * len(chunks.lengths), chunks.lengths)


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


def tree_sum(results: Iterable[Any]) -> Any:
    """Return the sum of results: of groups of eight, of groups of eight of these sums, and so on.

    The shape of the tree depends on the number of results alone. At most one sum of each level is kept; the first
    result of a group is added to in place.
    """
    tree = TreeSum()
    for result in results:
        tree.add(result)
    return tree.total()


class TreeSum:
    """A sum that is not complete: of the groups of eight at each level, that which is not."""

    def __init__(self) -> None:
        self.sums: list[Any] = []
        self.counts: list[int] = []

    def add(self, result: Any) -> None:
        """Add a result."""
        for level in range(len(self.sums) + 1):
            if level == len(self.sums):
                self.sums.append(None)
                self.counts.append(0)
            self.sums[level] = _added(self.sums[level], result)
            self.counts[level] += 1
            if self.counts[level] < FAN_IN:
                break
            result, self.sums[level], self.counts[level] = self.sums[level], None, 0

    def total(self) -> Any:
        """Return the sum; nothing may be added then."""
        total = None
        for partial in self.sums:
            total = partial if total is None else total if partial is None else _added(partial, total)
        return total

    def state(self) -> dict[str, Any]:
        """Return sums of arrays as arrays."""
        sums = {f"sum {level}": partial for level, partial in enumerate(self.sums) if partial is not None}
        return {"counts": np.array(self.counts, np.int64), **sums}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TreeSum:
        """Return the sum that had this state."""
        tree = cls()
        tree.counts = state["counts"].tolist()
        tree.sums = [state.get(f"sum {level}") for level in range(len(tree.counts))]
        return tree


def _added(total: Any, result: Any) -> Any:
    if total is None:
        return result
    total += result
    return total
