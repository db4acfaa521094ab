"""The generator makes what its documentation says."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelsense.data import make_tagged_documents


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
