"""Boosted trees against a slow version and scikit-learn, and the probabilities that they give."""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

from labelsense import _kernels
from labelsense.refine.pooled import PooledModel
from labelsense.refine.trees import MOST_LEAVES, BoostedTrees


def grow_at_random(rng, n_trees, leaves, n_features):
    """Trees of any shape: leaves are split at random, until there are so many."""
    feature, value, left, roots = [], [], [], []

    def add_leaf():
        feature.append(-1), value.append(rng.normal()), left.append(0)
        return len(feature) - 1

    for _ in range(n_trees):
        ends = [add_leaf()]
        roots.append(ends[0])
        while len(ends) < leaves:
            node = ends.pop(rng.integers(len(ends)))
            feature[node], value[node], left[node] = rng.integers(n_features), rng.integers(-3, 4), add_leaf()
            ends += [left[node], add_leaf()]
    arrays = np.array(roots), np.array(feature, np.int32), np.array(value, float), np.array(left, np.int32)
    return BoostedTrees(rng.normal(), *arrays)


def walk(trees, x):
    """Go down each tree, from question to question."""
    total = 0.0
    for node in trees.roots:
        while trees.feature[node] >= 0:
            node = trees.left[node] + (not x[trees.feature[node]] <= trees.value[node])
        total += trees.value[node]
    return trees.baseline + total


class TestTrees:
    def pairs(self, n=3000):
        rng = np.random.default_rng(0)
        F = rng.normal(size=(n, 6)).astype(np.float32)
        F[:, 2] = np.round(F[:, 2])
        return F, F[:, 0] * F[:, 1] + F[:, 2] + rng.normal(size=n) > 1

    @pytest.mark.parametrize(("leaves", "least_rows", "penalty"), [(2, 1, 0.0), (6, 5, 1.0), (6, 40, 10.0)])
    def test_equal_the_slow_version(self, leaves, least_rows, penalty):
        F, truth = self.pairs(150)
        booster = _kernels.Booster(F, truth.view(np.uint8), 0.3, leaves, least_rows, penalty, F.shape[1])
        booster.grow(3)
        booster.grow(2)
        slow = reference.boosted_log_odds(F.astype(np.float64), truth, 5, 0.3, leaves, least_rows, penalty)
        np.testing.assert_allclose(BoostedTrees(*booster.trees()).log_odds(F), slow, atol=1e-9)

    @given(st.integers(0, 2**32), st.integers(1, MOST_LEAVES), st.integers(1, 300))
    def test_end_where_a_walk_does(self, seed, leaves, n):
        rng = np.random.default_rng(seed)
        trees = grow_at_random(rng, 5, leaves, 4)
        F = rng.choice([-np.inf, -3, -1.5, 0, 1, 2, 3, np.inf, np.nan], size=(n, 4)).astype(np.float32)
        np.testing.assert_array_equal(trees.log_odds(F), [walk(trees, x) for x in F])

    def test_have_at_most_as_many_leaves_as_there_are_bits(self):
        large, F = grow_at_random(np.random.default_rng(0), 1, MOST_LEAVES + 1, 4), np.zeros((1, 4), np.float32)
        with pytest.raises(ValueError, match="at most 32 leaves"):
            large.log_odds(F)
        with pytest.raises(ValueError, match="at most 32 leaves"):
            BoostedTrees._from_parts(large._to_parts())

    def test_of_a_file_that_is_not_one_of_trees_are_refused(self):
        n = 100_000  # the left child of each node is the next one: to go down it would be deeper than the stack
        feature, left = np.zeros(n, np.int32), np.arange(1, n + 1, dtype=np.int32)
        feature[-2:] = -1
        chain = BoostedTrees(0.0, np.array([0]), feature, np.zeros(n), left)
        with pytest.raises(ValueError, match="at most 32 leaves"):
            chain.log_odds(np.zeros((1, 1), np.float32))
        with pytest.raises(ValueError, match="at most 32 leaves"):
            BoostedTrees._from_parts(chain._to_parts())

    def test_are_as_good_as_those_of_scikit_learn(self):
        F, truth = self.pairs(8000)
        known, new = slice(0, 5000), slice(5000, 8000)
        theirs = HistGradientBoostingClassifier(
            max_iter=100, learning_rate=0.08, max_leaf_nodes=15, min_samples_leaf=100, l2_regularization=10.0
        ).fit(F[known], truth[known])
        booster = _kernels.Booster(F[known], truth[known].view(np.uint8), 0.08, 15, 100, 10.0, F.shape[1])
        booster.grow(100)
        ours = expit(BoostedTrees(*booster.trees()).log_odds(F[new]))
        assert log_loss(truth[new], ours) < 1.01 * log_loss(truth[new], theirs.predict_proba(F[new])[:, 1])

    def test_of_equal_features_say_what_is_usual(self):
        F, truth = np.ones((40, 3), np.float32), np.arange(40) % 4 == 0
        np.testing.assert_allclose(BoostedTrees.train(F, truth).log_odds(F), np.log(1 / 3))

    @pytest.mark.parametrize("column", [None, 2], ids=["all", "one"])
    def test_probabilities_are_calibrated(self, column):
        F, truth = self.pairs(20_000)
        learned, row = F[:10_000], np.arange(10_000)
        model, seen = (
            PooledModel.train(learned, truth[:10_000], row)
            if column is None
            else PooledModel.train_on_one(learned, truth[:10_000], column)
        )
        p = np.concatenate([seen, model.predict(F[10_000:])])
        assert (p > 0).all()
        assert (p < 1).all()
        for part in (slice(0, 10_000), slice(10_000, None)):
            for low in np.arange(0, 1, 0.2):
                inside = (p[part] >= low) & (p[part] < low + 0.2)
                assert abs(p[part][inside].mean() - truth[part][inside].mean()) < 0.05

    def test_trees_count_where_they_know_more(self):
        random = np.random.default_rng(0)
        F = random.normal(size=(6000, 4)).astype(np.float32)
        row, chance = np.arange(6000), random.random(6000)
        for odds, low, high in ((2 * F[:, 0] - 1, 0, 0.4), (6 * (F[:, 0] * F[:, 1] > 0) - 3, 0.9, 1)):
            model, _ = PooledModel.train(F, chance < expit(odds), row)
            assert low <= model.share <= high

    def test_of_files_without_share_are_a_mean(self):
        F, truth = self.pairs()
        model, _ = PooledModel.train(F, truth, np.arange(len(F)))
        parts = {name: value for name, value in model._to_parts().items() if name != "share"}
        assert PooledModel._from_parts(parts).share == 0.5

    def test_in_the_order_of_one_score(self):
        F, truth = self.pairs()
        model, _ = PooledModel.train_on_one(F, ~truth, 2)  # even one that speaks against itself
        order = np.argsort(F[:, 2], kind="stable")
        assert (np.diff(model.predict(F)[order]) >= 0).all()

    def test_the_same_twice(self):
        F, truth = self.pairs()
        row = np.arange(len(F)) // 10
        np.testing.assert_array_equal(*(PooledModel.train(F, truth, row)[0].predict(F) for _ in range(2)))

    @pytest.mark.parametrize("value", [True, False])
    def test_pairs_that_are_all_alike(self, value):
        F, _ = self.pairs(100)
        model, _ = PooledModel.train(F, np.full(100, value), np.arange(100))
        assert abs(model.predict(F).mean() - value) < 0.05
