"""The weight of errors in the classifiers of labels, chosen by rows that these have not seen."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from refining import random_candidates
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.svm import LinearSVC

from labelsense.refine.candidates import Candidates
from labelsense.refine.ranker import Ranker
from labelsense.refine.stage import as_rows
from labelsense.refine.weight import GRID, PAIRS, Pairs, choose_weight, draw_labels


def every_pair(X, Y):
    """Rows for which every label is a candidate."""
    n, d = Y.shape
    candidates = Candidates(np.arange(0, n * d + 1, d), np.tile(np.arange(d, dtype=np.int32), n), d)
    return Pairs(as_rows(X), sp.csr_array(Y, dtype=np.float32), candidates)


def noisy(rng, n, noise, p=30, d=3):
    X = rng.normal(size=(n, p))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    truth = X @ np.eye(p, d) + noise * rng.normal(size=(n, d)) > 0
    return every_pair(X, truth)


class TestWeight:
    def test_is_smaller_where_labels_are_noisy(self):
        rng = np.random.default_rng(0)
        found = [choose_weight(noisy(rng, 2000, noise, p=300, d=10)) for noise in (0.0, 0.05)]
        assert found[0] > 3 * found[1]

    @pytest.mark.parametrize("noise", [0.2, 2.0])
    def test_has_the_least_log_loss_of_those_beside_it(self, noise):
        rng = np.random.default_rng(1)
        pairs = noisy(rng, 2000, noise)
        learned, held = pairs.split()
        truth = held.Y.toarray().ravel() > 0

        def loss(C):
            models = [LinearSVC(C=C).fit(learned.X, labels) for labels in learned.Y.toarray().T]
            margins = np.stack([model.decision_function(held.X) for model in models], axis=1).reshape(-1, 1)
            platt = LogisticRegression(C=1e6).fit(margins, truth)
            return log_loss(truth, platt.predict_proba(margins)[:, 1])

        chosen = choose_weight(pairs)  # rows are of unit length
        place = int(np.argmin(np.abs(np.log(np.array(GRID) / chosen))))
        assert chosen == pytest.approx(GRID[place])
        beside = [GRID[i] for i in (place - 1, place + 1) if 0 <= i < len(GRID)]
        assert loss(chosen) < 1.01 * min(map(loss, beside))

    def test_follows_the_scale_of_rows(self):
        rng = np.random.default_rng(2)
        pairs = noisy(rng, 2000, 0.2)
        assert choose_weight(every_pair(10 * pairs.X, pairs.Y)) == pytest.approx(choose_weight(pairs) / 100)

    def test_is_the_usual_one_where_nothing_can_be_compared(self):
        rng = np.random.default_rng(3)
        pairs = noisy(rng, 50, 0.2)
        assert choose_weight(pairs._replace(Y=sp.csr_array(pairs.Y.shape))) == pytest.approx(1)


class TestPairs:
    def test_are_held_out_by_rows(self):
        pairs = noisy(np.random.default_rng(4), 200, 0.2)
        rest, held = pairs.split()
        assert (rest.X.shape[0], held.X.shape[0]) == (180, 20)
        where = {row.tobytes(): place for place, row in enumerate(pairs.X.toarray())}
        for part in (rest, held):
            places = [where.pop(row.tobytes()) for row in part.X.toarray()]
            np.testing.assert_array_equal(part.Y.toarray(), pairs.Y.toarray()[places])
            np.testing.assert_array_equal(part.candidates.labels, np.tile(np.arange(3), len(places)))
        assert not where

    @given(st.integers(0, 10**6))
    @settings(max_examples=30, deadline=None)
    def test_of_some_labels_teach_the_same_whole_or_in_parts(self, seed):
        rng = np.random.default_rng(seed)
        n, p, d = 40, 8, 6
        X, Y = as_rows(rng.normal(size=(n, p))), sp.csr_array(rng.uniform(size=(n, d)) < 0.2).astype(np.float32)
        candidates = random_candidates(n, d, seed)
        labels = np.sort(rng.permutation(d)[:2])
        whole = Pairs.of(X, Y, candidates, labels)
        cut, starts = 17, candidates.starts
        parts = [
            (slice(0, cut), Candidates(starts[: cut + 1], candidates.labels[: starts[cut]], d)),
            (slice(cut, n), Candidates(starts[cut:] - starts[cut], candidates.labels[starts[cut] :], d)),
        ]
        joined = Pairs.join([Pairs.of(X[rows], Y[rows], some, labels).kept() for rows, some in parts])
        assert joined.X.shape[0] <= n
        one, other = Ranker.train(*whole), Ranker.train(*joined)
        np.testing.assert_array_equal(one.weights.toarray(), other.weights.toarray())
        np.testing.assert_array_equal(one.bias, other.bias)


class TestDrawnLabels:
    def test_are_all_where_pairs_are_few(self):
        assert draw_labels(np.array([3, 0, 5, 1]), 100).tolist() == [0, 2, 3]

    def test_have_about_as_many_pairs_as_are_wanted(self):
        counts = np.random.default_rng(0).integers(1, 100, 5000)
        labels = draw_labels(counts, 20 * PAIRS)
        assert counts[labels].sum() == pytest.approx(counts.sum() / 20, rel=0.05)

    def test_are_none_that_would_be_too_many_alone(self):
        assert 0 not in draw_labels(np.array([10**6, *[10] * 1000]), 100 * PAIRS)

    def test_are_two_at_least(self):
        assert len(draw_labels(np.array([500, 400, 300]), 10**9)) == 2
