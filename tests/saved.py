"""Rows, texts and labels of models that are saved, one that was, and whether two predict the same."""

import numpy as np
import pytest
import reference

from labelsense.data import make_tagged_documents

X, Y = make_tagged_documents(200, 60, n_labels=40, random_state=0)
TEXTS = [" ".join(f"word{j}" for j in X.indices[a:b]) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
LISTS = [[f"label {j}" for j in Y.indices[a:b]] for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]


def same(model, again, rows):
    old, new = model.predict_scores(rows), again.predict_scores(rows)
    return (
        old.shape == new.shape and old.data.tobytes() == new.data.tobytes() and np.array_equal(old.indices, new.indices)
    )


@pytest.fixture
def good(path):
    reference.paper(features="words", random_state=0).fit(TEXTS, LISTS).save(path)
    return path
