"""From the rows of a file to a model: the choices that `labelsense train` makes, and updates of model files."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from labelsense._files import locking
from labelsense._memory import available_memory
from labelsense._progress import log
from labelsense.data import Examples
from labelsense.data.adapt import FITTING, choose_features, features_for, labels_for, labels_of
from labelsense.estimator import CompressedLabelClassifier
from labelsense.features import FEATURES, text_words
from labelsense.features.text import MAX_WORDS
from labelsense.model_file import load_model
from labelsense.refine import Refiner
from labelsense.regress import Learner
from labelsense.regress.in_memory import as_design
from labelsense.regress.moments import sparse_gram

HELD_OUT, MOST_HELD_OUT = 0.1, 5000
TIMED_ROWS = 256  # of which predictions are timed
# A model of p words that can be updated keeps X'X. If it is dense, that is p^2 doubles, and as many more to solve: they
# may take this share of the memory that is free, and there are at most so many words.
UPDATE_SHARE, MOST_UPDATE_WORDS = 0.25, 20_000


class Training(NamedTuple):
    """A trained model and what is to be said of it.

    Attributes
    ----------
    model : CompressedLabelClassifier
        Trained on all rows.
    report : dict
        Plain values: what ``model.report_`` has; "rows", "features", "n_features", "labels", "measurements", "learner",
        "alpha", "decoder"; "seconds", and "predict_seconds" of a row; with "evaluated_on" the figures of
        ``model.evaluate``, and with "update_bytes" what updates cost.
    """

    model: CompressedLabelClassifier
    report: dict[str, Any]


class Update(NamedTuple):
    """How many rows a model has learned from, and how many labels were new."""

    rows: int
    new_labels: int


@dataclass(frozen=True)
class Choices:
    """What :func:`train` lets one choose; "auto" is chosen for the rows.

    Attributes
    ----------
    features : str
        What to make of X, see :func:`~labelsense.data.adapt.choose_features`. "auto" lets the classifier choose how to
        scale features, where it chooses the learner.
    n_features : int, optional
        How many words of texts, at most; by default as many as :mod:`labelsense.features.text` says, or what
        :func:`updatable_words` says.
    n_measurements, compressor, learner, alpha, decoder, refiner
        Parts of :class:`~labelsense.CompressedLabelClassifier`, in words and numbers. The penalty of a learner that is
        named is by default the one with the least error out of sample, "loo".
    budget, held_out, updatable, random_state
        As for :class:`~labelsense.CompressedLabelClassifier`. Words and their idf, or the idf of counts, are those of
        the training for good: updates learn weights of these words, and no new words.
    hold_out : bool
        Whether a model without refinement is first tried on a tenth of the rows, by training on the others. (A refined
        one knows what to expect.)
    """

    features: str = "auto"
    n_features: int | None = None
    n_measurements: int | str = "auto"
    compressor: str = "auto"
    learner: str = "auto"
    alpha: float | str = "auto"
    decoder: str = "auto"
    refiner: Refiner | str | None = "auto"
    budget: str = "balanced"
    held_out: str = "auto"
    updatable: bool = False
    hold_out: bool = True
    random_state: int = 0

    def features_of(self, examples: Examples) -> str | None:
        """Return what to make of X, in a word; None if the classifier is to choose how to scale it."""
        if (
            examples.kind == "features"
            and self.n_features is None
            and self.features == self.learner == self.alpha == "auto"
        ):
            return None
        return choose_features(examples, self.features)

    def make_model(self, examples: Examples) -> CompressedLabelClassifier:
        """Return the model to fit on examples, or to ask advice on."""
        word, n_features = self.features_of(examples), self.n_features
        if n_features is None and self.updatable and word in ("words", "characters"):
            n_features = updatable_words(examples.X)
        return self.assemble(None if word is None else make_features(word, n_features))

    def assemble(self, features: Any) -> CompressedLabelClassifier:
        """Return a model with these features."""
        model = CompressedLabelClassifier(
            self.compressor,
            self.learner,
            self.decoder,
            refiner=self.refiner,
            features=features,
            budget=self.budget,
            updatable=self.updatable,
            held_out=self.held_out,
            random_state=self.random_state,
            n_jobs=-1,
        )
        if self.n_measurements != "auto":
            model.set_params(compressor__n_measurements=self.n_measurements)
        if not self.learner == self.alpha == "auto":
            alpha = "loo" if self.alpha == "auto" else self.alpha
            model.set_params(learner__alpha=alpha, learner__random_state=self.random_state)
        return model


def train(examples: Examples, choices: Choices | None = None, *, test: Examples | None = None) -> Training:
    """Learn from the rows of a file, choose what is not given, and tell what to expect of the model.

    Parameters
    ----------
    examples : Examples
        What to learn from.
    choices : Choices, optional
        What is given; by default nothing.
    test : Examples, optional
        What to measure on as well.

    Examples
    --------
    >>> from labelsense.data import Examples
    >>> from labelsense.training import Choices, train
    >>> texts = Examples(["a red fox", "two hens and a fox"] * 20, [["fox", "red"], ["hen", "fox"]] * 20)
    >>> model, report = train(texts, Choices(budget="fast"))
    >>> report["features"], report["measurements"], model.predict_topk(["hens"], 2).labels[0].tolist()
    ('words', 3, ['fox', 'hen'])
    """
    choices, y = choices or Choices(), labels_of(examples)
    if test is not None:
        labels_of(test)  # or refuse it now
    model, expected = choices.make_model(examples), dict[str, float]()
    if test is None and choices.hold_out and choices.refiner is None and len(examples) >= 10:
        expected = _try_on_held_out(model, examples.X, y, choices.random_state)
    start = time.perf_counter()
    log("training on all rows")
    model.fit(examples.X, y)
    report = {"rows": len(examples), "features": choices.features_of(examples) or _scaling_of(model)}
    report["seconds"] = time.perf_counter() - start
    assert model.report_ is not None
    model.report_.expected = model.report_.expected or expected
    report |= describe(model, choices.updatable)
    report["predict_seconds"] = _time_prediction(model, examples.X)
    if test is not None:
        log("evaluating")
        report |= {"evaluated_on": test.name, **model.evaluate(features_for(model, test), labels_for(model, test))}
    return Training(model, report)


def update(path: str | os.PathLike[str], batches: Iterable[Examples], output: Any = None) -> Update:
    """Learn from more rows, exactly, and write the model again, in place or to ``output``.

    The model must have been trained with ``updatable=True``. Nobody else updates it meanwhile: a second process waits.
    If anything fails, the file is as it was.
    """
    with locking(path):
        model = load_model(path)
        if not isinstance(model, CompressedLabelClassifier):
            raise TypeError(
                f"{path} holds a {type(model).__name__}, which cannot be updated. Train it again on all rows."
            )
        before, rows, name = model.vocabulary_.n_labels, 0, "examples"
        for batch in batches:
            name = batch.name
            if len(batch):
                model.partial_fit(features_for(model, batch), labels_for(model, batch))
                rows += len(batch)
        if not rows:
            raise ValueError(f"{name} has no rows to learn from.")
        log("writing %s", output or path)
        model.save(output or path)
    return Update(rows, model.vocabulary_.n_labels - before)


def updatable_words(texts: list[str]) -> int:
    """Return how many words a model of these texts may have that is to be updated on this machine.

    As many as others have, if most pairs of words never meet in a text: X'X is then sparse.
    """
    most = max(2, int(min(math.sqrt(UPDATE_SHARE * available_memory() / 16), MOST_UPDATE_WORDS)))
    X = text_words().fit_transform(texts)
    return MAX_WORDS if X.shape[1] > most and sparse_gram(as_design(X)) is not None else most


def make_features(word: str, n_features: int | None) -> Any:
    """Return what the classifier takes for a choice of features, of so many words if that is said."""
    if n_features is None:
        return word
    if word not in FITTING["texts"]:
        raise ValueError(f"n_features is for texts. Got {n_features} for features that are given.")
    return FEATURES[word](n_features)


def _try_on_held_out(model: Any, X: Any, y: Any, seed: int) -> dict[str, float]:
    """Fit on nine tenths of the rows, evaluate on the others; keep the penalty that was chosen of a learner."""
    rest, out = hold_out_rows(len(y) if isinstance(y, list) else y.shape[0], seed)
    log("training on nine tenths")
    first = clone(model).set_params(updatable=False).fit(_rows(X, rest), _rows(y, rest))
    figures = first.evaluate(_rows(X, out), _rows(y, out))
    if isinstance(model.learner, Learner):
        model.set_params(learner=first.learner_.unfitted())
    return {**{name: figures[name] for name in ("P@1", "P@3", "P@5", "F1")}, "rows": float(len(out))}


def hold_out_rows(n: int, seed: int) -> tuple[Any, Any]:
    """Return the rows to learn from first, and those to evaluate on: a tenth, at most 5,000."""
    order = np.random.default_rng(seed).permutation(n)
    held = min(MOST_HELD_OUT, int(HELD_OUT * n))
    return np.sort(order[held:]), np.sort(order[:held])


def _rows(values: Any, rows: Any) -> Any:
    return [values[i] for i in rows] if isinstance(values, list) else values[rows]


def _scaling_of(model: Any) -> str:
    """Return how the classifier has chosen to scale features, in a word."""
    kind = type(model.scaling_)
    return next((word for word in ("counts", "unit", "standard") if kind is FEATURES[word]), "none")


def _time_prediction(model: Any, X: Any) -> float:
    """Return the seconds that it takes to predict a row, of some."""
    rows = _rows(X, range(min(TIMED_ROWS, len(X) if isinstance(X, list) else X.shape[0])))
    start = time.perf_counter()
    model.predict_topk(rows)
    return (time.perf_counter() - start) / (len(rows) if isinstance(rows, list) else rows.shape[0])


def describe(model: Any, updatable: bool) -> dict[str, Any]:
    """Return what is to be said of a model."""
    operator = model.compressor_.operator_
    return {
        "n_features": int(model.n_features_in_),
        "labels": operator.n_labels,
        "measurements": operator.n_measurements,
        "learner": type(model.learner_).__name__,
        "alpha": model.learner_.alpha_,
        "decoder": type(model.decoder_).__name__,
        **vars(model.report_),
        **({"update_bytes": model.learner_.update_bytes} if updatable else {}),
    }
