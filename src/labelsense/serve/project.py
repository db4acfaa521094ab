"""A model being served: Annif calls it a project."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from labelsense._typing import Label
from labelsense.data.subjects import Subjects
from labelsense.serve import answers
from labelsense.serve.batching import LONGEST_WINDOW, Gatherer
from labelsense.serve.learning import Learning, can_learn
from labelsense.serve.limits import Limits
from labelsense.serve.problems import busy
from labelsense.serve.reading import Wanted
from labelsense.serve.snapshot import Snapshot, load_snapshot

Result = TypeVar("Result")
THREAD = "labelsense-serve"


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
    learning : bool
        Whether it may be updated. One that cannot be (see :func:`~labelsense.serve.learning.can_learn`) is not.
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
        learning: bool = False,
    ) -> None:
        self.id, self.path, self.subjects = id, path, subjects
        self.limits = limits or Limits()
        self.snapshot = self._load()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=f"{THREAD}-{id}")
        self._gatherer = Gatherer(_predict, self._executor, waiting=self.limits.waiting, window=window, observe=observe)
        self._asked = 0
        self.learning: Learning | None = None
        if learning and can_learn(self.snapshot.model):
            self.learning = Learning(path, self.snapshot, self._publish, self._load, self.limits)

    def _load(self) -> Snapshot:
        return load_snapshot(self.path, self.subjects)

    def _publish(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def __len__(self) -> int:
        """Return how many documents wait."""
        return len(self._gatherer) + self._asked

    def gauges(self) -> dict[str, tuple[str, Callable[[], float]]]:
        """Return the numbers of this project that change."""
        numbers: dict[str, tuple[str, Callable[[], float]]] = {
            "labelsense_waiting_documents": ("Documents that wait to be predicted.", lambda: len(self)),
            "labelsense_labels": ("Labels of the model.", lambda: self.snapshot.catalogue.n_labels),
            "labelsense_model_seconds": ("When the model last changed.", lambda: self.snapshot.modified.timestamp()),
        }
        learning = self.learning
        if learning is not None:
            numbers |= {
                "labelsense_updates_acknowledged": ("The last update in the journal.", lambda: learning.acknowledged),
                "labelsense_updates_applied": ("The last update in the model.", lambda: learning.applied),
                "labelsense_updates_saved": ("The last update in the model file.", lambda: learning.saved),
            }
        return numbers

    async def suggest(self, snapshot: Snapshot, documents: Sequence[Any], wanted: Wanted) -> list[list[dict[str, Any]]]:
        """Return the suggestions for each document, as Annif words them."""
        catalogue = snapshot.catalogue
        language = catalogue.check_language(wanted.language)
        allow = None if wanted.allow is None else tuple(catalogue.labels_of(wanted.allow, "allow"))
        block = tuple(catalogue.labels_of(wanted.block, "block"))
        questions = [Question(snapshot, document, wanted.limit, allow, block) for document in documents]
        found = await self.within_time(self._gatherer.submit(questions))
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
            return await self.within_time(running)
        finally:
            self._asked -= 1

    async def within_time(self, work: Any) -> Any:
        """Return what is awaited, if it comes within the time that a request may take."""
        try:
            return await asyncio.wait_for(work, self.limits.seconds)
        except asyncio.TimeoutError:
            raise busy(f"The model has not answered within {self.limits.seconds:g} seconds. Try again.", 5) from None

    def reload(self) -> None:
        """Take the model from its file again; requests that are being answered are answered by the old one."""
        if self.learning is None:
            self.snapshot = self._load()
        else:
            self.learning.reload()

    async def close(self) -> None:
        """Stop, when nobody asks any more; save what was learned."""
        if self.learning is not None:
            await self.learning.close()
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
