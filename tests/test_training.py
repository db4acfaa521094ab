"""What `labelsense train` chooses, and updates of model files: exact, and one after the other."""

import json
import multiprocessing
import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from commands import LISTS, TEXTS, X, Y

from labelsense import OneVsAllClassifier, RidgeLearner, load_model, training
from labelsense._files import locking
from labelsense.data import Examples
from labelsense.data.adapt import choose_features, features_for, labels_for, labels_of
from labelsense.regress import moments
from labelsense.training import Choices, train, updatable_words, update

DOCS = Examples(TEXTS, LISTS)
PLAIN = Choices(refiner=None, hold_out=False, alpha=0.5, n_measurements=40)
UPDATABLE = replace(PLAIN, updatable=True)


def part(rows):
    return Examples(TEXTS[rows], LISTS[rows])


class TestChoices:
    @pytest.mark.parametrize(
        ("examples", "word"),
        [
            (DOCS, "words"),
            (Examples(X, Y), "counts"),
            (Examples(0.5 * X, Y), "none"),
            (Examples(-X, Y), "none"),
            (Examples(["a.png"], None, images=True), "images"),
        ],
    )
    def test_features_by_default(self, examples, word):
        assert choose_features(examples) == word

    @pytest.mark.parametrize(
        ("examples", "wanted", "fitting"),
        [
            (DOCS, "counts", "words, hashing or characters: the rows are texts"),
            (Examples(X, Y), "words", "counts or none: the rows are features"),
            (Examples(["a.png"], None, images=True), "words", "images: the rows are images"),
        ],
    )
    def test_features_that_do_not_fit(self, examples, wanted, fitting):
        with pytest.raises(ValueError, match=f"features must be {fitting}. Got {wanted}"):
            choose_features(examples, wanted)

    def test_labels_have_names_where_the_file_has_them(self):
        names = [f"l{j}" for j in range(40)]
        assert labels_of(Examples(X, Y, labels=names))[0] == [f"l{j}" for j in Y.indices[: Y.indptr[1]]]
        assert labels_of(Examples(X, Y)) is Y

    def test_rows_and_labels_get_the_columns_they_lack(self):
        model = train(Examples(X, Y), PLAIN).model
        few = Examples(sp.csr_array(X[:5, :7]), sp.csr_array(Y[:5, :3]))
        assert features_for(model, few).shape == (5, X.shape[1])
        assert labels_for(model, few).shape == (5, 40)

    def test_a_report_is_plain(self):
        for refiner in ("auto", None):
            report = train(DOCS, replace(PLAIN, hold_out=True, refiner=refiner, budget="fast")).report
            assert json.loads(json.dumps(report)) == report
            assert 0.5 < report["expected"]["P@1"] < 1
            assert report["expected"]["rows"] == (40 if refiner is None else 400)

    def test_features_are_scaled_as_is_best_unless_somebody_says(self):
        model, report = train(Examples(X, Y), Choices(refiner=None, hold_out=False, budget="fast"))
        assert report["features"] == (
            "none"
            if model.scaling_ is None
            else {"LogTfidfTransformer": "counts", "UnitRows": "unit", "StandardColumns": "standard"}[
                type(model.scaling_).__name__
            ]
        )
        assert len({row["setting"].rpartition(" ")[2] for row in report["tried"]}) == 3
        given = replace(PLAIN, features="none", alpha="auto", budget="fast")
        assert {row["setting"].rpartition("features ")[2] for row in train(Examples(X, Y), given).report["tried"]} == {
            "as they are"
        }

    def test_what_is_given_wins(self):
        choices = Choices(compressor="gaussian", n_measurements=30, decoder="foba", refiner=None, hold_out=False)
        model = train(DOCS, replace(choices, budget="fast")).model
        assert type(model.compressor_).__name__ == "GaussianCompressor"
        assert model.compressor_.operator_.n_measurements == 30
        assert model.report_.tried  # the learner was chosen

    def test_a_learner_that_is_named_has_the_penalty_of_the_least_error(self):
        model = train(DOCS, Choices(learner="ridge", refiner=None, hold_out=False)).model
        assert model.learner.alpha == "loo"
        assert model.learner_.alpha_ in model.learner_.alpha_errors_

    def test_the_trial_keeps_the_penalty_of_a_learner(self):
        choices = Choices(learner="ridge", refiner=None)
        model = train(DOCS, choices).model
        assert model.learner.alpha == model.learner_.alpha_

    def test_words_are_for_texts(self):
        with pytest.raises(ValueError, match="n_features is for texts. Got 50"):
            train(Examples(X, Y), Choices(n_features=50))


class TestUpdatable:
    def test_has_the_features_and_the_precision_of_others(self):
        plain, updatable = (train(DOCS, choices) for choices in (PLAIN, UPDATABLE))
        assert updatable.report["n_features"] == plain.report["n_features"] == 100
        assert updatable.report["update_bytes"] == 8 * 100 * 140
        np.testing.assert_allclose(updatable.model.measure(TEXTS), plain.model.measure(TEXTS), atol=1e-4)

    @pytest.mark.parametrize("examples", [DOCS, Examples(X, Y)], ids=["words", "counts"])
    def test_words_and_idf_are_those_of_the_first_training(self, examples, tmp_path):
        def rows(part):
            return Examples(examples.X[part], examples.Y[part])

        first = train(rows(slice(0, 300)), UPDATABLE).model
        first.save(tmp_path / "m")
        done = update(tmp_path / "m", [rows(slice(300, 350)), rows(slice(350, 400))])
        assert done == (100, 0)
        updated = load_model(tmp_path / "m")
        features = first.features_.transform(examples.X)
        indicator, _ = first.vocabulary_.read_counting_unknown(examples.Y)
        expected = RidgeLearner(0.5).fit(features, first.compressor_.operator_.compress(indicator)).predict(features)
        np.testing.assert_allclose(updated.measure(examples.X), expected, atol=1e-4)

    @pytest.mark.parametrize(
        ("free", "words"), [(64e6, 1000), (64e8, 10_000), (1e12, 20_000), (float("inf"), 20_000), (0.0, 2)]
    )
    def test_as_many_words_as_memory_allows(self, free, words, monkeypatch):
        monkeypatch.setattr(training, "available_memory", lambda: free)
        assert updatable_words(TEXTS) == words

    def test_the_most_frequent_words_are_kept(self, monkeypatch):
        monkeypatch.setattr(training, "available_memory", lambda: 64.0 * 30**2)
        model = train(DOCS, UPDATABLE).model
        frequency = np.asarray((X > 0).sum(axis=0)).ravel()
        words = model.features_.steps[0][1].vocabulary_
        kept = np.isin([f"word{j}" for j in range(100)], list(words))
        assert kept.sum() == 30
        assert frequency[kept].min() >= frequency[~kept].max()

    def test_all_words_are_kept_if_most_of_them_never_meet(self, monkeypatch, tmp_path):
        monkeypatch.setattr(training, "available_memory", lambda: 64.0 * 30**2)
        monkeypatch.setattr(moments, "MOST_DENSE", 50)
        monkeypatch.setattr(moments, "FULLEST", 1.0)
        model, report = train(DOCS, UPDATABLE)
        assert report["n_features"] == 100
        assert report["update_bytes"] == model.learner_.update_bytes > 8 * 100 * 40
        model.save(tmp_path / "m")
        update(tmp_path / "m", [DOCS])
        indicator, _ = model.vocabulary_.read_counting_unknown(LISTS)
        Z = model.compressor_.operator_.compress(indicator)
        twice = RidgeLearner(0.25).fit(model.features_.transform(TEXTS), Z)  # half the penalty is twice the rows
        np.testing.assert_allclose(load_model(tmp_path / "m").learner_.coef_, twice.coef_, atol=1e-4)

    def test_what_cannot_be_updated(self, tmp_path):
        OneVsAllClassifier().fit(X, Y).save(tmp_path / "m")
        with pytest.raises(TypeError, match="holds a OneVsAllClassifier, which cannot be updated"):
            update(tmp_path / "m", [Examples(X, Y)])
        train(DOCS, UPDATABLE).model.save(tmp_path / "m")
        before = (tmp_path / "m").read_bytes()
        with pytest.raises(ValueError, match="examples has no rows to learn from"):
            update(tmp_path / "m", [Examples([], [])])
        assert (tmp_path / "m").read_bytes() == before


def add_rows(path, label, together):
    """Update a model, slowly, in a process of its own."""

    def batches():
        time.sleep(0.5)
        yield Examples(["word0 word1"] * 20, [[label]] * 20)

    together.wait(60)
    update(path, batches())


def hold(path, held, release):
    with locking(path):
        held.set()
        release.wait(60)


class TestConcurrency:
    spawn = multiprocessing.get_context("spawn")

    def test_no_update_is_lost(self, tmp_path):
        train(DOCS, UPDATABLE).model.save(tmp_path / "m")
        together = self.spawn.Barrier(2)
        processes = [
            self.spawn.Process(target=add_rows, args=(tmp_path / "m", label, together)) for label in ("new 0", "new 1")
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
        assert [process.exitcode for process in processes] == [0, 0]
        assert {"new 0", "new 1"} <= set(load_model(tmp_path / "m").labels_)
        assert [path.name for path in tmp_path.iterdir()] == ["m"]

    def test_who_waits_says_so(self, tmp_path, caplog):
        (tmp_path / "m").write_bytes(b"")
        held, release = self.spawn.Event(), self.spawn.Event()
        process = self.spawn.Process(target=hold, args=(tmp_path / "m", held, release))
        process.start()
        assert held.wait(60)
        caplog.handler.addFilter(lambda record: release.set() or True)  # let go when it has been said
        with locking(tmp_path / "m"):
            assert caplog.messages == [f"{tmp_path / 'm'} is being changed by another process: waiting for it"]
        process.join(60)
        assert process.exitcode == 0

    def test_an_error_ends_the_lock(self, tmp_path):
        (tmp_path / "m").write_bytes(b"")
        for _ in range(2):
            with pytest.raises(KeyError), locking(tmp_path / "m"):
                raise KeyError
