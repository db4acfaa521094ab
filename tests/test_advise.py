"""The advisor: it agrees with training, what it expects is honest, and its costs are right."""

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
    CompressedLabelClassifier,
    HadamardCompressor,
    KernelRidgeLearner,
    LogTfidfTransformer,
    RidgeLearner,
)
from labelsense.advisor import advise
from labelsense.advisor.advise import advise_on
from labelsense.advisor.costs import fit_bytes
from labelsense.advisor.sparsity import Sparsity
from labelsense.advisor.trial import extrapolate, measurement_grid
from labelsense.data import make_tagged_documents
from labelsense.metrics import precision_at_k
from labelsense.regress.base import data_bytes


@pytest.fixture(scope="module")
def documents():
    return make_tagged_documents(300, 150, 60, noise=0.1, random_state=0)


@pytest.fixture(scope="module")
def advice(documents):
    return advise(*documents, k=3, budget="fast")


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


class TestAgreement:
    """What is advised is what a fit takes, by the same rows and the same seed."""

    @pytest.mark.parametrize("settings", [{}, {"budget": "fast", "random_state": 3}, {"learner": "ridge"}])
    def test_with_a_classifier_that_chooses_by_itself(self, documents, settings):
        X, Y = documents
        advice = advise(X, Y, **settings)
        alone = CompressedLabelClassifier(**{"random_state": 0} | settings).fit(X, Y)
        assert advice.chosen | {"refiner": ""} == alone.report_.chosen | {"refiner": ""}
        assert advice.tried == alone.report_.tried
        advised = advice.make_classifier().fit(X, Y)
        assert advised.report_.tried == []  # nothing is left to choose
        assert (advised.predict_proba(X) != alone.predict_proba(X)).nnz == 0
        assert advised.threshold_ == alone.threshold_
        assert advice.expected == pytest.approx(alone.report_.expected)

    def test_without_refinement(self, documents):
        X, Y = documents
        advice = advise(X, Y, refiner=None, budget="fast")
        alone = CompressedLabelClassifier(refiner=None, budget="fast", random_state=0).fit(X, Y)
        assert (advice.make_classifier().fit(X, Y).predict_scores(X) != alone.predict_scores(X)).nnz == 0
        assert advice.chosen == alone.report_.chosen
        assert advice.expected["P@3"] == pytest.approx(advice.recommended.measured["P@3"], abs=0.02)

    def test_the_classifier_that_was_asked_for_is_left_alone(self, documents):
        model = CompressedLabelClassifier(budget="fast", random_state=0)
        advise_on(model, *documents)
        assert repr(model) == "CompressedLabelClassifier(budget='fast', random_state=0)"
        assert not hasattr(model, "compressor_")


class TestExpectations:
    def test_the_last_rows_are_tried_where_order_matters(self):
        """Every row is there twice and its labels are noise: what is found is found by the twin."""
        twin = np.repeat(np.arange(300), 2)
        X, Y = np.random.default_rng(0).normal(size=(300, 400))[twin], label_rows(300, 40, 1)[twin]
        auto, rows = (advise(X, Y, learner=RidgeLearner(0.1), held_out=how) for how in ("auto", "rows"))
        assert auto.expected["P@1"] > 0.5
        assert auto.expected_last["P@1"] < 0.2
        assert "on the last rows" in str(auto)
        assert any("Order matters: rows next to each other" in reason for reason in auto.reasons)
        assert (rows.expected_last, rows.order) == ({}, None)


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
        X, Y = make_tagged_documents(2600, 400, 100, noise=0.8, words_per_row=20, random_state=1)
        advice = advise(X[:1600], Y[:1600], sample=800, budget="fast")
        top = advice.make_classifier().fit(X[:1600], Y[:1600]).predict_topk(X[1600:], 5)
        assert advice.n_learned == 800
        for k in (1, 3, 5):
            real = precision_at_k(Y[1600:], top, k)
            assert abs(advice.expected[f"P@{k}"] - real) < 0.05
            assert 0.2 < real < 0.9


class TestKnownAnswers:
    def test_features_that_tell_the_labels_lose_nothing(self):
        Y = label_rows(400, 32, 2)
        advice = advise(Y.toarray(), Y, learner=RidgeLearner(1e-3), k=1, budget="fast")
        assert advice.n_measurements == advice.options[-1].n_measurements == 32
        assert advice.recommended.perfect["P@1"] == advice.best_possible["P@1"] == 1
        assert advice.expected["P@1"] > 0.99

    def test_features_that_tell_nothing_are_to_blame(self):
        Y = label_rows(400, 32, 1)
        advice = advise(np.random.default_rng(1).normal(size=(400, 5)), Y, k=1, budget="fast")
        assert advice.expected["P@1"] < 0.2
        assert any("most of the loss is in the regressions" in reason for reason in advice.reasons)

    def test_the_fewest_measurements_are_within_a_percent_of_the_best(self, advice):
        measured = {option.n_measurements: option.measured["P@3"] for option in advice.options}
        best = max(measured.values())
        assert measured[advice.fewest.n_measurements] >= 0.99 * best
        assert all(value < 0.99 * best for m, value in measured.items() if m < advice.fewest.n_measurements)

    def test_rows_of_one_label_get_as_many_measurements_as_others(self):
        X, Y = np.eye(200)[np.arange(600) % 200], sp.csr_array(np.eye(200)[np.arange(600) % 200])
        assert advise(X, Y, budget="fast", held_out="rows").n_measurements == 100

    def test_a_compressor_that_is_given_is_taken(self, documents):
        advice = advise(*documents, compressor=HadamardCompressor(30), budget="fast")
        assert advice.n_measurements == advice.options[-1].n_measurements == 30
        assert advice.make_classifier().compressor.n_measurements == 30
        assert "m = 30: as given" in advice.reasons[0]


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

    def test_the_size_of_the_regressions_is_exact(self, documents, advice):
        clf = advice.make_classifier().fit(*documents)
        assert advice.costs.model_bytes == clf.learner_.coef_.nbytes + clf.learner_.intercept_.nbytes
        assert advice.costs.solver == clf.learner_.solver_

    def test_other_learners_say_that_memory_is_not_known(self, documents):
        X, Y = documents
        advice = advise(X.toarray()[:, :50], Y, learner=LinearRegression(), budget="fast")
        assert advice.costs.peak_bytes is None
        assert "Memory of the regressions: not known" in " ".join(str(advice).split())


class TestAdvice:
    def test_the_same_seed_gives_the_same_advice(self, documents, advice):
        def plain(advice):
            fields = advice.to_dict()
            del fields["seconds"], fields["costs"]
            return fields

        assert plain(advise(*documents, k=3, budget="fast")) == plain(advice)
        assert plain(advise(*documents, k=3, budget="fast", random_state=1)) != plain(advice)

    def test_forms_of_input_do_not_matter(self, documents, advice):
        X, Y = documents
        lists = [Y.indices[a:b].tolist() for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]
        for other in (advise(sp.csc_array(X), Y.astype(bool), k=3, budget="fast"), advise(X, lists, budget="fast")):
            assert other.expected == pytest.approx(advice.expected, abs=0.02)

    @pytest.mark.parametrize("form", [list, pd.Series])
    def test_texts_are_taken_as_words(self, documents, form):
        X, Y = documents
        texts = [" ".join(f"word{j}" for j in X.indices[a:b]) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
        tags = [[f"tag{j}" for j in Y.indices[a:b]] for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]
        advice = advise(form(texts), tags, budget="fast")
        clf = advice.make_classifier()
        assert advice.chosen["features"] == clf.features == "words"
        assert clf.fit(texts, tags).score(texts, tags) > 0.5

    def test_features_are_those_asked_for(self, documents):
        advice = advise(*documents, features=LogTfidfTransformer(use_idf=False), budget="fast")
        assert not advice.make_classifier().features.use_idf
        assert {row["setting"].rpartition(" features ")[2] for row in advice.tried} == {"as they are"}

    def test_few_labels_are_asked_for_no_more_than_there_are(self):
        Y = label_rows(60, 3, 1)
        advice = advise(Y.toarray(), Y, budget="fast")
        assert advice.k == 3
        assert advice.make_classifier().fit(Y.toarray(), Y).predict_topk(Y.toarray(), 1).labels.shape == (60, 1)

    def test_all_fields_are_plain(self, advice):
        assert json.loads(json.dumps(advice.to_dict())) == advice.to_dict()

    @pytest.mark.parametrize("k", [1, 5, 12])
    def test_the_table_fits_a_terminal(self, documents, k):
        text = str(advise(*documents, k=k, budget="fast"))
        assert max(map(len, text.splitlines())) <= 80
        for word in ("Labels", "Expect", "perfect regressions", f"P@{k}", "Take", "Costs", "best possible"):
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
        with pytest.raises(ValueError, match="held_out must be one of 'auto', 'rows', 'last'"):
            advise(*documents, held_out="groups")

    def test_of_a_sample_too_small(self, documents):
        with pytest.raises(ValueError, match="sample must be at least 10"):
            advise(*documents, sample=3)
