"""The start of the command `labelsense`: apart from the library, so that Ctrl-C is quiet while that is being loaded."""

from __future__ import annotations

import os
import signal
from typing import Any


def main() -> None:
    """Load the command line and run it. Before it can say so itself, Ctrl-C ends with 130."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # else somebody turned it off
        signal.signal(signal.SIGINT, _leave)
    from labelsense.cli import main as run

    signal.signal(signal.SIGINT, before)
    run()


def _leave(*_: Any) -> None:
    os.write(2, b"labelsense: interrupted\n")
    os._exit(130)  # an exception would pass through half-loaded modules, some of which would catch it
