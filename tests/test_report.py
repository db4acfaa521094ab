"""What a fit tells of itself: on a screen, in a notebook, in a file."""

import numpy as np
import pytest

from labelsense import CompressedLabelClassifier, KernelRidgeLearner, RidgeLearner, load_model
from labelsense.compress import WhitenedCompressor
from labelsense.data import make_tagged_documents
from labelsense.metrics import precision_at_k
from labelsense.reconstruct import OMPDecoder
from labelsense.trials import precision_curve

X, Y = make_tagged_documents(300, 100, 40, random_state=0)


@pytest.fixture(scope="module")
def updatable():
    return CompressedLabelClassifier(updatable=True, random_state=0).fit(X, Y)


class TestReport:
    def test_text_fits_a_terminal(self, updatable):
        lines = str(updatable.report_).splitlines()
        assert max(map(len, lines)) <= 80
        assert not any(line.endswith(" ") for line in lines)

    def test_notebooks_show_tables_and_the_reliability(self, updatable):
        html = updatable.report_._repr_html_()
        for word in ("chosen", "WhitenedCompressor", "expected on new rows", "tried", "probability (%)", "<svg"):
            assert word in html
        assert "Only what can be updated" in html

    def test_labels_that_are_too_many_to_score_all(self, monkeypatch):
        monkeypatch.setattr("labelsense.report.MOST_SCORED", 39)
        model = CompressedLabelClassifier(learner="ridge", budget="fast", random_state=0).fit(X, Y)
        assert "With more than 39 labels the candidates of a row" in str(model.report_).replace("\n", " ")

    def test_files_have_it(self, updatable, tmp_path):
        updatable.save(tmp_path / "m")
        assert vars(load_model(tmp_path / "m").report_) == vars(updatable.report_)


class TestCurve:
    def test_all_measurements_have_the_precision_of_the_trial(self):
        report = (
            CompressedLabelClassifier(refiner=None, updatable=True, budget="fast", random_state=0).fit(X, Y).report_
        )
        curve, tried = report.curve, report.tried
        assert [point["n_measurements"] for point in curve] == [5, 10, 20, 40]
        best = max(tried, key=lambda row: row["P@1"] + row["P@3"] + row["P@5"])
        assert {name: curve[-1][name] for name in ("P@1", "P@5")} == pytest.approx(
            {name: best[name] for name in ("P@1", "P@5")}
        )
        assert curve[0]["P@5"] < curve[-1]["P@5"]

    def test_fewer_measurements_are_those_of_a_smaller_matrix(self):
        A = WhitenedCompressor(30, random_state=0).fit(Y).operator_
        H = RidgeLearner(1.0).fit_out_of_sample(X, A.compress(Y))
        (point,) = precision_curve(H, Y, A, OMPDecoder(), [12], (1, 3))
        some = A.subset(np.sort(np.random.RandomState(0).permutation(30)[:12]))
        decoder = OMPDecoder()
        H = RidgeLearner(1.0).fit_out_of_sample(X, some.compress(Y))
        scores = decoder.decode(decoder.prepare(some), H)
        assert point["P@1"] == pytest.approx(precision_at_k(Y, scores, 1), abs=0.01)
        assert point["P@3"] == pytest.approx(precision_at_k(Y, scores, 3), abs=0.01)

    def test_there_is_none_where_nothing_was_tried(self):
        assert CompressedLabelClassifier(learner="ridge", budget="fast").fit(X, Y).report_.curve == []


class TestUpdatable:
    def test_chooses_ridge_and_learns_more(self, updatable, tmp_path):
        assert isinstance(updatable.learner_, RidgeLearner)
        assert not any(row["setting"].startswith("kernel") for row in updatable.report_.tried)
        assert any("ridge" in note for note in updatable.report_.notes)
        updatable.save(tmp_path / "m")
        model = load_model(tmp_path / "m").partial_fit(X[:50], Y[:50])
        assert model.n_samples_seen_ == 350

    def test_given_parts_are_made_so_or_refused(self):
        clf = CompressedLabelClassifier(learner="ridge", refiner=None, updatable=True).fit(X, Y)
        assert clf.learner_.update_bytes > 0
        with pytest.raises(ValueError, match="learner must be ridge to be updatable.*Got KernelRidgeLearner"):
            CompressedLabelClassifier(learner=KernelRidgeLearner(), updatable=True).fit(X, Y)


def test_features_may_be_left_as_they_are():
    clf = CompressedLabelClassifier(features="none", budget="fast", random_state=0).fit(X, Y)
    assert (clf.features_, clf.scaling_) == (None, None)
    assert all("features as they are" in row["setting"] for row in clf.report_.tried)
