"""A data set with a training and a test part, and the folder that holds one."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._typing import CSR
from labelsense.data.formats.npz import read_matrix
from labelsense.errors import FormatError

PARTS = ("X_train", "Y_train", "X_test", "Y_test")


@dataclass(frozen=True)
class Dataset:
    """Rows to learn from and rows to test on.

    Attributes
    ----------
    X_train, X_test : CSR (n, p), or array (n, height, width)
        Features, or grey images.
    Y_train, Y_test : CSR (n, d)
        1 where a row has a label.
    features, labels : list of str
        The names of the columns of X and of Y.
    """

    X_train: Any
    Y_train: CSR
    X_test: Any
    Y_test: CSR
    features: list[str]
    labels: list[str]

    def sha256(self) -> str:
        """Return a checksum of the four matrices, which does not depend on how they are stored."""
        digest = hashlib.sha256()
        for part in (self.X_train, self.Y_train, self.X_test, self.Y_test):
            matrix = sp.csr_array(part)
            matrix.sum_duplicates()
            for numbers, kind in (
                (matrix.shape, "<i8"),
                (matrix.indptr, "<i8"),
                (matrix.indices, "<i8"),
                (matrix.data, "<f4"),
            ):
                digest.update(np.asarray(numbers).astype(kind).tobytes())
        return digest.hexdigest()


def read_folder(folder: str | os.PathLike[str]) -> Dataset:
    """Return the data set of a folder with X_train.npz, Y_train.npz, X_test.npz and Y_test.npz.

    Or with images.npz, Y.npz and split.npz; the names of columns are in features.txt and labels.txt, if there.
    """
    folder = Path(folder)
    if (folder / "images.npz").is_file():
        with np.load(folder / "images.npz") as file, np.load(folder / "split.npz") as split:
            images, train, test = file["images"], split["train"], split["test"]
        Y = read_matrix(folder / "Y.npz")
        pixels = [f"{i},{j}" for i in range(images.shape[1]) for j in range(images.shape[2])]
        return Dataset(images[train], Y[train], images[test], Y[test], pixels, _names(folder / "labels.txt", Y))
    parts = {part: read_matrix(folder / f"{part}.npz") for part in PARTS}
    features = _names(folder / "features.txt", parts["X_train"])
    return Dataset(**parts, features=features, labels=_names(folder / "labels.txt", parts["Y_train"]))


def _names(path: Path, matrix: CSR) -> list[str]:
    if not path.is_file():
        return [str(column) for column in range(matrix.shape[1])]
    names = path.read_text().split("\n")[: matrix.shape[1]]
    if len(names) != matrix.shape[1]:
        raise FormatError(f"{path} must have one line per column, {matrix.shape[1]}. Got {len(names)}.")
    return names
