"""Training on files with the workers of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dask.delayed import delayed
from distributed import Client, LocalCluster

from labelsense.dask.chunks import Opaque
from labelsense.dask.pieces import check_memory, tabulate
from labelsense.data import Examples, stream_examples
from labelsense.data.adapt import with_uris
from labelsense.data.splits import Split, split_files
from labelsense.data.subjects import Subjects
from labelsense.scale import Choices, train_chunks
from labelsense.training import Training


@contextmanager
def connect(scheduler: str | None = None, workers: int | None = None) -> Iterator[Client]:
    """Give a client of a scheduler, or of so many processes on this machine, which end with the block."""
    if scheduler is not None:
        with Client(scheduler) as client:
            yield client
        return
    local = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")  # any port that is free
    with local as cluster, Client(cluster) as client:
        yield client


def train_files(
    paths: Any,
    choices: Choices,
    client: Client,
    *,
    test: Any = None,
    format: str | None = None,
    text_fields: Sequence[str] | None = None,
    subjects: Subjects | None = None,
) -> Training:
    """Learn from files as :func:`~labelsense.training.train` does, with the workers of a cluster.

    Parameters
    ----------
    paths, format, text_fields
        As for :func:`read`.
    choices : Choices
    client : Client
    test : Path, optional
        Rows to evaluate on.
    subjects : Subjects, optional
        What labels are called: they become URIs, and the model remembers it.
    """
    splits = split_files(paths, format, text_fields)
    word = choices.word(next(stream_examples(splits[0].path, splits[0].format, 1, text_fields)).kind)
    _, streamed = choices.make(word)
    known = delayed(Opaque(subjects), pure=False, traverse=False)
    raw, _ = tabulate([delayed(_load_resolved, pure=False)(split, known) for split in splits], streamed, client)
    raw, memory = check_memory(raw)
    tests = None if test is None else stream_examples(test, format, text_fields=text_fields)
    others = None if tests is None else (with_uris(batch, subjects)[0] for batch in tests)
    training = train_chunks(choices, raw, word, memory=memory, test=others)
    if subjects is not None:
        training.model.subjects_ = subjects
        unknown = [label for label in training.model.labels_ if label not in subjects]
        training.report.update({"subjects": len(subjects), "unknown_labels": unknown})
    return training


def _load_resolved(split: Split, subjects: Opaque) -> Examples:
    return with_uris(split.read(), subjects.content)[0]
