"""Scikit-learn estimators that are not ours, as bytes. The only file that imports skops.

skops has a list of the classes that it trusts. Some of those open files when they are used, and are refused here.
"""

from __future__ import annotations

import io
import zipfile
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

TRUSTED = ["scipy.sparse._csr.csr_array", "scipy.sparse._csr.csr_matrix"]  # beyond the list of skops: arrays as well


def dump(value: Any, place: str) -> bytes:
    """Return an estimator, or a list of them, as bytes; ``place`` says in errors where it is."""
    skops = _import()
    data: bytes = skops.dumps(value)
    unknown = sorted(set(skops.get_untrusted_types(data=data)) - set(TRUSTED))
    if unknown:
        raise TypeError(
            f"The model cannot be saved: {place} holds {', '.join(unknown)}, which skops does not trust. Use "
            "estimators of labelsense and scikit-learn with settings that are words or numbers."
        )
    try:
        _refuse_files(value)
    except ValueError as error:
        raise ValueError(f"The model cannot be saved: in {place}, {error}.") from error
    return data


def load(data: bytes) -> Any:
    """Return what :func:`dump` was given. The bytes may come from anywhere."""
    skops = _import()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > len(data):
            raise ValueError("what skops stored is compressed, so that it could be of any size")
    try:
        value = skops.loads(data, trusted=TRUSTED)
    except ImportError as error:  # of a class that the bytes name
        raise ValueError(str(error)) from error
    _refuse_files(value)
    return value


def _refuse_files(value: Any) -> None:
    """Refuse estimators that read the files named by texts, or that write a cache of pickles."""
    todo, seen = [value], {id(value)}
    while todo:
        item = todo.pop()
        inside: list[Any] = []
        if isinstance(item, BaseEstimator):
            settings = vars(item)
            if settings.get("input", "content") != "content":
                raise ValueError(f"a {type(item).__name__} with input={settings['input']!r} reads files")
            if settings.get("memory") is not None:
                raise ValueError(f"a {type(item).__name__} with memory={settings['memory']!r} writes files")
        if isinstance(item, dict):
            inside = [*item, *item.values()]
        elif isinstance(item, (list, tuple, set, frozenset)):
            inside = [*item]
        elif isinstance(item, np.ndarray) and item.dtype == object:
            inside = [*item.flat]
        elif not isinstance(item, type):
            inside = [*getattr(item, "__dict__", {}).values()]
        todo += [each for each in inside if id(each) not in seen]
        seen |= set(map(id, inside))


def _import() -> Any:
    try:
        return import_module("skops.io")
    except ImportError as error:
        raise ImportError(
            'Models with scikit-learn estimators inside are stored by skops: pip install "labelsense[skops]".'
        ) from error
