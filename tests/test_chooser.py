"""What is chosen where nothing is given: by rows left out, and never by others."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from labelsense import (
    CompressedLabelClassifier,
    HadamardCompressor,
    KernelRidgeLearner,
    RBFKernel,
    RidgeLearner,
    WhitenedCompressor,
)
from labelsense.chooser import BUDGETS, choose, choose_compressor, choose_measurements, sample, scalings
from labelsense.data import make_tagged_documents
from labelsense.refine.sources import Centroids, LinearDecoder
from labelsense.refine.stage import as_rows
from labelsense.trials import RUNS, Trial, Tried, centroid_precision_by_row, linear_precision_by_row


@pytest.fixture(scope="module")
def documents():
    return make_tagged_documents(n_samples=500, n_features=300, n_labels=60, random_state=0)


def pick(X, Y, budget="fast", **settings):
    settings = {"scale": True, "kernels": True, "refined": True, "random_state": 0} | settings
    return choose(X, sp.csr_array(Y), BUDGETS[budget], **settings)


def tried(by_row):
    by_row = np.asarray(by_row, np.float32)
    return Tried(None, 1.0, None, {"P@1": float(by_row.mean())}, by_row, 0.0)


class TestSample:
    def test_is_of_all_rows_where_they_are_few(self):
        Y = sp.csr_array(np.eye(6))
        rows, some = sample(Y, 10, np.random.RandomState(0))
        assert rows.tolist() == list(range(6))
        assert (some != Y).nnz == 0

    def test_is_of_rows_where_labels_are_frequent(self, documents):
        Y = sp.csr_array(documents[1])
        rows, some = sample(Y, 100, np.random.RandomState(0))
        assert len(rows) == len(set(rows)) == 100
        assert (some != Y[rows]).nnz == 0

    def test_has_all_rows_of_some_labels_where_labels_are_rare(self):
        labels = np.random.default_rng(0).permutation(4000) // 4
        Y = sp.csr_array((np.ones(4000), labels, np.arange(4001)), shape=(4000, 1000))
        rows, some = sample(Y, 100, np.random.RandomState(0))
        assert len(rows) == 100
        assert some.shape == (len(rows), 25)
        assert set(np.bincount(some.indices)) == set(np.bincount(Y.indices)) == {4}


class TestScalings:
    def test_counts_may_be_weighted(self):
        assert scalings(sp.csr_array(np.eye(20))) == ["counts", "unit", None]

    def test_negative_numbers_are_no_counts(self):
        assert scalings(sp.csr_array(-np.eye(20))) == ["unit", None]

    def test_dense_features_may_be_standardised(self):
        assert scalings(np.random.default_rng(0).normal(size=(20, 3))) == ["standard", "unit", None]


class TestChoice:
    def test_is_the_most_precise_penalty_of_a_scaling(self, documents):
        choice = pick(*documents)
        best = max((t for t in choice.tried if t.features == choice.features), key=lambda tried: tried.precision)
        assert choice.learner.alpha == best.alpha
        assert len({tried.features for tried in choice.tried}) == 3

    def test_another_scaling_than_the_first_must_be_better_by_two_standard_errors(self):
        first, other = tried([0, 1, 0, 1] * 25), tried([0, 1, 0, 1] * 24 + [1, 0, 1, 1])
        assert not other.clearly_beats(first)
        some = tried([0, 1, 0, 1] * 24 + [1, 1, 1, 1])  # by 1.4
        assert (some.clearly_beats(first), some.clearly_beats(first, errors=1)) == (False, True)
        assert tried([1, 1, 0, 1] * 25).clearly_beats(first)
        assert not first.clearly_beats(first)

    def test_precision_is_that_of_refits_without_the_row(self, documents):
        X, Y = documents[0][:60], sp.csr_array(documents[1][:60])
        choice = pick(X, Y)
        tried = next(tried for tried in choice.tried if tried.features is None)
        operator = (
            WhitenedCompressor(choose_measurements(60, BUDGETS["fast"]), random_state=np.random.RandomState(0))
            .fit(Y)
            .operator_
        )
        Z = operator.compress(Y)
        rows = np.arange(60)
        H = np.concatenate([RidgeLearner(tried.alpha).fit(X[rows != i], Z[rows != i]).predict(X[[i]]) for i in rows])
        loo = RidgeLearner(tried.alpha).fit_out_of_sample(X, Z)
        np.testing.assert_allclose(loo, H, atol=1e-4)

    def test_a_linear_decoder_is_judged_by_rows_that_it_has_not_learned_from(self, documents, monkeypatch):
        Y = sp.csr_array(documents[1][:60])
        monkeypatch.setattr("labelsense.refine.sources.PENALTY", 1e-2)  # the same for all rows, nearly
        H = WhitenedCompressor(20, random_state=0).fit(Y).operator_.compress(Y)
        H = H + np.random.default_rng(0).normal(size=H.shape).astype(np.float32)
        rows = np.arange(60)
        scores = [LinearDecoder.learn(H[rows != i], Y[rows != i]).scores(None, H[[i]]) for i in rows]
        best = np.argsort(-np.concatenate(scores), axis=1, kind="stable")[:, :5]
        hits = np.take_along_axis(Y.toarray(), best, axis=1)
        expected = [hits[:, :k].mean(axis=1) for k in (1, 3, 5)]
        found = linear_precision_by_row(H, Y, (1, 3, 5))
        np.testing.assert_allclose(found.mean(axis=1), np.mean(expected, axis=1), atol=0.01)
        assert np.isclose(found, expected).mean() > 0.95

    def test_centroids_are_judged_by_rows_that_are_not_in_them(self, documents):
        X, Y = as_rows(documents[0][:60]), sp.csr_array(documents[1][:60])
        rows = np.arange(60)
        scores = [Centroids.learn(X[rows != i], Y[rows != i]).scores(X[[i]], np.zeros((1, 1))) for i in rows]
        best = np.argsort(-np.concatenate(scores), axis=1, kind="stable")[:, :5]
        hits = np.take_along_axis(Y.toarray(), best, axis=1)
        found = centroid_precision_by_row(X, Y, (1, 3, 5))
        assert np.isclose(found, [hits[:, :k].mean(axis=1) for k in (1, 3, 5)]).mean() > 0.95

    def test_the_penalty_is_chosen_again_on_more_rows_if_thorough(self, documents):
        budget = replace(BUDGETS["accurate"], sample=100)
        arguments = {"scale": True, "kernels": False, "refined": True, "random_state": 0}
        choice = choose(documents[0], sp.csr_array(documents[1]), budget, **arguments)
        settled = [tried for tried in choice.tried if tried.settled]
        assert {len(tried.by_row) for tried in settled} == {500}
        assert choice.learner.alpha == max(settled, key=lambda tried: tried.precision).alpha
        assert "500 rows, ridge" in str(settled[0])
        assert not any(tried.settled for tried in pick(*documents, budget="balanced").tried)

    @pytest.mark.parametrize("learner", [RidgeLearner(0.5), KernelRidgeLearner(RBFKernel(0.1), 0.5)])
    def test_rows_in_runs_are_left_out_with_those_next_to_them(self, learner, documents, monkeypatch):
        X, Y = documents[0][:61], sp.csr_array(documents[1][:61])
        seen = []
        monkeypatch.setattr(
            "labelsense.trials.precision_by_row", lambda _, H, Y, ks: seen.append(H) or np.zeros((3, 61))
        )
        trial = Trial(X, Y, 20, refined=False, seed=0, in_runs=True)
        trial._try(None, X, clone(learner))
        for run in np.array_split(np.arange(61), RUNS):
            rest = np.setdiff1d(np.arange(61), run)
            expected = clone(learner).fit(X[rest], trial.Z[rest]).predict(X[run])
            np.testing.assert_allclose(seen[0][run], expected, atol=1e-4)

    def test_copies_of_a_row_next_to_it_tell_nothing_of_it(self, documents):
        X, Y = (part[np.repeat(np.arange(100), 4)] for part in documents)
        settings = {"budget": "accurate", "kernels": False, "refined": False}
        found = {in_runs: pick(X, Y, in_runs=in_runs, **settings) for in_runs in (False, True)}
        best = {in_runs: max(tried.precision for tried in choice.tried) for in_runs, choice in found.items()}
        assert best[False] > best[True] + 0.05  # a model that has seen a row knows its copies
        assert found[False].learner.alpha < found[True].learner.alpha

    def test_features_that_may_not_be_scaled_are_left_alone(self, documents):
        assert {tried.features for tried in pick(*documents, scale=False).tried} == {None}

    def test_fast_tries_no_kernel_and_accurate_does(self, documents):
        assert all(tried.gamma is None for tried in pick(*documents).tried)
        assert any(tried.gamma is not None for tried in pick(*documents, budget="accurate").tried)
        assert all(tried.gamma is None for tried in pick(*documents, budget="accurate", kernels=False).tried)

    def test_a_kernel_is_taken_where_labels_are_not_linear(self):
        X = np.random.default_rng(0).normal(size=(600, 2))
        signs = X > 0
        Y = np.stack([signs[:, 0] ^ signs[:, 1], signs[:, 0] == signs[:, 1]], axis=1).astype(int)
        assert isinstance(pick(X, Y, budget="balanced").learner, KernelRidgeLearner)
        choice = pick(X, Y, budget="balanced", refined=False)
        assert isinstance(choice.learner, KernelRidgeLearner)
        assert max(tried.figures["P@1"] for tried in choice.tried) > 0.9

    def test_scale_matters_not(self):
        """Features in other units give the same precision."""
        X, Y = make_tagged_documents(n_samples=200, n_features=100, n_labels=20, random_state=1)
        one, other = (max(t.precision for t in pick(factor * X, Y).tried) for factor in (1, 1000))
        assert abs(one - other) < 0.02


def test_measurements_grow_with_the_root_of_the_labels():
    accurate = BUDGETS["accurate"]
    assert [choose_measurements(d, accurate) for d in (5, 100, 10_000)] == [5, 100, 630]


def test_an_A_that_is_too_large_to_whiten_is_not(monkeypatch):
    assert isinstance(choose_compressor(1000, BUDGETS["balanced"]), WhitenedCompressor)
    monkeypatch.setattr("labelsense.chooser.available_memory", lambda: 1e5)
    assert isinstance(choose_compressor(1000, BUDGETS["balanced"]), HadamardCompressor)


@pytest.fixture(scope="module")
def fitted(documents):
    X, Y = documents
    return CompressedLabelClassifier(random_state=0).fit(X[:400], Y[:400])


@pytest.mark.parametrize(
    ("budget", "held_out", "copies", "expected"),
    [
        ("accurate", "auto", True, True),
        ("accurate", "auto", False, False),
        ("accurate", "last", False, True),
        ("accurate", "rows", True, False),
        ("balanced", "last", True, False),
    ],
)
def test_runs_are_left_out_where_there_is_time_and_rows_are_nearly_copies(
    budget, held_out, copies, expected, documents, monkeypatch
):
    seen = []

    def spy(*arguments, in_runs, **options):
        seen.append(in_runs)
        return choose(*arguments, in_runs=in_runs, **options)

    monkeypatch.setattr("labelsense.plan.choose", spy)
    rows = np.repeat(np.arange(50), 2) if copies else np.arange(100)
    X, Y = (part[rows] for part in documents)
    CompressedLabelClassifier(budget=budget, held_out=held_out, random_state=0).fit(X, Y)
    assert seen == [expected]


class TestDefault:
    def test_beats_the_paper_and_expects_what_it_gets(self, documents, fitted):
        X, Y = documents[0][400:], documents[1][400:]
        paper = CompressedLabelClassifier("hadamard", "ridge", "omp", refiner=None, random_state=0)
        refined, plain = fitted.evaluate(X, Y), paper.fit(documents[0][:400], documents[1][:400]).evaluate(X, Y)
        assert refined["P@5"] > plain["P@5"]
        assert abs(refined["P@5"] - fitted.report_.expected["P@5"]) < 0.08
        assert refined["F1"] > 0.9 * fitted.report_.expected["F1"]
        assert refined["ECE"] < 0.03

    def test_rows_have_a_label_unless_none_is_likely(self, documents, fitted):
        X = documents[0][400:]
        P, chosen = fitted.predict_proba(X).toarray(), fitted.predict(X)
        none = np.prod(1 - P.astype(float), axis=1)
        empty = np.diff(chosen.indptr) == 0
        assert not (empty & (none < 0.5)).any()
        above = fitted.threshold_ <= P
        assert (chosen.toarray() >= above).all()

    def test_scores_are_probabilities(self, documents, fitted):
        P = fitted.predict_proba(documents[0])
        assert P.data.min() >= 0
        assert P.data.max() <= 1
        assert (fitted.predict_scores(documents[0]) != P).nnz == 0

    def test_the_paper_has_no_probabilities(self, documents):
        paper = CompressedLabelClassifier("hadamard", "ridge", "omp", refiner=None, random_state=0)
        assert not hasattr(paper, "predict_proba")
        paper.fit(*documents)
        with pytest.raises(AttributeError, match="no attribute 'predict_proba'"):
            paper.predict_proba(documents[0])

    def test_report_and_probabilities_are_in_the_file(self, documents, fitted, tmp_path):
        from labelsense import load_model

        fitted.save(tmp_path / "model")
        again = load_model(tmp_path / "model")
        assert str(again.report_) == str(fitted.report_)
        assert "expected" in str(again.report_)
        assert (again.predict_proba(documents[0]) != fitted.predict_proba(documents[0])).nnz == 0
        assert again.threshold_ == fitted.threshold_

    def test_the_same_seed_gives_the_same_bytes(self, documents, fitted, tmp_path):
        other = CompressedLabelClassifier(random_state=0).fit(documents[0][:400], documents[1][:400])
        for name, model in (("one", fitted), ("other", other)):
            model.save(tmp_path / name)
        assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()

    def test_explanations_add_up(self, documents, fitted):
        X, Y = documents
        label = int(sp.csr_array(Y)[[3]].indices[0])
        found = fitted.explain(X[[3]], label)
        assert found.exact
        assert np.isclose(found.constant + sum(value for _, value in found.parts), found.score, atol=1e-4)
        column = fitted.compressor_.operator_.columns([label])[:, 0]
        assert np.isclose(found.score, fitted.measure(X[[3]])[0] @ column / (column @ column), atol=1e-4)
        margin = found.ranker.constant + sum(value for _, value in found.ranker.parts)
        assert np.isclose(margin, found.ranker.score, atol=1e-4)
        assert np.isclose(found.probability, fitted.predict_proba(X[[3]]).toarray()[0, label])

    def test_other_learners_are_explained_by_leaving_features_out(self, documents):
        X, Y = documents
        clf = CompressedLabelClassifier(learner=KernelRidgeLearner(), refiner=None, random_state=0).fit(
            X[:100], Y[:100]
        )
        found = clf.explain(X[[3]], 0)
        assert not found.exact
        name, part = found.parts[0]
        less = sp.csr_array(X[[3]]).tolil()
        less[0, name] = 0
        lost = found.score - clf.explain(less.tocsr(), 0).score
        assert np.isclose(part, lost, atol=1e-5)

    def test_refresh_learns_probabilities_again(self, documents):
        X, Y = documents
        learner = RidgeLearner(1.0, updatable=True)
        clf = CompressedLabelClassifier(learner=learner, random_state=0).fit(X[:200], Y[:200])
        clf.partial_fit(X[200:400], Y[200:400])
        before = clf.evaluate(X[400:], Y[400:])["P@5"]
        assert clf.refresh(X[:400], Y[:400]).evaluate(X[400:], Y[400:])["P@5"] > before - 0.02

    def test_updates_of_the_regressions_stay_exact(self, documents):
        X, Y = documents
        learner = RidgeLearner(1.0, updatable=True)
        parts = CompressedLabelClassifier(HadamardCompressor(40), learner, random_state=0).fit(X[:200], Y[:200])
        parts.partial_fit(X[200:400], Y[200:400])
        whole = CompressedLabelClassifier(HadamardCompressor(40), learner, random_state=0).fit(X[:400], Y[:400])
        np.testing.assert_allclose(parts.measure(X[400:]), whole.measure(X[400:]), atol=1e-3)

    def test_a_number_as_threshold(self, documents):
        X, Y = documents
        clf = CompressedLabelClassifier(learner="ridge", threshold=0.9, random_state=0).fit(X[:200], Y[:200])
        scores = clf.predict_proba(X)
        assert clf.predict(X).nnz == (scores.data >= 0.9).sum()

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"budget": "large"}, "budget must be one of 'fast', 'balanced', 'accurate'"),
            ({"threshold": 2.0}, "threshold must be finite and between 0 and 1"),
            ({"refiner": "best"}, "refiner must be one of 'auto'"),
        ],
    )
    def test_bad_settings(self, documents, settings, message):
        with pytest.raises(ValueError, match=message):
            CompressedLabelClassifier(**settings).fit(*documents)
