"""One-against-all with the same learners and methods."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from labelsense import OneVsAllClassifier, RidgeLearner
from labelsense.baselines import _best_of_dense
from labelsense.data import make_tagged_documents


def test_equals_one_ridge_per_label():
    X, Y = make_tagged_documents(300, 100, 40, random_state=0)
    ours = OneVsAllClassifier(RidgeLearner(2.0), n_nonzero=40).fit(X, Y).predict_scores(X)
    theirs = Ridge(2.0).fit(X.toarray(), Y.toarray()).predict(X.toarray())
    np.testing.assert_allclose(ours.toarray(), theirs, atol=1e-4)


@given(st.integers(1, 5), st.integers(1, 8), st.data())
def test_keeps_the_best_scores_ties_to_the_lowest_column(n, d, data):
    keep = data.draw(st.integers(1, d))
    scores = np.random.default_rng(data.draw(st.integers(0, 999))).integers(1, 4, (n, d)).astype(np.float32)
    got = _best_of_dense(scores, keep)
    for i, row in enumerate(scores):
        expected = sorted(np.argsort(-row, kind="stable")[:keep])
        assert got.indices[got.indptr[i] : got.indptr[i + 1]].tolist() == expected
        np.testing.assert_array_equal(got.data[got.indptr[i] : got.indptr[i + 1]], row[expected])


def test_bad_parameters():
    X, Y = make_tagged_documents(50, 20, 10, random_state=0)
    with pytest.raises(ValueError, match="n_nonzero must be at least 1. Got 0"):
        OneVsAllClassifier(n_nonzero=0).fit(X, Y)
