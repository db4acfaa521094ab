"""Data sets to try things on."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._typing import CSR


@dataclass(frozen=True)
class Dataset:
    """Rows to learn from and rows to test on.

    Attributes
    ----------
    X_train, X_test : CSR (n, p)
        Features.
    Y_train, Y_test : CSR (n, d)
        1 where a row has a label.
    features, labels : list of str
        The names of the columns of X and of Y.
    """

    X_train: CSR
    Y_train: CSR
    X_test: CSR
    Y_test: CSR
    features: list[str]
    labels: list[str]


def load_debtags() -> Dataset:
    """Return the bundled data set: words of 29,817 Debian package descriptions, and the packages' tags.

    Real texts, as word counts, and a real controlled vocabulary (``role::program``, ``implemented-in::c``, ...).
    Packages built from one source are all in the training part or all in the test part. Built by
    ``scripts/build_debtags.py`` from the package lists of Debian 12; the tags are free of copyright.

    Examples
    --------
    >>> from labelsense.data import load_debtags
    >>> data = load_debtags()
    >>> data.X_train.shape, data.Y_train.shape, data.labels[200]
    ((21057, 15228), (21057, 571), 'hardware::opengl')
    """
    with resources.as_file(resources.files("labelsense.data") / "debtags.npz") as path, np.load(path) as file:
        features, labels = (bytes(file[name]).decode().split("\n") for name in ("words", "labels"))
        parts = {}
        for part in ("train", "test"):
            for letter, columns in (("X", features), ("Y", labels)):
                name = f"{letter}_{part}"
                counts = file[f"{name}_counts"] if letter == "X" else None
                parts[name] = _unpack(file[f"{name}_lengths"], file[f"{name}_steps"], counts, len(columns))
    return Dataset(features=features, labels=labels, **parts)


def _unpack(lengths: Any, steps: Any, counts: Any, n_columns: int) -> CSR:
    """Return a CSR matrix from the steps between the column numbers of each row."""
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    total = np.concatenate([[0], np.cumsum(steps, dtype=np.int64)])
    indices = total[1:] - np.repeat(total[indptr[:-1]], lengths)
    data = np.ones(len(indices), np.float32) if counts is None else counts.astype(np.float32)
    return sp.csr_array((data, indices.astype(np.int32), indptr.astype(np.int32)), shape=(len(lengths), n_columns))
