"""Work on rows in bounded blocks, on several threads, so that memory stays small and Ctrl-C works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from joblib import effective_n_jobs

Result = TypeVar("Result")


def row_blocks(n: int, size: int) -> Iterator[slice]:
    """Yield slices that cover n rows."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def map_rows(function: Callable[[Any], Result], n: int, size: int, n_jobs: int | None) -> list[Result]:
    """Return ``function`` of each block of rows, in order. The blocks do not depend on ``n_jobs``."""
    blocks = list(row_blocks(n, size))
    threads = min(effective_n_jobs(n_jobs), len(blocks))
    if threads <= 1:
        return [function(block) for block in blocks]
    pool = ThreadPoolExecutor(threads)
    try:
        return list(pool.map(function, blocks))
    finally:
        pool.shutdown(cancel_futures=True)
