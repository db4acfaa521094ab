"""The generator makes what its documentation says; the bundled data are what theirs says."""

from importlib import resources

import numpy as np
import pytest
import reference
import scipy.sparse as sp

from labelsense import HadamardCompressor, LogTfidfTransformer
from labelsense.data import load_debtags, make_tagged_documents
from labelsense.metrics import precision_at_k


def test_looks_like_tagged_documents():
    X, Y = make_tagged_documents(5000, 3000, 500, labels_per_row=4, words_per_row=50, random_state=0)
    assert X.shape == (5000, 3000)
    assert Y.shape == (5000, 500)
    assert set(np.unique(Y.data)) == {1}
    assert (X.data == X.data.astype(int)).all()
    assert np.diff(Y.indptr).min() >= 1
    assert 3 < Y.nnz / 5000 < 4.2
    assert X.sum() / 5000 == pytest.approx(50, rel=0.02)


def test_label_frequencies_follow_a_power_law():
    _, Y = make_tagged_documents(20_000, 1000, 1000, random_state=0)
    frequency = np.sort(np.bincount(Y.indices, minlength=1000))[::-1]
    slope = np.polyfit(np.log(np.arange(5, 200)), np.log(frequency[5:200]), 1)[0]
    assert -2 < slope < -0.5


def test_labels_are_correlated():
    _, Y = make_tagged_documents(20_000, 1000, 200, random_state=0)
    together = (Y.T @ Y).toarray() / 20_000
    chance = np.outer(together.diagonal(), together.diagonal())
    lift = np.divide(together, chance, out=np.zeros_like(chance), where=chance > 0)
    np.fill_diagonal(lift, 0)
    assert np.quantile(lift[lift > 0], 0.99) > 3


def test_same_seed_same_data():
    a, b, other = (make_tagged_documents(200, random_state=seed) for seed in (1, 1, 2))
    assert (a[0] != b[0]).nnz == 0
    assert (a[1] != b[1]).nnz == 0
    assert (a[0] != other[0]).nnz > 0


def test_a_million_labels():
    X, Y = make_tagged_documents(1000, 5000, 1_000_000, random_state=0)
    assert Y.shape == (1000, 1_000_000)
    assert sp.issparse(X)


def test_bad_parameters():
    with pytest.raises(ValueError, match="n_labels must be at least 2. Got 1"):
        make_tagged_documents(n_labels=1)
    with pytest.raises(ValueError, match="noise must be finite and between 0 and 1. Got 2"):
        make_tagged_documents(noise=2)


class TestDebtags:
    def test_is_real_data_of_the_stated_size(self):
        data = load_debtags()
        for X, Y in ((data.X_train, data.Y_train), (data.X_test, data.Y_test)):
            assert X.shape == (Y.shape[0], len(data.features))
            assert Y.shape[1] == len(data.labels)
            assert X.has_canonical_format
            assert X.data.min() >= 1
            assert set(np.unique(Y.data)) == {1}
            assert np.diff(Y.indptr).min() >= 1
        assert data.X_train.shape[0] + data.X_test.shape[0] == 29_817
        assert data.features == sorted(set(data.features))
        assert data.labels == sorted(set(data.labels))
        assert "implemented-in::python" in data.labels

    def test_words_of_the_vocabulary_occur_in_training(self):
        rows_with = np.bincount(load_debtags().X_train.indices, minlength=15_228)
        assert rows_with.min() >= 3

    def test_tags_can_be_learned_from_the_words(self):
        data = load_debtags()
        scaler = LogTfidfTransformer().fit(data.X_train[:3000])
        clf = reference.paper(HadamardCompressor(100), random_state=0)
        clf.fit(scaler.transform(data.X_train[:3000]), data.Y_train[:3000])
        top = clf.predict_topk(scaler.transform(data.X_test[:500]), 1)
        assert precision_at_k(data.Y_test[:500], top, 1) > 0.6

    def test_is_small(self):
        assert (resources.files("labelsense.data") / "debtags.npz").stat().st_size < 3e6
