"""Models in one safetensors file: arrays that are mapped into memory, and a header that says what they are.

The header's ``labelsense`` entry is JSON: the format's version, the library's, and the model as a tree (see
``_codec.py``). A reader reads every version up to its own: when the tree changes, ``FORMAT`` goes up by one and
``MIGRATIONS`` gets a function that turns a tree of the last version into the next.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from labelsense._codec import Decoder, Encoder
from labelsense._files import replacing
from labelsense.errors import ModelFileError
from labelsense.predictor import LabelPredictor
from labelsense.regress import SklearnLearner

FORMAT = 1
MIGRATIONS: dict[int, Callable[[Any], Any]] = {}  # version -> the tree of that version as one of the next
KINDS = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}


def save_model(model: LabelPredictor, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to one file, which is replaced whole or not at all.

    The file holds everything that prediction needs, the text features included, and what ``partial_fit`` needs if
    the model can be updated. It holds no code; functions given as settings are refused.
    """
    from labelsense import __version__

    if "vocabulary_" not in vars(model):
        raise ValueError(f"This {type(model).__name__} is not fitted yet. Call fit before save.")
    learner = vars(model).get("learner_")
    _ = getattr(learner, "coef_", None)  # a model with rows not yet solved for is solved now, once
    encoder = Encoder()
    tree = encoder.encode(model, "model")
    header = json.dumps({"format": FORMAT, "version": __version__, "model": tree})
    if not encoder.arrays:
        raise ValueError("The model has learned nothing that could be saved.")
    with replacing(path) as temporary:
        save_file(encoder.arrays, temporary, metadata={"labelsense": header})


def load_model(path: str | os.PathLike[str]) -> Any:
    """Return the model that :func:`save_model` wrote. Its weights stay on disk until they are used.

    The file may come from anywhere: it is data, and every part is checked. A file that is not a model, is cut off,
    or does not fit together raises :class:`ModelFileError`.

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
    >>> (again.predict_topk(X).labels == clf.predict_topk(X).labels).all()
    np.True_
    """
    header = read_header(path)
    try:
        model = Decoder(_map_arrays(Path(path))).decode(header["model"])
        if not isinstance(model, LabelPredictor):
            raise ValueError(f"it holds {type(model).__name__}")
        _try_out(model)
    except ImportError:
        raise
    except Exception as error:  # whatever a made-up file makes our constructors say
        raise ModelFileError(f"{path} is not a labelsense model that can be used: {error}.") from error
    return model


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the JSON header of a model file: format, version, and the model as a tree."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no model file {path}.")
    try:
        with safe_open(path, framework="np") as file:
            header = json.loads((file.metadata() or {})["labelsense"])
        version, tree = int(header["format"]), header["model"]
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError, OSError) as error:
        raise ModelFileError(f"{path} is not a labelsense model, or only part of one.") from error
    if version > FORMAT:
        raise ModelFileError(
            f"{path} was written by labelsense {header.get('version')} in format {version}; this version reads formats "
            f"up to {FORMAT}. Update labelsense."
        )
    for step in range(version, FORMAT):
        tree = MIGRATIONS[step](tree)
    return {**header, "model": tree}


def array_sizes(path: str | os.PathLike[str]) -> dict[str, tuple[str, tuple[int, ...], int]]:
    """Return the kind, shape and bytes of each array of a model file."""
    return {
        name: (entry["dtype"], tuple(entry["shape"]), entry["data_offsets"][1] - entry["data_offsets"][0])
        for name, entry in _entries(Path(path))[0].items()
    }


def _entries(path: Path) -> tuple[dict[str, Any], int]:
    """Return the entry of each array and where the arrays begin; safe_open has checked that they lie in the file."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        entries = json.loads(file.read(length))
    entries.pop("__metadata__", None)
    return entries, 8 + length


def _map_arrays(path: Path) -> dict[str, Any]:
    entries, begin = _entries(path)
    if not entries:
        return {}
    whole = np.memmap(path, np.uint8, "r")
    arrays = {}
    for name, entry in entries.items():
        if entry["dtype"] not in KINDS:
            raise ValueError(f"an array of kind {entry['dtype']}")
        start, stop = (begin + offset for offset in entry["data_offsets"])
        array = np.asarray(whole[start:stop]).view(KINDS[entry["dtype"]]).reshape(entry["shape"])
        arrays[name] = array if array.flags.aligned else array.copy()
    return arrays


def _try_out(model: Any) -> None:
    """Predict for an empty row: parts that do not fit together show now, not later."""
    empty: Any = sp.csr_array((1, model.n_features_in_), dtype=np.float32)  # which reads none of the mapped weights
    if isinstance(vars(model).get("learner_"), SklearnLearner):
        empty = empty.toarray()
    if model._scores(empty, 1).shape != (1, model.vocabulary_.n_labels):
        raise ValueError("its parts have different sizes")
    if model.takes_text:
        model.predict_scores([""])
