"""The log of long work: through the logger "labelsense", and only if asked for."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

logger = logging.getLogger("labelsense")

PROGRESS = "%s: %d %%"
EVERY = 2.0  # seconds between two reports of the same step

_shown: ContextVar[bool] = ContextVar("shown", default=False)
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


def report_progress(step: str, done: float) -> None:
    """Log how much of a long step is done, from 0 to 1, every two seconds at the most."""
    global _last_report
    now = time.monotonic()
    if _shown.get() and now - _last_report >= EVERY:
        _last_report = now
        log(PROGRESS, step, round(100 * done))
