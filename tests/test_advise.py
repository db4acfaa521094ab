"""The advisor: a trial that is honest, costs that are right, and advice whose answer is known."""

import json
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import reference
import scipy.sparse as sp
from scipy.special import expit
from sklearn.linear_model import LinearRegression

from labelsense import (
    HadamardCompressor,
    KernelRidgeLearner,
    LogTfidfTransformer,
    OMPDecoder,
    RidgeLearner,
)
from labelsense.advisor import advise
from labelsense.advisor.costs import fit_bytes
from labelsense.advisor.sparsity import Sparsity
from labelsense.advisor.trial import Trial, extrapolate, make_splits, measurement_grid
from labelsense.data import make_tagged_documents
from labelsense.features import make_features
from labelsense.metrics import precision_at_k
from labelsense.regress.base import data_bytes


@pytest.fixture(scope="module")
def documents():
    return make_tagged_documents(500, 200, 60, noise=0.1, random_state=0)


@pytest.fixture(scope="module")
def advice(documents):
    return advise(*documents, k=3)


def label_rows(n, d, per_row, seed=0):
    """Rows with so many labels each, all label sets equally likely."""
    rng = np.random.default_rng(seed)
    columns = np.argsort(rng.uniform(size=(n, d)), axis=1)[:, :per_row]
    Y = sp.csr_array((np.ones(n * per_row, np.float32), columns.ravel(), per_row * np.arange(n + 1)), shape=(n, d))
    Y.sort_indices()
    return Y


def test_the_sparsity_is_what_one_would_count():
    Y = np.array([[1, 1, 0, 0, 1], [1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
    found = Sparsity.of(sp.csr_array(Y))
    assert (found.n_rows, found.n_labels, found.mean, found.median, found.most) == (4, 5, 1.25, 1.0, 3.0)
    assert (found.without_rows, found.half) == (2, 1)


@pytest.mark.parametrize(("n_labels", "n_features"), [(2, 5), (30, 100), (983, 500), (4000, 5000), (10**6, 10**6)])
def test_the_grid_ascends_to_all_labels_or_what_is_cheap(n_labels, n_features):
    grid = measurement_grid(n_labels, n_features)
    assert grid == sorted(set(grid))
    assert grid[-1] <= n_labels
    assert grid[-1] * n_features <= 2**25 or grid == [50]
    assert n_labels > 2000 or n_features > 10**4 or grid[-1] == n_labels


class TestSplits:
    @pytest.mark.parametrize(("n", "sample"), [(11, 10), (300, 6000), (4880, 6000), (9500, 6000), (20_000, 4000)])
    @pytest.mark.parametrize("run", [1, 50])
    def test_no_row_is_on_both_sides(self, n, sample, run):
        splits = make_splits(n, sample, 100, run, np.random.RandomState(0))
        for split in splits:
            assert not set(split.train) & set(split.test)
            assert 0 < len(split.train) <= sample
        tested = np.concatenate([split.test for split in splits])
        assert len(set(tested)) == len(tested) <= 3060
        assert len(tested) >= min(n, 2900)

    def test_neighbours_are_held_out_together(self):
        (split,) = make_splits(20_000, 4000, 100, 50, np.random.RandomState(0))
        starts = np.sort(split.test)[::50]
        np.testing.assert_array_equal(np.sort(split.test), (starts[:, None] + np.arange(50)).ravel())

    def test_twins_next_to_each_other_count_as_learning_only_if_new_rows_have_them_too(self):
        """Every row is there twice and its labels are noise: what is found is found by the twin."""
        twin = np.repeat(np.arange(300), 2)
        X, Y = np.random.default_rng(0).normal(size=(300, 400))[twin], label_rows(300, 40, 1)[twin]
        rows, runs = (advise(X, Y, learner=RidgeLearner(0.1), held_out=how) for how in ("rows", "runs"))
        assert runs.recommended.expected["P@1"] < 0.15
        assert rows.recommended.expected["P@1"] > 0.5
        assert any("Rows next to each other are alike" in reason for reason in rows.reasons)
        assert not any("Rows next to each other" in reason for reason in runs.reasons)


class TestTrial:
    @pytest.fixture
    def trial(self, documents):
        X, Y = documents
        rows = np.random.RandomState(1).permutation(64)[:60]
        return Trial(X, Y, RidgeLearner(1.0), make_splits(500, 6000, 60, 1, np.random.RandomState(0)), rows, (1, 3))

    def test_the_first_rows_are_rows_of_the_hadamard_matrix(self, trial):
        A = trial.operator(20).columns(np.arange(60))
        expected = reference.hadamard(64)[np.sort(trial.rows[:20]), :60] / np.sqrt(20)
        np.testing.assert_allclose(A, expected, atol=1e-6)

    def test_some_of_many_measurements_are_those_of_a_smaller_fit(self, trial):
        many = trial.measure(300)
        A = trial.operator(20)
        for split, start in zip(trial.splits, range(0, 500, 100), strict=True):
            train = split.train[:300]
            few = RidgeLearner(1.0).fit(trial.X[train], A.compress(trial.Y[train])).predict(trial.X[split.test])
            np.testing.assert_allclose(trial.subset(many[start : start + 100], 20), few, atol=1e-4)

    def test_precision_is_that_of_decoding_row_by_row(self, trial):
        A = trial.operator(30)
        Z = A.compress(trial.truth)
        scores = trial.decode(OMPDecoder(), 30, Z, [5])[0]
        dense = A.columns(np.arange(60)).astype(float)
        slow = sp.csr_array(np.stack([reference.omp(dense, z.astype(float), 5) for z in Z[:40]]))
        for k in (1, 3):
            assert precision_at_k(trial.truth[:40], scores[:40], k) == precision_at_k(trial.truth[:40], slow, k)
        assert trial.precision(scores)["P@3"] == precision_at_k(trial.truth, scores, 3)


class TestExtrapolation:
    def test_the_odds_grow_by_less_and_less(self):
        """One doubling more adds 0.85 times what the last one did; ever so many, 0.85 / 0.15 times."""
        curve = [0.8 * expit(x) for x in (-1.0, -0.6, -0.2)]
        for n, growth in ((8000, 0.85), (16_000, 0.85 + 0.85**2), (2**200, 0.85 / 0.15)):
            expected = 0.8 * expit(-0.2 + 0.4 * growth)
            assert extrapolate([1000, 2000, 4000], curve, n, 0.8) == pytest.approx(expected)

    def test_more_rows_are_not_expected_to_harm(self):
        assert extrapolate([100, 200, 400], [0.5, 0.49, 0.48], 4000) == pytest.approx(0.48)
        assert extrapolate([100], [0.5], 4000) == 0.5
        assert extrapolate([100, 200], [1.0, 1.0], 4000) == 1.0

    def test_the_expected_precision_is_that_of_the_real_fit(self):
        X, Y = make_tagged_documents(6000, 800, 250, noise=0.8, words_per_row=20, random_state=1)
        X = LogTfidfTransformer().fit_transform(X)
        advice = advise(X[:4500], Y[:4500], sample=1500)
        top = advice.make_classifier().fit(X[:4500], Y[:4500]).predict_topk(X[4500:], 5)
        assert advice.n_learned == 1500
        for k in (1, 3, 5):
            real = precision_at_k(Y[4500:], top, k)
            assert abs(advice.recommended.expected[f"P@{k}"] - real) < 0.03
            assert 0.2 < real < 0.9


class TestKnownAnswers:
    def test_features_that_tell_the_labels_lose_nothing(self):
        Y = label_rows(400, 32, 2)
        advice = advise(Y.toarray(), Y, learner=RidgeLearner(1e-3), k=1)
        assert advice.options[-1].n_measurements == 32
        assert advice.options[-1].perfect["P@1"] == advice.best_possible["P@1"] == 1
        assert advice.options[-1].perfect_error == pytest.approx(0, abs=1e-6)
        assert advice.recommended.expected["P@1"] > 0.99

    def test_features_that_tell_nothing_are_to_blame(self):
        Y = label_rows(400, 32, 1)
        advice = advise(np.random.default_rng(1).normal(size=(400, 5)), Y, k=1)
        assert advice.recommended.expected["P@1"] < 0.2
        assert any("most of the loss is in the regressions" in reason for reason in advice.reasons)

    def test_the_fewest_measurements_within_a_point_are_taken(self, advice):
        expected = {option.n_measurements: option.expected["P@3"] for option in advice.options}
        assert expected[advice.n_measurements] >= max(expected.values()) - 0.01
        assert all(value < max(expected.values()) - 0.01 for m, value in expected.items() if m < advice.n_measurements)

    def test_omp_is_kept_unless_another_gains_half_a_point(self, advice):
        for option in advice.options:
            gain = max(option.decoders.values()) - option.decoders["omp"]
            assert (option.decoder == "omp") == (gain <= 0.005)
            assert option.decoders[option.decoder] in (option.decoders["omp"], max(option.decoders.values()))

    def test_rows_of_many_labels_get_a_support_that_holds_them(self):
        Y = label_rows(400, 64, 16)
        advice = advise(Y.toarray(), Y, learner=RidgeLearner(1e-3))
        assert advice.n_nonzero == 16
        assert any("n_nonzero = 16" in reason for reason in advice.reasons)

    def test_alpha_is_chosen_by_held_out_rows(self):
        rng = np.random.default_rng(0)
        Y = label_rows(300, 32, 2)
        X = Y.toarray() @ rng.normal(size=(32, 250)) / 6 + rng.normal(size=(300, 250))
        advice = advise(X, Y, k=1)
        assert advice.learner.alpha > 10  # as many features as rows, most of them noise
        assert advise(X, Y, k=1, learner=RidgeLearner(2.0)).learner.alpha == 2.0
        assert any(reason.startswith("alpha = ") for reason in advice.reasons)


class TestCosts:
    @pytest.mark.parametrize(
        ("solver", "n", "p", "m"),
        [
            ("primal", 3000, 1500, 300),
            ("primal", 6000, 300, 300),
            ("dual", 1500, 4000, 300),
            ("dual", 900, 3000, 200),
            ("cg", 1200, 2500, 200),
            ("kernel", 2500, 400, 300),
        ],
    )
    @pytest.mark.parametrize("form", ["sparse", "dense"])
    def test_the_memory_of_a_fit_is_foreseen(self, solver, n, p, m, form):
        X, Y = make_tagged_documents(n, p, 400, random_state=0)
        X = LogTfidfTransformer().fit_transform(X)
        X = X if form == "sparse" else X.toarray()
        learner = KernelRidgeLearner() if solver == "kernel" else RidgeLearner(1.0, solver=solver)
        clf = reference.paper(HadamardCompressor(m), learner, random_state=0)
        tracemalloc.start()
        clf.fit(X, Y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert fit_bytes(learner, X, m) + data_bytes(Y) == pytest.approx(peak, rel=0.25)

    def test_the_size_of_the_model_is_exact(self, documents, advice):
        clf = advice.make_classifier().fit(*documents)
        assert advice.costs.model_bytes == clf.learner_.coef_.nbytes + clf.learner_.intercept_.nbytes
        assert advice.costs.solver == clf.learner_.solver_

    def test_kernel_ridge(self, documents):
        X, Y = documents
        advice = advise(X, Y, learner=KernelRidgeLearner(alpha=0.3))
        assert advice.costs.solver == "kernel"
        assert advice.costs.peak_bytes > advice.costs.model_bytes > 4 * 500 * advice.n_measurements

    def test_other_learners_say_that_memory_is_not_known(self, documents):
        X, Y = documents
        advice = advise(X.toarray()[:, :50], Y, learner=LinearRegression())
        assert advice.costs.peak_bytes is None
        assert "Memory: not known for this learner" in " ".join(str(advice).split())


class TestAdvice:
    def test_the_classifier_is_the_one_described(self, documents, advice):
        clf = advice.make_classifier()
        assert clf.compressor.n_measurements == advice.n_measurements
        assert clf.decoder.n_nonzero == advice.n_nonzero
        assert clf.learner.alpha == advice.learner.alpha
        clf.fit(*documents)
        assert clf.compressor_.operator_.coherence() == advice.recommended.coherence

    def test_the_same_seed_gives_the_same_advice(self, documents, advice):
        def plain(advice):
            fields = advice.to_dict()
            del fields["seconds"], fields["costs"]
            return fields

        assert plain(advise(*documents, k=3)) == plain(advice)
        assert plain(advise(*documents, k=3, random_state=1)) != plain(advice)

    def test_forms_of_input_do_not_matter(self, documents, advice):
        X, Y = documents
        lists = [Y.indices[a:b].tolist() for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]
        seen = Y[:, np.unique(Y.indices)]
        for other in (advise(X.toarray(), Y.toarray(), k=3), advise(sp.csc_array(X), Y.astype(bool), k=3)):
            assert other.n_measurements == advice.n_measurements
            assert other.recommended.expected == pytest.approx(advice.recommended.expected, abs=0.01)
        assert advise(X, lists, k=3).recommended.expected == advise(X, seen, k=3).recommended.expected

    @pytest.mark.parametrize("form", [list, pd.Series])
    def test_texts_are_taken_as_words(self, documents, form):
        X, Y = documents
        texts = [" ".join(f"word{j}" for j in X.indices[a:b]) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
        tags = [[f"tag{j}" for j in Y.indices[a:b]] for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]
        advice = advise(form(texts), tags, k=3)
        clf = advice.make_classifier()
        assert (advice.features, clf.features) == ("words", "words")
        assert advice.to_dict()["features"] == "words"
        given = advise(make_features("words").fit_transform(texts), tags, k=3)
        assert given.features is None
        assert advice.recommended == given.recommended
        assert clf.fit(texts, tags).score(texts, tags) > 0.5

    def test_features_are_those_asked_for(self, documents):
        X, Y = documents
        advice = advise(X, Y, k=3, features=LogTfidfTransformer(use_idf=False))
        assert advice.recommended == advise(LogTfidfTransformer(use_idf=False).fit_transform(X), Y, k=3).recommended
        assert not advice.make_classifier().features.use_idf
        assert json.loads(json.dumps(advice.to_dict()))["features"] == "LogTfidfTransformer(use_idf=False)"

    def test_few_labels_are_asked_for_no_more_than_there_are(self):
        Y = label_rows(60, 3, 1)
        advice = advise(Y.toarray(), Y)
        assert advice.k == 3
        assert advice.make_classifier().fit(Y.toarray(), Y).predict_topk(Y.toarray(), 1).labels.shape == (60, 1)

    def test_all_fields_are_plain(self, advice):
        assert json.loads(json.dumps(advice.to_dict())) == advice.to_dict()

    @pytest.mark.parametrize("k", [1, 5, 12])
    def test_the_table_fits_a_terminal(self, documents, k):
        text = str(advise(*documents, k=k))
        assert max(map(len, text.splitlines())) <= 80
        for word in ("Labels", "Trial", "perfect regressions", f"P@{k}", "Take", "Costs", "best possible"):
            assert word in text

    def test_plot_writes_a_picture(self, advice, tmp_path):
        axes = advice.plot(tmp_path / "advice.png")
        assert (tmp_path / "advice.png").read_bytes().startswith(b"\x89PNG")
        assert "measurements" in axes.get_xlabel()
        assert axes.get_ylabel() == "P@3 (%)"
        figure_of = advice.plot(axes)
        assert figure_of is axes

    def test_without_matplotlib_it_says_what_to_install(self, advice, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(ImportError, match=r'pip install "labelsense\[plots\]"'):
            advice.plot(tmp_path / "advice.png")


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda X, Y: (X, Y * 0), "y has no labels"),
            (lambda X, Y: (X[:1], Y[:1]), "advise needs at least 10 rows.*Got 1"),
            (lambda X, Y: (X[:-1], Y), "X and y must have the same number of rows"),
            (lambda X, Y: (X, Y * 2), "y must be binary"),
            (lambda X, Y: (X, Y[:, :1] >= 0), "only one label"),
        ],
    )
    def test_of_data(self, documents, change, message):
        X, Y = documents[0].toarray(), documents[1].toarray()
        with pytest.raises(ValueError, match=message):
            advise(*change(X, Y))

    def test_of_k(self, documents):
        with pytest.raises(ValueError, match="k must be at least 1. Got 0"):
            advise(*documents, k=0)

    def test_of_rows_held_out(self, documents):
        with pytest.raises(ValueError, match="held_out must be one of 'rows', 'runs'"):
            advise(*documents, held_out="groups")

    def test_of_a_sample_too_small(self, documents):
        with pytest.raises(ValueError, match="sample must be at least 10"):
            advise(*documents, sample=3)
