"""A ranking that does not depend on k, and labels that are allowed or blocked."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from predictors import MODELS, names
from predictors import documents as documents
from sklearn.base import clone

from labelsense import InputError, OMPDecoder, OneVsAllClassifier, RidgeLearner
from labelsense.reconstruct import DECODERS

RANKING = {
    **{word: reference.paper(decoder=word, random_state=0) for word in DECODERS},
    "whitened": reference.paper("whitened", decoder=OMPDecoder(8, penalty=0.1), random_state=0),
    **{model.__name__: model(learner=RidgeLearner(1.0)) for model in MODELS[1:]},
}


@pytest.mark.parametrize("model", RANKING.values(), ids=RANKING)
class TestRanking:
    def test_the_first_labels_do_not_depend_on_how_many_are_asked_for(self, documents, model):
        X, Y, X_test, Y_test = documents
        clf = clone(model).fit(X, Y)
        most = clf.predict_topk(X_test, 50)
        for k in (1, 5, 10, 20):
            top = clf.predict_topk(X_test, k)
            np.testing.assert_array_equal(top.labels, most.labels[:, :k])
            np.testing.assert_array_equal(top.scores, most.scores[:, :k])
        figures = clf.evaluate(X_test, Y_test, [1, 3, 5, 50])
        for k in (1, 3, 5):
            alone = clf.evaluate(X_test, Y_test, [k])
            assert alone == {name: figures[name] for name in alone}

    def test_there_are_no_more_places_than_labels(self, documents, model):
        X, Y, X_test, Y_test = documents
        clf = clone(model).fit(X, Y)
        top = clf.predict_topk(X_test, 20_000_000)
        assert top.labels.shape == top.scores.shape == (100, 60)
        figures = clf.evaluate(X_test, Y_test, [60, 600])
        assert figures["P@600"] == pytest.approx(figures["P@60"] / 10)
        assert figures["recall@600"] == figures["recall@60"]
        assert figures["nDCG@600"] == figures["nDCG@60"]


class TestPlaces:
    def test_places_beyond_the_support_are_empty(self, documents):
        X, Y, X_test, _ = documents
        clf = reference.paper(decoder=OMPDecoder(6), random_state=0)
        top = clf.fit(X, Y).predict_topk(X_test, 20)
        assert (top.labels[:, :6] >= 0).all()
        assert (top.labels[:, 6:] == -1).all()
        assert (top.scores[:, 6:] == 0).all()
        top = clf.fit(X, names(Y)).predict_topk(X_test, 20)
        assert (top.labels[:, 6:] == None).all()  # noqa: E711

    def test_baselines_score_as_many_as_are_asked_for(self, documents):
        X, Y, X_test, _ = documents
        assert (OneVsAllClassifier().fit(X, Y).predict_topk(X_test, 20).labels >= 0).all()

    def test_the_decoder_is_asked_to_decode_and_for_nothing_else(self, documents):
        class Constant(OMPDecoder):
            def decode(self, state, H):
                return sp.csr_array((np.ones(len(H), np.float32), [[7] * len(H)][0], range(len(H) + 1)), (len(H), 60))

            path = _run = None

        X, Y, X_test, _ = documents
        clf = reference.paper(decoder=Constant(), random_state=0).fit(X, Y)
        assert clf.predict_topk(X_test, 2).labels.tolist() == [[7, -1]] * 100


class TestAllowAndBlock:
    @pytest.mark.parametrize("model", [reference.paper(random_state=0), OneVsAllClassifier()])
    def test_labels_are_chosen_from_those_allowed_and_not_blocked(self, documents, model):
        X, Y, X_test, _ = documents
        clf = clone(model).fit(X, names(Y))
        allow, block = clf.labels_[:40], clf.labels_[10:20]
        scores = clf.predict_scores(X_test).toarray()
        may = np.isin(clf.classes_, allow) & ~np.isin(clf.classes_, block)
        top = clf.predict_topk(X_test, 3, allow=allow, block=block)
        for row, found, values in zip(scores, top.labels, top.scores, strict=True):
            stored = [j for j in np.flatnonzero(row) if may[j]]
            expected = sorted(stored, key=lambda j: (-row[j], j))[:3]
            assert [label for label in found if label is not None] == [clf.labels_[j] for j in expected]
            np.testing.assert_array_equal(values[: len(expected)], row[expected])

    def test_columns_where_labels_have_no_names(self, documents):
        X, Y, X_test, _ = documents
        clf = reference.paper(random_state=0).fit(X, Y)
        best = clf.predict_topk(X_test, 1).labels.ravel()
        assert not set(clf.predict_topk(X_test, 5, block=np.unique(best)).labels.ravel()) & set(best)
        assert set(clf.predict_topk(X_test, 5, allow=[3, 4]).labels.ravel()) <= {3, 4, -1}
        np.testing.assert_array_equal(clf.predict_topk(X_test, allow=range(60), block=[]), clf.predict_topk(X_test))

    def test_unknown_labels_are_refused(self, documents):
        X, Y, X_test, _ = documents
        clf = reference.paper(random_state=0).fit(X, names(Y))
        with pytest.raises(InputError, match="allow must hold labels of the training data. Got 'new'"):
            clf.predict_topk(X_test, allow=["new"])
        with pytest.raises(InputError, match="block must hold labels of the training data. Got 3"):
            clf.predict_topk(X_test, block=[3])
