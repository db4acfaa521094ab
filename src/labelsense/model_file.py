"""Models in one safetensors file: arrays, and a header that says what they are.

Layout, format 1
----------------
A safetensors file begins with the length of its header (8 bytes, little-endian) and the header, JSON, which tells the
kind, shape and place of each array. Its ``__metadata__`` has one entry, ``labelsense``, which is JSON again::

    {"format": 1, "version": "0.1.0", "model": TREE}

``version`` is that of the library that wrote the file. A tree is one of:

- ``null``, ``true``, a number, a string, or a list of trees: themselves;
- ``{"is": "float", "value": "inf"}`` and ``{"is": "dtype", "value": "float32"}``;
- ``{"is": "tuple", "items": [...]}``, ``{"is": "dict", "keys": [...], "values": [...]}``;
- ``{"is": "array", "array": NAME}``: an array of the file. Each is used once. Its name says where it is in the tree,
  as in ``model.learner_._solution.0``;
- ``{"is": "list", "array": NAME}``: a long list of plain values, as JSON in an array of bytes;
- ``{"is": "strings", "items": [...]}``: an array of strings, such as the names of the columns of a DataFrame;
- ``{"is": "csr", "parts": {"data", "indices", "indptr", "shape"}}``: a sparse matrix;
- ``{"is": CLASS, "settings": {...}, "learned": {...}}``: an estimator, by its constructor's parameters and what ``fit``
  has set. ``{"is": CLASS, "parts": {...}}``: another object. The class is one that is registered in ``_storage.py``;
- ``{"is": "encoder"}``: the encoder of texts, which is code. ``load_model`` is given it;
- ``{"is": "skops", "array": NAME}``: another scikit-learn estimator, or a list of them, stored by skops.

The first tree is a classifier. A reader reads every format up to its own: when the layout changes, ``FORMAT`` goes up
by one and ``MIGRATIONS`` gets a function that turns a tree of the last format into the next. A new class, or a new
setting with a default, is no change of the layout. Parameters that a class has no more go into its migration.

Files may come from anywhere. The sizes that the header states are those of arrays that are there, or bounded, before
anything is allocated; each class checks its parts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from labelsense._files import replacing
from labelsense._storage import require
from labelsense._tensors import TensorFile, write_tensors
from labelsense._tree import Decoder, Encoder, Tree
from labelsense.errors import ModelFileError

FORMAT = 1
MIGRATIONS: dict[int, Callable[[Tree], Tree]] = {}  # format -> the tree of that format as one of the next


def save_model(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to one file, which is replaced whole or not at all.

    The file holds everything that prediction needs, the text features included, and what ``partial_fit`` needs if
    the model can be updated. It holds no code; functions given as settings are refused. Of two that save to the same
    path at the same time the last one wins, whole. See :func:`labelsense._files.replacing` for links, modes and pipes.
    """
    if "vocabulary_" not in vars(model):
        raise ValueError(f"This {type(model).__name__} is not fitted yet. Call fit before save.")
    encoder = Encoder()
    tree = encoder.encode(model, "model")
    header = json.dumps({"format": FORMAT, "version": version("labelsense"), "model": tree})
    if not encoder.arrays:
        raise ValueError("The model has learned nothing that could be saved.")
    with replacing(path) as temporary:
        write_tensors(temporary, encoder.arrays, {"labelsense": header})


def load_model(path: str | os.PathLike[str], *, mmap: bool = False, encoder: Any = None) -> Any:
    """Return the model that :func:`save_model` wrote.

    The file may come from anywhere: it is data, and every part is checked. A file that is not a model, is cut off,
    or does not fit together raises :class:`ModelFileError`.

    Parameters
    ----------
    path : path
    mmap : bool
        Leave the weights on disk and map them into memory, where a row reads only those that it needs. Use it for
        a few predictions of a large model, or to share one between processes. A mapped file must not be written over
        in place, as ``cp`` does: that ends the process. ``clf.save`` never does it; it replaces the file.
    encoder : object, optional
        The encoder of texts, for a model that was trained with one: a file holds no code.

    Examples
    --------
    >>> import os, tempfile
    >>> from labelsense import CompressedLabelClassifier, load_model
    >>> from labelsense.data import make_tagged_documents
    >>> X, Y = make_tagged_documents(n_samples=300, n_labels=50, random_state=0)
    >>> clf = CompressedLabelClassifier(random_state=0).fit(X, Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     clf.save(os.path.join(folder, "tags.model"))
    ...     again = load_model(os.path.join(folder, "tags.model"))
    >>> bool((again.predict_topk(X).labels == clf.predict_topk(X).labels).all())
    True
    """
    with _open(path) as file:
        header, tensors = _read(file, path, mmap)
        try:
            return Decoder(tensors.take, encoder).decode_root(header["model"])
        except (ImportError, OSError):
            raise
        except Exception as error:  # whatever a made-up file makes our constructors say
            raise ModelFileError(f"{path} is not a labelsense model that can be used: {error}.") from error


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the JSON header of a model file: format, version, and the model as a tree."""
    with _open(path) as file:
        return _read(file, path)[0]


def array_sizes(path: str | os.PathLike[str]) -> dict[str, tuple[str, tuple[int, ...], int]]:
    """Return the kind, shape and bytes of each array of a model file."""
    with _open(path) as file:
        tensors = _read(file, path)[1].tensors
    return {name: (kind, shape, stop - start) for name, (kind, shape, start, stop) in tensors.items()}


def _open(path: str | os.PathLike[str]) -> Any:
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no model file {path}.")
    return open(path, "rb")


def _read(file: Any, path: str | os.PathLike[str], mmap: bool = False) -> tuple[dict[str, Any], TensorFile]:
    try:
        tensors = TensorFile(file, mmap=mmap)
        header = json.loads(tensors.about["labelsense"])
        number, tree = header["format"], header["model"]
        require(isinstance(number, int) and number >= 1, "formats are numbered from 1")
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not a labelsense model, or only part of one.") from error
    if number > FORMAT:
        raise ModelFileError(
            f"{path} was written by labelsense {header.get('version')} in format {number}; this version reads formats "
            f"up to {FORMAT}. Update labelsense."
        )
    for step in range(number, FORMAT):
        tree = MIGRATIONS[step](tree)
    return {**header, "model": tree}, tensors
