"""From texts to the vectors of a sentence encoder, alone or beside words."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from labelsense._storage import require, storable
from labelsense._typing import FloatArray
from labelsense._validation import check_texts
from labelsense.errors import InputError
from labelsense.features.text import text_words


@storable()
class EncodedTexts(TransformerMixin, BaseEstimator):
    """Texts to the vectors that an encoder gives them, with unit length; with ``words``, the words beside them.

    Use it where texts are short, or mean the same in different words. An encoder is code, and model files hold none:
    the file of a model says that it needs one, and ``load_model(path, encoder=...)`` gives it the one it was trained
    with. Copies of this transformer share the encoder, which is not changed.

    Parameters
    ----------
    encoder : object
        Anything with ``encode(list of str)`` that returns an array (n, q), such as a SentenceTransformer.
    words : bool
        Also the counts of words, as by ``features="words"``.

    Attributes
    ----------
    n_dimensions_ : int
        q.
    words_ : transformer or None
        What counts the words.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsense.features import EncodedTexts
    >>> class Lengths:
    ...     def encode(self, texts):
    ...         return np.array([[len(text), 1] for text in texts])
    >>> EncodedTexts(Lengths()).fit_transform(["abc", ""]).astype(float).round(2).tolist()
    [[0.95, 0.32], [0.0, 1.0]]
    """

    def __init__(self, encoder: Any, *, words: bool = False) -> None:
        self.encoder = encoder
        self.words = words

    def fit(self, texts: Any, y: Any = None) -> EncodedTexts:
        """Learn the words, and how long the vectors are."""
        self.fit_transform(texts, y)
        return self

    def fit_transform(self, texts: Any, y: Any = None) -> Any:
        """Return the features of the texts that the words are learned from."""
        texts = check_texts(texts)
        vectors = self._encode(texts)
        self.n_dimensions_ = vectors.shape[1]
        self.words_ = text_words() if self.words else None
        return vectors if self.words_ is None else _beside(self.words_.fit_transform(texts), vectors)

    def transform(self, texts: Any) -> Any:
        """Return the vectors (n, q), or CSR with the words before them."""
        check_is_fitted(self)
        texts = check_texts(texts)
        vectors = self._encode(texts)
        if vectors.shape[1] != self.n_dimensions_:
            raise InputError(
                f"encoder must give vectors of length {self.n_dimensions_}, as in training. Got {vectors.shape[1]}. "
                "Use the encoder that the model was trained with."
            )
        return vectors if self.words_ is None else _beside(self.words_.transform(texts), vectors)

    def _encode(self, texts: list[str]) -> FloatArray:
        vectors = np.asarray(self.encoder.encode(texts), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
            raise InputError(
                f"encoder.encode must return one vector for each of {len(texts)} texts. Got shape {vectors.shape}."
            )
        if not np.isfinite(vectors).all():
            raise InputError("encoder.encode must return finite numbers. Got NaN or infinity.")
        return normalize(vectors)

    def __sklearn_clone__(self) -> EncodedTexts:
        return EncodedTexts(self.encoder, words=self.words)

    def _check_stored(self) -> None:
        require(type(self.n_dimensions_) is int and self.n_dimensions_ > 0, "vectors must have a length")
        require((self.words_ is not None) == bool(self.words), "it must have the words it needs")


def is_encoder(features: Any) -> bool:
    """Tell whether this encodes texts: words of the API, which are strings, encode themselves only."""
    return not isinstance(features, str) and callable(getattr(features, "encode", None))


def _beside(words: Any, vectors: FloatArray) -> Any:
    return sp.hstack([words, sp.csr_array(vectors)], format="csr")
