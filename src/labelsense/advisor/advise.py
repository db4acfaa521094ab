"""The advisor: what a classifier would choose for the rows, a rehearsal on a sample, and what follows from both."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from labelsense._progress import log, verbosity
from labelsense._typing import CSR, RandomState
from labelsense._validation import check_count, holds_texts
from labelsense.advisor.advice import Advice, Option
from labelsense.advisor.costs import Costs, peak_bytes
from labelsense.advisor.reasons import explain
from labelsense.advisor.sparsity import Sparsity
from labelsense.advisor.trial import extrapolate, measurement_grid, perfect_curve
from labelsense.chooser import BUDGETS
from labelsense.compress import Compressor
from labelsense.errors import InputError
from labelsense.estimator import CompressedLabelClassifier
from labelsense.features import make_features
from labelsense.ordering import describe_order
from labelsense.reconstruct import Decoder
from labelsense.refine import Refiner
from labelsense.regress import Learner
from labelsense.report import PRECISIONS, describe_parts
from labelsense.trials import precision_curve

LEAST_ROWS = 10
TIMED_ROWS = 256  # rows on which predictions are timed


def advise(
    X: Any,
    y: Any,
    *,
    compressor: Compressor | str = "auto",
    learner: Learner | BaseEstimator | str = "auto",
    decoder: Decoder | str = "auto",
    refiner: Refiner | str | None = "auto",
    features: BaseEstimator | str | None = None,
    budget: str = "balanced",
    held_out: str = "auto",
    k: int = 5,
    sample: int = 6000,
    random_state: RandomState = 0,
    verbose: int = 0,
) -> Advice:
    """Tell what a classifier would choose for these rows, what precision to expect of it, and what it will cost.

    It chooses as ``CompressedLabelClassifier(...).fit(X, y)`` does, with the same trials on the same rows, so that both
    agree. It then fits that to a sample of the rows, and to half of it if there are more, to see what to expect and how
    much more rows help; and it decodes from fewer and more measurements, for the picture.

    Parameters
    ----------
    X : array or CSR (n, p), or texts
        The rows that the classifier will be fitted on.
    y : indicator matrix (n, d), or one list of labels per row
    compressor, learner, decoder, refiner, budget, held_out
        As for :class:`~labelsense.CompressedLabelClassifier`.
    features : transformer or word, optional
        As for :class:`~labelsense.CompressedLabelClassifier`; by default "words" for texts.
    k : int
        The picture and the reasons are about P@k: the number of labels that will be shown, at most d.
    sample : int
        How many rows to learn from, at most.
    random_state : int, RandomState or None
        Seed of everything random.
    verbose : int
        1 logs each step.

    Returns
    -------
    Advice

    Examples
    --------
    >>> from labelsense.advisor import advise
    >>> from labelsense.data import make_tagged_documents
    >>> X, Y = make_tagged_documents(400, 200, 60, noise=0.1, random_state=0)
    >>> advice = advise(X, Y, budget="fast")
    >>> [option.n_measurements for option in advice.options]
    [20, 32, 50, 60]
    >>> advice.make_classifier().fit(X, Y).predict_topk(X, 2).labels.shape
    (400, 2)
    """
    model = CompressedLabelClassifier(
        compressor,
        learner,
        decoder,
        refiner=refiner,
        features="words" if features is None and holds_texts(X) else features,
        budget=budget,
        held_out=held_out,
        random_state=random_state,
        verbose=verbose,
    )
    return advise_on(model, X, y, k=k, sample=sample)


def advise_on(model: CompressedLabelClassifier, X: Any, y: Any, *, k: int = 5, sample: int = 6000) -> Advice:
    """Do what :func:`advise` does for a classifier that has not been fitted; it is left as it is."""
    start = time.perf_counter()
    model, seed = clone(model), int(check_random_state(model.random_state).randint(2**31))
    if not isinstance(model.random_state, (int, np.integer)):
        model.random_state = seed
    model._check_settings(weighted=False)
    check_count(sample, "sample", low=LEAST_ROWS)
    k = check_count(k, "k")
    X, Y, _ = model._check_training(X, y)
    if X.shape[0] < LEAST_ROWS:
        raise InputError(
            f"advise needs at least {LEAST_ROWS} rows, to learn from some and test on others. Got {X.shape[0]}."
        )
    k, ks = min(k, Y.shape[1]), tuple(sorted({1, 3, 5, min(k, Y.shape[1])}))
    with verbosity(model.verbose):
        plan = model._plan(X, Y, weighted=False)
        scaling = make_features(plan.scaling or "none")
        X = X if scaling is None else scaling.fit_transform(X)
        plan.compressor.fit_rows(X, Y)
        recommended = _recommend(model, plan)
        order = np.random.default_rng(seed).permutation(X.shape[0])
        options = _measure(model, plan, X, Y, order[: BUDGETS[model.budget].sample], ks)
        in_order = None if model.held_out == "rows" else describe_order(X, Y, random_state=0)
        rehearsals = _rehearse(
            recommended, plan, X, Y, order[:sample], last=in_order is not None or model.held_out == "last"
        )
    possible = best_possible(Y, ks)
    expected = {
        name: extrapolate(
            [r.n_rows for r in rehearsals], [r.expected[name] for r in rehearsals], X.shape[0], possible[name]
        )
        for name in PRECISIONS
    }
    whole = rehearsals[-1]
    advice = Advice(
        sparsity=Sparsity.of(Y),
        classifier=recommended,
        chosen=describe_parts(
            model.budget, _features_of(recommended, model), plan.compressor, whole.learner, plan.decoder
        )
        | {"refiner": whole.refiner},
        tried=[] if plan.choice is None else [{"setting": str(row), **row.figures} for row in plan.choice.tried],
        options=options,
        n_measurements=plan.compressor.operator_.n_measurements,
        k=k,
        expected=whole.expected | expected,
        expected_last=whole.expected_last,
        best_possible=possible,
        standard_error=math.sqrt(expected["P@1"] * (1 - expected["P@1"]) / whole.n_rows),
        costs=_costs(plan, rehearsals, X, Y),
        order=in_order,
        reasons=(),
        n_learned=whole.n_rows,
        seconds=time.perf_counter() - start,
    )
    return advice.because(explain(advice, whole.judges, given=model.compressor != "auto"))


def best_possible(Y: CSR, ks: Any) -> dict[str, float]:
    """Return the best possible P@k: rows with fewer than k labels cannot reach 1."""
    per_row = np.diff(Y.indptr)
    return {f"P@{k}": float(np.minimum(per_row, k).mean() / k) for k in ks}


class Rehearsal(NamedTuple):
    """What came of a fit to some of the rows."""

    n_rows: int
    learner: Learner
    expected: dict[str, float]
    expected_last: dict[str, float]
    judges: dict[str, dict[str, float]]
    refiner: str
    fit_seconds: float
    predict_seconds: float  # of a row


def _recommend(model: CompressedLabelClassifier, plan: Any) -> CompressedLabelClassifier:
    """Return the model with everything that was chosen as a part."""
    m = plan.compressor.operator_.n_measurements
    features = model.features
    if features is None and plan.choice is not None:
        features = plan.scaling or "none"
    return clone(model).set_params(
        compressor=clone(plan.compressor).set_params(n_measurements=m),
        learner=clone(plan.learner),
        decoder=clone(plan.decoder),
        refiner=None if plan.refiner is None else clone(plan.refiner),
        features=features,
    )


def _features_of(recommended: CompressedLabelClassifier, model: CompressedLabelClassifier) -> Any:
    return recommended.features if isinstance(recommended.features, str) else model.features_


def _measure(model: CompressedLabelClassifier, plan: Any, X: Any, Y: CSR, rows: Any, ks: Any) -> tuple[Option, ...]:
    """Return what a few rows give without refinement, for several numbers of measurements."""
    m, rows = plan.compressor.operator_.n_measurements, np.sort(rows)
    X, Y = X[rows], Y[rows]
    ms = {m, *(some for some in measurement_grid(Y.shape[1], X.shape[1]) if some <= m or model.compressor == "auto")}
    log("advise: from %d to %d measurements", min(ms), max(ms))
    compressor = clone(plan.compressor).set_params(n_measurements=max(ms))
    operator = compressor.fit_rows(X, Y).operator_
    decoder = clone(plan.decoder).fit_labels(Y)
    H = clone(plan.learner).fit_out_of_sample(X, operator.compress(Y))
    measured = precision_curve(H, Y, operator, decoder, sorted(ms), ks)
    perfect = perfect_curve(Y, operator, decoder, sorted(ms), ks)
    return tuple(
        Option(int(one.pop("n_measurements")), perfect=other, measured=one)
        for one, other in zip(measured, perfect, strict=True)
    )


def _rehearse(
    recommended: CompressedLabelClassifier, plan: Any, X: Any, Y: CSR, order: Any, last: bool
) -> list[Rehearsal]:
    """Fit to a sample of the rows, and to half of them before if there are more rows than these."""
    sizes = [len(order)] if len(order) == X.shape[0] else [max(LEAST_ROWS, len(order) // 2), len(order)]
    found = []
    for size in sizes:
        log("advise: a rehearsal with %d rows", size)
        rows = np.sort(order[:size])
        held_out = "last" if last and size == sizes[-1] else "rows"
        clf = clone(recommended).set_params(features="none", held_out=held_out, updatable=False)
        start = time.perf_counter()
        clf.fit(X[rows], Y[rows])
        fitted = time.perf_counter()
        some = rows[:TIMED_ROWS]
        clf.predict_topk(X[some])
        predicted = time.perf_counter()
        report = clf.report_
        assert report is not None
        expected = report.expected
        if clf.refiner_ is None:
            operator = clf.compressor_.operator_
            H = clf.learner_.unfitted().fit_out_of_sample(X[rows], operator.compress(Y[rows]))
            curve = precision_curve(H, Y[rows], operator, clf.decoder_, [operator.n_measurements])[0]
            expected = {**{name: curve[name] for name in PRECISIONS}, "rows": float(size)}
        found.append(
            Rehearsal(
                size,
                clf.learner_,
                expected,
                report.expected_last,
                report.judges,
                report.chosen["refiner"],
                fitted - start,
                (predicted - fitted) / len(some),
            )
        )
    return found


def _costs(plan: Any, rehearsals: list[Rehearsal], X: Any, Y: CSR) -> Costs:
    whole, m = rehearsals[-1], plan.compressor.operator_.n_measurements
    growth = 1.0
    if len(rehearsals) == 2:
        growth = min(max(math.log2(whole.fit_seconds / rehearsals[0].fit_seconds), 1.0), 3.0)
    cost = plan.learner.cost(X, m)
    return Costs(
        solver=cost.solver,
        fit_seconds=whole.fit_seconds * (X.shape[0] / whole.n_rows) ** growth,
        predict_seconds=1000 * whole.predict_seconds,
        model_bytes=cost.model_bytes,
        peak_bytes=peak_bytes(plan.learner, X, Y, m),
    )
