"""Work on rows in bounded blocks, on several threads, so that memory stays small and Ctrl-C works."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import lru_cache
from typing import Any, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from labelsense._progress import until

Result = TypeVar("Result")

NAME = "labelsense-worker"

_local = threading.local()


@contextmanager
def serially() -> Iterator[None]:
    """Use no threads on this one: others work at the same time."""
    _local.serial = True
    try:
        yield
    finally:
        _local.serial = False


def row_blocks(n: int, size: int) -> Iterator[slice]:
    """Yield slices that cover n rows."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def map_rows(function: Callable[[Any], Result], n: int, size: int, n_jobs: int | None) -> list[Result]:
    """Return ``function`` of each block of rows, in order. The blocks do not depend on ``n_jobs``."""
    blocks = list(row_blocks(n, size))
    threads = 1 if _is_serial() else min(effective_n_jobs(n_jobs), len(blocks))
    if threads <= 1:
        return [function(block) for block in blocks]
    pool, given_up = _pool(os.getpid(), threads), threading.Event()
    futures = [pool.submit(copy_context().run, until, given_up, function, block) for block in blocks]
    try:
        return [future.result() for future in futures]
    finally:
        given_up.set()  # after Ctrl-C, or an error
        for future in futures:
            future.cancel()


def count_threads() -> int:
    """Return how many threads :func:`map_rows` works on, if all may be used."""
    return 1 if _is_serial() else int(effective_n_jobs(-1))


def map_stream(function: Callable[[Any], Result], items: Iterable[Any], threads: int) -> Iterator[Result]:
    """Yield ``function`` of each item, in order, while the next ``threads`` are worked on."""
    if _is_serial():
        yield from map(function, items)
        return
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(_pool(os.getpid(), threads).submit(function, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


class PlainAlgebra:
    """Keeps the linear algebra of this process on one thread, for work by our threads that has products of BLAS in it.

    Threads of both kinds would wait for each other: those of OpenBLAS turn for 30 ms after every call, and sleep only
    then. Several threads may be inside; the last one to leave takes it back. To go in and out costs half a millisecond.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limit = _algebra().limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()


plain_algebra = PlainAlgebra()


@lru_cache(maxsize=1)
def _algebra() -> ThreadpoolController:
    return ThreadpoolController()


def _is_serial() -> bool:
    # A worker does not wait for workers.
    return threading.current_thread().name.startswith(NAME) or getattr(_local, "serial", False)


@lru_cache(maxsize=8)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Return the threads of this process, kept because starting them costs more than many products.

    A fork has none of its parent's threads, hence the first argument.
    """
    return ThreadPoolExecutor(threads, thread_name_prefix=NAME)
