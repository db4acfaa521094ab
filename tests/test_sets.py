"""F1, precision and recall of sets of labels, against scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics as theirs

from labelsense.metrics import f1_score, label_table, precision_recall


@st.composite
def sets(draw):
    shape = draw(st.tuples(st.integers(1, 8), st.integers(2, 6)))
    return tuple(draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 1))) for _ in range(2))


@given(sets())
def test_f1_is_that_of_scikit_learn(case):
    Y, P = case
    for average, undefined in (("samples", 0), ("micro", 0), ("macro", np.nan)):
        expected = theirs.f1_score(Y, P, average=average, zero_division=undefined)
        expected = 0 if np.isnan(expected) else expected
        assert f1_score(Y, P, average) == pytest.approx(expected)
        assert f1_score(sp.csr_array(Y), sp.csr_array(P), average) == pytest.approx(expected)


@given(sets())
def test_precision_and_recall_are_those_of_scikit_learn(case):
    expected = theirs.precision_recall_fscore_support(*case, average="micro", zero_division=0)[:2]
    assert precision_recall(*case) == pytest.approx(expected)


@given(sets())
def test_the_figures_of_each_label_are_those_of_scikit_learn(case):
    Y, P = case
    precision, recall, f1, count = theirs.precision_recall_fscore_support(Y, P, zero_division=0)
    table = label_table(Y, P)
    np.testing.assert_allclose(table.precision, precision)
    np.testing.assert_allclose(table.recall, recall)
    np.testing.assert_allclose(table.f1, f1)
    np.testing.assert_array_equal(table.n_true, count)
    np.testing.assert_array_equal(table.n_predicted, P.sum(axis=0))


@given(sets(), st.lists(st.integers(0, 2), min_size=8, max_size=8))
def test_labels_without_column_are_labels_that_are_not_found(case, unseen):
    Y, P = case
    unseen = np.array(unseen[: len(Y)])
    wide = np.hstack([Y, np.arange(2) < unseen[:, None]]), np.hstack([P, np.zeros((len(Y), 2), int)])
    for average in ("samples", "micro"):
        assert f1_score(Y, P, average, unseen=unseen) == pytest.approx(f1_score(*wide, average))
    assert precision_recall(Y, P, unseen=unseen) == pytest.approx(precision_recall(*wide))


def test_the_mean_over_rows_is_what_is_meant_if_nothing_is_said():
    Y, P = [[1, 1, 0], [0, 1, 0]], [[1, 0, 0], [0, 1, 0]]
    assert f1_score(Y, P) == f1_score(Y, P, "samples") == pytest.approx((2 / 3 + 1) / 2)
    assert f1_score(Y, P) != f1_score(Y, P, "micro")


def test_of_one_true_label_and_one_guess():
    assert precision_recall([[1, 0]], [[1, 0]]) == (1, 1)
    assert precision_recall([[1, 0]], [[1, 0]], unseen=[1]) == (1, 0.5)


def test_a_million_labels_are_not_a_million_columns():
    d, n = 1_000_000, 20_000
    rng = np.random.default_rng(0)
    Y = sp.csr_array((np.ones(5 * n), rng.integers(0, d, 5 * n), np.arange(0, 5 * n + 1, 5)), shape=(n, d))
    Y.sum_duplicates()
    Y.data[:] = 1
    assert f1_score(Y, Y) == f1_score(Y, Y, "micro") == f1_score(Y, Y, "macro") == 1
    assert label_table(Y, Y).n_true.sum() == Y.nnz


def test_bad_input():
    with pytest.raises(ValueError, match=r"Y_pred must have the shape of Y_true, \(2, 2\). Got \(2, 3\)"):
        f1_score(np.eye(2), np.ones((2, 3)))
    with pytest.raises(ValueError, match="^Y_true must be binary"):
        label_table(np.eye(2) / 2, np.eye(2))
    with pytest.raises(ValueError, match="^Y_pred must be binary.*Got 0.5"):
        precision_recall(np.eye(2), np.eye(2) / 2)
    with pytest.raises(ValueError, match="average must be one of 'samples', 'micro', 'macro'.*Got 'weighted'"):
        f1_score(np.eye(2), np.eye(2), "weighted")
