"""Refinement: each part against a slow version, a library or the model without the row."""

from itertools import pairwise

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.svm import LinearSVC

from labelsense import OMPDecoder, RidgeLearner, WhitenedCompressor, _kernels
from labelsense.data import make_tagged_documents
from labelsense.metrics import calibration_error, precision_at_k
from labelsense.refine import Refiner, learning
from labelsense.refine.candidates import Candidates
from labelsense.refine.learning import Rows
from labelsense.refine.pooled import PooledModel
from labelsense.refine.ranker import Ranker, Settings
from labelsense.refine.shortlist import Reconstruction, count_candidates, shortlist
from labelsense.refine.sources import Centroids, Correlations, LinearDecoder
from labelsense.refine.stage import as_rows
from labelsense.refine.trees import BoostedTrees


def problem(n=200, d=30, p=60, seed=0):
    X, Y = make_tagged_documents(n_samples=n, n_features=p, n_labels=d, random_state=seed)
    return as_rows(X), sp.csr_array(Y, dtype=np.float32)


def random_candidates(n, d, seed=0, share=0.4):
    pattern = sp.csr_array(np.random.default_rng(seed).uniform(size=(n, d)) < share)
    return Candidates(pattern.indptr.astype(np.int64), pattern.indices.astype(np.int32), d)


class TestCandidates:
    @given(st.integers(0, 10**6))
    @settings(max_examples=20)
    def test_look_up_and_membership_equal_dense_indexing(self, seed):
        rng = np.random.default_rng(seed)
        candidates = random_candidates(7, 11, seed)
        M = sp.random_array((7, 11), density=0.3, format="csr", dtype=np.float32, random_state=rng)
        dense = M.toarray()[candidates.row, candidates.labels]
        np.testing.assert_array_equal(candidates.look_up(M), dense)
        np.testing.assert_array_equal(candidates.are_in(M), dense != 0)
        np.testing.assert_array_equal(candidates.matrix(dense).toarray()[candidates.row, candidates.labels], dense)

    def test_of_a_matrix_without_entries(self):
        candidates = random_candidates(3, 4)
        assert not candidates.look_up(sp.csr_array((3, 4), dtype=np.float32)).any()


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

    @pytest.mark.parametrize("n_features", [1, 40])
    def test_margins_by_features_equal_those_by_labels(self, n_features, monkeypatch):
        X, Y = problem()
        candidates = random_candidates(*Y.shape)
        ranker = Ranker.train(X, Y, candidates)
        few = sp.csr_array(X.toarray() * (np.arange(X.shape[1]) < n_features))  # few features: by them
        got = ranker.margins(few, candidates)
        for costs_nothing in ("_by_feature", "_by_label"):
            other = Ranker(ranker.weights, ranker.bias)
            counts = np.full(X.shape[1], 0 if costs_nothing == "_by_feature" else 10**6)
            monkeypatch.setattr(other, "_labels_by_feature", counts)
            np.testing.assert_array_equal(other.margins(few, candidates), got)
            assert costs_nothing in vars(other)

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
        _kernels.shortlist(scores, weights, starts, columns, k, labels, counts)
        for i in range(n):
            total = sum(w * (s[i] - s[i].mean()) / (s[i].std() or 1) for w, s in zip(weights, scores, strict=True))
            best = set(np.argsort(-total, kind="stable")[:k].tolist()) if d > 1 else {0}
            got = labels[i, : counts[i]].tolist()
            assert got == sorted(best | set(sure[[i]].indices.tolist()))

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
        monkeypatch.setattr("labelsense.refine.sources._strongest.__defaults__", (5,))
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


@pytest.fixture(scope="module")
def documents():
    X, Y = make_tagged_documents(n_samples=1500, n_labels=100, random_state=0)
    return as_rows(X), sp.csr_array(Y, dtype=np.float32)


def fit(X, Y, m=30, last=False, **settings):
    reconstruction = Reconstruction.by(OMPDecoder(min(m, 8)), WhitenedCompressor(m, random_state=0).fit(Y).operator_)
    learner = RidgeLearner(1.0).fit(X, reconstruction.operator.compress(Y))
    refiner = Refiner(**settings)
    return refiner, refiner.fit(X, Y, learner, reconstruction, last=last), learner, reconstruction


class TestRefiner:
    @pytest.mark.parametrize("many_rows", [10_000, 1000], ids=["few rows", "many rows"])
    def test_ranks_new_rows_better_than_the_decoder_and_says_so_beforehand(self, many_rows, documents, monkeypatch):
        monkeypatch.setattr("labelsense.refine.refiner.MANY_ROWS", many_rows)
        X, Y = documents
        refiner, calibration, learner, reconstruction = fit(X[:1200], Y[:1200])
        H = learner.predict(X[1200:])
        decoded = reconstruction.decoder.decode(reconstruction.state, H)
        refined = refiner.predict(X[1200:], H, reconstruction)
        assert precision_at_k(Y[1200:], refined, 5) > precision_at_k(Y[1200:], decoded, 5) + 0.02
        assert calibration.chosen == "all, pooled"
        for k in (1, 3, 5):
            expected = calibration.figures[calibration.chosen][f"P@{k}"]
            assert abs(precision_at_k(Y[1200:], refined, k) - expected) < 0.06
        assert calibration_error(Y[1200:], refined) < 0.02
        found = Candidates(refined.indptr, refined.indices, 100).are_in(Y[1200:])
        assert abs(refined.data.sum() / found.sum() - 1) < 0.1
        assert abs(found.sum() / Y[1200:].nnz - calibration.recall) < 0.05

    def test_nothing_is_calibrated_by_rows_that_were_learned(self, documents, monkeypatch):
        X, Y = documents
        parts = []

        def spy(rest, held, *others):
            judged, stage = learning.learn(rest, held, *others)
            if not len(held.H):  # all rows, after the folds
                return judged, stage
            first = learning.learn(rest, Rows(held.X[:1], held.H[:1], held.Y[:1]), *others)[0]
            parts.append((rest.X, held.X, judged, first))
            return judged, stage

        monkeypatch.setattr("labelsense.refine.refiner.learn", spy)
        _, calibration, _, _ = fit(X[:500], Y[:500], n_calibration=260)
        assert len(parts) == 5
        assert calibration.n_rows == 250
        for known, new, judged, first in parts:
            assert not {row.tobytes() for row in known.toarray()} & {row.tobytes() for row in new.toarray()}
            # What is said of a row does not depend on the others that are held out with it, nor on their labels.
            np.testing.assert_array_equal(judged.features[: len(first.features)], first.features)

    @pytest.mark.parametrize("many_rows", [10_000, 100], ids=["few rows", "many rows"])
    def test_a_stage_of_all_rows_knows_what_all_rows_teach(self, many_rows, documents, monkeypatch):
        monkeypatch.setattr("labelsense.refine.refiner.MANY_ROWS", many_rows)
        X, Y = documents
        refiner, *_ = fit(X[:500], Y[:500])
        whole = Centroids.learn(X[:500], Y[:500])
        np.testing.assert_allclose(refiner._stage.sources[0].sums.toarray(), whole.sums.toarray(), atol=1e-5)
        np.testing.assert_allclose(np.expm1(refiner._stage.known[:, 0]), Y[:500].sum(axis=0), rtol=1e-4, atol=1e-4)

    def test_the_last_rows_are_held_out_with_rows_at_random(self, documents):
        X, Y = documents
        refiner = Refiner(n_calibration=100)
        for n in (1500, 60, 12):
            folds, size = refiner._folds(n, last=True)
            assert size == -(-n // 10)
            assert folds[-1][1][-size:].tolist() == list(range(n - size, n))
            for rest, held in folds:
                assert sorted([*rest, *held]) == list(range(n))
            seen = np.concatenate([held for _, held in folds])
            assert len(set(seen)) == len(seen)
        calibration = fit(X[:500], Y[:500], n_calibration=100, last=True)[1]
        assert calibration.n_rows == 100
        np.testing.assert_array_equal(calibration.last[1].toarray(), Y[450:500].toarray())
        assert calibration.last[0].shape == (50, 100)

    def test_a_judge_that_is_better_alone_is_left_alone(self, documents, monkeypatch):
        X, Y = documents
        rng = np.random.default_rng(0)
        train = PooledModel.train.__func__

        def useless(cls, F, truth, row):
            model, _ = train(cls, F, truth, row)
            return model, rng.uniform(size=len(F)).astype(np.float32)

        monkeypatch.setattr(PooledModel, "train", classmethod(useless))
        refiner, calibration, learner, reconstruction = fit(X[:500], Y[:500])
        best = max(calibration.figures, key=lambda name: sum(calibration.figures[name].values()))
        assert calibration.chosen == best != "all, pooled"
        assert refiner.predict(X[500:510], learner.predict(X[500:510]), reconstruction).nnz

    def test_too_many_labels_to_score_all(self, documents, monkeypatch):
        X, Y = documents
        monkeypatch.setattr("labelsense.refine.shortlist.MOST_SCORED", 99)
        X = as_rows(sp.vstack([X[:-1], sp.csr_array((1, X.shape[1]))]))  # a row that is near to nothing
        refiner, calibration, learner, reconstruction = fit(X[:1200], Y[:1200], n_candidates=20)
        H = learner.predict(X[1200:])
        P = refiner.predict(X[1200:], H, reconstruction)
        decoded = reconstruction.decoder.decode(reconstruction.state, H)
        assert precision_at_k(Y[1200:], P, 5) > precision_at_k(Y[1200:], decoded, 5) + 0.02
        assert np.diff(P.indptr)[[0, -1]].tolist() == [20, 0]
        assert 0.7 < calibration.recall < 1

    def test_updates_of_counts_and_centroids_are_exact(self, documents):
        X, Y = documents
        refiner, *_ = fit(X[:500], Y[:500])
        more = refiner.updated(X[500:600], Y[500:600], 1)
        centroids = Centroids.learn(X[:600], Y[:600])
        updated = more._stage.sources[0]
        np.testing.assert_allclose(updated.sums.toarray(), centroids.sums.toarray(), atol=1e-5)
        np.testing.assert_allclose(updated.lengths, centroids.lengths, rtol=1e-4)
        np.testing.assert_allclose(np.expm1(more._stage.known[:, 0]), Y[:600].sum(axis=0), rtol=1e-4, atol=1e-4)
        back = more.updated(X[500:600], Y[500:600], -1)
        np.testing.assert_allclose(back._stage.sources[0].lengths, refiner._stage.sources[0].lengths, atol=1e-4)

    def test_labels_that_are_new_get_columns(self, documents):
        X, Y = documents
        refiner, _, learner, reconstruction = fit(X[:500], sp.csr_array(Y[:500, :90]))
        operator = reconstruction.operator.for_labels(100)
        more = refiner.updated(X[500:1000], Y[500:1000], 1)
        wider = Reconstruction.by(OMPDecoder(8), operator)
        P = more.predict(X[1000:], learner.predict(X[1000:]), wider)
        assert P.shape == (500, 100)

    @pytest.mark.parametrize(("n", "d"), [(12, 2), (30, 40), (60, 1)])
    def test_few_rows_or_labels(self, n, d):
        X, Y = problem(n=n, d=max(d, 2))
        refiner, calibration, learner, reconstruction = fit(X, sp.csr_array(Y[:, :d]), m=min(d, 8))
        P = refiner.predict(X, learner.predict(X), reconstruction)
        assert np.isfinite(P.data).all()
        assert calibration.n_rows == n
