"""The classifier for rows that the workers of a cluster hold."""

from __future__ import annotations

import math
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed, delayed
from distributed import Client, get_client
from joblib import parallel_config
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from labelsense._blocks import serially
from labelsense._progress import verbosity
from labelsense._typing import RandomState
from labelsense.compress import Compressor
from labelsense.dask.pieces import check_memory, examples_of, in_pieces, tabulate, weights_of
from labelsense.data import Examples
from labelsense.estimator import CompressedLabelClassifier
from labelsense.features import make_features
from labelsense.features.streams import StreamedFeatures
from labelsense.labels import TopK
from labelsense.reconstruct import Decoder
from labelsense.refine import Refiner
from labelsense.regress import Learner
from labelsense.scale import fit_chunks, update_chunks


class DaskCompressedLabelClassifier(CompressedLabelClassifier):
    """:class:`~labelsense.CompressedLabelClassifier` for rows on the workers of a Dask cluster.

    ``fit`` and ``partial_fit`` take rows in pieces; so do the methods that predict, which then return collections of
    Dask that are computed when asked for, piece by piece. With rows in memory all methods are those of the ordinary
    classifier. For rows in pieces the learner must be ridge, and the decoder one that does not learn.

    X can be a dask array with dense or CSR blocks, a dask series or bag of texts, a list of delayed blocks of any of
    these, or what :func:`read` returns. y can be a dask array of 0 and 1, a dask series or bag of label lists, or a
    list of delayed blocks; with :func:`read` it is left out.

    Parameters
    ----------
    compressor, learner, decoder, refiner, features, budget, objective, updatable, held_out, threshold, random_state, \
n_jobs, verbose
        As for :class:`~labelsense.CompressedLabelClassifier`, but that "auto" chooses no kernel, and no scaling of
        features.
    client : distributed.Client, optional
        By default the one that is open.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from labelsense.data import make_tagged_documents
    >>> X, Y = make_tagged_documents(n_samples=500, n_labels=200, random_state=0)
    >>> X, Y = (da.from_array(M.toarray(), chunks=(100, -1)) for M in (X, Y))
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     clf = DaskCompressedLabelClassifier(random_state=0, client=client).fit(X, Y)
    ...     clf.predict_topk(X, k=3).labels.compute().shape
    (500, 3)
    """

    def __init__(
        self,
        compressor: Compressor | str = "auto",
        learner: Learner | BaseEstimator | str = "auto",
        decoder: Decoder | str = "auto",
        *,
        refiner: Refiner | str | None = "auto",
        features: BaseEstimator | str | None = None,
        budget: str = "balanced",
        objective: str = "precision",
        updatable: bool = False,
        held_out: str = "auto",
        threshold: float | str = "f1",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        client: Client | None = None,
    ) -> None:
        super().__init__(
            compressor,
            learner,
            decoder,
            refiner=refiner,
            features=features,
            budget=budget,
            objective=objective,
            updatable=updatable,
            held_out=held_out,
            threshold=threshold,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.client = client

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DaskCompressedLabelClassifier:
        """Learn from rows in pieces. Only sums over them come to the client.

        From rows in memory it learns as the ordinary classifier does; the workers fit the regressors of scikit-learn,
        if the learner is one, several measurements at a time.
        """
        if in_pieces(X):
            return self._fit_pieces("fit", X, y, sample_weight)
        with parallel_config("dask", client=self._client(), n_jobs=-1):
            super().fit(X, y, sample_weight)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DaskCompressedLabelClassifier:
        """Learn from more rows in pieces, exactly."""
        if "learner_" not in vars(self):
            return self._fit_pieces("partial_fit", X, y, sample_weight)
        features = StreamedFeatures.fitted(self.features_, self.n_features_in_)
        raw, sparse = tabulate(examples_of(X, y), features, self._client())
        update_chunks(self, raw, sparse=sparse, weights=weights_of(sample_weight, raw, self._client()))
        return self

    def predict_topk(self, X: Any, k: int = 5, *, allow: Any = None, block: Any = None) -> TopK:
        """Return the k best labels of each row; for rows in pieces, as dask arrays."""
        if not in_pieces(X):
            return super().predict_topk(X, k, allow=allow, block=block)
        tops = self._each("predict_topk", X, k, allow=allow, block=block)
        width = min(k, self.vocabulary_.n_labels)
        kind = np.int64 if self.vocabulary_.names is None else object
        blocks = [
            [da.from_delayed(top[i], (math.nan, width), dtype) for top in tops]
            for i, dtype in enumerate((kind, np.float32))
        ]
        return TopK(*map(da.concatenate, blocks))

    def predict_scores(self, X: Any) -> Any:
        """Return sparse scores; for rows in pieces, as a dask array of CSR blocks."""
        return self._sparse_blocks("predict_scores", X) if in_pieces(X) else super().predict_scores(X)

    @available_if(CompressedLabelClassifier._has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return sparse probabilities; for rows in pieces, as a dask array of CSR blocks."""
        return self.predict_scores(X)

    def to_local(self) -> CompressedLabelClassifier:
        """Return the ordinary classifier, with the same parts: it predicts the same, and needs no Dask."""
        local = CompressedLabelClassifier(
            **{name: value for name, value in self.get_params(deep=False).items() if name != "client"}
        )
        local.__dict__.update({name: value for name, value in vars(self).items() if name != "client"})
        return local

    def save(self, path: Any) -> None:
        """Write the ordinary classifier to a file."""
        self.to_local().save(path)

    def __getstate__(self) -> Any:
        return super().__getstate__() | {"client": None}  # connections stay where they are

    def _fit_pieces(self, step: str, X: Any, y: Any, sample_weight: Any) -> DaskCompressedLabelClassifier:
        features = StreamedFeatures(None if self.features is None else make_features(self.features))
        with verbosity(self.verbose):
            raw, sparse = tabulate(examples_of(X, y), features, self._client())
            raw, memory = check_memory(raw)
            weights = weights_of(sample_weight, raw, self._client())
        sparse = sparse or features.scaler is not None
        fit_chunks(self, raw, features, step=step, sparse=sparse, memory=memory, weights=weights)
        return self

    def _client(self) -> Client:
        return self.client if self.client is not None else get_client()

    def _each(self, method: str, X: Any, *arguments: Any, **options: Any) -> list[Delayed]:
        """Return what a method of the model says of each piece, lazily."""
        model = delayed(self.to_local(), pure=False, traverse=False)
        task = delayed(_predict, pure=False)
        return [task(model, method, piece, arguments, options) for piece in examples_of(X, None)]

    def _sparse_blocks(self, method: str, X: Any) -> Any:
        meta = sp.csr_array((0, self.vocabulary_.n_labels), dtype=np.float32)
        shape = (math.nan, self.vocabulary_.n_labels)
        return da.concatenate([da.from_delayed(each, shape, meta=meta) for each in self._each(method, X)])


def _predict(model: CompressedLabelClassifier, method: str, piece: Examples, arguments: Any, options: Any) -> Any:
    with serially():
        return getattr(model, method)(piece.X, *arguments, **options)
