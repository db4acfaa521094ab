"""Training and prediction on many machines, by Dask. The only file that imports it.

The rows stay with the workers. What is computed of them is sent to the client as sums over trees of a fixed shape, so
that a model has the same bytes for any number of workers, and after a worker was lost. Data are loaded by tasks: what a
worker held that is gone is loaded and computed again.
"""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from labelsense._blocks import serially
from labelsense._chunks import FAN_IN, Bound, Chunks
from labelsense._memory import available_memory
from labelsense._progress import log, verbosity
from labelsense._typing import DoubleArray, IntArray, RandomState
from labelsense._validation import (
    check_binary,
    check_places,
    check_representable,
    check_same_length,
    check_weights,
    is_matrix,
)
from labelsense.compress import Compressor
from labelsense.data import Examples, stream_examples
from labelsense.data.adapt import with_uris
from labelsense.data.splits import Split, split_files
from labelsense.data.statistics import Count, Tabulate
from labelsense.data.subjects import Subjects
from labelsense.errors import InputError
from labelsense.estimator import CompressedLabelClassifier
from labelsense.features import make_features
from labelsense.features.streams import StreamedFeatures
from labelsense.labels import TopK
from labelsense.reconstruct import Decoder
from labelsense.refine import Refiner
from labelsense.regress import Learner
from labelsense.scale import Choices, fit_chunks, train_chunks, update_chunks
from labelsense.training import Training

try:
    import dask
    import dask.array as da
    from dask.delayed import Delayed, delayed
    from distributed import Client, LocalCluster, get_client
except ImportError:
    raise ImportError('labelsense.dask needs dask and distributed: pip install "labelsense[dask]".') from None

__all__ = ["DaskChunks", "DaskCompressedLabelClassifier", "Rows", "connect", "read", "train_files"]

ROW_SHARE = 0.6  # of a worker's memory that rows may take; Dask begins to move them to disk at this share
SOLVER_SHARE = 0.25  # of a worker's memory, and of what is free at the client, for what a step sends and adds up


class Rows(Sequence[Any]):
    """Rows in pieces that workers load: what :func:`read` returns.

    Attributes
    ----------
    pieces : list of Delayed
        Each gives Examples.
    """

    def __init__(self, pieces: list[Delayed]) -> None:
        self.pieces = pieces

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, place: Any) -> Any:
        return self.pieces[place]


def read(paths: Any, format: str | None = None, text_fields: Sequence[str] | None = None) -> Rows:
    """Return the rows of files, which the workers will load; see :func:`~labelsense.data.splits.split_files`.

    Examples
    --------
    >>> rows = read("docs/part-*.jsonl")  # doctest: +SKIP
    >>> DaskCompressedLabelClassifier(features="words").fit(rows)  # doctest: +SKIP
    """
    return Rows([delayed(_load, pure=False)(split) for split in split_files(paths, format, text_fields)])


@contextmanager
def connect(scheduler: str | None = None, workers: int | None = None) -> Iterator[Client]:
    """Give a client of a scheduler, or of so many processes on this machine, which end with the block."""
    if scheduler is not None:
        with Client(scheduler) as client:
            yield client
        return
    local = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")  # any port that is free
    with local as cluster, Client(cluster) as client:
        yield client


def train_files(
    paths: Any,
    choices: Choices,
    client: Client,
    *,
    test: Any = None,
    format: str | None = None,
    text_fields: Sequence[str] | None = None,
    subjects: Subjects | None = None,
) -> Training:
    """Learn from files as :func:`~labelsense.training.train` does, with the workers of a cluster.

    Parameters
    ----------
    paths, format, text_fields
        As for :func:`read`.
    choices : Choices
    client : Client
    test : Path, optional
        Rows to evaluate on.
    subjects : Subjects, optional
        What labels are called: they become URIs, and the model remembers it.
    """
    splits = split_files(paths, format, text_fields)
    word = choices.word(next(stream_examples(splits[0].path, splits[0].format, 1, text_fields)).kind)
    _, streamed = choices.make(word)
    known = delayed(_Opaque(subjects), pure=False, traverse=False)
    raw, _ = tabulate([delayed(_load_resolved, pure=False)(split, known) for split in splits], streamed, client)
    raw, memory = check_memory(raw)
    tests = None if test is None else stream_examples(test, format, text_fields=text_fields)
    others = None if tests is None else (with_uris(batch, subjects)[0] for batch in tests)
    training = train_chunks(choices, raw, word, memory=memory, test=others)
    if subjects is not None:
        training.model.subjects_ = subjects
        unknown = [label for label in training.model.labels_ if label not in subjects]
        training.report.update({"subjects": len(subjects), "unknown_labels": unknown})
    return training


def in_order(function: Callable[[Examples], Any], rows: Rows, client: Client) -> Iterator[Any]:
    """Yield a function of each piece, in order; few are waited for at a time, so that results do not pile up."""
    ahead = 2 * max(1, len(client.nthreads()))
    call = client.persist(delayed(_Opaque(function), pure=False, traverse=False))
    waiting: deque[Any] = deque()
    for piece in rows.pieces:
        waiting.append(client.compute(delayed(_apply, pure=False)(call, piece)))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


class DaskChunks(Chunks):
    """Chunks that workers of a Dask cluster hold.

    Parameters
    ----------
    parts : list of Delayed
    lengths : array
    client : Client
    room : float
        How many bytes of other chunks the workers have room for.
    """

    def __init__(self, parts: list[Delayed], lengths: IntArray, client: Client, room: float = math.inf) -> None:
        self.parts, self.lengths, self.client, self._room = parts, lengths, client, room

    @property
    def room(self) -> float:
        return self._room

    def results(self, function: Callable[..., Any], items: Sequence[Any] | None = None) -> Iterator[Any]:
        for future in self._compute(self._tasks(function, items)):
            yield future.result()

    def map(
        self,
        function: Callable[..., Any],
        items: Sequence[Any] | None = None,
        lengths: IntArray | None = None,
        step: str = "features",
    ) -> DaskChunks:
        with _large_graphs():
            parts = self.client.persist(self._tasks(function, items))
        return DaskChunks(list(parts), self.lengths if lengths is None else lengths, self.client)

    def paired(self, *others: Any) -> DaskChunks:
        tuples = zip(self.parts, *(other.parts for other in others), strict=True)
        parts = [delayed(_together, pure=False)(*parts) for parts in tuples]
        return DaskChunks(parts, self.lengths, self.client)

    def regroup(
        self,
        select: Callable[..., Any],
        groups: Sequence[Any],
        combine: Callable[[list[Any], Any], Any],
        items: Sequence[Any] | None = None,
    ) -> Iterator[Any]:
        call, task = delayed(_Opaque(combine), pure=False, traverse=False), delayed(_combine, pure=False)
        wholes = [delayed(_Opaque(group), pure=False, traverse=False) for group in groups]
        parts = [self._tasks(Bound(select, group), items) for group in groups]
        for future in self._compute([task(call, *pair) for pair in zip(parts, wholes, strict=True)]):
            yield future.result()

    def total(self, function: Callable[..., Any], items: Sequence[Any] | None = None) -> Any:
        tasks = self._tasks(function, items)
        while len(tasks) > 1:
            groups = [tasks[i : i + FAN_IN] for i in range(0, len(tasks), FAN_IN)]
            tasks = [delayed(_add_up, pure=False)(group) for group in groups]
        return self._compute(tasks)[0].result()

    def _tasks(self, function: Callable[..., Any], items: Sequence[Any] | None) -> list[Delayed]:
        call = delayed(_Opaque(function), pure=False, traverse=False)  # sent once, and not with each task
        if items is None:
            return [delayed(_apply, pure=False)(call, part) for part in self.parts]
        whole = [delayed(item, pure=False, traverse=False) for item in items]
        return [delayed(_apply, pure=False)(call, part, item) for part, item in zip(self.parts, whole, strict=True)]

    def _compute(self, tasks: list[Delayed]) -> list[Any]:
        with _large_graphs():
            return list(self.client.compute(tasks))


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
        if _in_pieces(X):
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
        update_chunks(self, raw, sparse=sparse, weights=_weights(sample_weight, raw, self._client()))
        return self

    def predict_topk(self, X: Any, k: int = 5, *, allow: Any = None, block: Any = None) -> TopK:
        """Return the k best labels of each row; for rows in pieces, as dask arrays."""
        if not _in_pieces(X):
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
        return self._sparse_blocks("predict_scores", X) if _in_pieces(X) else super().predict_scores(X)

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
            weights = _weights(sample_weight, raw, self._client())
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


def examples_of(X: Any, y: Any) -> list[Delayed]:
    """Return rows in pieces of any kind as delayed Examples."""
    if isinstance(X, Rows):
        if y is not None:
            raise InputError("y must be left out: what read returns has the labels.")
        return list(X.pieces)
    blocks = _blocks(X, "X")
    labels: list[Any] = [None] * len(blocks) if y is None else _blocks(y, "y")
    if len(labels) != len(blocks):
        raise InputError(
            f"X and y must have the same pieces. Got {len(blocks)} of X and {len(labels)} of y. Repartition one."
        )
    return [delayed(_examples, pure=False)(*pair) for pair in zip(blocks, labels, strict=True)]


def tabulate(pieces: list[Delayed], features: StreamedFeatures, client: Client) -> tuple[DaskChunks, bool]:
    """Return rows as chunks of counts with the workers, and whether they are sparse."""
    parts = list(client.persist([delayed(_apply, pure=False)(_Opaque(Tabulate(features)), piece) for piece in pieces]))
    facts = client.gather(client.compute([delayed(_facts, pure=False)(part) for part in parts]))
    sparse = {is_sparse for _, is_sparse in facts}
    if len(sparse) > 1:
        raise InputError("X must be dense in all blocks, or sparse in all. Got both.")
    return DaskChunks(parts, np.array([n for n, _ in facts], np.int64), client), sparse.pop()


def check_memory(raw: DaskChunks) -> tuple[DaskChunks, float]:
    """Return rows that know how much room is left, and how many bytes a solver may take.

    Rows that the workers have no room for are refused.
    """
    limits = [limit or math.inf for limit in raw.client.run_on_scheduler(_memory_limits)]
    if not limits:
        raise InputError("client must have workers. Got a scheduler without any. Start some first.")
    counted = raw.total(Count())
    rows = 8.0 * (counted.entries + counted.label_entries) + 24 * counted.rows
    log("%.2f GB of rows on %d workers, %.2f GB each", 1e-9 * rows, len(limits), 1e-9 * rows / len(limits))
    room = ROW_SHARE * sum(limits)
    if 2 * rows > room:  # as they came, and as features
        raise MemoryError(
            f"The rows take {2e-9 * rows:.1f} GB, and the {len(limits)} workers have room for {1e-9 * room:.1f} GB. "
            "Use more workers, workers with more memory, or fewer words (n_features)."
        )
    raw = DaskChunks(raw.parts, raw.lengths, raw.client, room - 2 * rows)
    return raw, SOLVER_SHARE * min(*limits, available_memory())


def _memory_limits(dask_scheduler: Any) -> list[int]:
    return [worker.memory_limit for worker in dask_scheduler.workers.values()]


def _weights(sample_weight: Any, raw: DaskChunks, client: Client) -> DoubleArray | None:
    """Return the weights of all rows, one number for each, given in pieces or in memory."""
    if sample_weight is None:
        return None
    if _in_pieces(sample_weight):
        sample_weight = np.concatenate(client.gather(client.compute(_blocks(sample_weight, "sample_weight"))))
    return check_weights(sample_weight, np.empty((raw.n_rows, 0)))


def _in_pieces(X: Any) -> bool:
    return isinstance(X, Rows) or dask.is_dask_collection(X) or (isinstance(X, list) and _are_delayed(X))


def _are_delayed(blocks: Any) -> bool:
    return bool(blocks) and all(isinstance(block, Delayed) for block in blocks)


def _blocks(values: Any, name: str) -> list[Delayed]:
    """Return a collection of Dask, or a list of delayed blocks, as such a list: one block for some rows."""
    if isinstance(values, list) and _are_delayed(values):
        return values
    if not dask.is_dask_collection(values) or not hasattr(values, "to_delayed"):
        raise InputError(
            f"{name} must be a dask array, series or bag, a list of delayed blocks, or what labelsense.dask.read "
            f"returns. Got {type(values).__name__}. For rows in memory use CompressedLabelClassifier."
        )
    if getattr(values, "ndim", 1) == 2:
        if not hasattr(values, "rechunk"):
            raise InputError(f"{name} must be a column of a dask data frame, or an array. Got a data frame.")
        return values.rechunk({1: -1}).to_delayed()[:, 0].tolist()
    return list(np.ravel(np.array(values.to_delayed(), dtype=object)))


def _load(split: Split) -> Examples:
    return split.read()


def _load_resolved(split: Split, subjects: _Opaque) -> Examples:
    return with_uris(split.read(), subjects.content)[0]


def _examples(X: Any, y: Any) -> Examples:
    """Return a piece of rows, checked; this runs with the worker."""
    if sp.issparse(X):
        X = sp.csr_array(check_places(X, "X"), dtype=np.float32)
        X.sum_duplicates()
    elif is_matrix(X):
        X = np.asarray(X)
    else:
        X = list(X)
    if not isinstance(X, list):
        check_representable(X, "DaskCompressedLabelClassifier")
    if y is not None:
        y = check_binary(y, "y") if is_matrix(y) else [list(row) for row in y]
        check_same_length(X, y)
    return Examples(X, y)


def _facts(chunk: Examples) -> tuple[int, bool]:
    return len(chunk), bool(sp.issparse(chunk.X))


class _Opaque:
    """A function, or something else, that Dask does not look into."""

    def __init__(self, content: Any) -> None:
        self.content = content


def _apply(call: _Opaque, chunk: Any, *items: Any) -> Any:
    with serially(), np.errstate(over="ignore", invalid="ignore"):
        return call.content(chunk, *items)


def _together(*chunks: Any) -> tuple[Any, ...]:
    return chunks


def _combine(call: _Opaque, parts: list[Any], group: _Opaque) -> Any:
    with serially():
        return call.content(parts, group.content)


def _add_up(results: list[Any]) -> Any:
    """Add up results, without a change to them: a task may have to be done again."""
    first, *others = results
    if not others:
        return first
    total = first + others[0]
    for other in others[1:]:
        total += other
    return total


def _predict(model: CompressedLabelClassifier, method: str, piece: Examples, arguments: Any, options: Any) -> Any:
    with serially():
        return getattr(model, method)(piece.X, *arguments, **options)


@contextmanager
def _large_graphs() -> Iterator[None]:
    """Send weights with the tasks: what is put on a worker beforehand would die with it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")
        yield
