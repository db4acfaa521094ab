"""Forms of rows and labels that every model takes, looked at once, and rows that it refuses."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import reference
import scipy.sparse as sp
from predictors import MODELS, TAGS, TEXTS, names
from predictors import documents as documents
from sklearn import get_config
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils import validation as sklearn_validation

from labelsense import InputError, OneVsAllClassifier, RidgeLearner, _validation, labels, load_model, predictor

FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": lambda columns: pa.table({name: np.asarray(values) for name, values in columns.items()}),
}


class TestForms:
    @pytest.mark.parametrize("form", FRAMES)
    @pytest.mark.parametrize("model", MODELS)
    def test_data_frames(self, documents, model, form):
        X, Y = documents[0].toarray()[:, :20], documents[1]
        frame = FRAMES[form]({f"x{j}": X[:, j] for j in range(20)})
        labels = FRAMES[form]({f"y{j}": Y[:, [j]].toarray().ravel() for j in range(60)})
        clf = model(learner=RidgeLearner(1.0)).set_params(
            **({} if model is OneVsAllClassifier else {"random_state": 0})
        )
        plain = clone(clf).fit(X, Y)
        framed = clf.fit(frame, labels)
        assert framed.labels_ == [f"y{j}" for j in range(60)]
        assert framed.feature_names_in_.tolist() == [f"x{j}" for j in range(20)]
        np.testing.assert_array_equal(framed.predict_scores(frame).toarray(), plain.predict_scores(X).toarray())
        assert framed.score(frame, labels) == plain.score(X, Y)
        assert framed.predict(frame) == [[f"y{j}" for j in row.nonzero()[0]] for row in plain.predict(X).toarray()]

    def test_columns_of_features_are_checked_by_name(self, documents):
        X, Y = documents[0].toarray()[:, :3], documents[1]
        clf = reference.paper(random_state=0).fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
        with pytest.raises(InputError, match="feature names should match"):
            clf.predict(pd.DataFrame(X, columns=["a", "c", "b"]))

    @pytest.mark.parametrize("model", MODELS)
    @pytest.mark.parametrize(
        "form",
        [list, tuple, np.array, lambda t: np.array(t, object), pd.Series, pl.Series, pa.array,
         lambda t: pd.Series(t, dtype="string")],
        ids=["list", "tuple", "array", "objects", "pandas", "polars", "pyarrow", "pandas strings"],
    )  # fmt: skip
    def test_texts(self, model, form):
        clf = model(learner=RidgeLearner(0.01), features="words")
        if "random_state" in clf.get_params():
            clf.set_params(random_state=0)
        texts = form(TEXTS)
        clf.fit(texts, TAGS)
        assert clf.score(texts, TAGS) > 0.99
        assert set(clf.predict_topk(form(["word2 text1"]), 2).labels[0]) == {"a2", "b1"}
        with pytest.raises(TypeError, match="X holds texts where features are expected. Pass features='words'"):
            model().fit(texts, TAGS)


def test_labels_that_can_be_learned_can_be_saved(tmp_path):
    kinds = ["a", 3, 2.5, True, ("t", 1, (2.5, "x")), np.int64(7), np.str_("b"), -1, "", float("inf")]
    X, y = np.random.default_rng(0).random((60, 3)), [[kinds[i % 10], f"long{i}"] for i in range(60)]
    clf = reference.paper(random_state=0).fit(X, y)
    clf.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.labels_ == clf.labels_
    assert list(map(type, again.labels_)) == list(map(type, clf.labels_))
    assert (again.predict_topk(X, 3).labels == clf.predict_topk(X, 3).labels).all()


class TestBadRows:
    @pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
    def test_texts_that_are_missing(self, missing):
        clf = reference.paper(features="words", random_state=0).fit(TEXTS, TAGS)
        for call in (clf.predict, lambda texts: clf.fit(texts, TAGS)):
            with pytest.raises(InputError, match="X must hold texts. Got .* in row 7. Leave the row out, or pass ''"):
                call([*TEXTS[:7], missing, *TEXTS[8:]])

    @pytest.mark.parametrize(
        ("X", "message"),
        [
            ("a text", "Got str. Pass a list, even for one text"),
            (pd.DataFrame({"text": TEXTS}), r"Got DataFrame of shape \(40, 1\). Pass the column of texts"),
            (np.ones((40, 2)), r"Got ndarray of shape \(40, 2\)"),
            (sp.eye_array(40).tocsr(), r"Got csr_array of shape \(40, 40\)"),
            ([1] * 40, "Got 1 of type int in row 0"),
            (7, "Got int"),
        ],
    )
    def test_what_is_no_texts(self, X, message):
        with pytest.raises(TypeError, match=f"X must hold texts.*{message}"):
            reference.paper(features="words").fit(X, TAGS)

    def test_lengths_are_compared_before_the_features_are_made(self):
        class Never(TfidfVectorizer):
            def fit_transform(self, X, y=None):
                raise AssertionError

        with pytest.raises(InputError, match="Got 39 rows of X and 40 of y"):
            reference.paper(features=Never()).fit(TEXTS[1:], TAGS)

    @pytest.mark.parametrize("number", [-1, 80, 10**6, -(10**9)])
    @pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil"])
    @pytest.mark.parametrize("features", [None, "counts"])
    def test_places_out_of_range(self, number, form, features):
        rng = np.random.default_rng(0)
        X = sp.csr_array(rng.random((80, 6)).astype("f4"))
        Y = (rng.random((80, 20)) < 0.2).astype(int)
        clf = reference.paper(features=features, random_state=0).fit(X, Y)
        bad = X.asformat(form)
        if form == "coo":
            bad.col[5] = number
        elif form == "lil":
            bad.rows[0][3] = number
        else:
            bad.indices[5] = number
        for call in (clf.predict_topk, lambda X: clf.fit(X, Y)):
            with pytest.raises(InputError, match=f"numbers from 0 to .* Got {number}. Build|outside of its shape"):
                call(bad)

    @pytest.mark.parametrize(
        "break_it",
        [
            lambda M: M.indptr.__setitem__(3, 999),
            lambda M: M.indptr.__setitem__(0, 1),
            lambda M: M.indptr.__setitem__(-1, 10**6),
            lambda M: setattr(M, "indices", M.indices[:-1]),
            lambda M: setattr(M, "indptr", M.indptr[:-1]),
        ],
    )
    def test_an_indptr_that_does_not_fit(self, break_it):
        rng = np.random.default_rng(0)
        good = sp.csr_array(rng.random((80, 6)))
        Y = sp.csr_array((rng.random((80, 20)) < 0.2).astype(float))
        bad_X, bad_Y = good.copy(), Y.copy()
        break_it(bad_X)
        break_it(bad_Y)
        with pytest.raises(InputError, match="X has an indptr that does not fit its shape and data"):
            reference.paper().fit(bad_X, Y)
        with pytest.raises(InputError, match="y has an indptr that does not fit its shape and data"):
            reference.paper().fit(good, bad_Y)

    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
    @pytest.mark.parametrize("model", MODELS)
    def test_values_that_float32_does_not_hold(self, documents, model, form):
        X, Y = documents[0].toarray(), documents[1]
        clf = model().fit(form(X), Y)
        for sign in (-1, 1):
            large = X.astype(np.float64)
            large[3, 5] = sign * 1e39
            for call in (clf.predict, lambda X: model().fit(X, Y)):
                with pytest.raises(InputError, match=r"at most 3.4e\+38 in size.*Got 1e\+39. Scale the features"):
                    call(form(large))

    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
    def test_values_whose_differences_float32_does_not_hold(self, form):
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(100, 4)), rng.integers(0, 2, (100, 5))
        X[:, 1] = 7.1  # a constant is lost to nobody
        X[rng.uniform(size=100) < 0.1, 3] = 0
        fits = reference.paper(random_state=0).fit
        fits(form(X), Y)
        fits(form(X + np.array([1e3, 1e8, 0, 0])), Y)
        # Column 3 has zeros, which differ from large numbers in any precision.
        shifted = np.where(X == 0, 0, X + np.array([0, 0, 1e8, 1e8]))
        with pytest.raises(InputError, match=r"1 of them lose it: feature 2 varies by [01].* around 1e\+08. Scale"):
            fits(form(shifted), Y)
        fits(form(shifted.astype(np.float32)), Y)  # nothing is lost here


class Count:
    """Counts the calls of a function that it stands for."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *args, **options):
        self.calls += 1
        return self.function(*args, **options)


@pytest.mark.parametrize("form", [lambda Y: Y, names], ids=["sparse", "lists"])
@pytest.mark.parametrize("model", MODELS)
class TestValidateOnce:
    def test_y(self, documents, model, form, monkeypatch):
        X, Y, X_test, Y_test = documents
        read, check = Count(labels.read_labels), Count(_validation.check_indicator)
        monkeypatch.setattr(labels, "read_labels", read)
        for name, module in list(sys.modules.items()):
            if name.startswith("labelsense") and hasattr(module, "check_indicator"):
                monkeypatch.setattr(module, "check_indicator", check)
        clf = model(learner=RidgeLearner(1.0)).fit(X, form(Y))
        assert (read.calls, check.calls) == (1, form is not names)
        clf.evaluate(X_test, form(Y_test), [1, 3, 5, 10])
        assert (read.calls, check.calls) == (2, 2 * (form is not names))

    def test_x(self, documents, model, form, monkeypatch):
        """Our own check looks at all values; scikit-learn's, which would do so again at each level, do not."""
        X, Y, X_test, Y_test = documents
        theirs, ours = Count(sklearn_validation._assert_all_finite), Count(predictor.check_representable)

        def scan(values, *args, **options):
            all_of_x = np.size(values) in (X.nnz, X_test.nnz) and not get_config()["assume_finite"]
            return (theirs if all_of_x else theirs.function)(values, *args, **options)

        monkeypatch.setattr(sklearn_validation, "_assert_all_finite", scan)
        monkeypatch.setattr(predictor, "check_representable", ours)
        clf = model(learner=RidgeLearner(1.0)).fit(X, form(Y))
        clf.evaluate(X_test, form(Y_test))
        assert (ours.calls, theirs.calls) == (2, 0)
