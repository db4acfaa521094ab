"""Chunks of rows that the workers of a Dask cluster hold."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed
from distributed import Client

from labelsense._blocks import serially
from labelsense._chunks import FAN_IN, Bound, Chunks
from labelsense._typing import IntArray


class DaskChunks(Chunks):
    """Chunks that workers of a Dask cluster hold.

    Parameters
    ----------
    parts : list of Delayed
    lengths : array
    client : Client
    room : float
        How many bytes of other chunks the workers have room for.
    """

    def __init__(self, parts: list[Delayed], lengths: IntArray, client: Client, room: float = math.inf) -> None:
        self.parts, self.lengths, self.client, self._room = parts, lengths, client, room

    @property
    def room(self) -> float:
        return self._room

    def results(self, function: Callable[..., Any], items: Sequence[Any] | None = None) -> Iterator[Any]:
        for future in self._compute(self._tasks(function, items)):
            yield future.result()

    def map(
        self,
        function: Callable[..., Any],
        items: Sequence[Any] | None = None,
        lengths: IntArray | None = None,
        step: str = "features",
    ) -> DaskChunks:
        with large_graphs():
            parts = self.client.persist(self._tasks(function, items))
        return DaskChunks(list(parts), self.lengths if lengths is None else lengths, self.client)

    def paired(self, *others: Any) -> DaskChunks:
        tuples = zip(self.parts, *(other.parts for other in others), strict=True)
        parts = [delayed(_together, pure=False)(*parts) for parts in tuples]
        return DaskChunks(parts, self.lengths, self.client)

    def regroup(
        self,
        select: Callable[..., Any],
        groups: Sequence[Any],
        combine: Callable[[list[Any], Any], Any],
        items: Sequence[Any] | None = None,
    ) -> Iterator[Any]:
        call, task = delayed(Opaque(combine), pure=False, traverse=False), delayed(_combine, pure=False)
        wholes = [delayed(Opaque(group), pure=False, traverse=False) for group in groups]
        parts = [self._tasks(Bound(select, group), items) for group in groups]
        for future in self._compute([task(call, *pair) for pair in zip(parts, wholes, strict=True)]):
            yield future.result()

    def total(self, function: Callable[..., Any], items: Sequence[Any] | None = None) -> Any:
        tasks = self._tasks(function, items)
        while len(tasks) > 1:
            groups = [tasks[i : i + FAN_IN] for i in range(0, len(tasks), FAN_IN)]
            tasks = [delayed(_add_up, pure=False)(group) for group in groups]
        return self._compute(tasks)[0].result()

    def _tasks(self, function: Callable[..., Any], items: Sequence[Any] | None) -> list[Delayed]:
        call = delayed(Opaque(function), pure=False, traverse=False)  # sent once, and not with each task
        if items is None:
            return [delayed(apply, pure=False)(call, part) for part in self.parts]
        whole = [delayed(item, pure=False, traverse=False) for item in items]
        return [delayed(apply, pure=False)(call, part, item) for part, item in zip(self.parts, whole, strict=True)]

    def _compute(self, tasks: list[Delayed]) -> list[Any]:
        with large_graphs():
            return list(self.client.compute(tasks))


class Opaque:
    """A function, or something else, that Dask does not look into."""

    def __init__(self, content: Any) -> None:
        self.content = content


def apply(call: Opaque, chunk: Any, *items: Any) -> Any:
    """Call a function of a chunk, with the worker."""
    with serially(), np.errstate(over="ignore", invalid="ignore"):
        return call.content(chunk, *items)


def _together(*chunks: Any) -> tuple[Any, ...]:
    return chunks


def _combine(call: Opaque, parts: list[Any], group: Opaque) -> Any:
    with serially():
        return call.content(parts, group.content)


def _add_up(results: list[Any]) -> Any:
    """Add up results, without a change to them: a task may have to be done again."""
    first, *others = results
    if not others:
        return first
    total = first + others[0]
    for other in others[1:]:
        total += other
    return total


@contextmanager
def large_graphs() -> Iterator[None]:
    """Send weights with the tasks: what is put on a worker beforehand would die with it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")
        yield
