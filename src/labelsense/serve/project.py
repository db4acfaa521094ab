"""A model being served: Annif calls it a project."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from labelsense._typing import IntArray, Label
from labelsense.data.subjects import Subjects
from labelsense.errors import InputError
from labelsense.features import SURFHistogramTransformer
from labelsense.model_file import load_model
from labelsense.serve import answers
from labelsense.serve.batching import LONGEST_WINDOW, Gatherer
from labelsense.serve.catalogue import Catalogue
from labelsense.serve.limits import Limits
from labelsense.serve.problems import busy
from labelsense.serve.reading import Wanted

Result = TypeVar("Result")
THREAD = "labelsense-serve"


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A model at one time: nothing in it changes. A request is answered by one, whatever happens meanwhile.

    Attributes
    ----------
    model : LabelPredictor
    catalogue : Catalogue
        Its labels.
    modified : datetime
        When its file was written, or when it has last learned.
    position : int
        How many updates of the journal are in it.
    """

    model: Any
    catalogue: Catalogue
    modified: datetime
    position: int = 0

    @property
    def counts(self) -> IntArray | None:
        """How many rows have had each label, where the model knows."""
        counts = getattr(self.model, "label_counts_", None)
        return None if counts is None else np.asarray(counts)


def take_snapshot(model: Any, subjects: Subjects | None, modified: datetime, position: int = 0) -> Snapshot:
    """Return a model that is not going to change, with its labels."""
    if isinstance(model.features_, SURFHistogramTransformer):
        raise InputError("The model takes images, and only models of texts or features can be served.")
    vocabulary = model.vocabulary_
    catalogue = Catalogue(vocabulary.names, vocabulary.n_labels, subjects or getattr(model, "subjects_", None))
    return Snapshot(model, catalogue, modified, position)


def load_snapshot(path: Path, subjects: Subjects | None) -> Snapshot:
    """Return the model of a file, ready to predict."""
    modified = datetime.fromtimestamp(os.stat(path).st_mtime, timezone.utc)
    model = load_model(path)
    snapshot = take_snapshot(model, subjects, modified, int(getattr(model, "journal_position_", 0)))
    if model.takes_text:
        model.predict_topk([""], 1)  # what is made when it is first used is made now
    return snapshot


class Project:
    """A model that is served under a name, and what is asked of it.

    Parameters
    ----------
    id : str
        The name in addresses.
    path : Path
        The model file.
    subjects : Subjects, optional
        A vocabulary that tells what its labels are called.
    limits : Limits
    window : float
        Seconds that a request may wait for others.
    observe : function
        Told how many documents were predicted together.
    """

    def __init__(
        self,
        id: str,
        path: Path,
        subjects: Subjects | None = None,
        *,
        limits: Limits | None = None,
        window: float = LONGEST_WINDOW,
        observe: Callable[[int], None] = lambda size: None,
    ) -> None:
        self.id, self.path, self.subjects = id, path, subjects
        self.limits = limits or Limits()
        self.snapshot = load_snapshot(path, subjects)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=f"{THREAD}-{id}")
        self._gatherer = Gatherer(_predict, self._executor, waiting=self.limits.waiting, window=window, observe=observe)
        self._asked = 0

    def __len__(self) -> int:
        """Return how many documents wait."""
        return len(self._gatherer) + self._asked

    async def suggest(self, snapshot: Snapshot, documents: Sequence[Any], wanted: Wanted) -> list[list[dict[str, Any]]]:
        """Return the suggestions for each document, as Annif words them."""
        catalogue = snapshot.catalogue
        language = catalogue.check_language(wanted.language)
        allow = None if wanted.allow is None else tuple(catalogue.labels_of(wanted.allow, "allow"))
        block = tuple(catalogue.labels_of(wanted.block, "block"))
        questions = [Question(snapshot, document, wanted.limit, allow, block) for document in documents]
        found = await self._within_time(self._gatherer.submit(questions))
        return [
            [
                catalogue.entry(str(label), language) | {"score": score}
                for label, score in suggestions[: wanted.limit]
                if score >= wanted.threshold
            ]
            for suggestions in found
        ]

    async def ask(self, function: Callable[..., Result], *args: Any) -> Result:
        """Return what a function of :mod:`answers` says, on the thread of this project."""
        if self._asked >= self.limits.waiting:
            raise busy("Too many requests are waiting. Try again.")
        self._asked += 1
        try:
            running = asyncio.get_running_loop().run_in_executor(self._executor, function, *args)
            return await self._within_time(running)
        finally:
            self._asked -= 1

    async def _within_time(self, work: Any) -> Any:
        try:
            return await asyncio.wait_for(work, self.limits.seconds)
        except asyncio.TimeoutError:
            raise busy(f"The model has not answered within {self.limits.seconds:g} seconds. Try again.", 5) from None

    def reload(self) -> None:
        """Take the model from its file again; requests that are being answered are answered by the old one."""
        self.snapshot = load_snapshot(self.path, self.subjects)

    async def close(self) -> None:
        """Stop, when nobody asks any more."""
        await self._gatherer.close()
        self._executor.shutdown()


@dataclass(frozen=True)
class Question:
    """What is to be suggested for a document."""

    snapshot: Snapshot
    document: Any
    limit: int
    allow: tuple[Label, ...] | None
    block: tuple[Label, ...]

    @property
    def group(self) -> Hashable:
        """What questions share that are answered in one prediction."""
        return id(self.snapshot), self.allow, self.block


def _predict(questions: list[Question]) -> list[Any]:
    """Return the suggestions for each question, or the exception that it has raised."""
    groups: dict[Hashable, list[int]] = {}
    for i, question in enumerate(questions):
        groups.setdefault(question.group, []).append(i)
    results: list[Any] = [None] * len(questions)
    for places in groups.values():
        for i, result in zip(places, _predict_group([questions[i] for i in places]), strict=True):
            results[i] = result
    return results


def _predict_group(group: list[Question]) -> list[Any]:
    first = group[0]
    allow = None if first.allow is None else list(first.allow)
    k = max(1, *(question.limit for question in group))  # the first labels do not depend on it
    documents = [question.document for question in group]
    try:
        return answers.suggest(first.snapshot.model, documents, k, allow, list(first.block) or None)
    except Exception as error:
        if len(group) == 1:
            return [error]
        return [_predict_group([question])[0] for question in group]  # one of them is to blame, and only that one
