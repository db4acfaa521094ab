"""Candidates and their scores, against sorting, dense products and models without the row."""

from itertools import pairwise

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from refining import problem, random_candidates
from sklearn.exceptions import ConvergenceWarning

from labelsense import OMPDecoder, WhitenedCompressor, _kernels
from labelsense.refine.shortlist import Reconstruction, count_candidates, shortlist
from labelsense.refine.sources import Centroids, Correlations, LinearDecoder
from labelsense.refine.stage import as_rows


class TestShortlist:
    @given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 3))
    @settings(max_examples=50)
    def test_takes_the_largest_sums_of_standardised_scores(self, seed, d, n_sources):
        rng = np.random.default_rng(seed)
        n, k = 5, int(rng.integers(1, d + 1))
        scores = [rng.normal(size=(n, d)).astype(np.float32) * 10.0 ** rng.integers(-3, 3) for _ in range(n_sources)]
        scores = [block.astype(np.float32) for block in scores]
        weights = rng.uniform(0.5, 2, n_sources).tolist()
        sure = sp.csr_array(rng.uniform(size=(n, d)) < 0.1)
        labels, counts = np.empty((n, d), np.int32), np.empty(n, np.int64)
        starts, columns = sure.indptr.astype(np.int64), sure.indices.astype(np.int32)
        given = rng.normal(size=len(columns)).astype(np.float32)
        values = np.empty((n_sources + 1, n, d), np.float32)
        said = [_kernels.StoredScores(block) for block in scores]
        assert _kernels.shortlist(said, weights, starts, columns, given, k, labels, counts, values)
        sure_values = sp.csr_array((given, columns, starts), shape=(n, d)).toarray()
        for i in range(n):
            total = sum(w * (s[i] - s[i].mean()) / (s[i].std() or 1) for w, s in zip(weights, scores, strict=True))
            best = set(np.argsort(-total, kind="stable")[:k].tolist()) if d > 1 else {0}
            got = labels[i, : counts[i]].tolist()
            assert got == sorted(best | set(sure[[i]].indices.tolist()))
            for block, value in zip([*scores, sure_values], values, strict=True):
                np.testing.assert_array_equal(value[i, : counts[i]], block[i, got])

    def test_ties_go_to_the_lowest_label_and_equal_scores_tell_nothing(self):
        rng = np.random.default_rng(0)
        for d in (3, 40, 500, 5000):
            scores = rng.integers(0, 4, size=(3, d)).astype(np.float32)
            for k in (1, 2, d // 3, d):
                labels, counts = np.empty((3, k), np.int32), np.empty(3, np.int64)
                nothing = np.zeros(4, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
                said = [_kernels.StoredScores(scores), _kernels.StoredScores(np.ones((3, d), np.float32))]
                values = np.empty((3, 3, k), np.float32)
                assert _kernels.shortlist(said, [1.0, 5.0], *nothing, k, labels, counts, values)
                np.testing.assert_array_equal(labels, np.sort(np.argsort(-scores, axis=1, kind="stable")[:, :k]))

    def test_measurements_that_are_too_large_are_refused(self):
        X, Y = problem()
        A = WhitenedCompressor(20, random_state=0).fit(Y).operator_
        H = np.full((X.shape[0], 20), 3e38, np.float32)
        too_large = pytest.raises(ValueError, match="products 32-bit floats cannot hold")
        with too_large, pytest.warns(ConvergenceWarning, match="coefficients that 32-bit floats cannot hold"):
            shortlist([Correlations(A)], Reconstruction.by(OMPDecoder(4), A), X, H, 10)

    def test_values_are_those_of_the_sources_and_the_decoder(self):
        X, Y = problem()
        A = WhitenedCompressor(20, random_state=0).fit(Y).operator_
        H, decoder = A.compress(Y), OMPDecoder(4)
        sources = [Correlations(A), LinearDecoder.learn(H, Y), Centroids.learn(X, Y)]
        candidates, values = shortlist(sources, Reconstruction.by(decoder, A), X, H, 10)
        pair = candidates.row, candidates.labels
        for source, got in zip(sources, values, strict=False):
            np.testing.assert_allclose(got, source.scores(X, H)[pair], atol=1e-6)
        decoded = decoder.decode(decoder.prepare(A), H).toarray()
        np.testing.assert_array_equal(values[-1], decoded[pair])
        assert np.count_nonzero(values[-1]) == np.count_nonzero(decoded)  # none of its labels is missing

    def test_of_too_many_labels_to_score_all_has_the_nearest_centroids(self, monkeypatch):
        monkeypatch.setattr("labelsense.refine.shortlist.MOST_SCORED", 29)
        X, Y = problem(p=40)  # fewer features than a label is found by
        A = WhitenedCompressor(20, random_state=0).fit(Y).operator_
        H = A.compress(Y)
        X = as_rows(sp.vstack([X[:-1], sp.csr_array((1, X.shape[1]))]))  # a row that is near to nothing
        sources = [Correlations(A), Centroids.learn(X, Y)]
        candidates, values = shortlist(sources, Reconstruction.by(OMPDecoder(4, penalty=0.1), A), X, H, 7)
        cosines = sources[1].scores(X, H)
        columns = A.columns(np.arange(30)).astype(np.float64)
        for i, (start, stop) in enumerate(pairwise(candidates.starts)):
            labels = candidates.labels[start:stop]
            nearest = np.argsort(-cosines[i], kind="stable")[:7]
            nearest = nearest[cosines[i, nearest] > 0]
            np.testing.assert_allclose(np.sort(cosines[i, labels]), np.sort(cosines[i, nearest]), atol=1e-6)
            if i % 10 == 0:
                decoded = reference.omp(columns[:, labels], H[i].astype(np.float64), 4, 0.1)
                np.testing.assert_allclose(values[-1, start:stop], decoded, atol=1e-4)
        assert candidates.starts[-1] == candidates.starts[-2]
        for source, got in zip(sources, values, strict=False):
            np.testing.assert_allclose(got, source.scores(X, H)[candidates.row, candidates.labels], atol=1e-6)

    def test_labels_are_found_by_their_strongest_features(self, monkeypatch):
        monkeypatch.setattr("labelsense.refine.sources.STRONGEST", 5)
        monkeypatch.setattr("labelsense.refine.sources.strongest.__defaults__", (5,))
        monkeypatch.setattr("labelsense.refine.sources.MOST_FOUND", 4)
        X, Y = problem()
        centroids = Centroids.learn(X, Y)
        cosines = centroids.sums.toarray() / centroids.lengths
        kept = np.zeros(cosines.shape, bool)
        for j, column in enumerate(cosines.T):
            kept[np.argsort(-column, kind="stable")[:5], j] = True
        for f, row in enumerate(cosines * kept):
            kept[f, np.argsort(-row, kind="stable")[4:]] = False
        starts, labels, values = centroids._index
        index = sp.csr_array((values, labels, starts), shape=cosines.shape)
        np.testing.assert_allclose(index.toarray(), cosines * kept, atol=1e-6)

    def test_how_many(self):
        Y = sp.csr_array(np.ones((10, 200)))
        assert count_candidates(Y) == 200
        Y = sp.csr_array(np.eye(200))
        assert count_candidates(Y) == 50
        Y = sp.csr_array(np.pad(np.ones((10, 20)), ((0, 0), (0, 500))))
        assert count_candidates(Y) == 70


class TestStanding:
    @given(st.lists(st.lists(st.integers(-3, 3), min_size=1, max_size=6), min_size=1, max_size=4))
    def test_equals_sorting_each_row(self, rows):
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        scores = np.array([score for row in rows for score in row], np.float32)
        out = np.full((len(scores), 6), 9, np.float32)
        _kernels.standing(starts, 0, len(rows), scores, 1, out)
        expected = [[9, v, v - max(row), sum(u > v for u in row), max(row), 9] for row in rows for v in row]
        np.testing.assert_array_equal(out, expected)


@given(k=st.integers(1, 8), seed=st.integers(0, 1000))
def test_strongest_features_are_the_first_of_a_stable_sort(k, seed):
    X = sp.random_array((6, 9), density=0.6, format="csr", dtype=np.float32, random_state=seed)
    X.data = np.round(3 * X.data - 1.5)  # with ties
    kept = np.empty(X.nnz, np.uint8)
    _kernels.mark_strongest(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, k, kept)
    for begin, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        best = np.argsort(-np.abs(X.data[begin:end]), kind="stable")[:k]
        assert np.flatnonzero(kept[begin:end]).tolist() == sorted(best)


def test_correlations_are_of_unit_columns():
    X, Y = problem()
    A = WhitenedCompressor(20, random_state=0).fit(Y).operator_
    columns = A.columns(np.arange(Y.shape[1]))
    H = A.compress(Y)
    np.testing.assert_allclose(Correlations(A).scores(X, H), H @ (columns / np.linalg.norm(columns, axis=0)), atol=1e-5)


@pytest.mark.parametrize("learn", [LinearDecoder.learn, None], ids=["linear decoder", "centroids"])
def test_own_rows_are_scored_as_if_they_had_not_been_learned(learn, monkeypatch):
    X, Y = problem(n=60, d=8)
    H = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32) + Y.toarray()[:, :5]
    monkeypatch.setattr("labelsense.refine.sources.PENALTY", 1e-3)  # the same for all rows, nearly

    def source(rows):
        return Centroids.learn(X[rows], Y[rows]) if learn is None else learn(H[rows], Y[rows])

    every = np.arange(60)
    candidates = random_candidates(60, 8, share=0.9)
    whole = source(every)
    values = whole.scores(X, H)[candidates.row, candidates.labels]
    own = whole.own(X, H, Y, candidates, values)
    without = np.concatenate([source(np.delete(every, i)).scores(X[[i]], H[[i]]) for i in every])
    expected = without[candidates.row, candidates.labels]
    assert np.abs(values - expected).max() > 0.05
    np.testing.assert_allclose(own, expected, atol=2e-3)
