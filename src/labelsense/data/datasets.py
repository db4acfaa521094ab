"""Data sets to try things on."""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._typing import CSR
from labelsense.data.dataset import PARTS, Dataset, read_folder
from labelsense.data.fetch import fetch_dataset


def registry() -> dict[str, dict[str, Any]]:
    """Return what is known of each data set: about, licence, rows, features, labels, bytes, home."""
    return json.loads((resources.files("labelsense.data") / "registry.json").read_text())


def load_dataset(name: str) -> Dataset:
    """Return a data set by name.

    It is looked for in the folder that the environment variable LABELSENSE_DATA names, then in the cache (the folder
    ``labelsense`` in XDG_CACHE_HOME, or in ``~/.cache``), and then fetched from its public home into the cache, where
    it has one that gives files; what was fetched is compared with a checksum. A folder in LABELSENSE_DATA with the
    files X_train.npz, Y_train.npz, X_test.npz and Y_test.npz is a data set, known or not.

    Parameters
    ----------
    name : str
        One of ``labelsense datasets``, or the name of a folder in LABELSENSE_DATA.

    Examples
    --------
    >>> from labelsense.data import load_dataset
    >>> load_dataset("debtags").Y_test.shape
    (8760, 571)
    """
    if name == "debtags":
        return load_debtags()
    folder = find_dataset(name)
    if folder is not None:
        return read_folder(folder)
    known = registry()
    if name not in known:
        raise ValueError(
            f"name must be one of {', '.join(known)}, or a folder in the one that LABELSENSE_DATA names. Got {name!r}."
        )
    if "fetch" not in known[name]:
        raise FileNotFoundError(
            f"{name} is not on this machine, and its home {known[name]['home']} does not give it in a form that can be "
            f"fetched. Put {', '.join(part + '.npz' for part in PARTS)} into a folder {name}, and name the folder that "
            "holds it in LABELSENSE_DATA. `labelsense convert` writes such files."
        )
    fetch_dataset(known[name], cache_folder() / name)
    return read_folder(cache_folder() / name)


def find_dataset(name: str) -> Path | None:
    """Return the folder of a data set that is on this machine."""
    homes = [os.environ.get("LABELSENSE_DATA"), cache_folder()]
    for home in homes:
        if home and name and any((Path(home) / name / file).is_file() for file in ("X_train.npz", "images.npz")):
            return Path(home) / name
    return None


def cache_folder() -> Path:
    """Return the folder where fetched data sets are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "labelsense"


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
