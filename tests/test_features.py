"""The scaling of counts."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.pipeline import make_pipeline

from labelsense import LogTfidfTransformer
from labelsense.data import make_tagged_documents


@given(hnp.arrays(np.int64, st.tuples(st.integers(1, 8), st.integers(1, 6)), elements=st.integers(0, 9)))
def test_equals_its_formula(counts):
    idf = 1 + np.log((1 + len(counts)) / (1 + (counts > 0).sum(axis=0)))
    expected = np.log1p(counts) * idf
    length = np.linalg.norm(expected, axis=1, keepdims=True)
    expected = np.divide(expected, length, out=np.zeros_like(expected), where=length > 0)
    for form in (counts, sp.csr_array(counts)):
        np.testing.assert_allclose(LogTfidfTransformer().fit_transform(form).toarray(), expected, atol=1e-6)


def test_new_rows_are_scaled_by_the_training_rows():
    scaler = LogTfidfTransformer().fit([[1, 0], [1, 0], [1, 1]])
    rare = scaler.transform([[1, 1]]).toarray()[0]
    assert rare[1] > rare[0]


def test_helps_a_linear_model_on_counts():
    X, Y = make_tagged_documents(1500, 500, 200, random_state=0)
    scaled = make_pipeline(LogTfidfTransformer(), reference.paper(random_state=0)).fit(X[:1000], Y[:1000])
    raw = reference.paper(random_state=0).fit(X[:1000], Y[:1000])
    assert scaled.score(X[1000:], Y[1000:]) > raw.score(X[1000:], Y[1000:])


def test_counts_are_not_negative():
    with pytest.raises(ValueError, match="X must hold counts. Got -1"):
        LogTfidfTransformer().fit([[1, -1]])
