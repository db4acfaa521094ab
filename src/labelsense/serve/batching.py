"""Requests that come together are worked on together, away from the event loop."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any

from labelsense.serve.problems import busy

LONGEST_WINDOW = 0.005  # seconds that a request may wait for company
MOST = 256  # documents that are worked on together


class Gatherer:
    """Hands what is submitted to a function, many at a time, on a thread.

    While the thread works, what comes waits, and goes together when it is done. When it is idle, a lone request goes at
    once; only if the last requests came together does the first wait for the others, as long as the last work took
    and ``window`` at the most, or until as many are there. So a window never costs a client that is alone.

    Parameters
    ----------
    work : function
        From a list of items to a list of as many results; an exception as result is raised for that item.
    executor : Executor
        Where the work runs.
    waiting : int
        How many items may wait; more are refused with status 503.
    window : float
        Seconds.
    observe : function
        Told how many items went together, for the metrics.
    """

    def __init__(
        self,
        work: Callable[[list[Any]], Sequence[Any]],
        executor: Executor,
        *,
        waiting: int,
        window: float = LONGEST_WINDOW,
        observe: Callable[[int], None] = lambda size: None,
    ) -> None:
        self._work, self._executor = work, executor
        self._most_waiting, self._window, self._observe = waiting, window, observe
        self._queue: deque[tuple[Any, asyncio.Future[Any]]] = deque()
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._last_size, self._last_seconds = 1, 0.0

    def __len__(self) -> int:
        return len(self._queue)

    async def submit(self, items: Sequence[Any]) -> list[Any]:
        """Return the results of some items. They may be worked on together with those of others."""
        if len(self._queue) + len(items) > self._most_waiting:
            raise busy("Too many documents are waiting. Try again.")
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        futures = [asyncio.get_running_loop().create_future() for _ in items]
        self._queue.extend(zip(items, futures, strict=True))
        self._arrived.set()
        try:
            return [await future for future in futures]
        finally:
            for future in futures:  # the client has left, or one has failed: the others need no answer
                if not future.cancel() and not future.cancelled():
                    future.exception()

    async def close(self) -> None:
        """Stop, when nobody waits any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await self._arrived.wait()
            await self._wait_for_company()
            batch = self._take()
            if not batch:
                continue
            started = time.perf_counter()
            items = [item for item, _ in batch]
            try:
                results = await asyncio.get_running_loop().run_in_executor(self._executor, self._work, items)
            except Exception as error:
                results = [error] * len(batch)
            self._last_size, self._last_seconds = len(batch), time.perf_counter() - started
            self._observe(len(batch))
            for (_, future), result in zip(batch, results, strict=True):
                if future.done():
                    continue
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)

    async def _wait_for_company(self) -> None:
        """Wait, if the last requests came together, until as many are there, for the time of the window at most."""
        window = min(self._window, self._last_seconds) if self._last_size > 1 else 0.0
        deadline = time.perf_counter() + window
        while len(self._queue) < min(self._last_size, MOST):
            left = deadline - time.perf_counter()
            if left <= 0:
                return
            self._arrived.clear()
            try:
                await asyncio.wait_for(self._arrived.wait(), left)
            except asyncio.TimeoutError:
                return

    def _take(self) -> list[tuple[Any, asyncio.Future[Any]]]:
        batch: list[tuple[Any, asyncio.Future[Any]]] = []
        while self._queue and len(batch) < MOST:
            item, future = self._queue.popleft()
            if not future.done():  # else the client has left
                batch.append((item, future))
        if self._queue:
            self._arrived.set()
        else:
            self._arrived.clear()
        return batch
