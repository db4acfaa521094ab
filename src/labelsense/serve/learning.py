"""How a model that is served learns: journal first, then the model in memory, then its file."""

from __future__ import annotations

import contextlib
import copy
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._files import locking
from labelsense.estimator import CompressedLabelClassifier
from labelsense.serve.answers import stack
from labelsense.serve.batching import Gatherer
from labelsense.serve.catalogue import Catalogue
from labelsense.serve.journal import Entry, Journal
from labelsense.serve.limits import Limits
from labelsense.serve.problems import Problem, busy
from labelsense.serve.reading import read_document
from labelsense.serve.snapshot import Snapshot

logger = logging.getLogger("labelsense.serve")

LONGEST_UNSAVED = 60.0  # seconds between two writes of the model file while updates keep coming
RETRY = 5.0  # seconds after which a write that failed is tried again
UNLIMITED = Limits(text=sys.maxsize)  # what was acknowledged is learned, whatever the limits are now
MOST_PENDING = 10_000  # updates that wait to be learned


def can_learn(model: Any) -> bool:
    """Tell whether a model can be updated exactly, and has kept what that takes."""
    return (
        isinstance(model, CompressedLabelClassifier)
        and model.learner_.takes_updates
        and getattr(model.learner_, "_moments", None) is not None
    )


class Learning:
    """Updates of a model that is being served.

    ``learn`` writes to the journal, and returns when the disk has it. A thread of its own then learns, in order, from a
    copy of the model, puts the copy in its place, and writes the file. Predictions go on by the model of before.

    Parameters
    ----------
    path : Path
        The model file; the journal is beside it.
    snapshot : Snapshot
        The model as the file has it.
    publish : function
        Given every new snapshot.
    load : function
        Returns the snapshot of the file, when that was replaced by somebody else.
    limits : Limits
    """

    def __init__(
        self,
        path: Path,
        snapshot: Snapshot,
        publish: Callable[[Snapshot], None],
        load: Callable[[], Snapshot],
        limits: Limits,
    ) -> None:
        self._path, self._publish, self._load = path, publish, load
        self._journal = Journal(path.with_name(f"{path.name}.journal"))
        self._identity = _identity(path)
        self._snapshot = snapshot
        self.applied = self.saved = self._position_of(snapshot)
        self.broken: str | None = None
        self._reload = self._stop = False
        self._last_save, self._not_before = time.monotonic(), 0.0
        self._admission = threading.Lock()
        self._work = threading.Condition()
        self._apply()
        self._admitted = self._admit_anew()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="labelsense-journal")
        self._gatherer = Gatherer(self._admit, self._writer, waiting=limits.waiting)
        self._thread = threading.Thread(target=self._run, name="labelsense-learning", daemon=True)
        self._thread.start()

    @property
    def acknowledged(self) -> int:
        """The number of the last update that a client was told is safe."""
        return self._journal.last

    async def update(self, step: str, documents: Sequence[Entry]) -> int:
        """Put rows to "learn" or "forget" on record; return the number of the update."""
        number: int
        (number,) = await self._gatherer.submit([{"step": step, "documents": list(documents)}])
        return number

    def reload(self) -> None:
        """Take the model from its file again, and learn what the journal has and the file has not."""
        with self._work:
            self._reload = True
            self._work.notify()

    async def close(self) -> None:
        """Learn and save what was acknowledged, and stop."""
        await self._gatherer.close()
        self._writer.shutdown()
        with self._work:
            self._stop = True
            self._work.notify()
        self._thread.join()
        self._journal.close()

    # --- admission, on the thread that writes the journal ---------------------------------------------------------

    def _admit(self, updates: list[Entry]) -> list[Any]:
        """Refuse what cannot be learned, write the rest, and return the numbers."""
        with self._admission:
            return self._admit_locked(updates)

    def _admit_locked(self, updates: list[Entry]) -> list[Any]:
        results: list[Any] = [self._refusal(update) for update in updates]
        accepted = [i for i, refusal in enumerate(results) if refusal is None]
        if accepted:
            try:
                numbers = self._journal.append([updates[i] for i in accepted])
            except OSError:
                logger.exception("the journal of %s cannot be written", self._path.name)
                return [busy("What was sent could not be stored. Nothing was learned.", 60)] * len(updates)
            for i, number in zip(accepted, numbers, strict=True):
                results[i] = number
            with self._work:
                self._work.notify()
        return results

    def _refusal(self, update: Entry) -> Problem | None:
        if self.broken is not None:
            return busy("The last update could not be learned; the operator has to look at the log.", 60)
        if self._journal.last - self.applied >= MOST_PENDING:
            return busy("Too many updates are waiting to be learned. Try again.", 5)
        try:
            self._admitted.take(update)
        except Problem as problem:
            return problem
        return None

    def _admit_anew(self) -> Admitted:
        """Return what is known of labels when all that was acknowledged is learned."""
        admitted = Admitted(self._snapshot)
        for entry in self._journal.after(self.applied):
            with contextlib.suppress(Problem):  # a model that was replaced may not learn it
                admitted.take(entry)
        return admitted

    # --- learning, on a thread of its own -------------------------------------------------------------------------

    def _run(self) -> None:
        stop = False
        while not (stop and not self._pending):
            with self._work:
                while not (self._pending or self._reload or self._stop or self._save_in() == 0):
                    self._work.wait(self._save_in())
                stop, reload, self._reload = self._stop, self._reload, False
            try:
                if reload:
                    self._take_file()
                self._apply()
                if self._unsaved and (stop or self._save_in() == 0):
                    self._save()
            except Exception as error:
                logger.exception("%s cannot be updated", self._path.name)
                self.broken = type(error).__name__
                return

    def _save_in(self) -> float | None:
        """Return in how many seconds the file is to be written; None if it is what the model is."""
        if not self._unsaved:
            return None
        due = self._last_save + LONGEST_UNSAVED if self._pending else 0.0
        return max(0.0, max(due, self._not_before) - time.monotonic())

    @property
    def _pending(self) -> bool:
        return self.applied < self._journal.last

    @property
    def _unsaved(self) -> bool:
        return self.saved < self.applied

    def _position_of(self, snapshot: Snapshot) -> int:
        """Return the last update that a model has; one that knows another journal lacks all that this one still has."""
        ours = getattr(snapshot.model, "journal_id_", None) == self._journal.id
        return int(snapshot.model.journal_position_) if ours else self._journal.start

    def _apply(self) -> None:
        """Learn what is pending, and publish the model."""
        entries = self._journal.after(self.applied)
        if not entries:
            return
        model = fork(self._snapshot.model)
        for step, rows in _runs(entries):
            _learn(model, self._snapshot.catalogue, step, rows, self._path.name)
        model.journal_id_, model.journal_position_ = self._journal.id, entries[-1]["n"]
        model._current()  # solved before anybody waits for it
        self._snapshot = self._snapshot.follow(model, datetime.now(timezone.utc))
        self.applied = entries[-1]["n"]
        self._publish(self._snapshot)

    def _save(self) -> None:
        """Write the model file, unless somebody else has: then that one is taken, and learns what it lacks."""
        try:
            with locking(self._path):
                replaced = _identity(self._path) != self._identity
                if not replaced:
                    self._snapshot.model.save(self._path)
                    self._identity, self.saved = _identity(self._path), self.applied
                    self._last_save = time.monotonic()
        except OSError as error:  # the journal has it
            logger.error("%s cannot be written now: %s", self._path.name, error.strerror)
            self._not_before = time.monotonic() + RETRY
            return
        if replaced:
            logger.warning("%s was replaced: it is loaded, and learns what was acknowledged since", self._path.name)
            self._take_file()
        else:
            self._journal.trim(self.saved)

    def _take_file(self) -> None:
        """Go on from the model of the file; if that cannot be, from the one there is, without a write to the file."""
        try:
            identity, snapshot = _identity(self._path), self._load()
            if not can_learn(snapshot.model):
                raise ValueError("it was not trained to be updated")
        except Exception as error:
            logger.error("%s cannot be loaded: %s. The model of before goes on.", self._path.name, error)
            self._not_before = time.monotonic() + RETRY
            return
        with self._admission:
            self._snapshot, self._identity = snapshot, identity
            self.applied = self.saved = self._position_of(snapshot)
            self._apply()
            self._admitted = self._admit_anew()
        self._publish(self._snapshot)


class Admitted:
    """The labels that a model will know when all that was acknowledged is learned, and in how many rows they are."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._catalogue = snapshot.catalogue
        self._capacity = snapshot.model.compressor_.operator_.capacity
        self._new: set[str] = set()
        self._counts = snapshot.counts
        self._change: dict[str, int] = {}

    def take(self, update: Entry) -> None:
        """Take note of an update, or refuse it."""
        uris = [uri for document in update["documents"] for uri in document["subjects"]]
        new = {uri for uri in uris if uri not in self._new and self._catalogue.column(uri) is None}
        if update["step"] == "forget":
            self._check_forgettable(uris, new)
        else:
            self._check_new(new)
        self._new |= new
        sign = -1 if update["step"] == "forget" else 1
        for uri in uris:
            self._change[uri] = self._change.get(uri, 0) + sign

    def _check_new(self, new: set[str]) -> None:
        subjects = self._catalogue.subjects
        unknown = sorted(new if not self._catalogue.extensible else new - _members(subjects, new))
        if unknown:
            where = "the model has" if subjects is None else "the vocabulary has"
            raise Problem(404, f"subjects must be labels that {where}.", members={"unknown": unknown})
        room = self._capacity - self._catalogue.n_labels - len(self._new)
        if len(new) > room:
            detail = f"The model has room for {room} new labels. Train it with a larger reserve."
            raise Problem(409, detail, members={"unknown": sorted(new)})

    def _check_forgettable(self, uris: list[str], new: set[str]) -> None:
        short = sorted(uri for uri in set(uris) if self._count(uri) < uris.count(uri))
        if new or short:
            detail = "Only rows that were learned can be forgotten, and too few had these labels."
            raise Problem(409, detail, members={"unknown": sorted(new | set(short))})

    def _count(self, uri: str) -> int:
        column = self._catalogue.column(uri)
        known = 0 if column is None or self._counts is None else int(self._counts[column])
        return known + self._change.get(uri, 0)


def _members(subjects: Any, uris: set[str]) -> set[str]:
    return uris if subjects is None else {uri for uri in uris if uri in subjects}


def fork(model: Any) -> Any:
    """Return a copy of a model that can learn while the model itself stays as it is."""
    other = copy.copy(model)
    other.compressor_ = copy.copy(model.compressor_)
    return other


def _runs(entries: Sequence[Entry]) -> list[tuple[str, list[Entry]]]:
    """Return the updates as runs of one kind, which are learned together."""
    runs: list[tuple[str, list[Entry]]] = []
    for entry in entries:
        if not runs or runs[-1][0] != entry["step"]:
            runs.append((entry["step"], []))
        runs[-1][1].append(entry)
    return runs


def _learn(model: Any, catalogue: Catalogue, step: str, entries: list[Entry], name: str) -> None:
    """Learn updates together, or, if one of them is refused, each by itself without that one."""
    documents = [document for entry in entries for document in entry["documents"]]
    try:
        X = stack(model, [read_document(document, model, UNLIMITED) for document in documents])
        y = _label_rows(model, catalogue, [document["subjects"] for document in documents])
        (model.forget if step == "forget" else model.partial_fit)(X, y)
    except (ValueError, TypeError, Problem) as error:
        if len(entries) == 1:
            logger.error("update %d of %s cannot be learned: %s", entries[0]["n"], name, error)
            return
        for entry in entries:
            _learn(model, catalogue, step, [entry], name)


def _label_rows(model: Any, catalogue: Catalogue, rows: Sequence[Sequence[str]]) -> Any:
    """Return labels as the model was given them in training."""
    if model.vocabulary_.names is None:
        Y = sp.lil_array((len(rows), model.vocabulary_.n_labels), dtype=np.float32)
        for i, uris in enumerate(rows):
            Y[i, [int(uri) for uri in uris]] = 1
        return Y.tocsr()
    return [[uri if catalogue.column(uri) is None else catalogue.label(uri) for uri in uris] for uris in rows]


def _identity(path: Path) -> tuple[int, int, int]:
    state = os.stat(path)
    return state.st_ino, state.st_size, state.st_mtime_ns
