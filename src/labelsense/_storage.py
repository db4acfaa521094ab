"""The classes that a model file can hold, and what is asked of them.

A class says itself, with :func:`storable`, that it can be stored. An estimator is stored as its settings and what it
has learned: attributes that end with an underscore, and the private ones that it names. Where it has learned
something, its method ``_check_stored`` refuses what does not fit together, when it is written and when it is read. Any
other class is taken apart by ``_to_parts`` and made again by ``_from_parts``, which trusts nothing.

``_tree.py`` does the rest. Adding a class to what can be stored touches only the file of the class.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import Pipeline

from labelsense._blocks import row_blocks

Parts: TypeAlias = dict[str, Any]
Class = TypeVar("Class", bound=type)

FINITE_NUMBERS = 2**24  # looked at in one go
MAX_JOBS = 1024  # threads that a stored model may ask for
MAX_NGRAM = 100  # a text of n words has n times as many n-grams


def _accept(estimator: Any) -> None:
    """Refuse nothing."""


@dataclass(frozen=True)
class Entry:
    """What the registry knows of a class."""

    name: str
    cls: Any
    private: Collection[str] = ()
    transient: Collection[str] = ()
    root: bool = False
    check_settings: Callable[[Any], None] = _accept
    check_learned: Callable[[Any], None] = _accept

    def check(self, estimator: BaseEstimator) -> None:
        """Raise ValueError where an estimator cannot be stored, or cannot have been."""
        _check_common_settings(estimator.get_params(deep=False))
        self.check_settings(estimator)
        if self.learned_names(estimator):
            self.check_learned(estimator)

    def build(self, settings: Parts, learned: Parts) -> BaseEstimator:
        """Return an estimator, from what a file says of it."""
        for key, item in settings.items():
            may_be_called = key in ("dtype", "encoder", "features")  # the encoder is the caller's, not the file's
            require(may_be_called or not callable(item), f"the setting {key} of {self.name} is no data")
        _check_common_learned(learned)
        estimator: BaseEstimator = self.cls(**settings)
        for key, item in learned.items():
            require(self.may_learn(key), f"{self.name} cannot have learned {key!r}")
            setattr(estimator, key, item)
        self.check(estimator)
        return estimator

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
BY_CLASS: dict[type, Entry] = {}


def storable(
    *, name: str | None = None, private: Collection[str] = (), transient: Collection[str] = (), root: bool = False
) -> Callable[[Class], Class]:
    """Register a class as one that model files can hold.

    Parameters
    ----------
    name : str, optional
        What files call it: by default its name, which must then never change.
    private : names
        Attributes of an estimator that start with an underscore and have to be stored.
    transient : names
        Settings and attributes that are left out; a file that has them is read without them.
    root : bool
        Whether a file can hold it as its model. It then has a method ``_check_complete``, called when it is read.
    """

    def register(cls: Class) -> Class:
        check = getattr(cls, "_check_stored", _accept)
        _register(Entry(name or cls.__name__, cls, private, transient, root, check_learned=check))
        return cls

    return register


def _register(entry: Entry) -> None:
    REGISTRY[entry.name] = BY_CLASS[entry.cls] = entry


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
    flat = array.reshape(-1)
    parts = (flat[part] for part in row_blocks(len(flat), FINITE_NUMBERS))
    return all(bool(np.isfinite(part.min()) and np.isfinite(part.max())) for part in parts)


def is_plain(value: Any) -> bool:
    """Tell whether a value can be a label of a stored model: a string, a number, or a tuple of such."""
    return isinstance(value, (bool, int, float, str)) or (isinstance(value, tuple) and all(map(is_plain, value)))


def _check_common_settings(settings: Parts) -> None:
    jobs, verbose = settings.get("n_jobs"), settings.get("verbose", 0)
    few = jobs is None or (isinstance(jobs, (int, np.integer)) and abs(int(jobs)) <= MAX_JOBS)
    require(few, f"n_jobs must be at most {MAX_JOBS}")
    require(isinstance(verbose, (int, np.integer, np.bool_)), "verbose must be a number")


def _check_common_learned(learned: Parts) -> None:
    n_features = learned.get("n_features_in_", 1)
    require(type(n_features) is int and n_features > 0, "n_features_in_ must be a whole number")
    if "feature_names_in_" in learned:
        require_array(learned["feature_names_in_"], "feature_names_in_", "object", (n_features,))


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


# _stop_words_id is an address, which no later process can use; memory is a folder of pickles.
for _cls, _private, _transient, _check_settings, _check_learned in (
    (CountVectorizer, (), ("_stop_words_id",), _check_vectoriser, _check_words),
    (HashingVectorizer, (), ("_stop_words_id",), _check_vectoriser, _accept),
    (TfidfVectorizer, ("_tfidf",), ("_stop_words_id",), _check_vectoriser, _check_weighted_words),
    (TfidfTransformer, (), (), _accept, _check_weights),
    (Pipeline, (), ("memory",), _check_steps, _accept),
):
    _register(Entry(_cls.__name__, _cls, _private, _transient, False, _check_settings, _check_learned))
