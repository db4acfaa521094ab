"""Models as data: a tree of plain JSON values, and the arrays it refers to. No code goes in or comes out.

Only the classes of ``CLASSES`` can appear in a tree. What the compiled kernels rely on is checked on the way in.
Other scikit-learn estimators are stored by skops, which has its own list of what it trusts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import Pipeline

from labelsense._labels import Vocabulary
from labelsense.baselines import ECOCClassifier, OneVsAllClassifier, SECOCClassifier
from labelsense.compress import COMPRESSORS
from labelsense.compress.base import STORED_BYTES, DenseOperator
from labelsense.compress.hadamard import MAX_LABELS, HadamardOperator
from labelsense.compress.whitened import WhitenedOperator
from labelsense.estimator import CompressedLabelClassifier
from labelsense.features import LogTfidfTransformer, SURFHistogramTransformer
from labelsense.reconstruct import DECODERS
from labelsense.regress import KernelRidgeLearner, RidgeLearner, SklearnLearner
from labelsense.regress.design import Design
from labelsense.regress.kernels import KERNELS, SumKernel
from labelsense.regress.moments import Moments

ESTIMATORS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        CompressedLabelClassifier,
        OneVsAllClassifier,
        ECOCClassifier,
        SECOCClassifier,
        RidgeLearner,
        KernelRidgeLearner,
        SklearnLearner,
        SumKernel,
        *COMPRESSORS.values(),
        *DECODERS.values(),
        *KERNELS.values(),
        LogTfidfTransformer,
        SURFHistogramTransformer,
        CountVectorizer,
        HashingVectorizer,
        TfidfTransformer,
        TfidfVectorizer,
        Pipeline,
    )
}
TRANSIENT = {"_state", "out_of_sample_", "_kernel"}  # made again when needed
LONG = 64  # lists of plain values from this length on are stored beside the tree
TRUSTED = ["scipy.sparse._csr.csr_array", "scipy.sparse._csr.csr_matrix"]  # beyond the list of skops: arrays as well
ARRAY_KINDS = {"float32", "float64", "int32", "int64", "uint8", "bool"}


class Encoder:
    """Turns a model into a tree, and collects its arrays by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, Any] = {}

    def encode(self, value: Any, place: str) -> Any:
        """Return ``value`` as JSON; ``place`` names its arrays and says in errors where it is."""
        if value is None or isinstance(value, (bool, str, np.bool_, np.str_)):
            return value if value is None else (str(value) if isinstance(value, str) else bool(value))
        if isinstance(value, (int, np.integer)):
            return int(value)
        if isinstance(value, (float, np.floating)):
            return float(value) if math.isfinite(value) else {"is": "float", "value": str(float(value))}
        if isinstance(value, (list, tuple)):
            return self._encode_sequence(value, place)
        if isinstance(value, dict):
            keys, values = (self.encode(list(part), f"{place}.{name}") for part, name in _parts(value))
            return {"is": "dict", "keys": keys, "values": values}
        if isinstance(value, np.ndarray):
            return self._encode_array(value, place)
        if sp.issparse(value):
            return self._encode_parts("csr", value, place)
        if isinstance(value, (type, np.dtype)) and np.dtype(value).name in ARRAY_KINDS:
            return {"is": "dtype", "value": np.dtype(value).name}
        if isinstance(value, (np.random.RandomState, np.random.Generator)):
            return None  # its draws are over; a model does not need it to predict
        return self._encode_object(value, place)

    def _encode_object(self, value: Any, place: str) -> Any:
        name = type(value).__name__
        if name in PARTS and type(value) is PARTS[name].cls:
            return self._encode_parts(name, value, place)
        if isinstance(value, BaseEstimator) and ESTIMATORS.get(name) is type(value):
            settings = value.get_params(deep=False)
            learned = {key: item for key, item in vars(value).items() if key not in settings and key not in TRANSIENT}
            return {
                "is": name,
                "settings": {key: self.encode(item, f"{place}.{key}") for key, item in settings.items()},
                "learned": {key: self.encode(item, f"{place}.{key}") for key, item in learned.items()},
            }
        if isinstance(value, BaseEstimator):
            return self._encode_foreign(value, place)
        raise TypeError(
            f"The model cannot be saved: {place} is {value!r} of type {name}, and model files hold data, not code. "
            "Use a setting that is a word or a number."
        )

    def _encode_sequence(self, value: Any, place: str) -> Any:
        if value and all(isinstance(item, BaseEstimator) and type(item).__name__ not in ESTIMATORS for item in value):
            return self._encode_foreign(list(value), place)  # one file for all m regressors
        items = [self.encode(item, f"{place}.{i}") for i, item in enumerate(value)]
        if isinstance(value, tuple):
            return {"is": "tuple", "items": items}
        if len(items) < LONG or any(isinstance(item, (dict, list)) for item in items):
            return items
        self.arrays[place] = np.frombuffer(json.dumps(items).encode(), np.uint8)
        return {"is": "list", "array": place}

    def _encode_array(self, value: Any, place: str) -> Any:
        if value.dtype.name not in ARRAY_KINDS:
            raise TypeError(f"The model cannot be saved: {place} is an array of {value.dtype}. Use numbers.")
        self.arrays[place] = np.ascontiguousarray(value)
        return {"is": "array", "array": place}

    def _encode_parts(self, name: str, value: Any, place: str) -> Any:
        parts = PARTS[name].take(value)
        return {"is": name, "parts": {key: self.encode(part, f"{place}.{key}") for key, part in parts.items()}}

    def _encode_foreign(self, value: Any, place: str) -> Any:
        self.arrays[place] = np.frombuffer(_skops().dumps(value), np.uint8)
        return {"is": "skops", "array": place}


class Decoder:
    """Turns a tree and its arrays into a model, or raises ValueError, TypeError or KeyError."""

    def __init__(self, arrays: dict[str, Any]) -> None:
        self.arrays = arrays

    def decode(self, tree: Any) -> Any:
        """Return what the tree stands for."""
        if isinstance(tree, list):
            return [self.decode(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        kind = tree["is"]
        if kind in PARTS:
            return PARTS[kind].make({key: self.decode(part) for key, part in tree["parts"].items()})
        if kind in ESTIMATORS:
            return self._decode_estimator(ESTIMATORS[kind], tree)
        if kind not in PLAIN:
            raise ValueError(f"unknown kind {kind!r}")
        return PLAIN[kind](self, tree)

    def _decode_estimator(self, cls: type, tree: Any) -> Any:
        settings = {key: self.decode(item) for key, item in tree["settings"].items()}
        if settings.get("input", "content") != "content":
            raise ValueError("a vectoriser that reads files")
        estimator = cls(**settings)
        for key, item in tree["learned"].items():
            if key in settings or callable(getattr(cls, key, None)) or isinstance(getattr(cls, key, None), property):
                raise ValueError(f"{cls.__name__} cannot have learned {key!r}")
            setattr(estimator, key, self.decode(item))
        if "vocabulary_" in tree["learned"] and isinstance(estimator, CountVectorizer):
            columns = sorted(estimator.vocabulary_.values())  # which scipy does not check
            _require(columns == list(range(len(columns))), "column numbers of the words")
        return estimator

    def _list(self, tree: Any) -> Any:
        items = json.loads(bytes(self.arrays[tree["array"]]))
        if not isinstance(items, list) or any(isinstance(item, (dict, list)) for item in items):
            raise ValueError("a long list holds plain values")
        return items

    def _foreign(self, tree: Any) -> Any:
        return _skops().loads(bytes(self.arrays[tree["array"]]), trusted=TRUSTED)


PLAIN: dict[str, Callable[[Decoder, Any], Any]] = {
    "float": lambda decoder, tree: float(tree["value"]),
    "tuple": lambda decoder, tree: tuple(decoder.decode(tree["items"])),
    "dict": lambda decoder, tree: dict(zip(decoder.decode(tree["keys"]), decoder.decode(tree["values"]), strict=True)),
    "dtype": lambda decoder, tree: _known_dtype(tree["value"]),
    "list": Decoder._list,
    "array": lambda decoder, tree: decoder.arrays[tree["array"]],
    "skops": Decoder._foreign,
}


class Part:
    """A class that is taken apart and made again by its own functions, which check what they are given."""

    def __init__(self, cls: type, take: Callable[[Any], dict[str, Any]], make: Callable[[dict[str, Any]], Any]) -> None:
        self.cls, self.take, self.make = cls, take, make


def _make_csr(parts: dict[str, Any]) -> Any:
    # Copies, since scipy may sort indices in place; checked, since compiled code follows them.
    matrix = sp.csr_array(
        (np.array(parts["data"]), np.array(parts["indices"]), np.array(parts["indptr"])), shape=parts["shape"]
    )
    matrix.check_format(full_check=True)
    return matrix


def _make_hadamard(parts: dict[str, Any]) -> HadamardOperator:
    rows, order, n_labels = np.asarray(parts["rows"]), int(parts["order"]), int(parts["n_labels"])
    _require(0 < n_labels <= order <= MAX_LABELS and order & (order - 1) == 0, "order or number of labels of A")
    _require(rows.ndim == 1 and 0 < len(rows) <= order and rows.dtype.kind == "i", "rows of A")
    _require(rows.min() >= 0 and rows.max() < order and len(np.unique(rows)) == len(rows), "rows of A")
    return HadamardOperator(rows, order, n_labels)


def _make_whitened(parts: dict[str, Any]) -> WhitenedOperator:
    hadamard, whitening = parts["hadamard"], np.asarray(parts["whitening"])
    _require(isinstance(hadamard, HadamardOperator), "rows of A")
    m = hadamard.n_measurements
    _require(4 * m * hadamard.n_labels <= STORED_BYTES, "size of A")
    _require(whitening.shape == (m, m) and whitening.dtype == np.float32, "whitening of A")
    _require(bool(np.isfinite(whitening).all() and (whitening.diagonal() > 0).all()), "whitening of A")
    _require(not np.triu(whitening, 1).any(), "whitening of A")
    return WhitenedOperator(hadamard, whitening)


def _make_dense(parts: dict[str, Any]) -> DenseOperator:
    columns, n_labels = np.asarray(parts["columns"]), int(parts["n_labels"])
    _require(columns.ndim == 2 and columns.dtype == np.float32 and columns.size > 0, "columns of A")
    _require(0 < n_labels <= len(columns) and bool(np.isfinite(columns).all()), "columns of A")
    return DenseOperator(columns, n_labels)


def _make_vocabulary(parts: dict[str, Any]) -> Vocabulary:
    names, n_labels = parts["names"], int(parts["n_labels"])
    _require(names is None or (isinstance(names, list) and len(set(names)) == len(names) == n_labels), "label names")
    return Vocabulary(names, n_labels)


def _make_design(parts: dict[str, Any]) -> Design:
    X = parts["X"]
    _require(sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2), "training rows")
    return Design(X)


def _take_moments(moments: Moments) -> dict[str, Any]:
    triangle = np.concatenate([row[: i + 1] for i, row in enumerate(moments.gram)])
    return {**{key: value for key, value in vars(moments).items() if key != "gram"}, "triangle": triangle}


def _make_moments(parts: dict[str, Any]) -> Moments:
    right = np.array(parts["right"], np.float64)
    p, m = right.shape
    triangle = np.asarray(parts["triangle"])
    _require(triangle.shape == (p * (p + 1) // 2,), "X'X")
    moments = Moments(p, m)
    for i, row in enumerate(moments.gram):
        row[: i + 1] = triangle[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]
    moments.right[:] = right
    moments.x_sum[:], moments.z_sum[:], moments.total = parts["x_sum"], parts["z_sum"], float(parts["total"])
    return moments


PARTS = {
    "csr": Part(
        sp.csr_array,
        lambda X: {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": tuple(map(int, X.shape))},
        _make_csr,
    ),
    "HadamardOperator": Part(
        HadamardOperator, lambda A: {"rows": A.rows, "order": A.order, "n_labels": A.n_labels}, _make_hadamard
    ),
    "DenseOperator": Part(DenseOperator, lambda A: {"columns": A._stored, "n_labels": A.n_labels}, _make_dense),
    "WhitenedOperator": Part(
        WhitenedOperator, lambda A: {"hadamard": A.hadamard, "whitening": A.whitening}, _make_whitened
    ),
    "Vocabulary": Part(Vocabulary, lambda v: {"names": v.names, "n_labels": v.n_labels}, _make_vocabulary),
    "Design": Part(Design, lambda design: {"X": design.X}, _make_design),
    "Moments": Part(Moments, _take_moments, _make_moments),
}


def _parts(value: dict[Any, Any]) -> list[tuple[Any, str]]:
    return [(value.keys(), "keys"), (value.values(), "values")]


def _known_dtype(name: Any) -> Any:
    _require(name in ARRAY_KINDS, "kind of numbers")
    return np.dtype(name).type


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"the {what} make no sense")


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            'Models with scikit-learn estimators inside are stored by skops: pip install "labelsense[skops]".'
        ) from error
    return skops.io
