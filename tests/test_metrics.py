"""Ranking metrics against definitions written out, and against scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import ndcg_score

from labelsense import TopK
from labelsense.labels import top_k
from labelsense.metrics import (
    coverage_at_k,
    inverse_propensities,
    ndcg_at_k,
    precision_at_k,
    propensity_scored_precision_at_k,
    propensity_weights,
    ranking_figures,
    recall_at_k,
    split_largest,
    squared_error,
)
from labelsense.metrics.ranking import rank_precision


@st.composite
def rankings(draw):
    shape = draw(st.tuples(st.integers(1, 6), st.integers(2, 8)))
    Y = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 1)))
    scores = draw(hnp.arrays(np.float32, shape, elements=st.sampled_from([-1.0, 0.0, 0.25, 0.5, 2.0])))
    return Y, scores, draw(st.integers(1, 9))


def best(scores, k):
    """Stored (non-zero) scores by falling score, ties to the lowest column."""
    ranked = sorted(np.flatnonzero(scores), key=lambda j: (-scores[j], j))
    return ranked[:k]


@given(rankings())
def test_equal_their_definitions(case):
    Y, scores, k = case
    hits = [[int(y[j]) for j in best(s, k)] for y, s in zip(Y, scores, strict=True)]
    gains = 1 / np.log2(np.arange(2, k + 2))
    ideal = [gains[: min(k, y.sum())].sum() for y in Y]
    expected = {
        precision_at_k: np.mean([sum(h) / k for h in hits]),
        recall_at_k: np.mean([sum(h) / max(y.sum(), 1) for h, y in zip(hits, Y, strict=True)]),
        ndcg_at_k: np.mean([gains[: len(h)] @ h / i if i else 0 for h, i in zip(hits, ideal, strict=True)]),
    }
    for metric, value in expected.items():
        assert metric(Y, scores, k) == pytest.approx(value)
        assert metric(sp.csr_array(Y), sp.csr_array(scores), k) == pytest.approx(value)


@given(rankings())
def test_propensity_scored_precision_equals_its_definition(case):
    Y, scores, k = case
    weights = np.linspace(1, 3, Y.shape[1])
    gained = sum(weights[j] * y[j] for y, s in zip(Y, scores, strict=True) for j in best(s, k))
    possible = sum(np.sort(weights * y)[::-1][:k].sum() for y in Y)
    expected = gained / possible if possible else 0
    assert propensity_scored_precision_at_k(Y, scores, weights, k) == pytest.approx(expected)


@given(rankings(), st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_labels_without_column_are_part_of_the_best_possible(case, unseen):
    Y, scores, k = case
    unseen, weights = np.array(unseen[: len(Y)]), np.linspace(1, 3, Y.shape[1])
    wide = np.hstack([Y, np.arange(3) < unseen[:, None]])  # three columns that are never predicted
    got = propensity_scored_precision_at_k(Y, scores, weights, k, unseen=unseen, unseen_weight=4.0)
    expected = propensity_scored_precision_at_k(
        wide, np.hstack([scores, np.zeros((len(Y), 3))]), np.append(weights, [4.0] * 3), k
    )
    assert got == pytest.approx(expected)


@given(rankings(), st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_labels_without_column_are_not_found(case, unseen):
    Y, scores, k = case
    unseen = np.array(unseen[: len(Y)])
    wide, more = np.hstack([Y, np.arange(3) < unseen[:, None]]), np.hstack([scores, np.zeros((len(Y), 3))])
    for metric in (recall_at_k, ndcg_at_k):
        assert metric(Y, scores, k, unseen=unseen) == pytest.approx(metric(wide, more, k))


@given(rankings(), st.integers(0, 2))
def test_all_figures_are_those_of_the_functions(case, unseen):
    Y, scores, k = case
    Y, scores, weights = sp.csr_array(Y), sp.csr_array(scores), np.linspace(1, 3, Y.shape[1] + 1)
    figures = ranking_figures(Y, top_k(scores, 8), [1, k], unseen, weights)
    for at in (1, k):
        expected = {
            f"P@{at}": precision_at_k(Y, scores, at),
            f"recall@{at}": recall_at_k(Y, scores, at, unseen=unseen),
            f"nDCG@{at}": ndcg_at_k(Y, scores, at, unseen=unseen),
            f"PSP@{at}": propensity_scored_precision_at_k(
                Y, scores, weights[:-1], at, unseen=unseen, unseen_weight=weights[-1]
            ),
            f"coverage@{at}": coverage_at_k(Y, scores, at),
        }
        assert {name: figures[name] for name in expected} == expected
    assert "PSP@1" not in ranking_figures(Y, top_k(scores, 8), [1])
    assert ranking_figures(Y, top_k(scores, 8), [1])["recall@1"] == recall_at_k(Y, scores, 1)


def test_labels_of_a_row_may_come_in_any_order():
    top = TopK(np.array([[0, 2, 1]]), np.ones((1, 3)))
    upside_down = sp.csr_array(([1, 1], [2, 0], [0, 2]), shape=(1, 3))
    assert ranking_figures(upside_down, top, [1, 2]) == ranking_figures(sp.csr_array([[1, 0, 1]]), top, [1, 2])


def test_a_hit_counts_at_its_own_place():
    Y, top = sp.csr_array([[1, 0, 1], [1, 0, 0]]), TopK(np.array([[1, 0, 2], [0, 2, -1]]), np.ones((2, 3)))
    assert rank_precision(Y, top, 3).tolist() == [0.5, 0.5, 0.5]
    assert rank_precision(Y, top, 2).tolist() == [0.5, 0.5]


def test_the_five_best_are_judged_if_nothing_is_said():
    rng = np.random.default_rng(0)
    Y, scores, weights = rng.integers(0, 2, (30, 12)), rng.uniform(0.1, 1, (30, 12)), np.linspace(1, 2, 12)
    for metric in (precision_at_k, recall_at_k, ndcg_at_k, coverage_at_k):
        assert metric(Y[:2], scores[:2]) == metric(Y[:2], scores[:2], 5) != metric(Y[:2], scores[:2], 6)
    got = propensity_scored_precision_at_k(Y, scores, weights)
    assert got == propensity_scored_precision_at_k(Y, scores, weights, 5)
    assert got != propensity_scored_precision_at_k(Y, scores, weights, 6)


@given(rankings())
def test_coverage_is_the_share_of_labels_that_some_row_has_among_its_best(case):
    Y, scores, k = case
    found = {j for row in scores for j in best(row, k)}
    assert coverage_at_k(Y, scores, k) == pytest.approx(len(found) / Y.shape[1])


def test_ndcg_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (50, 20))
    Y[:, 0] = 1
    scores = rng.uniform(0.1, 1, (50, 20))
    assert ndcg_at_k(Y, scores, 5) == pytest.approx(ndcg_score(Y, scores, k=5))


def test_a_topk_and_its_scores_are_judged_alike():
    Y = np.array([[1, 0, 1, 0], [0, 0, 0, 1]])
    top = TopK(np.array([[2, 1, -1], [3, 0, 1]]), np.array([[0.9, 0.2, 0], [0.8, 0.5, 0.1]]))
    assert precision_at_k(Y, top, 3) == pytest.approx((1 / 3 + 1 / 3) / 2)
    assert precision_at_k(Y, top, 1) == 1
    with pytest.raises(ValueError, match="k must be at most the number of predicted labels, 3. Got 5"):
        precision_at_k(Y, top, 5)
    with pytest.raises(TypeError, match="TopK of named labels has no column numbers"):
        precision_at_k(Y, TopK(np.array([["a"], ["b"]], dtype=object), top.scores), 1)


def test_inverse_propensities_fall_with_frequency_and_follow_the_formula():
    Y = sp.csr_array(np.tril(np.ones((100, 4)), -1)[:, ::-1])
    weights = inverse_propensities(Y)
    frequency = Y.toarray().sum(axis=0)
    C = (np.log(100) - 1) * 2.5**0.55
    np.testing.assert_allclose(weights, 1 + C * np.exp(-0.55 * np.log(frequency + 1.5)))
    assert (np.diff(weights[np.argsort(frequency)]) <= 0).all()


def test_inverse_propensities_have_a_number_for_labels_without_rows_and_other_constants():
    Y = sp.csr_array(np.array([[1, 1, 0]] * 10))
    assert inverse_propensities(Y).tolist() == propensity_weights([10, 10, 0], 10).tolist()
    assert inverse_propensities(Y, a=0.3, b=2).tolist() == propensity_weights([10, 10, 0], 10, a=0.3, b=2).tolist()
    assert inverse_propensities(Y).tolist() == propensity_weights([10, 10, 0], 10, a=0.55, b=1.5).tolist()


def test_a_label_without_column_weighs_as_much_as_any_other():
    Y, scores, weights = [[1, 0, 1]], [[0.9, 0.8, 0.7]], [2.0, 1.0, 3.0]
    assert propensity_scored_precision_at_k(Y, scores, weights, 2, unseen=[1]) == 2 / (3 + 3)
    assert propensity_scored_precision_at_k(Y, scores, weights, 2, unseen=[1], unseen_weight=4.0) == 2 / (4 + 3)
    with pytest.raises(ValueError, match="unseen_weight must be"):
        propensity_scored_precision_at_k(Y, scores, weights, 2, unseen=[1], unseen_weight=2.0)


def test_propensities_of_few_rows_are_one():
    assert propensity_weights([0, 1, 2], 2).tolist() == [1, 1, 1]
    assert np.isfinite(propensity_weights([0, 5], 100, b=0)).all()
    assert propensity_weights([7], 100, a=0).tolist() == pytest.approx(
        [np.log(100)]
    )  # every label is annotated as often


@given(rankings())
def test_squared_error_is_the_mean_squared_distance(case):
    Y, scores, _ = case
    assert squared_error(Y, sp.csr_array(scores)) == pytest.approx(((Y - scores) ** 2).sum(axis=1).mean())


@given(rankings())
def test_the_largest_entries_and_the_others_make_up_a_row(case):
    _, scores, k = case
    head, tail = split_largest(sp.csr_array(scores), k)
    assert (head + tail).toarray().tolist() == scores.tolist()
    for row, kept in zip(scores, head.toarray(), strict=True):
        largest = sorted(np.flatnonzero(row), key=lambda j: (-abs(row[j]), j))[:k]
        assert np.flatnonzero(kept).tolist() == sorted(largest)


def test_large_label_numbers_do_not_wrap():
    d = 3_000_000
    Y = sp.csr_array((np.ones(2), [d - 1, d - 1], [0, 1, 2]), shape=(2, d))
    assert precision_at_k(Y, Y, 1) == 1


def test_bad_input():
    with pytest.raises(ValueError, match="Y_true must be binary.*Got 3. Pass Y_true > 0"):
        precision_at_k([[3, 0]], [[1, 0]], 1)
    with pytest.raises(ValueError, match="Predictions must have one row per row of Y_true, 2. Got 1"):
        precision_at_k(np.eye(2), [[1, 0]], 1)
    with pytest.raises(ValueError, match="k must be at least 1. Got 0"):
        precision_at_k(np.eye(2), np.eye(2), 0)
    with pytest.raises(ValueError, match="scores must have the shape of Y_true"):
        squared_error(np.eye(2), np.eye(3))
    with pytest.raises(ValueError, match="weights must have one number per label, 2"):
        propensity_scored_precision_at_k(np.eye(2), np.eye(2), [1.0], 1)
    with pytest.raises(ValueError, match="^Y_train must be binary"):
        inverse_propensities([[2, 0]])
    with pytest.raises(ValueError, match="^Y_true must be binary"):
        coverage_at_k([[2, 0]], [[1, 0]])
    with pytest.raises(ValueError, match="^Negative values in data: Y_true must be 1"):
        squared_error([[-1, 0]], [[1, 0]])
    with pytest.raises(ValueError, match="^a must be finite and at least 0. Got -1"):
        propensity_weights([1], 10, a=-1)
    with pytest.raises(ValueError, match="^b must be finite and at least 0. Got -1"):
        propensity_weights([1], 10, b=-1)
    with pytest.raises(ValueError, match="^n_samples must be at least 1. Got 0"):
        propensity_weights([1], 0)
