"""From the rows of a file to a model: the choices that `labelsense train` makes, and updates of model files."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from labelsense._files import locking
from labelsense._memory import available_memory
from labelsense._progress import log
from labelsense._validation import check_choice
from labelsense.compress import COMPRESSORS
from labelsense.data import Examples
from labelsense.data.adapt import FITTING, choose_features, features_for, labels_for, labels_of
from labelsense.estimator import CompressedLabelClassifier
from labelsense.features import FEATURES, text_words
from labelsense.features.text import MAX_WORDS
from labelsense.model_file import load_model
from labelsense.reconstruct import OMPDecoder
from labelsense.regress import KernelRidgeLearner, RidgeLearner
from labelsense.regress.in_memory import as_design
from labelsense.regress.moments import sparse_gram

HELD_OUT, MOST_HELD_OUT = 0.1, 5000
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
        Plain values: "rows", "features", "n_features", "labels", "measurements", "learner", "alpha", "decoder",
        "seconds", with "evaluated_on" the figures of ``model.evaluate``, and with "update_bytes" what updates cost.
    """

    model: CompressedLabelClassifier
    report: dict[str, Any]


class Update(NamedTuple):
    """How many rows a model has learned from, and how many labels were new."""

    rows: int
    new_labels: int


def train(
    examples: Examples,
    *,
    test: Examples | None = None,
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
    """Learn from the rows of a file, and measure how good the model is.

    Parameters
    ----------
    examples : Examples
        What to learn from.
    test : Examples, optional
        What to measure on. By default a tenth of the rows is held out of a first training, and all are learned from in
        a second.
    hold_out : bool
        False leaves that out.
    features : str
        What to make of X, see :func:`~labelsense.data.adapt.choose_features`.
    n_features : int, optional
        How many words of texts, at most; by default as many as :mod:`labelsense.features.text` says, or what
        :func:`updatable_words` says.
    n_measurements, compressor, learner, alpha, decoder, random_state
        As for the parts of :class:`~labelsense.CompressedLabelClassifier`, in words.
    updatable : bool
        Keep what :func:`update` needs. The words and their idf, or the idf of counts, are those of this training for
        good: updates learn weights of these words, and no new words.

    Examples
    --------
    >>> from labelsense.data import Examples
    >>> from labelsense.training import train
    >>> texts = Examples(["a red fox", "two hens and a fox"] * 20, [["fox", "red"], ["hen", "fox"]] * 20)
    >>> model, report = train(texts)
    >>> report["features"], report["evaluated_on"], model.predict_topk(["hens"], 2).labels[0].tolist()
    ('words', '4 rows held out', ['fox', 'hen'])
    """
    y = labels_of(examples)
    if test is not None:
        labels_of(test)  # or refuse it now
    word = choose_features(examples, features)
    made = _make_features(word, n_features, updatable, examples.X)
    model = make_model(made, n_measurements, compressor, learner, alpha, decoder, updatable, random_state)
    report: dict[str, Any] = {"rows": len(examples), "features": word}
    if test is None and hold_out and len(examples) >= 10:
        report |= _try_on_held_out(model, examples.X, y, random_state)
    start = time.perf_counter()
    log("training on all rows")
    model.fit(examples.X, y)
    report["seconds"] = time.perf_counter() - start
    if test is not None:
        log("evaluating")
        report |= {"evaluated_on": test.name, **model.evaluate(features_for(model, test), labels_for(model, test))}
    return Training(model, report | describe(model, updatable))


def make_model(
    features: Any,
    n_measurements: int | str,
    compressor: str,
    learner: str,
    alpha: float | str,
    decoder: str,
    updatable: bool,
    random_state: int,
) -> CompressedLabelClassifier:
    """Return the model that :func:`train` learns, for a choice of features."""
    return CompressedLabelClassifier(
        check_choice(compressor, "compressor", COMPRESSORS)(n_measurements),
        _make_learner(learner, alpha, updatable, random_state),
        OMPDecoder(penalty=0.1) if (compressor, decoder) == ("whitened", "omp") else decoder,
        refiner=None,
        features=features,
        random_state=random_state,
        n_jobs=-1,
    )


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


def _make_features(word: str, n_features: int | None, updatable: bool, X: Any) -> Any:
    if n_features is None and updatable and word in ("words", "characters"):
        n_features = updatable_words(X)
    return make_features(word, n_features)


def make_features(word: str, n_features: int | None) -> Any:
    """Return what the classifier takes for a choice of features, of so many words if that is said."""
    if n_features is not None and word not in FITTING["texts"]:
        raise ValueError(f"n_features is for texts. Got {n_features} for features that are given.")
    if n_features is None:
        return None if word == "none" else word
    return FEATURES[word](n_features)


def _make_learner(word: str, alpha: Any, updatable: bool, seed: int) -> Any:
    kind = check_choice(word, "learner", {"ridge": RidgeLearner, "kernel_ridge": KernelRidgeLearner})
    if updatable and kind is KernelRidgeLearner:
        raise ValueError("learner must be ridge to be updatable: kernel ridge cannot be updated. Got kernel_ridge.")
    return kind(alpha=alpha, random_state=seed, **({"updatable": True} if updatable else {}))


def _try_on_held_out(model: Any, X: Any, y: Any, seed: int) -> dict[str, Any]:
    """Fit on nine tenths of the rows, evaluate on the others, and keep the penalty that was chosen."""
    rest, out = hold_out_rows(len(y) if isinstance(y, list) else y.shape[0], seed)
    log("training on nine tenths")
    updatable = getattr(model.learner, "updatable", False)
    if updatable:
        model.learner.set_params(updatable=False)  # not this one
    model.fit(_rows(X, rest), _rows(y, rest))
    figures = model.evaluate(_rows(X, out), _rows(y, out))
    fitted = model.learner_
    kept = {"kernel": fitted.kernel_} if isinstance(fitted, KernelRidgeLearner) else {}
    model.learner.set_params(alpha=fitted.alpha_, **kept, **({"updatable": True} if updatable else {}))
    return {"evaluated_on": f"{len(out)} rows held out", **figures}


def hold_out_rows(n: int, seed: int) -> tuple[Any, Any]:
    """Return the rows to learn from first, and those to evaluate on: a tenth, at most 5,000."""
    order = np.random.default_rng(seed).permutation(n)
    held = min(MOST_HELD_OUT, int(HELD_OUT * n))
    return np.sort(order[held:]), np.sort(order[:held])


def _rows(values: Any, rows: Any) -> Any:
    return [values[i] for i in rows] if isinstance(values, list) else values[rows]


def describe(model: Any, updatable: bool) -> dict[str, Any]:
    """Return what is to be said of a model."""
    operator = model.compressor_.operator_
    p, m = int(model.n_features_in_), operator.n_measurements
    return {
        "n_features": p,
        "labels": operator.n_labels,
        "measurements": m,
        "learner": type(model.learner_).__name__,
        "alpha": model.learner_.alpha_,
        "decoder": type(model.decoder_).__name__,
        **({"update_bytes": model.learner_.update_bytes} if updatable else {}),
    }
