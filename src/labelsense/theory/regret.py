"""Theorems 1 to 3: from the error of the regressions to the error of the labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelsense._typing import CSR
from labelsense._validation import check_count, check_indicator, check_real, check_same_length
from labelsense.compress.base import Operator
from labelsense.errors import InputError
from labelsense.estimator import CompressedLabelClassifier
from labelsense.metrics import sparsity_error, split_largest, squared_error
from labelsense.reconstruct import CoSaMPDecoder, Decoder, FoBaDecoder, OMPDecoder
from labelsense.theory.codes import scaled_error, secoc_bound
from labelsense.theory.isometry import as_operator, rip_upper_bound

OMP_FACTOR = 23.0  # Theorem 2
ROUNDING = 1e-10  # a squared residual that is so small beside |h|^2 is float32 rounding


@dataclass(frozen=True)
class RegretTransform:
    """Both sides of Theorem 3 for a fitted model, and what the right side is made of.

    Attributes
    ----------
    error : float
        The mean of |F(x) - E[y given x]|^2: the left side.
    bound : float
        ``C1 * regression_error + C2 * sparsity_error``: the right side; infinite where nothing is certain.
    regression_error, sparsity_error : float
        The means of |H(x) - A E[y given x]|^2 and of sperr(k, E[y given x]).
    C : float
        The factor of Theorem 1: by how much the squared residual of the decoder exceeds that of the k largest entries
        of E[y given x].
    measured : bool
        Whether C is the largest ratio met on these rows, or Theorem 2's 23.
    delta : float
        The restricted isometry constant for k plus the number of labels that the decoder returns.
    C1, C2 : float
        The regret factors.
    scaled_error : float
        r-bar.
    secoc_bound : float
        4 k^2 r-bar: what SECOC would guarantee with regressions as good as these, but at least d of them.
    """

    error: float
    bound: float
    regression_error: float
    sparsity_error: float
    C: float
    measured: bool
    delta: float
    C1: float
    C2: float
    scaled_error: float
    secoc_bound: float


def regret_factors(C: float, delta: float) -> tuple[float, float]:
    """Return C1 and C2 of Theorem 1: 2 (1 + sqrt C)^2 / (1 - delta) and 4 (1 + (1 + sqrt C) / (1 - delta))^2.

    Certifies |F - y|^2 <= C1 |h - A y|^2 + C2 sperr(k, y) for every y, if A has the (k + f(k), delta)-RIP and the
    decoder's f(k)-sparse answer has a squared residual of at most C times that of the k largest entries of y. It says
    nothing from delta = 1 on, where both are infinite.

    Examples
    --------
    >>> [round(factor, 1) for factor in regret_factors(C=23, delta=0.3)]  # OMP, by Theorem 2 and Lemma 7
    [96.0, 344.5]
    """
    root = 1 + math.sqrt(check_real(C, "C", low=0))
    gap = 1 - check_real(delta, "delta", low=0)
    if gap <= 0:
        return math.inf, math.inf
    return 2 * root**2 / gap, 4 * (1 + root / gap) ** 2


def guaranteed(decoder: Decoder, A: Any, k: int) -> bool:
    """Return whether the paper's condition for a decoder is certain to hold for A and sparsity k.

    The conditions: for OMP, as in the paper (no penalty, coefficients of either sign), a coherence of at most 0.1/k and
    at least 2k steps; for CoSaMP and FoBa the (4k, 0.1)- and (8k, 0.1)-RIP, as :func:`rip_upper_bound` shows it, and
    supports of 2k and 8k. The Lasso and correlation decoding have none. False is not a refusal: the RIP may hold
    although the coherence does not show it.

    Examples
    --------
    >>> from labelsense import DeVoreCompressor, OMPDecoder
    >>> guaranteed(OMPDecoder(n_nonzero=2), DeVoreCompressor(n_measurements=11**2).fit(100).operator_, k=1)
    True
    """
    operator = as_operator(A)
    size, wanted = decoder.support_size(operator), decoder.output_sparsity(check_count(k, "k"))
    if isinstance(decoder, OMPDecoder):
        plain = decoder.penalty == 0 and not decoder.nonnegative
        return plain and size >= wanted and operator.coherence() <= 0.1 / k
    orders: dict[type[Decoder], int] = {CoSaMPDecoder: 4 * k, FoBaDecoder: 8 * k}
    order = min(orders.get(type(decoder), 0), operator.n_labels)
    return order > 0 and size == wanted and rip_upper_bound(operator, order) <= 0.1


def regret_transform(
    model: CompressedLabelClassifier, X: Any, P: Any, k: int, *, delta: float | None = None
) -> RegretTransform:
    """Evaluate both sides of Theorem 3, the regret transform, for a fitted model on rows whose E[y given x] is known.

    For OMP under the conditions of Theorem 2, C is 23 and the bound could be had beforehand. Otherwise C is measured
    on these rows: the proof of Theorem 1 goes row by row, so the bound holds for them whatever the decoder, but
    promises nothing for others. The paper names no constants for FoBa and CoSaMP, and no theorem for the Lasso and
    correlation decoding.

    Certifies ``error <= bound`` whenever ``delta`` is a restricted isometry constant. It cannot say how large the
    error is: the constants are those of the worst case.

    Parameters
    ----------
    model : CompressedLabelClassifier
        Fitted.
    X : array or CSR (n, p)
        Rows.
    P : CSR or array (n, d)
        E[y given x] of the same rows, columns in the order of ``model.labels_``.
    k : int
        The sparsity at which to split E[y given x]. The bound holds for each; try several.
    delta : float, optional
        The restricted isometry constant for k plus the number of labels returned, if you know it. By default
        :func:`rip_upper_bound`; from 1 on the bound is infinite.

    Examples
    --------
    >>> from labelsense import CompressedLabelClassifier, DeVoreCompressor, OMPDecoder
    >>> from labelsense.data import make_tagged_documents
    >>> X, Y = make_tagged_documents(n_samples=200, n_labels=100, random_state=0)
    >>> clf = CompressedLabelClassifier(DeVoreCompressor(11**2), "ridge", OMPDecoder(2), refiner=None).fit(X, Y)
    >>> sides = regret_transform(clf, X, Y, k=1)
    >>> sides.C, sides.error <= sides.bound
    (23.0, True)
    """
    if not isinstance(model, CompressedLabelClassifier):
        raise TypeError(f"model must be a CompressedLabelClassifier. Got {type(model).__name__}.")
    H, F = model.measure(X), model.predict_scores(X)
    operator = model.compressor_.operator_
    P = check_indicator(P, "P")
    check_same_length(H, P)
    if P.shape[1] != operator.n_labels:
        raise InputError(f"P must have one column per label, {operator.n_labels}. Got {P.shape[1]} columns.")
    k = check_count(k, "k", high=operator.n_labels)
    returned = model.decoder_.support_size(operator)
    if delta is None:
        delta = rip_upper_bound(operator, min(k + returned, operator.n_labels))
    delta = check_real(delta, "delta", low=0)
    measured = not (isinstance(model.decoder_, OMPDecoder) and guaranteed(model.decoder_, operator, k))
    C = _largest_ratio(operator, H, F, P, k) if measured else OMP_FACTOR
    C1, C2 = regret_factors(C, delta) if math.isfinite(C) else (math.inf, math.inf)
    regression = float(_squares(H - operator.compress(P)).mean())
    sparsity = float(sparsity_error(P, k).mean())
    bound = C1 * regression + C2 * sparsity if math.isfinite(C1) else math.inf
    r_bar = scaled_error(operator, H, P, k)
    error = squared_error(P, F)
    return RegretTransform(error, bound, regression, sparsity, C, measured, delta, C1, C2, r_bar, secoc_bound(r_bar, k))


def _largest_ratio(operator: Operator, H: Any, F: CSR, P: CSR, k: int) -> float:
    """Return the C of Theorem 1 on these rows: the largest |A F - h|^2 / |A P_k - h|^2."""
    got, rival = _squares(operator.compress(F) - H), _squares(operator.compress(split_largest(P, k)[0]) - H)
    fitted = got <= ROUNDING * _squares(H)  # 0 up to rounding, whatever the rival
    ratios = np.divide(got, rival, out=np.full(len(got), math.inf), where=rival > 0)
    return float(np.where(fitted, 0, ratios).max(initial=0))


def _squares(rows: Any) -> Any:
    return (rows.astype(np.float64) ** 2).sum(axis=1)
