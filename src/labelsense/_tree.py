"""Models as data: the way to a tree of plain JSON values and some arrays, and back.

No code goes in or comes out: a tree holds plain values, arrays, and objects of the classes that ``_storage.py`` knows.
Another estimator goes to skops. The layout is described in ``model_file.py``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from labelsense import _skops
from labelsense._storage import BY_CLASS, REGISTRY, Entry, Parts, require
from labelsense._validation import check_places

Tree: TypeAlias = "bool | int | float | str | list[Tree] | dict[str, Tree] | None"

LONG = 64  # lists of plain values from this length on are stored beside the tree
ARRAY_KINDS = {"float32", "float64", "int32", "int64", "uint8", "bool"}


class Encoder:
    """Turns a model into a tree, and collects its arrays by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}

    def encode(self, value: Any, place: str) -> Tree:
        """Return ``value`` as JSON; ``place`` names its arrays and says in errors where it is."""
        if value is None:
            return None
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        if isinstance(value, str):
            return str(value)
        if isinstance(value, (int, np.integer)):
            return int(value)
        if isinstance(value, (float, np.floating)):
            return float(value) if math.isfinite(value) else {"is": "float", "value": str(float(value))}
        if isinstance(value, (list, tuple)):
            return self._encode_sequence(value, place)
        if isinstance(value, dict):
            keys, values = self.encode(list(value), f"{place}.keys"), self.encode([*value.values()], f"{place}.values")
            return {"is": "dict", "keys": keys, "values": values}
        if isinstance(value, np.ndarray):
            return self._encode_array(value, place)
        if sp.issparse(value):
            return self._encode_csr(sp.csr_array(value), place)
        if isinstance(value, (type, np.dtype)) and np.dtype(value).name in ARRAY_KINDS:
            return {"is": "dtype", "value": np.dtype(value).name}
        if isinstance(value, (np.random.RandomState, np.random.Generator)):
            return None  # its draws are over; a model does not need it to predict
        return self._encode_object(value, place)

    def _encode_object(self, value: Any, place: str) -> Tree:
        entry = BY_CLASS.get(type(value))
        if entry is not None and isinstance(value, BaseEstimator):
            return self._encode_estimator(entry, value, place)
        if entry is not None:
            return {"is": entry.name, "parts": self._encode_each(value._to_parts(), place)}
        if isinstance(value, BaseEstimator):
            return self._encode_foreign(value, place)
        if callable(getattr(value, "encode", None)):
            return {"is": "encoder"}
        raise TypeError(
            f"The model cannot be saved: {place} is {value!r} of type {type(value).__name__}, and model files hold "
            "data, not code. Use a setting that is a word or a number."
        )

    def _encode_estimator(self, entry: Entry, value: BaseEstimator, place: str) -> Tree:
        learned = entry.learned_names(value)
        settings = {key: item for key, item in value.get_params(deep=False).items() if key not in entry.transient}
        tree = self._encode_each(settings, place)
        try:
            entry.check(value)
        except ValueError as error:
            raise ValueError(f"The model cannot be saved: {place} is a {entry.name}, and {error}.") from error
        known = {key: getattr(value, key) for key in learned}
        return {"is": entry.name, "settings": tree, "learned": self._encode_each(known, place)}

    def _encode_each(self, values: dict[str, Any], place: str) -> dict[str, Tree]:
        return {key: self.encode(item, f"{place}.{key}") for key, item in values.items()}

    def _encode_sequence(self, value: list[Any] | tuple[Any, ...], place: str) -> Tree:
        if value and all(isinstance(item, BaseEstimator) and type(item) not in BY_CLASS for item in value):
            return self._encode_foreign(list(value), place)  # one file for all m regressors
        items = [self.encode(item, f"{place}.{i}") for i, item in enumerate(value)]
        if isinstance(value, tuple):
            return {"is": "tuple", "items": items}
        if len(items) < LONG or any(isinstance(item, (dict, list)) for item in items):
            return items
        self.arrays[place] = np.frombuffer(json.dumps(items).encode(), np.uint8)
        return {"is": "list", "array": place}

    def _encode_array(self, value: NDArray[Any], place: str) -> Tree:
        if value.dtype == object and value.ndim == 1 and all(isinstance(item, str) for item in value):
            return {"is": "strings", "items": self.encode(value.tolist(), place)}
        if value.dtype.name not in ARRAY_KINDS:
            raise TypeError(f"The model cannot be saved: {place} is an array of {value.dtype}. Use numbers.")
        self.arrays[place] = np.ascontiguousarray(value)
        return {"is": "array", "array": place}

    def _encode_csr(self, X: Any, place: str) -> Tree:
        parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": tuple(map(int, X.shape))}
        return {"is": "csr", "parts": self._encode_each(parts, place)}

    def _encode_foreign(self, value: Any, place: str) -> Tree:
        self.arrays[place] = np.frombuffer(_skops.dump(value, place), np.uint8)
        return {"is": "skops", "array": place}


class Decoder:
    """Turns a tree into a model, or raises an exception: whatever a made-up tree makes our classes say.

    ``take`` returns an array by its name, once: what a tree stands for is then no larger than the file. ``encoder`` is
    the encoder of texts that a model may need, which is code, and so not in the file.
    """

    def __init__(self, take: Callable[[str], NDArray[Any]], encoder: Any = None) -> None:
        self.take = take
        self.encoder = encoder

    def decode_root(self, tree: Tree) -> Any:
        """Return the model of a file."""
        kind = _item(tree, "is", str)
        require(kind in REGISTRY and REGISTRY[kind].root, f"it holds {kind}, which is no model")
        model = self.decode(tree)
        model._check_complete()
        return model

    def decode(self, tree: Tree) -> Any:
        """Return what the tree stands for."""
        if isinstance(tree, list):
            return [self.decode(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        kind = _item(tree, "is", str)
        if kind in PLAIN:
            return PLAIN[kind](self, tree)
        require(kind in REGISTRY, f"{kind!r} is no kind of thing that it can hold")
        entry = REGISTRY[kind]
        if issubclass(entry.cls, BaseEstimator):
            return self._decode_estimator(entry, tree)
        return entry.cls._from_parts(self._decode_each(tree, "parts"))

    def _decode_each(self, tree: Tree, key: str, without: Collection[str] = ()) -> Parts:
        return {name: self.decode(item) for name, item in _item(tree, key, dict).items() if name not in without}

    def _decode_estimator(self, entry: Entry, tree: Tree) -> BaseEstimator:
        settings = self._decode_each(tree, "settings", entry.transient)
        return entry.build(settings, self._decode_each(tree, "learned", entry.transient))

    def _float(self, tree: Tree) -> float:
        return float(_item(tree, "value", str))

    def _tuple(self, tree: Tree) -> tuple[Any, ...]:
        return tuple(self.decode(_item(tree, "items", list)))

    def _dict(self, tree: Tree) -> dict[Any, Any]:
        keys, values = (self.decode(_item(tree, key, (list, dict))) for key in ("keys", "values"))
        return dict(zip(keys, values, strict=True))

    def _dtype(self, tree: Tree) -> Any:
        name = _item(tree, "value", str)
        require(name in ARRAY_KINDS, f"{name!r} is no kind of number")
        return np.dtype(name).type

    def _strings(self, tree: Tree) -> NDArray[Any]:
        items = self.decode(_item(tree, "items", (list, dict)))
        require(isinstance(items, list) and all(isinstance(item, str) for item in items), "an array must hold strings")
        return np.array(items, dtype=object)

    def _list(self, tree: Tree) -> list[Any]:
        items = json.loads(self._array(tree).tobytes())
        plain = isinstance(items, list) and not any(isinstance(item, (dict, list)) for item in items)
        require(plain, "a long list must hold plain values")
        return items

    def _array(self, tree: Tree) -> NDArray[Any]:
        return self.take(_item(tree, "array", str))

    def _csr(self, tree: Tree) -> Any:
        parts = self._decode_each(tree, "parts")
        # Copies, since scipy may sort indices in place; checked, since compiled code follows them.
        arrays = tuple(np.array(parts[name]) for name in ("data", "indices", "indptr"))
        return check_places(sp.csr_array(arrays, shape=parts["shape"]), "a sparse matrix")

    def _encoder(self, tree: Tree) -> Any:
        require(self.encoder is not None, "it needs its encoder of texts: call load_model(path, encoder=...)")
        return self.encoder

    def _foreign(self, tree: Tree) -> Any:
        return _skops.load(self._array(tree).tobytes())


PLAIN: dict[str, Callable[[Decoder, Tree], Any]] = {
    "float": Decoder._float,
    "tuple": Decoder._tuple,
    "dict": Decoder._dict,
    "dtype": Decoder._dtype,
    "strings": Decoder._strings,
    "list": Decoder._list,
    "array": Decoder._array,
    "csr": Decoder._csr,
    "encoder": Decoder._encoder,
    "skops": Decoder._foreign,
}


def _item(tree: Tree, key: str, kind: Any) -> Any:
    """Return an item of a JSON object, which has to be of this kind."""
    require(isinstance(tree, dict) and isinstance(tree.get(key), kind), f"something has no {key!r}")
    return tree[key]  # type: ignore[index, call-overload]
