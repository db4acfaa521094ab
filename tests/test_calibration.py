"""Calibration error and thresholds, against definitions written out and brute force."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.calibration import calibration_curve

from labelsense.metrics import (
    above,
    best_f1_threshold,
    calibration_error,
    f1_score,
    label_thresholds,
    missed_share,
    reliability_curve,
)

LEVELS = [0.0, 0.0, 0.0, 0.125, 0.25, 0.3, 0.5, 0.9, 1.0]


@st.composite
def probable(draw):
    """Labels, and probabilities of some of them."""
    shape = draw(st.tuples(st.integers(1, 6), st.integers(2, 6)))
    Y = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 1), fill=st.nothing()))
    levels = st.sampled_from(LEVELS).map(np.float32)
    return Y, sp.csr_array(draw(hnp.arrays(np.float32, shape, elements=levels, fill=st.nothing())))


@given(probable(), st.integers(1, 5))
def test_bins_hold_equally_many_of_the_stored_pairs(case, n_bins):
    Y, P = case
    curve = reliability_curve(Y, P, n_bins)
    pairs = sorted((p, i) for i, p in enumerate(P.data))
    true = Y[P.nonzero()]
    assert len(curve.n_pairs) == min(n_bins, P.nnz)
    assert curve.n_pairs.sum() == P.nnz
    assert np.ptp(curve.n_pairs) <= 1 if P.nnz else True
    start, error = 0, 0.0
    for predicted, observed, count in zip(*curve, strict=True):
        part = pairs[start : start + count]
        assert predicted == pytest.approx(np.mean([p for p, _ in part]))
        assert observed == pytest.approx(np.mean([true[i] for _, i in part]))
        error += abs(predicted - observed) * count
        start += count
    assert calibration_error(Y, P, n_bins) == pytest.approx(error / max(P.nnz, 1))


def test_agrees_with_scikit_learn_where_bins_are_clear():
    rng = np.random.default_rng(0)
    p = rng.permutation(1000) / 1000 + 0.0005
    y = rng.uniform(size=1000) < p**2
    observed, predicted = calibration_curve(y, p, n_bins=10, strategy="quantile")
    curve = reliability_curve(y.reshape(100, 10), p.reshape(100, 10), 10)
    np.testing.assert_allclose(curve.predicted, predicted)
    np.testing.assert_allclose(curve.observed, observed)


def test_probabilities_that_mean_what_they_say_have_a_small_error_and_others_do_not():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=(1000, 50))
    Y = rng.uniform(size=p.shape) < p
    assert calibration_error(Y, p) < 0.01
    assert calibration_error(Y, p**2) == pytest.approx((p - p**2).mean(), abs=0.01)


@given(probable(), st.integers(0, 3))
def test_missed_labels_are_those_without_a_stored_probability(case, more):
    Y, P = case
    unseen = np.full(len(Y), more)
    true = Y.sum() + unseen.sum()
    listed = ((P.toarray() > 0) & (Y == 1)).sum()
    assert missed_share(Y, P, unseen=unseen) == pytest.approx((true - listed) / true if true else 0)


@pytest.mark.parametrize("average", ["samples", "micro"])
@given(probable(), st.integers(0, 2))
@settings(max_examples=200)
def test_no_threshold_has_a_higher_f1(average, case, more):
    Y, P = case
    unseen = np.full(len(Y), more)

    def f1(threshold):
        return f1_score(Y, above(P, threshold), average, unseen=unseen)

    best = best_f1_threshold(P, Y, average, unseen=unseen)
    tried = {level: f1(level) for level in np.unique(P.data)}
    highest = max(tried.values(), default=0)
    assert f1(best) == pytest.approx(highest, abs=1e-12)
    assert best == max((t for t, value in tried.items() if value > highest - 1e-12), default=0.5)


@given(probable())
def test_no_threshold_of_a_label_has_a_higher_f1_for_it(case):
    Y, P = case
    found = label_thresholds(P, Y, 0.4, prior=0)
    dense = P.toarray()
    for j in range(Y.shape[1]):
        if Y[:, j].any() and (dense[:, j] > 0).any():
            levels = np.unique(dense[dense[:, j] > 0, j])
            tried = {
                t: (2 * (Y[:, j] & (dense[:, j] >= t)).sum()) / ((dense[:, j] >= t).sum() + Y[:, j].sum())
                for t in levels
            }
            assert tried[np.float32(found[j])] == pytest.approx(max(tried.values()))
        else:
            assert found[j] == 0.4


@given(probable(), st.floats(1, 1e6))
def test_labels_with_few_rows_have_a_threshold_close_to_the_default(case, prior):
    Y, P = case
    alone, drawn = label_thresholds(P, Y, 0.4, prior=0), label_thresholds(P, Y, 0.4, prior=prior)
    counts = Y.sum(axis=0)
    np.testing.assert_allclose(drawn, (counts * alone + prior * 0.4) / (counts + prior))


def test_thresholds_of_labels_cut_each_by_its_own():
    P = sp.csr_array(np.array([[0.5, 0.5], [0.2, 0.9]], np.float32))
    assert above(P, [0.5, 0.6]).toarray().tolist() == [[1, 0], [0, 1]]
    assert above(P, 0.5).toarray().tolist() == [[1, 1], [0, 1]]


def test_what_is_meant_if_nothing_is_said():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=(20, 10))
    Y = rng.uniform(size=p.shape) < p**2
    assert len(reliability_curve(Y, p).n_pairs) == 20
    assert calibration_error(Y, p) == calibration_error(Y, p, 20) != calibration_error(Y, p, 19)
    assert label_thresholds(p, Y, 0.5).tolist() == label_thresholds(p, Y, 0.5, prior=50).tolist()
    assert missed_share(Y, p) == 0
    P, Y = [[0.3, 0, 0, 0, 0, 0], [0.9, 0.8, 0.5, 0.45, 0.4, 0.35]], [[1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0]]
    assert best_f1_threshold(P, Y) == best_f1_threshold(P, Y, "samples") == 0.3
    assert best_f1_threshold(P, Y, "micro") == 0.8
    P, Y = [[0.9, 0.8, 0.7, 0.6]], [[1, 0, 0, 1]]  # one label of two for one guess is as good as two for four
    assert (best_f1_threshold(P, Y, "micro"), best_f1_threshold(P, Y, "micro", unseen=[1])) == (0.9, 0.6)


def test_nothing_stored():
    Y, P = np.eye(3), sp.csr_array((3, 3))
    assert (calibration_error(Y, P), missed_share(Y, P), best_f1_threshold(P, Y)) == (0, 1, 0.5)
    assert label_thresholds(P, Y, 0.3).tolist() == [0.3] * 3


def test_scores_that_are_no_probabilities_are_refused():
    for wrong, said in ((1.5, "1.5"), (-0.5, "-0.5"), (np.nan, "nan")):
        with pytest.raises(ValueError, match=f"probabilities must be from 0 to 1. Got {said}"):
            calibration_error(np.eye(2), sp.csr_array([[wrong, 0.0], [0, 0.5]]))
    with pytest.raises(ValueError, match="^probabilities must have the shape of Y_true"):
        best_f1_threshold(np.eye(3), np.eye(2))
    astray = sp.csr_array(np.eye(2))
    astray.indices[0] = 7
    with pytest.raises(ValueError, match="^probabilities must have column numbers from 0 to 1. Got 7"):
        calibration_error(np.eye(2), astray)
    with pytest.raises(ValueError, match="^Y_true must be binary"):
        missed_share(np.eye(2) / 2, np.eye(2))


def test_bad_settings_are_refused():
    P = np.eye(2)
    with pytest.raises(ValueError, match="^n_bins must be at least 1. Got 0"):
        reliability_curve(P, P, 0)
    with pytest.raises(ValueError, match="^average must be one of 'samples', 'micro'"):
        best_f1_threshold(P, P, "macro")
    with pytest.raises(ValueError, match="^prior must be finite and at least 0. Got -1"):
        label_thresholds(P, P, 0.5, prior=-1)
    with pytest.raises(ValueError, match="^default must be finite and at least 0. Got -1"):
        label_thresholds(P, P, -1)
