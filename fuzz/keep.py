"""Of many inputs, those that are enough to reach every line that any of them reaches."""

from __future__ import annotations

import hashlib
import logging
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from fuzz.target import CORPUS, Run, Target

OURS = "/labelsense/"
LARGEST = 20_000  # bytes of an input that is kept


def keep(target: Target, folder: Path) -> None:
    """Write the corpus of a target: of a folder's files, the smallest first, those that add a step between lines."""
    inputs = sorted((path.read_bytes() for path in folder.iterdir()), key=lambda content: (len(content), content))
    logging.disable(logging.WARNING)
    reached: set[Any] = set()
    chosen = []
    with tempfile.TemporaryDirectory() as work, target.prepare(Path(work)) as run:
        for content in inputs:
            steps = trace(run, content)
            if len(content) <= LARGEST and not steps <= reached:
                reached |= steps
                chosen.append(content)
    CORPUS.mkdir(exist_ok=True)
    with ZipFile(CORPUS / f"{target.name}.zip", "w") as archive:
        for content in chosen:
            archive.writestr(ZipInfo(hashlib.sha1(content).hexdigest()[:12]), content, ZIP_DEFLATED)
    print(f"{target.name}: kept {len(chosen)} of {len(inputs)} inputs, {sum(map(len, chosen))} bytes")


def trace(run: Run, content: bytes) -> set[Any]:
    """Return the steps from line to line of our code that an input makes it go, and how often, roughly."""
    steps: Counter[tuple[str, int, int]] = Counter()
    last: dict[FrameType, int] = {}

    def follow(frame: FrameType, event: str, _: Any) -> Any:
        if OURS not in frame.f_code.co_filename:
            return None
        if event in ("call", "line"):
            steps[frame.f_code.co_filename, last.get(frame, 0), frame.f_lineno] += 1
            last[frame] = frame.f_lineno
        elif event == "return":
            last.pop(frame, None)
        return follow

    sys.settrace(follow)
    try:
        run(content)
    finally:
        sys.settrace(None)
    return {(step, count.bit_length()) for step, count in steps.items()}
