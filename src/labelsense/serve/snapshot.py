"""A model at one time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from labelsense._typing import IntArray
from labelsense.data.subjects import Subjects
from labelsense.errors import InputError
from labelsense.features import SURFHistogramTransformer
from labelsense.model_file import load_model
from labelsense.serve.catalogue import Catalogue


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
    """

    model: Any
    catalogue: Catalogue
    modified: datetime

    @property
    def counts(self) -> IntArray | None:
        """How many rows have had each label, where the model knows."""
        counts = getattr(self.model, "label_counts_", None)
        return None if counts is None else np.asarray(counts)

    def follow(self, model: Any, modified: datetime) -> Snapshot:
        """Return the snapshot of what this model has become by learning, which adds labels and takes none away."""
        if model.vocabulary_.n_labels == self.catalogue.n_labels:
            return Snapshot(model, self.catalogue, modified)
        return take_snapshot(model, self.catalogue.subjects, modified)


def take_snapshot(model: Any, subjects: Subjects | None, modified: datetime) -> Snapshot:
    """Return a model that is not going to change, with its labels."""
    if isinstance(model.features_, SURFHistogramTransformer):
        raise InputError("The model takes images, and only models of texts or features can be served.")
    vocabulary = model.vocabulary_
    stored = getattr(model, "subjects_", None)
    known = subjects or (stored if isinstance(stored, Subjects) else None)
    catalogue = Catalogue(vocabulary.names, vocabulary.n_labels, known)
    return Snapshot(model, catalogue, modified)


def load_snapshot(path: Path, subjects: Subjects | None) -> Snapshot:
    """Return the model of a file, ready to predict."""
    modified = datetime.fromtimestamp(os.stat(path).st_mtime, timezone.utc)
    model = load_model(path)
    snapshot = take_snapshot(model, subjects, modified)
    if model.takes_text:
        model.predict_topk([""], 1)  # what is made when it is first used is made now
    return snapshot
