"""Models as data: the classes that a model file can hold, and the way to plain JSON values and arrays, and back.

A class says itself, with :func:`storable`, that it can be stored. An estimator is stored as its settings and what it
has learned: attributes that end with an underscore, and the private ones that it names. Where it has learned
something, its method ``_check_stored`` refuses what does not fit together, when it is written and when it is read. Any
other class is taken apart by ``_to_parts`` and made again by ``_from_parts``, which trusts nothing.

No code goes in or comes out. What is not registered here and is not plain either goes to skops, if it is an estimator.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import Pipeline

from labelsense import _skops

Tree: TypeAlias = "bool | int | float | str | list[Tree] | dict[str, Tree] | None"
Parts: TypeAlias = dict[str, Any]
Class = TypeVar("Class", bound=type)

LONG = 64  # lists of plain values from this length on are stored beside the tree
ARRAY_KINDS = {"float32", "float64", "int32", "int64", "uint8", "bool"}
MAX_JOBS = 1024  # threads that a stored model may ask for
MAX_NGRAM = 100  # a text of n words has n times as many n-grams


def _accept(estimator: Any) -> None:
    """Refuse nothing."""


@dataclass(frozen=True)
class Entry:
    """What the registry knows of a class."""

    cls: Any
    private: Collection[str] = ()
    transient: Collection[str] = ()
    root: bool = False
    check_settings: Callable[[Any], None] = _accept
    check_learned: Callable[[Any], None] = _accept

    def learned_names(self, estimator: BaseEstimator) -> list[str]:
        """Return the names of what an estimator has learned."""
        return [name for name in vars(estimator) if self.may_learn(name)]

    def may_learn(self, name: str) -> bool:
        """Tell whether an attribute is one that fitting sets: not a setting, a method or something made when needed."""
        public = name.endswith("_") and not name.startswith("_")
        taken = getattr(self.cls, name, None)
        return (
            (public or name in self.private)
            and name not in self.transient
            and name not in self.cls._get_param_names()
            and not (callable(taken) or isinstance(taken, property))
        )


REGISTRY: dict[str, Entry] = {}


def storable(
    *, private: Collection[str] = (), transient: Collection[str] = (), root: bool = False
) -> Callable[[Class], Class]:
    """Register a class as one that model files can hold, under its name.

    Parameters
    ----------
    private : names
        Attributes of an estimator that start with an underscore and have to be stored.
    transient : names
        Settings and attributes that are left out; a file that has them is read without them.
    root : bool
        Whether a file can hold it as its model. It then has a method ``_check_complete``, called when it is read.
    """

    def register(cls: Class) -> Class:
        REGISTRY[cls.__name__] = Entry(cls, private, transient, root, check_learned=_hook(cls))
        return cls

    return register


def _hook(cls: Any) -> Callable[[Any], None]:
    return getattr(cls, "_check_stored", _accept)


# --- checks -------------------------------------------------------------------------------------------------------


def require(holds: bool, rule: str) -> None:
    """Raise ValueError with the rule that does not hold."""
    if not holds:
        raise ValueError(rule)


def require_array(value: Any, name: str, kind: str, shape: tuple[int | None, ...], *, finite: bool = False) -> None:
    """Refuse anything but an array of this kind and shape, where None is any size but zero.

    ``finite`` reads every number, so it is not for weights that may stay on disk.
    """
    require(isinstance(value, np.ndarray) and value.dtype == kind, f"{name} must be an array of {kind}")
    fits = value.ndim == len(shape) and all(
        have == want or (want is None and have > 0) for have, want in zip(value.shape, shape, strict=True)
    )
    require(fits, f"{name} must have the shape {shape}, not {value.shape}")
    require(not finite or all_finite(value), f"{name} must be finite")


def all_finite(array: NDArray[Any]) -> bool:
    """Tell whether an array has neither NaN nor infinity, without a second array."""
    return not array.size or bool(np.isfinite(array.min()) and np.isfinite(array.max()))


def is_plain(value: Any) -> bool:
    """Tell whether a value can be a label of a stored model: a string, a number, or a tuple of such."""
    return isinstance(value, (bool, int, float, str)) or (isinstance(value, tuple) and all(map(is_plain, value)))


# --- the way out --------------------------------------------------------------------------------------------------


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
        name = type(value).__name__
        entry = _entry_of(value)
        if entry is not None and isinstance(value, BaseEstimator):
            return self._encode_estimator(entry, value, place)
        if entry is not None:
            return {"is": name, "parts": self._encode_each(value._to_parts(), place)}
        if isinstance(value, BaseEstimator):
            return self._encode_foreign(value, place)
        raise TypeError(
            f"The model cannot be saved: {place} is {value!r} of type {name}, and model files hold data, not code. "
            "Use a setting that is a word or a number."
        )

    def _encode_estimator(self, entry: Entry, value: BaseEstimator, place: str) -> Tree:
        learned = entry.learned_names(value)
        settings = {key: item for key, item in value.get_params(deep=False).items() if key not in entry.transient}
        tree = self._encode_each(settings, place)
        try:
            entry.check_settings(value)
            if learned:
                entry.check_learned(value)
        except ValueError as error:
            raise ValueError(f"The model cannot be saved: {place} is a {type(value).__name__}, and {error}.") from error
        known = {key: getattr(value, key) for key in learned}
        return {"is": type(value).__name__, "settings": tree, "learned": self._encode_each(known, place)}

    def _encode_each(self, values: dict[str, Any], place: str) -> dict[str, Tree]:
        return {key: self.encode(item, f"{place}.{key}") for key, item in values.items()}

    def _encode_sequence(self, value: list[Any] | tuple[Any, ...], place: str) -> Tree:
        if value and all(isinstance(item, BaseEstimator) and _entry_of(item) is None for item in value):
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


def _entry_of(value: Any) -> Entry | None:
    entry = REGISTRY.get(type(value).__name__)
    return entry if entry is not None and entry.cls is type(value) else None


# --- the way in ---------------------------------------------------------------------------------------------------


class Decoder:
    """Turns a tree into a model, or raises an exception: whatever a made-up tree makes our classes say.

    ``take`` returns an array by its name, once: what a tree stands for is then no larger than the file.
    """

    def __init__(self, take: Callable[[str], NDArray[Any]]) -> None:
        self.take = take

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
        name = entry.cls.__name__
        settings = self._decode_each(tree, "settings", entry.transient)
        for key, item in settings.items():
            require(key == "dtype" or not callable(item), f"the setting {key} of {name} is no data")
        _check_common_settings(settings)
        estimator = entry.cls(**settings)
        entry.check_settings(estimator)
        learned = self._decode_each(tree, "learned", entry.transient)
        for key, item in learned.items():
            require(entry.may_learn(key), f"{name} cannot have learned {key!r}")
            setattr(estimator, key, item)
        _check_common_learned(learned)
        if learned:
            entry.check_learned(estimator)
        return estimator

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
        matrix = sp.csr_array(arrays, shape=parts["shape"])
        matrix.check_format(full_check=True)
        return matrix

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
    "skops": Decoder._foreign,
}


def _check_common_settings(settings: Parts) -> None:
    jobs, verbose = settings.get("n_jobs"), settings.get("verbose", 0)
    require(jobs is None or (type(jobs) is int and 0 < abs(jobs) <= MAX_JOBS), "n_jobs must be a small number")
    require(isinstance(verbose, int), "verbose must be a number")


def _check_common_learned(learned: Parts) -> None:
    n_features = learned.get("n_features_in_", 1)
    require(type(n_features) is int and n_features > 0, "n_features_in_ must be a whole number")
    if "feature_names_in_" in learned:
        require_array(learned["feature_names_in_"], "feature_names_in_", "object", (n_features,))


def _item(tree: Tree, key: str, kind: Any) -> Any:
    """Return an item of a JSON object, which has to be of this kind."""
    require(isinstance(tree, dict) and isinstance(tree.get(key), kind), f"something has no {key!r}")
    return tree[key]  # type: ignore[index, call-overload]


# --- the classes of scikit-learn that make features of texts ------------------------------------------------------


def _check_vectoriser(vectoriser: Any) -> None:
    require(vectoriser.input == "content", f"a vectoriser with input={vectoriser.input!r} reads files")
    grams = vectoriser.ngram_range
    require(len(grams) == 2 and 1 <= grams[0] <= grams[1] <= MAX_NGRAM, f"n-grams of {grams} words are too long")


def _check_words(vectoriser: Any) -> None:
    words = vectoriser.vocabulary_
    require(isinstance(words, dict) and all(isinstance(word, str) for word in words), "the words must be strings")
    require(sorted(words.values()) == list(range(len(words))), "the words must have the columns from 0 on")


def _check_weighted_words(vectoriser: Any) -> None:
    _check_words(vectoriser)
    require(isinstance(vectoriser._tfidf, TfidfTransformer), "its weights must be those of words")


def _check_weights(transformer: Any) -> None:
    if "idf_" in vars(transformer):
        idf = transformer.idf_
        kind = "float32" if getattr(idf, "dtype", None) == np.float32 else "float64"
        require_array(idf, "idf_", kind, (transformer.n_features_in_,), finite=True)


def _check_steps(pipeline: Any) -> None:
    require(isinstance(pipeline.steps, list) and len(pipeline.steps) > 0, "a pipeline must have steps")
    for step in pipeline.steps:
        require(isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str), "a step must have a name")
        does_nothing = step[1] is None or step[1] == "passthrough"
        require(isinstance(step[1], BaseEstimator) or does_nothing, "a step must be an estimator")


def _register(entry: Entry) -> None:
    REGISTRY[entry.cls.__name__] = entry


# _stop_words_id is an address, which no later process can use; memory is a folder of pickles.
_ID = ("_stop_words_id",)
_register(Entry(CountVectorizer, (), _ID, check_settings=_check_vectoriser, check_learned=_check_words))
_register(Entry(HashingVectorizer, (), _ID, check_settings=_check_vectoriser))
_register(
    Entry(TfidfVectorizer, ("_tfidf",), _ID, check_settings=_check_vectoriser, check_learned=_check_weighted_words)
)
_register(Entry(TfidfTransformer, check_learned=_check_weights))
_register(Entry(Pipeline, (), ("memory",), check_settings=_check_steps))
