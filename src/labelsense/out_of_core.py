"""From a file of any size to a model: in memory if it fits, or else in chunks in a scratch folder, with checkpoints."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from labelsense._checkpoint import read_json, write_json
from labelsense._memory import available_memory
from labelsense._progress import log
from labelsense._version import __version__
from labelsense.data import Examples, read_examples, stream_examples
from labelsense.data.adapt import with_uris
from labelsense.data.formats.source import strip_compression
from labelsense.data.statistics import Tabulate
from labelsense.data.store import CHUNK_ROWS, gather, write_chunks
from labelsense.data.subjects import Subjects
from labelsense.errors import InputError
from labelsense.scale import Choices, train_chunks
from labelsense.training import Training, train

SHARE = 0.5  # of the free memory that training may take, if nobody says
EXPANSION, COMPRESSION = 8, 4  # bytes in memory for a byte of text, and bytes of text for a compressed one
OVERHEAD = 600e6  # bytes: the program, chunks on their way, words that are counted


def train_file(
    path: Path,
    output: Path,
    choices: dict[str, Any],
    *,
    memory: float | None = None,
    test: Path | None = None,
    format: str | None = None,
    text_fields: Sequence[str] | None = None,
    subjects: Subjects | None = None,
) -> Training:
    """Learn from a file of any size and write the model: in memory if it fits, or else in chunks.

    A process that is killed leaves its chunks and checkpoints in the folder ``.<name of the output>.scratch`` beside
    the output. The same call then goes on with them, and the model is the same, byte by byte. Otherwise that folder is
    removed in the end, whatever happens.

    Parameters
    ----------
    path, output : Path
        The data, and where to write the model.
    choices : dict
        What :class:`~labelsense.training.Choices` has, by name.
    memory : float, optional
        How many bytes to take, about; by default half of what is free. A file is trained on in memory if 600 MB and 8
        times its size is less, 32 times if it is compressed.
    test, format, text_fields
        Rows to evaluate on, and as for :func:`~labelsense.data.read_examples`.
    subjects : Subjects, optional
        What labels are called: they become URIs, and the model remembers it.
    """
    unknown: dict[str, None] = {}

    def resolved(examples: Examples) -> Examples:
        examples, new = with_uris(examples, subjects)
        unknown.update(dict.fromkeys(new))
        return examples

    def finish(training: Training) -> Training:
        if subjects is not None:
            training.model.subjects_ = subjects
            training.report.update({"subjects": len(subjects), "unknown_labels": list(unknown)})
        training.model.save(output)
        return training

    folder = output.with_name(f".{output.name}.scratch")
    limit = SHARE * available_memory() if memory is None else memory
    if needs_memory(path) <= limit and not folder.exists():
        others = None if test is None else with_uris(read_examples(test, format, text_fields), subjects)[0]
        return finish(train(resolved(read_examples(path, format, text_fields)), Choices(**choices), test=others))
    inputs = {
        "subjects": subjects and len(subjects),
        "data": identity(path),
        "test": test and identity(test),
        "format": format,
        "text_fields": text_fields,
    }
    with scratch_folder(folder, {**inputs, **choices}, {"memory": memory}, {"memory": limit}) as known:
        batches = map(resolved, stream_examples(path, format, CHUNK_ROWS, text_fields))
        tests = None
        if test is not None:
            stream = stream_examples(test, format, CHUNK_ROWS, text_fields)
            tests = (with_uris(batch, subjects)[0] for batch in stream)
        return finish(train_stream(batches, folder, Choices(**choices), memory=known["memory"], test=tests))


def train_stream(
    batches: Iterable[Examples],
    scratch: Path,
    choices: Choices,
    *,
    memory: float,
    test: Iterable[Examples] | None = None,
) -> Training:
    """Learn from rows as :func:`~labelsense.training.train` does, in bounded memory.

    Parameters
    ----------
    batches : iterable of Examples
        What to learn from; it is gone through once.
    scratch : Path
        A folder for the chunks and checkpoints. If it has those of a process that was killed, with the same
        arguments, that is gone on with.
    choices : Choices
    memory : float
        How many bytes to take, about.
    test : iterable of Examples, optional
        What to measure on.
    """
    first = next(batches := iter(batches))
    word = choices.word(first.kind)
    _, streamed = choices.make(word)
    raw = write_chunks(scratch / "rows", gather(chain([first], batches)), Tabulate(streamed))
    room = max(memory - OVERHEAD, memory / 4)
    return train_chunks(choices, raw, word, memory=room, test=test, scratch=scratch)


@contextmanager
def scratch_folder(
    folder: Path, settings: dict[str, Any], wishes: dict[str, Any], defaults: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Give a folder for temporary files, and remove it in the end.

    A process that is killed leaves it. If there is one, and the settings are the same, it is gone on with; else it is
    emptied. Wishes that are None are as they were then, or the defaults. Yields settings and wishes.
    """
    import fcntl  # which not every system has

    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{folder} is in use: another process trains the same model. Wait for it, or name another output."
            ) from None
        try:
            yield _go_on(folder, settings, wishes, defaults)
        finally:
            shutil.rmtree(folder)


def _go_on(folder: Path, settings: dict[str, Any], wishes: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Return settings and wishes with which the folder was begun; begin it anew if they differ."""
    path = folder / "settings.json"
    before = read_json(path) or {}
    kept = {name: before.get(name) if value is None else value for name, value in wishes.items()}
    if before and before == json.loads(json.dumps(settings | kept | {"version": __version__})):
        log("going on with what is in %s", folder)
        return before
    for inner in folder.iterdir():
        if inner.is_dir():
            shutil.rmtree(inner)
        elif inner.name != "lock":
            inner.unlink()
    new = {name: defaults[name] if value is None else value for name, value in wishes.items()}
    write_json(path, settings | new | {"version": __version__})
    return settings | new


def needs_memory(path: Path) -> float:
    """Return about how many bytes it takes to train on a file, or on the files of a folder, in memory."""
    if str(path) == "-":  # nothing tells
        return 0.0
    return OVERHEAD + EXPANSION * sum(
        file.stat().st_size * (COMPRESSION if strip_compression(file.name) != file.name else 1)
        for file in (path.rglob("*") if path.is_dir() else [path])
        if file.is_file()
    )


def identity(path: Path) -> list[Any]:
    """Return what tells whether a file, or a folder, has changed."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    found = ((file, file.stat()) for file in files)
    return [[os.path.abspath(file), stat.st_size, stat.st_mtime_ns] for file, stat in found]
