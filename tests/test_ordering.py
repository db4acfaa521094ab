"""Rows that come in time or in runs: they are noticed, and what to expect of new ones is measured."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelsense import CompressedLabelClassifier
from labelsense.data import make_tagged_documents
from labelsense.ordering import come_in_runs, count_last, describe_order

RIDGE = {"learner": "ridge", "random_state": 0}


def label_rows(n, d, seed=0):
    """One label a row, at random."""
    return sp.csr_array(np.eye(d, dtype=int)[np.random.default_rng(seed).integers(d, size=n)])


def twins(n=150):
    """Every row is there twice, and its labels are noise: what is found is found by the twin."""
    twin = np.repeat(np.arange(n), 2)
    return np.random.default_rng(0).normal(size=(n, 200))[twin], label_rows(n, 40)[twin]


class TestNoticing:
    @pytest.mark.parametrize("seed", range(20))
    @pytest.mark.parametrize("n", [60, 2000])
    def test_rows_at_random_have_no_order(self, n, seed):
        X, Y = make_tagged_documents(n, 100, 40, random_state=seed)
        assert describe_order(X, Y, 0) is None
        assert describe_order(X.toarray() - X.mean(), Y, 0) is None

    def test_runs_are_noticed_by_features_or_by_labels(self):
        X, Y = twins()
        assert describe_order(X, Y, 0).startswith("rows next to each other have features in common")
        assert describe_order(np.ones_like(X), Y, 0).startswith("rows next to each other have labels in common")
        assert come_in_runs(X, 0)
        assert not come_in_runs(np.random.default_rng(1).permutation(X), 0)
        assert not come_in_runs(X[:20], 0)  # too few to tell
        noise = np.random.default_rng(2).normal(size=X.shape)
        assert describe_order(X + 2.5 * noise, Y, 0).startswith("rows next to each other have features in common")
        assert not come_in_runs(X + 2.5 * noise, 0)  # more alike than others, but no copies

    def test_time_is_noticed(self):
        """Topics that come up in the last rows only; rows next to each other are hardly more alike than others."""
        random = np.random.default_rng(0)
        topics = np.concatenate([random.integers(40, size=1600), random.integers(40, 52, size=400)])
        X, Y = np.ones((2000, 1)), sp.csr_array(np.eye(52, dtype=int)[topics])
        assert describe_order(X, Y, 0).startswith("the last rows have more labels in common")
        assert describe_order(X, Y[random.permutation(2000)], 0) is None

    def test_few_rows_tell_nothing(self):
        X, Y = twins(20)
        assert describe_order(X, Y, 0) is None

    def test_the_last_rows_are_a_fifth(self):
        assert [count_last(n) for n in (3, 100, 10**6)] == [0, 20, 2000]


class TestExpectations:
    def test_of_rows_at_random_and_of_the_last_ones(self):
        X, Y = twins()
        report = CompressedLabelClassifier(**RIDGE).fit(X, Y).report_
        assert report.expected["P@1"] > 0.5
        assert report.expected_last["P@1"] < 0.2
        assert report.expected_last["rows"] == 30
        text = str(report)
        assert "rows at random (270)" in text
        assert "the last rows (30)" in text
        assert "rows next to each other have features in common" in text

    def test_of_the_last_rows_are_those_of_a_model_of_the_others(self):
        X, Y = make_tagged_documents(400, 100, 30, random_state=0)
        clf = CompressedLabelClassifier(held_out="last", **RIDGE).fit(X, Y)
        early = CompressedLabelClassifier(held_out="rows", **RIDGE).fit(X[:360], Y[:360])
        real, said = early.evaluate(X[360:], Y[360:]), clf.report_.expected_last
        assert {name: said[name] for name in ("P@1", "P@5", "F1")} == pytest.approx(
            {name: real[name] for name in ("P@1", "P@5", "F1")}, abs=0.06
        )

    def test_the_last_rows_are_not_held_out_where_nobody_wants_it(self):
        X, Y = twins()
        rows = CompressedLabelClassifier(held_out="rows", **RIDGE).fit(X, Y).report_
        assert (rows.notes, rows.expected_last) == ([], {})
        plain = CompressedLabelClassifier(refiner=None, **RIDGE).fit(X, Y).report_
        assert (plain.expected_last, len(plain.notes)) == ({}, 1)

    def test_a_word_that_is_none(self):
        with pytest.raises(ValueError, match="held_out must be one of 'auto', 'rows', 'last'"):
            CompressedLabelClassifier(held_out="runs").fit(*twins(20))
