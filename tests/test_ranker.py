"""Classifiers of labels on their candidates, against liblinear and dense indexing."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from refining import problem, random_candidates
from sklearn.svm import LinearSVC

from labelsense.refine.candidates import Candidates
from labelsense.refine.ranker import Ranker, Settings


class TestCandidates:
    @given(st.integers(0, 10**6))
    @settings(max_examples=20)
    def test_membership_and_parts_equal_dense_indexing(self, seed):
        rng = np.random.default_rng(seed)
        candidates = random_candidates(7, 11, seed)
        M = sp.random_array((7, 11), density=0.3, format="csr", dtype=np.float32, random_state=rng)
        dense = M.toarray()[candidates.row, candidates.labels]
        np.testing.assert_array_equal(candidates.are_in(M), dense != 0)
        matrix = candidates.matrix(dense)
        np.testing.assert_array_equal(matrix.toarray()[candidates.row, candidates.labels], dense)
        some = slice(*np.sort(rng.integers(0, 8, 2)).tolist())
        part = candidates.of(some).matrix(dense[candidates.pairs(some)])
        np.testing.assert_array_equal(part.toarray(), matrix[some].toarray())


class TestRanker:
    def test_equals_liblinear_on_the_rows_of_each_label(self):
        X, Y = problem()
        candidates = random_candidates(*Y.shape)
        ranker = Ranker.train(X, Y, candidates, Settings(C=0.7, tol=1e-6, max_rounds=100_000, smallest=0))
        is_candidate = candidates.matrix(np.ones(len(candidates), np.float32)).toarray() > 0
        learned = 0
        for j, has in enumerate(Y.toarray().T > 0):
            rows = is_candidate[:, j] | has
            if len(set(has[rows])) < 2:
                continue
            svm = LinearSVC(C=0.7, tol=1e-9, max_iter=1_000_000, random_state=0).fit(X[rows], has[rows])
            np.testing.assert_allclose(ranker.weights[[j]].toarray(), svm.coef_, atol=1e-4)
            np.testing.assert_allclose(ranker.bias[j], svm.intercept_[0], atol=1e-4)
            learned += 1
        assert learned > 20

    def test_margins_are_inner_products(self):
        X, Y = problem()
        candidates = random_candidates(*Y.shape)
        ranker = Ranker.train(X, Y, candidates)
        dense = X @ ranker.weights.T.toarray() + ranker.bias
        np.testing.assert_allclose(ranker.margins(X, candidates), dense[candidates.row, candidates.labels], atol=1e-5)
        assert not len(ranker.margins(X[:0], candidates.of(slice(0, 0))))

    def test_margins_do_not_depend_on_blocks(self, monkeypatch):
        X, Y = problem()
        candidates = random_candidates(*Y.shape)
        ranker = Ranker.train(X, Y, candidates)
        margins = ranker.margins(X, candidates)
        monkeypatch.setattr("labelsense.refine.ranker.BLOCK_PAIRS", 50)
        np.testing.assert_array_equal(ranker.margins(X, candidates), margins)
        some = slice(20, 30)
        np.testing.assert_array_equal(ranker.margins(X[some], candidates.of(some)), margins[candidates.pairs(some)])

    def test_the_first_rows_and_then_all(self):
        X, Y = problem()
        candidates = random_candidates(*Y.shape)
        exact = Settings(tol=1e-6, max_rounds=100_000, smallest=0)
        first, whole = Ranker.train_twice(X, Y, candidates, 150, exact)
        some = Candidates(candidates.starts[:151], candidates.labels[: candidates.starts[150]], Y.shape[1])
        alone = Ranker.train(X[:150], Y[:150], some, exact)
        assert (first.weights != alone.weights).nnz == 0  # the same bytes as without the others
        np.testing.assert_array_equal(first.bias, alone.bias)
        anew = Ranker.train(X, Y, candidates, exact)
        assert abs(whole.weights - anew.weights).max() < 1e-4
        np.testing.assert_allclose(whole.bias, anew.bias, atol=1e-4)
        assert abs(whole.weights - first.weights).max() > 0.01

    def test_small_weights_are_left_out(self):
        X, Y = problem()
        candidates = random_candidates(*Y.shape)
        every, large = (Ranker.train(X, Y, candidates, Settings(smallest=smallest)).weights for smallest in (0.0, 0.1))
        kept = every.toarray()
        kept[np.abs(kept) < 0.1 * np.abs(kept).max(axis=1, keepdims=True)] = 0
        np.testing.assert_array_equal(large.toarray(), kept)

    def test_a_label_without_rows_has_no_weights(self):
        X, Y = problem()
        Y = sp.csr_array(sp.hstack([Y, sp.csr_array((Y.shape[0], 2))]), dtype=np.float32)
        pattern = sp.csr_array(np.pad(np.ones((Y.shape[0], 3)), ((0, 0), (0, Y.shape[1] - 3))))
        candidates = Candidates(pattern.indptr.astype(np.int64), pattern.indices.astype(np.int32), Y.shape[1])
        ranker = Ranker.train(X, Y, candidates)
        assert ranker.weights[[-1]].nnz == 0
        assert ranker.bias[-1] == 0

    def test_does_not_depend_on_threads(self, monkeypatch):
        X, Y = problem()
        candidates = random_candidates(*Y.shape)
        one = Ranker.train(X, Y, candidates).weights
        monkeypatch.setattr("labelsense.refine.ranker.BLOCK_PAIRS", 50)
        many = Ranker.train(X, Y, candidates).weights
        assert (one != many).nnz == 0
