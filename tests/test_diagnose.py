"""Where precision is lost: constructed cases whose answer is known."""

import json

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from conftest import COMPRESSORS, dense
from test_advise import label_rows

from labelsense import CoSaMPDecoder, HadamardCompressor, OMPDecoder, RidgeLearner
from labelsense.metrics import precision_at_k


def fitted(m, noise=0.0, per_row=3, decoder=None, compressor=None, n=600, d=64):
    """A model whose features are the labels, so that only noise keeps the regressions from being perfect; test rows."""
    Y = label_rows(n, d, per_row)
    X = Y.toarray() + noise * np.random.default_rng(1).normal(size=(n, d))
    compressor = compressor or HadamardCompressor(m)
    clf = reference.paper(compressor, RidgeLearner(1e-3), decoder or OMPDecoder(6), random_state=0)
    return clf.fit(X[:400], Y[:400]), X[400:], Y[400:]


@pytest.mark.parametrize(
    ("settings", "spend_on"),
    [
        ({"m": 60, "noise": 2.0}, "a better learner"),
        ({"m": 8}, "more measurements"),
        ({"m": 60, "per_row": 8, "decoder": OMPDecoder(1)}, "a larger support"),
        ({"m": 60, "per_row": 8, "decoder": CoSaMPDecoder(1)}, "a larger support"),
    ],
)
def test_the_verdict_of_cases_with_one_fault(settings, spend_on):
    clf, X, Y = fitted(**settings)
    found = clf.diagnose(X, Y)
    assert found.spend_on == spend_on
    assert spend_on in str(found)


def test_noise_that_more_measurements_would_average_out():
    """Perfect regressions lose nothing at m = 24, and yet the second half of the measurements gained most."""
    clf, X, Y = fitted(24, noise=0.1, per_row=2)
    found = clf.diagnose(X, Y, k=2)
    assert found.decoding_loss < 0.01 < found.regression_loss < found.precision - found.half_precision
    assert found.spend_on == "more measurements"


@pytest.mark.parametrize("compressor", COMPRESSORS)
@pytest.mark.parametrize("k", [1, 4])
def test_the_losses_add_up(compressor, k):
    clf, X, Y = fitted(25, noise=0.5, compressor=compressor(25))
    found = clf.diagnose(X, Y, k=k)
    total = found.best_possible - found.support_loss - found.decoding_loss - found.regression_loss
    assert total == pytest.approx(found.precision)
    assert found.precision == precision_at_k(Y, clf.predict_scores(X), k)
    assert found.support_loss >= 0
    assert found.n_rows == 200


def test_perfect_regressions_lose_nothing():
    clf, X, Y = fitted(64)
    found = clf.diagnose(X, Y, k=3)
    assert found.precision == found.best_possible == 1
    assert found.regression_error == pytest.approx(0, abs=1e-4)
    assert found.squared_error == pytest.approx(0, abs=1e-4)


def test_squared_errors_are_those_of_the_paper():
    clf, X, Y = fitted(30, noise=0.5, per_row=5)
    found = clf.diagnose(X, Y)
    y, A = Y.toarray().astype(float), dense(clf.compressor_.operator_)
    assert found.regression_error == pytest.approx(((clf.measure(X) - y @ A.T) ** 2).sum(axis=1).mean(), rel=1e-4)
    assert found.squared_error == pytest.approx(((clf.predict_scores(X).toarray() - y) ** 2).sum(axis=1).mean())
    rest = np.sort(y, axis=1)[:, ::-1][:, 3:]  # OMP's six atoms stand for k = 3
    assert found.sparsity_error == pytest.approx(np.mean((rest**2).sum(axis=1) + rest.sum(axis=1) ** 2 / 3))


def test_label_lists_with_new_labels():
    _, X, Y = fitted(40)
    lists = [[f"tag{j}" for j in row.nonzero()[0]] for row in Y.toarray()]
    named = reference.paper(HadamardCompressor(40), RidgeLearner(1e-3), random_state=0).fit(X, lists)
    assert named.diagnose(X, [[*row, "new"] for row in lists], k=3) == named.diagnose(X, lists, k=3)


def test_it_is_plain_data_and_fits_a_terminal():
    clf, X, Y = fitted(20, noise=0.5)
    found = clf.diagnose(X, Y)
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    assert max(map(len, str(found).splitlines())) <= 80


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, Y: (X[:-1], Y, 5), "same number of rows"),
        (lambda X, Y: (X, Y, 0), "k must be at least 1"),
        (lambda X, Y: (X, 2 * Y, 5), "y must be binary"),
        (lambda X, Y: (X, Y[:, :-1], 5), "one column per label"),
    ],
)
def test_refusals(change, message):
    clf, X, Y = fitted(20)
    with pytest.raises(ValueError, match=message):
        clf.diagnose(*change(X, sp.csr_array(Y)))
