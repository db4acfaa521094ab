"""The refiner: better than the decoder and honest about it, by rows held out; updates, few rows, few labels."""

import numpy as np
import pytest
import scipy.sparse as sp
from refining import problem, random_candidates
from scipy.special import expit

from labelsense import OMPDecoder, RidgeLearner, WhitenedCompressor
from labelsense.data import make_tagged_documents
from labelsense.metrics import calibration_error, precision_at_k
from labelsense.refine import Refiner, learning
from labelsense.refine.candidates import Candidates
from labelsense.refine.learning import Rows
from labelsense.refine.pooled import PooledModel
from labelsense.refine.ranker import Ranker
from labelsense.refine.shortlist import Reconstruction
from labelsense.refine.sources import Centroids
from labelsense.refine.stage import STANDING, as_rows


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
        parts, heard = [], []

        def hear(rest, held, *others):
            same = np.zeros(held.X.shape[0], int)  # the first row, as often as there are rows
            heard.append(learning.hear(rest, Rows(held.X[same], held.H[same], held.Y[same]), *others))
            return learning.hear(rest, held, *others)

        def spy(both, C):
            judged, first = learning.judge(both, C), learning.judge(heard[-1], C)
            assert both.choose_weight() == heard[-1].choose_weight()
            parts.append((both.rest.X, both.held.X, judged, first))
            # Nor does it where all rows are learned from afterwards.
            np.testing.assert_array_equal(learning.learn(both, 50, C)[0].features, judged.features)
            return judged

        monkeypatch.setattr("labelsense.refine.refiner.hear", hear)
        monkeypatch.setattr("labelsense.refine.refiner.judge", spy)
        _, calibration, _, _ = fit(X[:500], Y[:500], n_calibration=260)
        assert len(parts) == 5
        assert calibration.n_rows == 250
        for known, new, judged, first in parts:
            assert not {row.tobytes() for row in known.toarray()} & {row.tobytes() for row in new.toarray()}
            # What is said of a row does not depend on the others that are held out with it, nor on their labels.
            n = judged.candidates.starts[1]
            np.testing.assert_array_equal(judged.features[:n], first.features[:n])

    @pytest.mark.parametrize("many_rows", [10_000, 100], ids=["few rows", "many rows"])
    def test_a_stage_of_all_rows_knows_what_all_rows_teach(self, many_rows, documents, monkeypatch):
        monkeypatch.setattr("labelsense.refine.refiner.MANY_ROWS", many_rows)
        X, Y = documents
        refiner, *_ = fit(X[:500], Y[:500])
        whole = Centroids.learn(X[:500], Y[:500])
        np.testing.assert_allclose(refiner._stage.sources[0].sums.toarray(), whole.sums.toarray(), atol=1e-5)

    @pytest.mark.parametrize("many_rows", [10_000, 100], ids=["few rows", "many rows"])
    def test_labels_are_described_as_when_probabilities_were_learned(self, many_rows, documents, monkeypatch):
        monkeypatch.setattr("labelsense.refine.refiner.MANY_ROWS", many_rows)
        X, Y = documents
        refiner, *_ = fit(X[:500], Y[:500])
        folds, _ = refiner._folds(500, last=False)
        known = np.mean([np.log1p(Y[rest].sum(axis=0)) for rest, _ in folds], axis=0)
        np.testing.assert_allclose(refiner._stage.known[:, 0], known, rtol=1e-4)

    def test_a_label_that_only_rows_held_out_have_is_not_spoken_for_everywhere(self, documents, monkeypatch):
        monkeypatch.setattr("labelsense.refine.refiner.MANY_ROWS", 100)
        X, Y = documents[0][:500], documents[1][:500]
        (_, held), *_ = Refiner(n_calibration=80)._folds(500, last=False)[0]
        rare = sp.csr_array(([1.0], ([held[0]], [0])), shape=(500, 1), dtype=np.float32)
        refiner, *_ = fit(X, sp.csr_array(sp.hstack([Y, rare])), n_calibration=80)
        assert refiner._stage.known[-1, 0] == pytest.approx(np.log(2))
        # Classifiers go on with 60 rows, the first of which has a label that nobody ever took for a candidate.
        candidates, Y = random_candidates(60, 101), sp.csr_array(sp.vstack([rare[held[:1]], sp.csr_array((59, 1))]))
        Y = sp.csr_array(sp.hstack([sp.csr_array((60, 100)), Y]), dtype=np.float32)
        mine = candidates.labels < 100
        starts = np.concatenate([[0], np.cumsum(mine)])[candidates.starts]
        candidates = Candidates(starts, candidates.labels[mine], 101)
        told = {}
        for name, counts in (("new", np.r_[np.ones(100, int), 0]), ("known", np.ones(101, int))):
            taught = learning.against_new_labels(candidates, Y, counts)
            ranker = Ranker.train(X[:60], Y, taught)
            told[name] = X[1:60] @ ranker.weights[[-1]].toarray()[0] + ranker.bias[-1]
            same = taught.are_in(candidates.matrix(np.ones(len(candidates), np.float32)))
            np.testing.assert_array_equal(taught.labels[same], candidates.labels)
        assert told["new"].max() < 0 < told["known"].min()

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

    @pytest.mark.parametrize("clearly", [True, False])
    def test_a_judge_that_is_clearly_better_alone_is_left_alone(self, clearly, documents, monkeypatch):
        X, Y = documents
        train = PooledModel.train.__func__

        def as_the_ranker_but_for_some_rows(cls, F, truth, row):
            model, _ = train(cls, F, truth, row)
            probabilities = expit(F[:, 6 * STANDING])
            return model, np.where(row < (250 if clearly else 2), 1 - probabilities, probabilities)

        monkeypatch.setattr(PooledModel, "train", classmethod(as_the_ranker_but_for_some_rows))
        refiner, calibration, learner, reconstruction = fit(X[:500], Y[:500])
        assert max(calibration.figures, key=lambda name: sum(calibration.figures[name].values())) == "ranker"
        assert calibration.chosen == ("ranker" if clearly else "all, pooled")
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
        before, after = (np.expm1(one._stage.known[:, 0]) for one in (refiner, more))
        np.testing.assert_allclose(after - before, Y[500:600].sum(axis=0), rtol=1e-3, atol=1e-3)
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
