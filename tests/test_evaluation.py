"""What evaluate says: the figures of the metrics, of predict and of predict_proba, in one go."""

import csv
import json
import pickle

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from PIL import Image
from sklearn.base import clone

from labelsense import CompressedLabelClassifier, OneVsAllClassifier, RidgeLearner, load_model, metrics
from labelsense.data import make_tagged_documents

X, Y = make_tagged_documents(400, 150, 60, noise=0.1, random_state=0)
TRAIN, TEST = slice(0, 300), slice(300, 400)


MODELS = {
    "plain": reference.paper(learner=RidgeLearner(1.0), random_state=0),
    "baseline": OneVsAllClassifier(RidgeLearner(1.0)),
    "refined": CompressedLabelClassifier(learner=RidgeLearner(1.0), random_state=0),
}


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS)
def fitted(request):
    return clone(request.param).fit(X[TRAIN], Y[TRAIN])


def names(Y):
    return [[f"tag{j}" for j in Y.indices[a:b]] for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]


def test_the_figures_are_those_of_the_metrics(fitted):
    result = fitted.evaluate(X[TEST], Y[TEST], [1, 5])
    scores, chosen, true = fitted.predict_scores(X[TEST]), fitted.predict(X[TEST]), Y[TEST]
    weights = metrics.inverse_propensities(Y[TRAIN])
    for k in (1, 5):
        assert result[f"P@{k}"] == metrics.precision_at_k(true, scores, k)
        assert result[f"recall@{k}"] == metrics.recall_at_k(true, scores, k)
        assert result[f"nDCG@{k}"] == metrics.ndcg_at_k(true, scores, k)
        assert result[f"coverage@{k}"] == metrics.coverage_at_k(true, scores, k)
        expected = metrics.propensity_scored_precision_at_k(true, scores, weights, k)
        assert result[f"PSP@{k}"] == pytest.approx(expected)
    assert result["F1"] == metrics.f1_score(true, chosen)
    assert result["F1 micro"] == metrics.f1_score(true, chosen, "micro")
    assert result["F1 macro"] == metrics.f1_score(true, chosen, "macro")
    assert (result["precision"], result["recall"]) == metrics.precision_recall(true, chosen)
    assert result["predicted labels"] == chosen.sum() / 100
    assert result["labels"] == pytest.approx(true.sum() / 100)
    assert result["empty rows"] == (chosen.sum(axis=1) == 0).mean()
    for given, expected in zip(result.per_label, metrics.label_table(true, chosen), strict=True):
        np.testing.assert_array_equal(given, expected)
    assert result.rank_precision[0] == result["P@1"]
    assert result.rank_precision[:5].mean() == pytest.approx(result["P@5"])


def test_models_with_probabilities_are_asked_for_them_and_others_are_not(fitted):
    result = fitted.evaluate(X[TEST], Y[TEST])
    if not hasattr(fitted, "predict_proba"):
        assert not {"ECE", "expected labels", "missed"} & set(result)
        assert result.reliability is None
        assert "probabilities" not in str(result)
        return
    probabilities = fitted.predict_proba(X[TEST])
    assert result["ECE"] == metrics.calibration_error(Y[TEST], probabilities)
    assert result["missed"] == metrics.missed_share(Y[TEST], probabilities)
    assert result["expected labels"] == pytest.approx(probabilities.sum() / 100)
    assert result.reliability.n_pairs.sum() == probabilities.nnz
    assert "calibration error" in str(result)


def test_labels_that_are_new_count_as_not_found(fitted):
    clf = clone(fitted).fit(X[TRAIN], names(Y[TRAIN]))
    known = clf.evaluate(X[TEST], names(Y[TEST]))
    more = clf.evaluate(X[TEST], [[*row, "new"] for row in names(Y[TEST])])
    assert more["labels"] == pytest.approx(known["labels"] + 1)
    for name in ("PSP@5", "recall@5", "F1", "F1 micro", "recall"):
        assert more[name] < known[name]
    for name in ("P@5", "precision", "F1 macro", "coverage@5"):
        assert more[name] == known[name]
    if "missed" in known:
        assert more["missed"] > known["missed"]


def test_what_predict_gives_does_not_depend_on_the_cut_offs():
    clf = OneVsAllClassifier(n_nonzero=1).fit(X[TRAIN], Y[TRAIN])
    few, many = (clf.evaluate(X[TEST], Y[TEST], ks) for ks in ([1], [1, 50]))
    assert few["F1"] == many["F1"]
    assert many["recall@50"] > 0.9


def test_the_counts_of_training_are_kept_and_follow_updates(tmp_path):
    clf = reference.paper(learner=RidgeLearner(1.0, updatable=True), random_state=0)
    clf.partial_fit(X[:200], Y[:200]).partial_fit(X[200:300], Y[200:300])
    whole = reference.paper(learner=RidgeLearner(1.0), random_state=0).fit(X[TRAIN], Y[TRAIN])
    assert clf.n_samples_seen_ == whole.n_samples_seen_ == 300
    np.testing.assert_array_equal(clf.label_counts_, whole.label_counts_)
    clf.save(tmp_path / "a.model")
    assert load_model(tmp_path / "a.model").evaluate(X[TEST], Y[TEST]) == clf.evaluate(X[TEST], Y[TEST])
    assert clf.forget(X[:50], Y[:50]).n_samples_seen_ == 250


def test_a_model_without_counts_has_no_propensities():
    clf = reference.paper(random_state=0).fit(X[TRAIN], Y[TRAIN])
    del clf.label_counts_, clf.n_samples_seen_  # as in a file of before
    result = clf.evaluate(X[TEST], Y[TEST])
    assert "P@1" in result
    assert "PSP@1" not in result
    assert "propensity" not in str(result)


def test_it_is_a_dictionary_that_json_and_pickle_take(fitted):
    result = fitted.evaluate(X[TEST], Y[TEST])
    assert json.loads(json.dumps(result)) == result
    assert pickle.loads(pickle.dumps(result)).per_label.n_true.tolist() == result.per_label.n_true.tolist()


def test_the_table_has_a_column_for_each_cut_off(fitted):
    result = fitted.evaluate(X[TEST], Y[TEST], [1, 10])
    lines = str(result).splitlines()
    assert lines[0].split() == ["100", "rows,", "percent", "@1", "@10"]
    assert lines[1].split() == ["precision", f"{100 * result['P@1']:.1f}", f"{100 * result['P@10']:.1f}"]
    assert f"F1 {100 * result['F1']:.1f} (micro" in str(result)


@pytest.mark.parametrize(("name", "separator"), [("a.tsv", "\t"), ("a.CSV", ",")])
def test_the_figures_of_labels_as_a_file(name, separator, tmp_path):
    tags = [[f'a "{tag}",\tb' for tag in row] for row in names(Y)]
    clf = reference.paper(random_state=0).fit(X[TRAIN], tags[TRAIN])
    result = clf.evaluate(X[TEST], tags[TEST])
    result.write_labels(tmp_path / name)
    with open(tmp_path / name, newline="") as file:
        rows = list(csv.DictReader(file, delimiter=separator))
    assert [row["label"] for row in rows] == clf.labels_
    assert [int(row["count"]) for row in rows] == result.per_label.n_true.tolist()
    assert [float(row["f1"]) for row in rows] == result.per_label.f1.round(4).tolist()


def test_a_file_of_another_kind_is_refused(tmp_path):
    result = reference.paper(random_state=0).fit(X[TRAIN], Y[TRAIN]).evaluate(X[TEST], Y[TEST])
    with pytest.raises(ValueError, match="must be a file that ends in .tsv or .csv. Got .*a.txt"):
        result.write_labels(tmp_path / "a.txt")


def test_the_picture_has_a_second_half_for_probabilities(fitted, tmp_path):
    fitted.evaluate(X[TEST], Y[TEST]).plot(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        width, height = picture.size
    assert width / height == pytest.approx(10 / 4.5 if hasattr(fitted, "predict_proba") else 5 / 4.5, abs=0.01)


class TestObjective:
    @pytest.mark.parametrize("refiner", [None, "auto"])
    def test_propensity_ranks_by_weight_times_score(self, refiner, tmp_path):
        given = {"refiner": refiner, "random_state": 0}
        plain, propensity = (
            CompressedLabelClassifier("whitened", "ridge", objective=word, **given).fit(X[TRAIN], Y[TRAIN])
            for word in ("precision", "propensity")
        )
        weights = metrics.inverse_propensities(Y[TRAIN])
        scores = plain.predict_scores(X[TEST])
        np.testing.assert_array_equal(propensity.predict_scores(X[TEST]).toarray(), scores.toarray())
        expected = scores.toarray() * weights
        np.testing.assert_allclose(propensity.decision_function(X[TEST]).toarray(), expected, rtol=1e-5)
        top = propensity.predict_topk(X[TEST], 1)
        np.testing.assert_allclose(top.scores[:, 0], expected.max(axis=1), rtol=1e-5)
        assert (propensity.predict(X[TEST]) != plain.predict(X[TEST])).nnz == 0
        before, after = plain.evaluate(X[TEST], Y[TEST]), propensity.evaluate(X[TEST], Y[TEST])
        assert after["P@1"] == metrics.precision_at_k(Y[TEST], sp.csr_array(expected), 1)
        assert after["F1"] == before["F1"]
        propensity.save(tmp_path / "a.model")
        assert load_model(tmp_path / "a.model").evaluate(X[TEST], Y[TEST]) == after

    def test_another_is_refused(self):
        with pytest.raises(ValueError, match="objective must be one of 'precision', 'propensity'.*Got 'recall'"):
            CompressedLabelClassifier(objective="recall").fit(X[TRAIN], Y[TRAIN])
