"""The halves of a data set, and the one least-squares fit that all runs on it share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelsense._files import replacing
from labelsense._typing import CSR, FloatArray
from labelsense.compress import Operator
from labelsense.data import load_dataset, read_esp_folder
from labelsense.experiments.settings import MAX_LABELS, SPLIT_SEED, Problem
from labelsense.features import SURFHistogramTransformer
from labelsense.labels import Vocabulary
from labelsense.regress import RidgeLearner


class Halves(NamedTuple):
    """Half of the rows to learn from, half to test on, as CSR."""

    X_train: CSR
    Y_train: CSR
    X_test: CSR
    Y_test: CSR


def load_halves(problem: Problem, folder: Path, esp: str | os.PathLike[str] | None = None) -> Halves:
    """Return the random halves of a data set: the 1,000 most frequent labels, and the paper's features.

    The features of images take minutes: they are kept in ``folder``.
    """
    kept = folder / f"{problem.dataset}-{problem.rows or 'all'}.npz"
    if kept.is_file():
        return _read(kept)
    X, Y = _load(problem, esp)
    order = np.random.default_rng(SPLIT_SEED).permutation(Y.shape[0])[: problem.rows]
    Y = Y[:, frequent_columns(Y, MAX_LABELS)]
    train, test = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    if isinstance(X, (list, np.ndarray)):
        surf = SURFHistogramTransformer(random_state=SPLIT_SEED, n_jobs=-1, verbose=1).fit([X[i] for i in train])
        parts = [surf.transform([X[i] for i in half]) for half in (train, test)]
        halves = Halves(parts[0], Y[train], parts[1], Y[test])
        _write(kept, halves)
        return halves
    words = frequent_columns(X[train], problem.words or X.shape[1])
    X = (X[:, words] > 0).astype(np.float32)  # the paper's words are there or not
    return Halves(X[train], Y[train], X[test], Y[test])


def frequent_columns(matrix: CSR, count: int) -> Any:
    """Return the columns that the most rows have, in their order."""
    frequency = np.bincount(matrix.indices, minlength=matrix.shape[1])
    return np.sort(np.argsort(-frequency, kind="stable")[:count])


def fit_least_squares(halves: Halves, alpha: float | str) -> RidgeLearner:
    """Return the least-squares regressor of every label: no intercept, as in the paper. Its B (p, d) is ``coef_``."""
    return RidgeLearner(alpha, fit_intercept=False, random_state=SPLIT_SEED).fit(halves.X_train, halves.Y_train)


def measure(operator: Operator, B: FloatArray, X: CSR) -> FloatArray:
    """Return H(x) for the rows of X: what least squares on compressed labels would predict.

    The paper's section on linear prediction: with B the regressor of the labels, that of the compressed labels is
    B A'. So one fit serves every A.
    """
    return np.asarray(X @ operator.compress(B), dtype=np.float32)


def _load(problem: Problem, esp: str | os.PathLike[str] | None) -> tuple[Any, CSR]:
    """Return all rows: features as CSR or images, and labels."""
    if problem.dataset == "esp":
        if esp is None:
            raise FileNotFoundError("The data of the ESP game are no longer at their address. Name a folder: esp=...")
        paths, labels = read_esp_folder(esp)
        return paths, Vocabulary.learn(labels)[1]
    data = load_dataset(problem.dataset)
    Y = sp.vstack([data.Y_train, data.Y_test], format="csr")
    if sp.issparse(data.X_train):
        return sp.vstack([data.X_train, data.X_test], format="csr"), Y
    return np.concatenate([data.X_train, data.X_test]), Y


def _write(path: Path, halves: Halves) -> None:
    arrays: dict[str, Any] = {}
    for name, matrix in halves._asdict().items():
        parts = (matrix.data, matrix.indices, matrix.indptr, matrix.shape)
        arrays |= {f"{name}_{i}": np.asarray(part) for i, part in enumerate(parts)}
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **arrays)


def _read(path: Path) -> Halves:
    with np.load(path, allow_pickle=False) as file:
        parts = ([file[f"{name}_{i}"] for i in range(4)] for name in Halves._fields)
        return Halves(*(sp.csr_array(tuple(part[:3]), shape=tuple(part[3])) for part in parts))
