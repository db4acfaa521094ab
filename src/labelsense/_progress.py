"""The log of long work: through the logger "labelsense", and only if asked for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event
from typing import Any, TypeVar

Result = TypeVar("Result")

logger = logging.getLogger("labelsense")

PROGRESS = "%s: %d %%"
EVERY = 2.0  # seconds between two reports of the same step

_shown: ContextVar[bool] = ContextVar("shown", default=False)
_given_up: ContextVar[Event | None] = ContextVar("given_up", default=None)
_last_report = 0.0


@contextmanager
def verbosity(verbose: int) -> Iterator[None]:
    """Show what is logged within, if ``verbose`` or if it is shown already. Python by itself shows no log at all."""
    if verbose and not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("labelsense: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    token = _shown.set(bool(verbose) or _shown.get())
    try:
        yield
    finally:
        _shown.reset(token)


def log(message: str, *values: Any) -> None:
    """Log a message: at level INFO if shown, else DEBUG."""
    logger.log(logging.INFO if _shown.get() else logging.DEBUG, message, *values)


def until(given_up: Event, work: Callable[[Any], Result], item: Any) -> Result:
    """Do work on a thread for another one, which may give it up: what is shown there is shown here."""
    _given_up.set(given_up)
    return work(item)


def report_progress(step: str, done: float) -> None:
    """Log how much of a long step is done, from 0 to 1, every two seconds at the most.

    Work that nobody waits for any more, after Ctrl-C or an error, ends here.
    """
    global _last_report
    given_up = _given_up.get()
    if given_up is not None and given_up.is_set():
        raise CancelledError
    now = time.monotonic()
    if _shown.get() and now - _last_report >= EVERY:
        _last_report = now
        log(PROGRESS, step, round(100 * done))
