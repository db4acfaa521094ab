"""Requests that come together are worked on together; a full queue refuses."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from labelsense.serve.batching import MOST, Gatherer
from labelsense.serve.problems import Problem


class Work:
    """Doubles numbers, and remembers how many came together; waits while it is held."""

    def __init__(self, seconds=0.0):
        self.batches, self.seconds, self.free = [], seconds, threading.Event()
        self.free.set()

    def __call__(self, items):
        self.batches.append(items)
        self.free.wait(5)
        time.sleep(self.seconds)
        return [ValueError("negative") if item < 0 else 2 * item for item in items]


def run(test, work, waiting=1000, window=0.005):
    """Run a coroutine function of a gatherer."""

    async def main():
        with ThreadPoolExecutor(1) as executor:
            gatherer = Gatherer(work, executor, waiting=waiting, window=window)
            try:
                return await asyncio.wait_for(test(gatherer), 10)
            finally:
                work.free.set()
                await gatherer.close()

    return asyncio.run(main())


def test_everybody_gets_the_own_answer():
    work = Work()

    async def test(gatherer):
        return await asyncio.gather(*(gatherer.submit([i, i + 1000]) for i in range(300)))

    assert run(test, work) == [[2 * i, 2 * i + 2000] for i in range(300)]
    assert sum(map(len, work.batches)) == 600
    assert max(map(len, work.batches)) <= MOST
    assert len(work.batches) < 20


def test_what_comes_while_the_thread_works_goes_together():
    work = Work()

    async def test(gatherer):
        work.free.clear()
        first = asyncio.ensure_future(gatherer.submit([0]))
        while not work.batches:
            await asyncio.sleep(0.001)
        others = [asyncio.ensure_future(gatherer.submit([i])) for i in range(1, 6)]
        await asyncio.sleep(0)
        work.free.set()
        await asyncio.gather(first, *others)

    run(test, work)
    assert work.batches == [[0], [1, 2, 3, 4, 5]]


def test_a_lone_client_never_waits_for_company():
    work = Work()

    async def test(gatherer):
        for i in range(5):
            await gatherer.submit([i])

    started = time.perf_counter()
    run(test, work, window=5.0)  # five windows would be 25 seconds
    assert time.perf_counter() - started < 4
    assert work.batches == [[i] for i in range(5)]


def test_after_company_the_first_waits_for_the_others():
    work = Work(seconds=0.3)

    async def test(gatherer):
        await asyncio.gather(*(gatherer.submit([i]) for i in range(3)))
        first = asyncio.ensure_future(gatherer.submit([3]))
        await asyncio.sleep(0.02)  # within the window, which is as long as the last work took
        await asyncio.gather(first, gatherer.submit([4]), gatherer.submit([5]))

    run(test, work, window=1.0)
    assert work.batches[-1] == [3, 4, 5]


def test_a_failure_is_of_the_item_that_failed():
    work = Work()

    async def test(gatherer):
        return await asyncio.gather(*(gatherer.submit([i]) for i in (1, -1, 2)), return_exceptions=True)

    one, bad, two = run(test, work)
    assert (one, two) == ([2], [4])
    assert isinstance(bad, ValueError)


def test_a_full_queue_refuses_with_a_time_to_try_again():
    work = Work()

    async def test(gatherer):
        work.free.clear()
        first = asyncio.ensure_future(gatherer.submit([0]))
        while not work.batches:
            await asyncio.sleep(0.001)
        waiting = asyncio.ensure_future(gatherer.submit([1, 2, 3]))
        await asyncio.sleep(0)
        with pytest.raises(Problem, match="Too many documents are waiting") as refusal:
            await gatherer.submit([4, 5])
        work.free.set()
        assert await waiting == [2, 4, 6]
        await first
        assert await gatherer.submit([4, 5]) == [8, 10]
        return refusal.value

    refusal = run(test, work, waiting=4)
    assert refusal.status == 503
    assert refusal.headers == {"Retry-After": "1"}


def test_nobody_works_for_a_client_that_has_left():
    work = Work()

    async def test(gatherer):
        work.free.clear()
        first = asyncio.ensure_future(gatherer.submit([0]))
        while not work.batches:
            await asyncio.sleep(0.001)
        gone = asyncio.ensure_future(gatherer.submit([1]))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        work.free.set()
        await first
        return await gatherer.submit([2])

    assert run(test, work) == [4]
    assert work.batches == [[0], [2]]
