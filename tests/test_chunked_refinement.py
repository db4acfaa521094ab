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
from labelsense.refine.ranker import Ranker
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


@pytest.mark.parametrize(("n_calibration", "most_scored"), [(40, 100), (150, 100), (40, 29)])
def test_the_refiner_is_that_of_rows_in_memory(n_calibration, most_scored, monkeypatch):
    monkeypatch.setattr("labelsense.refine.shortlist.MOST_SCORED", most_scored)
    R, learner = reconstruction(), RidgeLearner(0.3, random_state=0)
    H = learner.fit_out_of_sample(X, R.operator.compress(Y))
    expected, found = (Refiner(10, n_calibration=n_calibration) for _ in range(2))
    calibration = expected.fit(X, Y, H, learner, R)
    design = chunked(X, Y)
    Z = targets(design, R.operator)
    learner = RidgeLearner(0.3, random_state=0)
    chunks = fit_out_of_sample(learner, design, Z)
    other = fit_refiner(found, design, Z, chunks, learner, R, memory=1e6)
    assert other.chosen == calibration.chosen
    assert other.recall == pytest.approx(calibration.recall)
    assert other.figures == {name: pytest.approx(row) for name, row in calibration.figures.items()}
    np.testing.assert_allclose(found._stage.usual, expected._stage.usual, atol=1e-4)
    np.testing.assert_allclose(found._stage.known, expected._stage.known, atol=1e-4)
    assert abs(found.ranker.weights - expected.ranker.weights).max() < 1e-3
    P = [refiner.predict(X, H, R) for refiner in (found, expected)]
    assert abs(P[0] - P[1]).max() < 1e-3


PATTERN = sp.csr_array(np.random.default_rng(0).uniform(size=Y.shape) < 0.3)


def pairs_of(pattern):
    return pattern.indptr.astype(np.int64), pattern.indices.astype(np.int32)


def shortlisted():
    """Rows in chunks, each with candidates."""
    states = [dict(zip(("starts", "labels"), pairs_of(PATTERN[a:b]), strict=True)) for a, b in pairwise(CUTS)]
    return chunked(X, Y).chunks().beside(ListChunks(states, np.diff(CUTS)))


def test_blocks_of_labels_change_nothing():
    expected = Ranker.train(X, Y, Candidates(*pairs_of(PATTERN), 30), C=0.7)
    for memory in (np.inf, 300_000):
        found = train_ranker(shortlisted(), 30, 0.7, memory)
        assert (found.weights != expected.weights).nnz == 0
        np.testing.assert_array_equal(found.bias, expected.bias)


def test_a_label_with_too_many_rows_is_learned_from_some(monkeypatch):
    every_second = [LabelBlock(0, 30, np.full(30, 2))]
    monkeypatch.setattr("labelsense.refine.label_blocks.label_blocks", lambda *_: every_second)
    found = train_ranker(shortlisted(), 30, 0.7, 1.0)
    kept = np.concatenate([np.arange(a, b, 2) for a, b in pairwise(CUTS)])
    expected = Ranker.train(X[kept], Y[kept], Candidates(*pairs_of(PATTERN[kept]), 30), C=0.7)
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
