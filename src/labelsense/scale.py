"""Training on rows that are not all in memory: from chunks of rows to a model, and from a large file to chunks."""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from labelsense._checkpoint import checkpoints_in, read_json, write_json
from labelsense._chunks import Chunks, split_rows
from labelsense._memory import available_memory
from labelsense._progress import log, verbosity
from labelsense._typing import IntArray
from labelsense._version import __version__
from labelsense.compress.base import Operator
from labelsense.data import Examples, read_examples, stream_examples
from labelsense.data.adapt import features_for, features_of_kind, labels_for
from labelsense.data.formats.base import concatenate
from labelsense.data.formats.source import strip_compression
from labelsense.data.statistics import Count, Finish, Statistics, Tabulate
from labelsense.data.store import CHUNK_ROWS, gather, write_chunks
from labelsense.errors import InputError
from labelsense.estimator import CompressedLabelClassifier
from labelsense.features import make_features
from labelsense.features.streams import StreamedFeatures
from labelsense.predictor import learn
from labelsense.regress.chunked import ChunkedDesign
from labelsense.training import Training, describe, hold_out_rows, make_model, train

SHARE = 0.5  # of the free memory that training may take, if nobody says
EXPANSION, COMPRESSION = 8, 4  # bytes in memory for a byte of text, and bytes of text for a compressed one
OVERHEAD = 400e6  # bytes: the program, chunks on their way, words that are counted


def fit_chunks(
    model: CompressedLabelClassifier,
    raw: Chunks,
    features: StreamedFeatures,
    *,
    rows: IntArray | None = None,
    step: str = "fit",
    sparse: bool = True,
    memory: float = math.inf,
) -> Chunks:
    """Fit a model on rows in chunks: the same as ``model.fit`` on all of them at once, to rounding.

    Parameters
    ----------
    model : CompressedLabelClassifier
        Is fitted. Its learner must be ridge, its decoder one that does not learn.
    raw : Chunks
        Made by :class:`~labelsense.data.statistics.Tabulate`.
    features : StreamedFeatures
        What has tabulated them; it learns.
    rows : array, optional
        The rows to learn from, ascending; by default all.
    step : str
        What the learner does: "fit", or "partial_fit" for the first rows of many.
    sparse : bool
        Whether features are CSR.
    memory : float
        How many bytes the solver may take.

    Returns
    -------
    Chunks
        What it has learned from: features, and a column for each of its labels.
    """
    learner, decoder = model._make_learner(), model._make_decoder()
    if not learner.takes_updates:
        raise InputError(
            f"learner must be ridge for rows that are not all in memory. Got {type(learner).__name__}. "
            "Give it more memory, or fewer rows."
        )
    if decoder.learns:
        raise InputError(
            f"decoder must learn nothing for rows that are not all in memory. Got {type(decoder).__name__}."
        )
    with verbosity(model.verbose):
        counted = raw.total(Count(features.max_words), None if rows is None else split_rows(rows, raw.lengths))
        vocabulary = _check_labels(counted)
        model.features_ = features.fit(counted.rows, counted.rows_with, counted.occurrences)
        log("%d rows, %d features, %d labels", counted.rows, features.n_features, vocabulary.n_labels)
        chunks = raw.map(Finish(features, vocabulary))
        design = ChunkedDesign(chunks, features.n_features, sparse=sparse, memory=memory)
        if rows is not None:
            design = design.rows(rows)
        counts = counted.label_counts(vocabulary)
        compressor = model._make_compressor(
            vocabulary.n_labels, counted.label_entries / counted.rows, counts / counted.rows
        )
        operator: Operator = compressor.operator_
        decoder.support_size(operator)
        targets = design.targets(operator.compress, operator.n_measurements)
        learner = learn(learner, step, design, targets)
    model.n_features_in_ = features.n_features
    model._set_parts(compressor, learner, decoder, vocabulary, counts)
    return chunks


def update_chunks(model: CompressedLabelClassifier, raw: Chunks, *, sparse: bool = True) -> None:
    """Learn from more rows, in chunks, as ``model.partial_fit`` on all of them at once does."""
    features = StreamedFeatures.fitted(model.features_, model.n_features_in_)
    counted = raw.total(Count())
    new = counted.vocabulary()
    labels: Any = sp.csr_array((1, new.n_labels)) if new.names is None else [new.names]
    vocabulary, _ = model.vocabulary_.extend(labels)
    chunks = raw.map(Finish(features, vocabulary))
    design = ChunkedDesign(chunks, features.n_features, sparse=sparse)
    counts = counted.label_counts(vocabulary)
    model._learn_more(vocabulary, design, lambda A: design.targets(A.compress, A.n_measurements), counts)


def train_stream(
    batches: Iterable[Examples],
    scratch: Path,
    *,
    memory: float,
    test: Iterable[Examples] | None = None,
    hold_out: bool = True,
    features: str = "auto",
    n_features: int | None = None,
    n_measurements: int | str = "auto",
    compressor: str = "hadamard",
    learner: str = "ridge",
    alpha: float | str = "loo",
    decoder: str = "omp",
    updatable: bool = False,
    random_state: int = 0,
) -> Training:
    """Learn from rows as :func:`~labelsense.training.train` does, in bounded memory.

    Parameters
    ----------
    batches : iterable of Examples
        What to learn from; it is gone through once.
    scratch : Path
        A folder for the chunks and checkpoints. If it has those of a process that was killed, with the same
        arguments, that is gone on with.
    memory : float
        How many bytes to take, about.
    test : iterable of Examples, optional
        What to measure on.
    hold_out, features, n_features, n_measurements, compressor, learner, alpha, decoder, updatable, random_state
        As for :func:`~labelsense.training.train`.
    """
    first = next(batches := iter(batches))
    word = features_of_kind(first.kind, features)
    if word == "images":
        raise InputError("features must not be images for rows that are not all in memory. Give it more memory.")
    settings = (n_measurements, compressor, learner, alpha, decoder, updatable, random_state)
    model = make_model(word or "none", n_features, *settings)
    streamed = StreamedFeatures(None if model.features is None else make_features(model.features))
    raw = write_chunks(scratch / "rows", gather(chain([first], batches)), Tabulate(streamed))
    if word is None:
        word = "counts" if raw.total(Count()).are_counts else "none"
        model = make_model(word, n_features, *settings)
        streamed = StreamedFeatures(None if model.features is None else make_features(model.features))
    report: dict[str, Any] = {"rows": raw.n_rows, "features": word, "out_of_core": True}
    room = max(memory - OVERHEAD, memory / 4)
    if test is None and hold_out and raw.n_rows >= 10:
        with _kept(scratch / "held-out") as kept:
            kept |= {} if kept else try_on_held_out(model, raw, streamed, random_state, room)
        report |= kept["figures"]
        model.learner.set_params(alpha=kept["alpha"])
    start = time.perf_counter()
    log("training on all rows")
    with checkpoints_in(scratch / "all"):
        fit_chunks(model, raw, streamed, memory=room)
    report["seconds"] = time.perf_counter() - start
    if test is not None:
        log("evaluating")
        report |= evaluate_stream(model, test)
    return Training(model, report | describe(model, updatable))


def evaluate_stream(model: CompressedLabelClassifier, batches: Iterable[Examples]) -> dict[str, Any]:
    """Return the figures of ``model.evaluate`` for all rows of batches, and what these are."""
    rows, totals, name = 0, dict[str, float](), ""
    for batch in batches:
        name = batch.name
        if len(batch):
            figures = model.evaluate(features_for(model, batch), labels_for(model, batch))
            totals = {key: totals.get(key, 0.0) + len(batch) * value for key, value in figures.items()}
            rows += len(batch)
    if not rows:
        raise ValueError(f"{name} has no rows.")
    return {"evaluated_on": name, **{key: value / rows for key, value in totals.items()}}


def train_file(
    path: Path,
    output: Path,
    choices: dict[str, Any],
    *,
    memory: float | None = None,
    test: Path | None = None,
    format: str | None = None,
    text_fields: Sequence[str] | None = None,
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
        Other arguments of :func:`~labelsense.training.train`.
    memory : float, optional
        How many bytes to take, about; by default half of what is free. A file is trained on in memory if 8 times its
        size is less, 32 times if it is compressed.
    test, format, text_fields
        Rows to evaluate on, and as for :func:`~labelsense.data.read_examples`.
    """
    folder = output.with_name(f".{output.name}.scratch")
    limit = SHARE * available_memory() if memory is None else memory
    if needs_memory(path) <= limit and not folder.exists():
        others = None if test is None else read_examples(test, format, text_fields)
        training = train(read_examples(path, format, text_fields), test=others, **choices)
        training.model.save(output)
        return training
    inputs = {"data": identity(path), "test": test and identity(test), "format": format, "text_fields": text_fields}
    with scratch_folder(folder, {**inputs, **choices}, {"memory": memory}, {"memory": limit}) as known:
        batches = stream_examples(path, format, CHUNK_ROWS, text_fields)
        tests = None if test is None else stream_examples(test, format, CHUNK_ROWS, text_fields)
        training = train_stream(batches, folder, memory=known["memory"], test=tests, **choices)
        training.model.save(output)
    return training


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


@contextmanager
def _kept(folder: Path) -> Iterator[dict[str, Any]]:
    """Give what came of a step that was done before, or an empty dictionary, and a folder for its checkpoints."""
    path = folder.with_suffix(".json")
    known: dict[str, Any] = read_json(path) or {}
    if not known:
        with checkpoints_in(folder):
            yield known
        write_json(path, known)
    else:
        yield known
    shutil.rmtree(folder, ignore_errors=True)


def needs_memory(path: Path) -> float:
    """Return about how many bytes it takes to train on a file, or on the files of a folder, in memory."""
    if str(path) == "-":
        return 0.0
    return EXPANSION * sum(
        file.stat().st_size * (COMPRESSION if strip_compression(file.name) != file.name else 1)
        for file in (path.rglob("*") if path.is_dir() else [path])
        if file.is_file()
    )


def identity(path: Path) -> list[Any]:
    """Return what tells whether a file, or a folder, has changed."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    found = ((file, file.stat()) for file in files)
    return [[os.path.abspath(file), stat.st_size, stat.st_mtime_ns] for file, stat in found]


def _check_labels(counted: Statistics) -> Any:
    vocabulary = counted.vocabulary()
    if counted.rows == 0:
        raise InputError("There are no rows to learn from.")
    if counted.label_entries == 0:
        raise InputError("y has no labels: every row is empty. At least one row must have a label.")
    if vocabulary.n_labels == 1:
        raise InputError(
            "y has only one label (one class); at least two are needed. For a single yes/no label use a binary "
            "classifier."
        )
    return vocabulary


def try_on_held_out(
    model: CompressedLabelClassifier, raw: Chunks, features: StreamedFeatures, seed: int, memory: float
) -> dict[str, Any]:
    """Fit on nine tenths of the rows, evaluate on the others; return the figures and the penalty that was chosen."""
    rest, out = hold_out_rows(raw.n_rows, seed)
    log("training on nine tenths")
    first = clone(model)
    if model.learner.takes_updates:
        first.learner.set_params(updatable=False)
    chunks = fit_chunks(first, raw, features, rows=rest, memory=memory)
    parts = split_rows(out, raw.lengths)
    held = concatenate(list(chunks.results(_some_rows, parts)))
    labels = np.concatenate(list(raw.results(_count_labels, parts)))
    Y: Any = held.Y
    figures = first._figures(held.X, Y, labels - np.diff(Y.indptr))
    return {"alpha": first.learner_.alpha_, "figures": {"evaluated_on": f"{len(out)} rows held out", **figures}}


def _some_rows(chunk: Any, rows: IntArray) -> Examples:
    return Examples(chunk.X[rows], chunk.Y[rows])


def _count_labels(chunk: Any, rows: IntArray) -> IntArray:
    return np.diff(chunk.Y.indptr)[rows]
