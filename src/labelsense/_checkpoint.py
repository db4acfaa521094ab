"""Where a long computation stands, kept on disk from time to time, so that it can go on after it was killed.

A computation that is repeated comes through the same steps in the same order. So a step is known by its kind and by how
many of this kind came before: code that can go on asks for its :func:`next_step`, and need not know of files.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsense._tensors import TensorFile, write_tensors
from labelsense.errors import FormatError

EVERY = 60.0  # seconds between two checkpoints of a step
SHARE = 20  # and at least so many times what writing one took

State = dict[str, NDArray[Any]]


def write_checked(path: Path, arrays: State, about: dict[str, str] | None = None) -> None:
    """Write arrays and a few words about them, with a checksum, to a file that is there whole or not at all.

    It is not synced: after a power failure, the checksum tells.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    write_tensors(temporary, arrays, {**(about or {}), "crc32": _checksum(arrays)})
    os.replace(temporary, path)


def read_checked(path: Path, check: bool = True) -> tuple[State, dict[str, str]]:
    """Return what :func:`write_checked` wrote. A file that is damaged raises FormatError."""
    try:
        with open(path, "rb") as file:
            tensors = TensorFile(file)
            arrays = {name: tensors.take(name) for name in tensors.tensors}
        if check and _checksum(arrays) != tensors.about.get("crc32"):
            raise ValueError("its checksum is wrong")
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path} is damaged ({error}). Remove the folder {path.parent} and start again.") from None
    return arrays, tensors.about


def write_json(path: Path, value: Any) -> None:
    """Write a value to a file that is there whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(json.dumps(value))
    os.replace(temporary, path)


def read_json(path: Path) -> Any:
    """Return what :func:`write_json` wrote; None if there is nothing, or it is damaged."""
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None


def _checksum(arrays: State) -> str:
    total = 0
    for name in sorted(arrays):
        total = zlib.crc32(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data, total)
    return f"{total:08x}"


class Step:
    """A long step of a computation. Without a file it keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._written, self._wait = time.monotonic(), EVERY

    def load(self) -> State | None:
        """Return the arrays that were kept last, if any were and are whole."""
        if self._path is None or not self._path.exists():
            return None
        try:
            return read_checked(self._path)[0]
        except FormatError:
            return None

    def save(self, state: Callable[[], State]) -> None:
        """Keep arrays, if the last time is long ago."""
        start = time.monotonic()
        if self._path is None or start - self._written < self._wait:
            return
        write_checked(self._path, state())
        self._written = time.monotonic()
        self._wait = max(EVERY, SHARE * (self._written - start))

    def finish(self, state: State) -> None:
        """Keep arrays: what came of the step."""
        if self._path is not None:
            write_checked(self._path, state)


class _Steps:
    def __init__(self, folder: Path) -> None:
        self.folder, self.counts = folder, Counter[str]()

    def next(self, kind: str) -> Path:
        number = self.counts[kind]
        self.counts[kind] += 1
        return self.folder / f"{kind}-{number:04d}"


_steps: ContextVar[_Steps | None] = ContextVar("steps", default=None)


@contextmanager
def checkpoints_in(folder: Path) -> Iterator[None]:
    """Keep the long steps of a computation in a folder, and go on from what is there."""
    folder.mkdir(parents=True, exist_ok=True)
    token = _steps.set(_Steps(folder))
    try:
        yield
    finally:
        _steps.reset(token)


@contextmanager
def without_checkpoints() -> Iterator[None]:
    """Keep nothing of the steps within: they are short, or come in no order."""
    token = _steps.set(None)
    try:
        yield
    finally:
        _steps.reset(token)


@contextmanager
def steps_within(kind: str) -> Iterator[None]:
    """Keep the long steps within in a folder of their own, which is removed once they are done.

    What comes of them is to be kept by a step outside.
    """
    steps = _steps.get()
    if steps is None:
        yield
        return
    folder = steps.next(kind)
    with checkpoints_in(folder):
        yield
    shutil.rmtree(folder)


def next_step(kind: str) -> Step:
    """Return the step that the computation comes to now."""
    steps = _steps.get()
    return Step(None if steps is None else steps.next(kind).with_suffix(".safetensors"))


def next_folder(kind: str) -> Path:
    """Return the folder of the step that the computation comes to now, for files of its own."""
    steps = _steps.get()
    if steps is None:
        raise RuntimeError("There is no folder for temporary files here: see checkpoints_in.")
    return steps.next(kind)
