"""Texts as vectors of an encoder, alone or beside words, and as runs of characters."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from labelsense import (
    InputError,
    ModelFileError,
    OneVsAllClassifier,
    RidgeLearner,
    load_model,
)
from labelsense.features import EncodedTexts, make_features, text_characters, text_words

KINDS = ["red fox", "grey goose", "brown bear", "white swan"]
TEXTS = [f"{KINDS[i % 4]} number{i % 7}" for i in range(80)]
TAGS = [KINDS[i % 4].split() for i in range(80)]


class Letters:
    """Counts letters: an encoder as sentence encoders are, which can also be called."""

    def __init__(self, length=26):
        self.length = length

    def encode(self, texts):
        return np.array([[text.count(chr(97 + j)) for j in range(self.length)] for text in texts], np.float64)

    def __call__(self, texts):
        raise AssertionError("not the way to use it")

    def __deepcopy__(self, memo):
        raise AssertionError("encoders are large")


class Constant:
    def __init__(self, answer):
        self.answer = answer

    def encode(self, texts):
        return self.answer


def test_vectors_have_unit_length():
    X = EncodedTexts(Letters()).fit_transform(TEXTS)
    counts = Letters().encode(TEXTS)
    np.testing.assert_allclose(X, counts / np.linalg.norm(counts, axis=1, keepdims=True), rtol=1e-6)
    assert X.dtype == np.float32


def test_words_come_before_the_vectors():
    features = EncodedTexts(Letters(), words=True)
    X, words = features.fit_transform(TEXTS[:40]), text_words().fit(TEXTS[:40])
    for texts, got in ((TEXTS[:40], X), (TEXTS[40:], features.transform(TEXTS[40:]))):
        expected = sp.hstack([words.transform(texts), EncodedTexts(Letters()).fit_transform(texts)])
        assert abs(got - expected).max() < 1e-6


def test_copies_share_the_encoder():
    encoder = Letters()
    copy = clone(EncodedTexts(encoder, words=True))
    assert copy.encoder is encoder
    assert copy.words
    assert make_features(encoder).encoder is encoder


@pytest.mark.parametrize("words", [False, True])
def test_a_classifier_learns_from_them_and_is_stored_without_the_encoder(words, tmp_path):
    features = EncodedTexts(Letters(), words=words)
    clf = reference.paper(learner=RidgeLearner(0.01), features=features, random_state=0).fit(TEXTS, TAGS)
    assert clf.takes_text
    assert clf.evaluate(TEXTS, TAGS, [2])["P@2"] > 0.95
    clf.save(tmp_path / "a.model")
    again = load_model(tmp_path / "a.model", encoder=Letters())
    assert again.predict_topk(TEXTS).labels.tolist() == clf.predict_topk(TEXTS).labels.tolist()
    with pytest.raises(ModelFileError, match=r"it needs its encoder of texts: call load_model\(path, encoder=...\)"):
        load_model(tmp_path / "a.model")
    with pytest.raises(ModelFileError, match="encoder must give vectors of length 26, as in training. Got 20"):
        load_model(tmp_path / "a.model", encoder=Letters(20))


def test_an_encoder_is_taken_as_it_is(tmp_path):
    clf = OneVsAllClassifier(features=Letters()).fit(TEXTS, TAGS)
    clf.save(tmp_path / "a.model")
    again = load_model(tmp_path / "a.model", encoder=Letters())
    assert again.predict(TEXTS) == clf.predict(TEXTS)


def test_scikit_learn_tools_copy_no_encoder():
    clf = OneVsAllClassifier(features=EncodedTexts(Letters()))
    assert cross_val_score(clf, TEXTS, TAGS, cv=2).min() > 0.5


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.ones(80), r"must return one vector for each of 80 texts. Got shape \(80,\)"),
        (np.ones((3, 5)), r"one vector for each of 80 texts. Got shape \(3, 5\)"),
        (np.full((80, 2), np.nan), "must return finite numbers"),
    ],
)
def test_vectors_of_another_form_are_refused(answer, message):
    with pytest.raises(InputError, match=message):
        EncodedTexts(Constant(answer)).fit(TEXTS)


def test_texts_are_wanted():
    with pytest.raises(TypeError, match="X must hold texts"):
        EncodedTexts(Letters()).fit(np.eye(3))


def test_runs_of_characters_find_forms_of_words():
    train, test = ["foxes run", "geese fly", "bears sleep"] * 10, ["a foxy one", "a goosebear"]
    tags = [["fox", "run"], ["goose", "fly"], ["bear", "sleep"]] * 10
    clf = OneVsAllClassifier(features="characters").fit(train, tags)
    assert set(clf.predict_topk(test, 2).labels[0]) == {"fox", "run"}
    assert text_characters(10).fit_transform(train).shape == (30, 10)
    assert not OneVsAllClassifier(features="words").fit(train, tags).features_.transform(test).nnz
