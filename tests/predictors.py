"""The classes of models, and the rows and labels that what every model offers is tried on."""

import pytest
import reference

from labelsense import ECOCClassifier, OneVsAllClassifier, SECOCClassifier
from labelsense.data import make_tagged_documents

MODELS = [reference.paper, OneVsAllClassifier, ECOCClassifier, SECOCClassifier]
TEXTS = [f"word{i % 5} text{i % 3}" for i in range(40)]
TAGS = [[f"a{i % 5}", f"b{i % 3}"] for i in range(40)]


@pytest.fixture(scope="module")
def documents():
    X, Y = make_tagged_documents(400, 150, 60, noise=0.1, random_state=0)
    return X[:300], Y[:300], X[300:], Y[300:]


def names(Y):
    return [[f"tag{j:03d}" for j in Y.indices[a:b]] for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]
