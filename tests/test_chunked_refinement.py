"""Refinement of rows in chunks: what it is of all rows in memory."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelsense import HadamardCompressor, OMPDecoder, RidgeLearner
from labelsense._chunks import ListChunks
from labelsense.data import Examples, make_tagged_documents
from labelsense.refine import Reconstruction, Refiner
from labelsense.refine.candidates import Candidates
from labelsense.refine.chunked import fit_refiner
from labelsense.refine.label_blocks import LabelBlock, label_blocks, train_ranker
from labelsense.refine.ranker import Ranker, Settings
from labelsense.regress.chunked import ChunkedDesign
from labelsense.regress.out_of_sample import fit_out_of_sample

X, Y = make_tagged_documents(n_samples=330, n_features=80, n_labels=30, random_state=0)
X, Y = sp.csr_array(X, dtype=np.float32), sp.csr_array(Y, dtype=np.float32)
CUTS = [0, 100, 100, 215, 330]  # one chunk is empty


def chunked(X, Y, memory=np.inf):
    parts = [Examples(X[a:b], Y[a:b]) for a, b in pairwise(CUTS)]
    return ChunkedDesign(ListChunks(parts, np.diff(CUTS)), X.shape[1], sparse=sp.issparse(X), memory=memory)


def reconstruction(m=20):
    return Reconstruction.by(OMPDecoder(4), HadamardCompressor(m, random_state=0).fit(Y.shape[1]).operator_)


def targets(design, A):
    return design.targets(A.compress, A.n_measurements)


def whole(chunk):
    return chunk


@pytest.mark.parametrize("solver", ["primal", "cg"])
@pytest.mark.parametrize("rows", [None, np.flatnonzero(np.arange(330) % 7)], ids=["all", "some"])
@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_array.toarray], ids=["sparse", "dense"])
def test_measurements_out_of_sample_are_those_of_rows_in_memory(solver, rows, form):
    A = reconstruction().operator
    mine, design = form(X), chunked(form(X), Y)
    Z, mine_Z = targets(design, A), A.compress(Y)
    if rows is not None:
        mine, mine_Z, design, Z = mine[rows], mine_Z[rows], design.rows(rows), Z.part(rows)
    settings = {"alpha": 0.3, "solver": solver, "tol": 1e-6, "random_state": 0}
    expected, learner = RidgeLearner(**settings), RidgeLearner(**settings)
    H = expected.fit_out_of_sample(mine, mine_Z)
    found = np.concatenate(list(fit_out_of_sample(learner, design, Z).results(whole)))
    np.testing.assert_allclose(found, H, atol=2e-5)
    np.testing.assert_allclose(learner.coef_, expected.coef_, atol=2e-5)


@pytest.mark.parametrize("many_rows", [10_000, 100], ids=["few rows", "many rows"])
@pytest.mark.parametrize(
    ("n_calibration", "most_scored", "last"), [(40, 100, False), (150, 100, True), (40, 29, False)]
)
def test_the_refiner_is_that_of_rows_in_memory(n_calibration, most_scored, last, many_rows, monkeypatch):
    monkeypatch.setattr("labelsense.refine.refiner.MANY_ROWS", many_rows)
    monkeypatch.setattr("labelsense.refine.shortlist.MOST_SCORED", most_scored)
    R, learner = reconstruction(), RidgeLearner(0.3, random_state=0)
    H = learner.fit(X, R.operator.compress(Y)).predict(X)
    expected, found = (Refiner(10, n_calibration=n_calibration, neighbour_rows=0) for _ in range(2))
    calibration = expected.fit(X, Y, learner, R, last=last)
    design = chunked(X, Y)
    other = fit_refiner(found, design, targets(design, R.operator), learner, R, memory=2e6, last=last)
    if last:
        assert [part.shape for part in other.last] == [(33, 30)] * 2
        assert abs(other.last[0] - calibration.last[0]).max() < 0.01
        assert (other.last[1] != calibration.last[1]).nnz == 0
    assert other.chosen == calibration.chosen
    assert other.recall == pytest.approx(calibration.recall)
    assert other.figures == {name: pytest.approx(row) for name, row in calibration.figures.items()}
    np.testing.assert_allclose(found._stage.usual, expected._stage.usual, atol=1e-4)
    np.testing.assert_allclose(found._stage.known, expected._stage.known, atol=1e-4)
    assert abs(found.ranker.weights - expected.ranker.weights).max() < 1e-3
    P = [refiner.predict(X, H, R) for refiner in (found, expected)]
    # They differ in the last digit, and now and then because they are on the other side of a tree's threshold.
    differences = abs(P[0] - P[1]).toarray()[P[1].toarray() > 0]
    assert (np.mean(differences) < 1e-4, np.mean(differences > 1e-3) < 0.01) == (True, True)


PATTERN = sp.csr_array(np.random.default_rng(0).uniform(size=Y.shape) < 0.3)


def pairs_of(pattern):
    return pattern.indptr.astype(np.int64), pattern.indices.astype(np.int32)


def with_candidates(a, b):
    return Examples(X[a:b], Y[a:b]), dict(zip(("starts", "labels"), pairs_of(PATTERN[a:b]), strict=True))


def shortlisted():
    """Rows in chunks, each with candidates, and the last of them in one place."""
    parts = [with_candidates(a, b) for a, b in pairwise(CUTS[:-1])]
    return ListChunks(parts, np.diff(CUTS[:-1])), with_candidates(*CUTS[-2:])


def test_blocks_of_labels_change_nothing():
    candidates = Candidates(*pairs_of(PATTERN), 30)
    first, whole = Ranker.train_twice(X, Y, candidates, CUTS[-2], Settings(C=0.7))
    outside = Candidates(*pairs_of(PATTERN[CUTS[-2] :]), 30)
    for memory in (np.inf, 600_000):
        margins, found = train_ranker(*shortlisted(), 30, 0.7, memory)
        assert (found.weights != whole.weights).nnz == 0
        np.testing.assert_array_equal(found.bias, whole.bias)
        np.testing.assert_allclose(margins, first.margins(X[CUTS[-2] :], outside), atol=1e-6)


def test_weights_take_no_more_than_half_of_the_memory(monkeypatch):
    monkeypatch.setattr("labelsense.refine.label_blocks.label_blocks", lambda *_: [LabelBlock(0, 30, np.ones(30, int))])
    _, whole = train_ranker(*shortlisted(), 30, 0.7, np.inf)
    _, fewer = train_ranker(*shortlisted(), 30, 0.7, 2 * 8 * 100)
    assert 90 <= fewer.weights.nnz <= 100 < whole.weights.nnz
    np.testing.assert_array_equal(fewer.bias, whole.bias)
    shares = [
        abs(ranker.weights.toarray()) / abs(whole.weights).max(axis=1).toarray()[:, None] for ranker in (fewer, whole)
    ]
    assert shares[0][shares[0] > 0].min() >= np.sort(shares[1], axis=None)[-fewer.weights.nnz]


def test_a_label_with_too_many_rows_is_learned_from_some(monkeypatch):
    every_second = [LabelBlock(0, 30, np.full(30, 2))]
    monkeypatch.setattr("labelsense.refine.label_blocks.label_blocks", lambda *_: every_second)
    _, found = train_ranker(*shortlisted(), 30, 0.7, np.inf)
    kept = np.concatenate([np.arange(a, b, 2) for a, b in pairwise(CUTS)])
    candidates, sooner = Candidates(*pairs_of(PATTERN[kept]), 30), int((kept < CUTS[-2]).sum())
    _, expected = Ranker.train_twice(X[kept], Y[kept], candidates, sooner, Settings(C=0.7))
    assert (found.weights != expected.weights).nnz == 0


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60), st.integers(1, 10**6), st.integers(0, 9))
@settings(max_examples=50)
def test_blocks_cover_all_labels_and_fit(pairs, memory, features):
    pairs = np.array(pairs, float)
    blocks = label_blocks(pairs, features * pairs, features * pairs.sum(), memory)
    assert [block.first for block in blocks] == [0, *(block.last for block in blocks[:-1])]
    assert blocks[-1].last == len(pairs)
    for block in blocks:
        kept = pairs[block.first : block.last] / block.strides
        assert block.last - block.first == 1 or (32 * kept.sum() <= memory)
        assert (32 * kept <= memory).all()
