"""Training on rows that are not all in memory: from chunks of rows, wherever they are, to a model."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_random_state

from labelsense import training
from labelsense._checkpoint import checkpoints_in, read_json, write_json
from labelsense._chunks import Chunks, split, split_rows
from labelsense._progress import log, verbosity
from labelsense._typing import DoubleArray, IntArray
from labelsense.chooser import BUDGETS, Budget, Choice, choose_by, sample_labels
from labelsense.compress.base import Compressor, Operator
from labelsense.data import Examples
from labelsense.data.adapt import features_for, features_of_kind, labels_for
from labelsense.data.formats.base import concatenate
from labelsense.data.statistics import Count, Finish, Statistics, labels_in_columns
from labelsense.errors import InputError
from labelsense.estimator import CompressedLabelClassifier
from labelsense.features import make_features
from labelsense.features.streams import StreamedFeatures
from labelsense.labels import Vocabulary
from labelsense.ordering import HeldOut, compare_pairs, draw_pairs
from labelsense.predictor import changing, learn
from labelsense.refine import Reconstruction
from labelsense.refine.chunked import chunk_sums, fit_refiner, kept_bytes, needed_bytes
from labelsense.refine.refiner import LEAST_ROWS
from labelsense.regress import RidgeLearner
from labelsense.regress.chunked import ChunkedDesign
from labelsense.training import MOST_UPDATE_WORDS, Training, describe, hold_out_rows
from labelsense.training import make_features as make_training_features

REFINEMENT_SHARE = 0.75  # of the memory, for what refinement keeps: the rest is for solvers


@dataclass(frozen=True)
class Choices(training.Choices):
    """What one can choose for rows that are not all in memory: the learner is ridge."""

    def word(self, kind: str) -> str | None:
        """Return what to make of rows of a kind; None if that depends on the rows."""
        word = features_of_kind(kind, self.features)
        if word == "images":
            raise InputError("features must not be images for rows that are not all in memory. Give it more memory.")
        return word

    def make(self, word: str | None) -> tuple[CompressedLabelClassifier, StreamedFeatures]:
        """Return a model, and what makes its features of rows in chunks."""
        n_features = self.n_features
        if n_features is None and self.updatable and word in ("words", "characters"):
            n_features = MOST_UPDATE_WORDS
        model = self.assemble(make_training_features(word or "none", n_features))
        return model, StreamedFeatures(None if model.features is None else make_features(model.features))


def fit_chunks(
    model: CompressedLabelClassifier,
    raw: Chunks,
    features: StreamedFeatures,
    *,
    rows: IntArray | None = None,
    step: str = "fit",
    sparse: bool = True,
    memory: float = math.inf,
    weights: DoubleArray | None = None,
) -> Chunks:
    """Fit a model on rows in chunks: the same as ``model.fit`` on all of them at once.

    To rounding, that is, or to the tolerance of conjugate gradients if ridge is solved by these.

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
    weights : array, optional
        How much each row counts.

    Returns
    -------
    Chunks
        What it has learned from: features, and a column for each of its labels.
    """
    model._check_settings(weighted=False)
    learner = _make_learner(model, step)
    refiner = model._make_refiner(neighbours=False) if step == "fit" else None
    if learner is not None and not learner.takes_updates:
        raise InputError(
            f"learner must be ridge for rows that are not all in memory. Got {type(learner).__name__}. "
            "Give it more memory, or fewer rows."
        )
    with verbosity(model.verbose):
        log("counting")
        counted = raw.total(Count(features.max_words), None if rows is None else split_rows(rows, raw.lengths))
        vocabulary = _check_labels(counted)
        counts = counted.label_counts(vocabulary)
        _check_parts(model, vocabulary.n_labels)
        seed = check_random_state(model.random_state).randint(2**31)
        compressor = model._make_compressor(vocabulary.n_labels, seed)
        compressor.fit_frequencies(vocabulary.n_labels, *_label_shares(raw, counted, vocabulary, weights))
        operator: Operator = compressor.operator_
        refiner = refiner if counted.rows >= LEAST_ROWS else None
        decoder = model._make_decoder(compressor, vocabulary.n_labels, refiner is not None)
        decoder.support_size(operator)
        model.features_ = features.fit(counted.rows, counted.rows_with, counted.occurrences)
        log("making features: %d rows, %d features, %d labels", counted.rows, features.n_features, vocabulary.n_labels)
        chunks = raw.map(Finish(features, vocabulary))
        if refiner is not None:
            memory -= _check_refinement(memory, counted, features.n_features, operator, raw)
        design = ChunkedDesign(chunks, features.n_features, sparse=sparse, memory=memory)
        if rows is not None:
            design = design.rows(rows)
        choice, calibration, held_out = None, None, None
        if learner is None:
            choice = _choose(design, counts, BUDGETS[model.budget], refiner is not None, seed)
            learner = choice.learner.set_params(random_state=seed, updatable=model.updatable)
        if weights is not None:
            design, weights = design.rows(np.flatnonzero(weights)), weights[weights > 0]
        targets = design.targets(operator.compress, operator.n_measurements)
        learner = learn(learner, step, design, targets, weights)
        if refiner is not None:
            reconstruction, held_out = Reconstruction.by(decoder, operator), _hold_out(model, design)
            calibration = fit_refiner(refiner, design, targets, learner, reconstruction, memory, weights, held_out.last)
    model.n_features_in_ = features.n_features
    model.label_counts_, model.n_samples_seen_ = counts, counted.rows
    model._set_parts(compressor, learner, decoder, vocabulary, refiner, calibration, choice, held_out)
    return chunks


def _make_learner(model: CompressedLabelClassifier, step: str) -> Any:
    """Return the learner that was named; None if one is to be chosen, which the first rows of many do not."""
    if model.learner != "auto":
        return model._make_learner()
    return None if step == "fit" else RidgeLearner()


def _choose(design: ChunkedDesign, counts: IntArray, budget: Budget, refined: bool, seed: int) -> Choice:
    """Choose a penalty of ridge as :func:`~labelsense.chooser.choose` does, by the precision of a sample of rows."""
    random = check_random_state(seed)
    labels = sample_labels(counts, design.shape[0], budget.sample, random)
    if labels is None:
        some = gather_rows(design, np.sort(random.permutation(design.shape[0])[: budget.sample]))
        return choose_by(some.X, some.Y, budget, random, refined)
    have = np.concatenate(list(design.chunks().results(_HaveLabels(labels))))
    some = gather_rows(design, np.sort(random.permutation(np.flatnonzero(have))[: budget.sample]))
    return choose_by(some.X, sp.csc_array(some.Y)[:, labels].tocsr(), budget, random, refined)


def gather_rows(design: ChunkedDesign, rows: IntArray) -> Examples:
    """Return a few rows, in one place."""
    return concatenate(list(design.rows(rows).chunks().results(_as_examples)))


def _as_examples(chunk: Any) -> Examples:
    return Examples(chunk.X, chunk.Y)


@dataclass(frozen=True)
class _HaveLabels:
    """Which rows of a chunk have one of some labels."""

    labels: IntArray

    def __call__(self, chunk: Any) -> Any:
        one = np.isin(chunk.Y.indices, self.labels)
        return np.diff(np.concatenate([[0], np.cumsum(one)])[chunk.Y.indptr]) > 0


def _hold_out(model: CompressedLabelClassifier, design: ChunkedDesign) -> HeldOut:
    """Tell whether to hold out the last rows, too: where that is wanted, or their order matters."""
    if model.held_out == "rows":
        return HeldOut()
    pairs, order = draw_pairs(design.shape[0], random_state=0), None
    if pairs is not None:
        rows = pairs.rows()
        some = gather_rows(design, rows)
        order = compare_pairs(some.X, some.Y, pairs.among(rows))
    return HeldOut(model.held_out == "last" or order is not None, order)


def _check_parts(model: CompressedLabelClassifier, n_labels: int) -> None:
    """Refuse parts that need all rows at once."""
    compressor = model._make_compressor(n_labels, 0)
    if type(compressor).fit_rows is not Compressor.fit_rows:
        raise InputError(
            "compressor must depend on the frequencies of labels alone for rows that are not all in memory. "
            f"Got {type(compressor).__name__}. Use HadamardCompressor or WhitenedCompressor."
        )
    decoder = model._make_decoder(compressor, n_labels, refined=False)
    if decoder.learns:
        raise InputError(
            f"decoder must learn nothing for rows that are not all in memory. Got {type(decoder).__name__}."
        )


def _label_shares(
    raw: Chunks, counted: Statistics, vocabulary: Vocabulary, weights: DoubleArray | None
) -> tuple[float, DoubleArray]:
    """Return how many labels a row has, and the share of the rows that has each label, by weight."""
    if weights is None:
        return counted.label_entries / counted.rows, counted.label_counts(vocabulary) / counted.rows
    shares = raw.total(_WeightedLabels(vocabulary), split(weights / weights.sum(), raw.lengths))
    return float(shares.sum()), shares


@dataclass(frozen=True)
class _WeightedLabels:
    """The sum of the weights of the rows of a chunk that have each label."""

    vocabulary: Vocabulary

    def __call__(self, chunk: Examples, weights: DoubleArray) -> DoubleArray:
        return weights @ labels_in_columns(chunk, self.vocabulary)


def _check_refinement(memory: float, counted: Statistics, n_features: int, operator: Operator, raw: Chunks) -> float:
    """Return the memory that refinement takes; refuse it if that leaves too little for the solver, or for chunks."""
    kept = kept_bytes(counted.rows, operator.n_measurements)
    if kept > raw.room:
        raise MemoryError(
            f"Refinement keeps about {1e-9 * kept:.2f} GB beside the rows, and there is room for "
            f"{1e-9 * raw.room:.2f} GB on disk, or with the workers. Make more, use fewer measurements, or do without "
            "(refiner=None)."
        )
    pairs = counted.entries * counted.label_entries / counted.rows
    chunk_rows = int(raw.lengths.max())
    needed = needed_bytes(n_features, operator.n_measurements, operator.n_labels, pairs, chunk_rows)
    log("refinement takes about %.2f GB of %.2f GB", 1e-9 * needed, 1e-9 * memory)
    if needed > REFINEMENT_SHARE * memory:
        raise MemoryError(
            f"Refinement takes about {1e-9 * needed:.2f} GB, and {1e-9 * REFINEMENT_SHARE * memory:.2f} GB are "
            "allowed. Allow more, use fewer features or measurements, or do without (refiner=None)."
        )
    return needed


def update_chunks(
    model: CompressedLabelClassifier, raw: Chunks, *, sparse: bool = True, weights: DoubleArray | None = None
) -> None:
    """Learn from more rows, in chunks, as ``model.partial_fit`` on all of them at once does."""
    features = StreamedFeatures.fitted(model.features_, model.n_features_in_)
    counted = raw.total(Count())
    new = counted.vocabulary()
    labels: Any = sp.csr_array((1, new.n_labels)) if new.names is None else [new.names]
    vocabulary, _ = model.vocabulary_.extend(labels)
    chunks = raw.map(Finish(features, vocabulary))
    design = ChunkedDesign(chunks, features.n_features, sparse=sparse)
    counts = counted.label_counts(vocabulary)
    sums = None if model.refiner_ is None else chunks.total(chunk_sums)
    with changing:
        model._learn_more(vocabulary, design, lambda A: design.targets(A.compress, A.n_measurements), counts, weights)
        if model.refiner_ is not None:
            model.refiner_ = model.refiner_.updated_by(sums, counts)


def train_chunks(
    choices: Choices,
    raw: Chunks,
    word: str | None,
    *,
    memory: float,
    test: Iterable[Examples] | None = None,
    scratch: Path | None = None,
) -> Training:
    """Learn from rows in chunks as :func:`~labelsense.training.train` does from rows in memory.

    Parameters
    ----------
    choices : Choices
    raw : Chunks
        Made by :class:`~labelsense.data.statistics.Tabulate`, with the features that ``choices.make(word)`` gives.
    word : str or None
        What to make of the rows, if that is known.
    memory : float
        How many bytes a solver may take.
    test : iterable of Examples, optional
        What to measure on.
    scratch : Path, optional
        A folder for checkpoints.
    """
    if word is None:
        word = "counts" if raw.total(Count()).are_counts else "none"
    model, streamed = choices.make(word)
    report: dict[str, Any] = {"rows": raw.n_rows, "features": word, "out_of_core": True}
    if test is None and choices.hold_out and choices.refiner is None and raw.n_rows >= 10:
        with _kept(None if scratch is None else scratch / "held-out") as kept:
            kept |= {} if kept else _try_on_held_out(model, raw, streamed, choices.random_state, memory)
        report |= kept["figures"]
        if isinstance(model.learner, RidgeLearner):
            model.learner.set_params(alpha=kept["alpha"])
    start = time.perf_counter()
    log("training on all rows")
    with nullcontext() if scratch is None else checkpoints_in(scratch / "all"):
        fit_chunks(model, raw, streamed, memory=memory)
    report["seconds"] = time.perf_counter() - start
    if test is not None:
        log("evaluating")
        report |= evaluate_stream(model, test)
    return Training(model, report | describe(model, choices.updatable))


def evaluate_stream(model: CompressedLabelClassifier, batches: Iterable[Examples]) -> dict[str, Any]:
    """Return precision, recall and nDCG of all rows of batches, and what these are."""
    rows, totals, name = 0, dict[str, float](), ""
    for batch in batches:
        name = batch.name
        if len(batch):
            figures = model._figures(*model._check_test(features_for(model, batch), labels_for(model, batch)))
            totals = {key: totals.get(key, 0.0) + len(batch) * value for key, value in figures.items()}
            rows += len(batch)
    if not rows:
        raise ValueError(f"{name} has no rows.")
    return {"evaluated_on": name, **{key: value / rows for key, value in totals.items()}}


@contextmanager
def _kept(folder: Path | None) -> Iterator[dict[str, Any]]:
    """Give what came of a step that was done before, or an empty dictionary, and a folder for its checkpoints."""
    if folder is None:
        yield {}
        return
    path = folder.with_suffix(".json")
    known: dict[str, Any] = read_json(path) or {}
    if not known:
        with checkpoints_in(folder):
            yield known
        write_json(path, known)
    else:
        yield known
    shutil.rmtree(folder, ignore_errors=True)


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


def _try_on_held_out(
    model: CompressedLabelClassifier, raw: Chunks, features: StreamedFeatures, seed: int, memory: float
) -> dict[str, Any]:
    """Fit on nine tenths of the rows, evaluate on the others; return the figures and the penalty that was chosen."""
    rest, out = hold_out_rows(raw.n_rows, seed)
    log("training on nine tenths")
    first = clone(model).set_params(updatable=False)
    chunks = fit_chunks(first, raw, features, rows=rest, memory=memory)
    parts = split_rows(out, raw.lengths)
    held = concatenate(list(chunks.results(_some_rows, parts)))
    labels = np.concatenate(list(raw.results(_count_labels, parts)))
    Y: Any = held.Y
    figures = first._evaluate(held.X, Y, labels - np.diff(Y.indptr))
    return {"alpha": first.learner_.alpha_, "figures": {"evaluated_on": f"{len(out)} rows held out", **figures}}


def _some_rows(chunk: Any, rows: IntArray) -> Examples:
    return Examples(chunk.X[rows], chunk.Y[rows])


def _count_labels(chunk: Any, rows: IntArray) -> IntArray:
    return np.diff(chunk.Y.indptr)[rows]
