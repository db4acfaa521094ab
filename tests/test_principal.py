"""Principal and conditional principal label space, against NumPy's singular values, and their decoding."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from conftest import dense, make_operator, zipf_labels

from labelsense import (
    CompressedLabelClassifier,
    CPLSTCompressor,
    GaussianCompressor,
    HadamardCompressor,
    InputError,
    OMPDecoder,
    PLSTCompressor,
    ProjectionDecoder,
    RidgeLearner,
    load_model,
)
from labelsense.compress import principal
from labelsense.data import make_tagged_documents

X, Y = make_tagged_documents(400, 150, 60, noise=0.1, random_state=0)


def centred(Y, weights=None):
    Y = Y.toarray().astype(np.float64)
    return Y - np.average(Y, axis=0, weights=weights)


def kept(Y, A):
    """The squared error that is left when Y is projected on the rows of A."""
    rest = Y - Y @ A.T @ A
    return (rest**2).sum()


class TestPLST:
    @pytest.mark.parametrize("m", [1, 7, 40])
    def test_the_rows_are_the_first_singular_vectors(self, m):
        A = dense(PLSTCompressor(m).fit(Y).operator_)
        V = np.linalg.svd(centred(Y), full_matrices=False)[2][:m]
        np.testing.assert_allclose(np.abs((A * V).sum(axis=1)), 1, atol=1e-5)  # the same directions, up to sign
        np.testing.assert_allclose(A @ A.T, np.eye(m), atol=1e-5)
        assert (A[np.arange(m), np.abs(A).argmax(axis=1)] > 0).all()

    def test_rows_count_by_their_weights(self):
        weights = np.random.default_rng(0).uniform(0, 2, 400)
        A = dense(PLSTCompressor(5).fit_rows(None, Y, weights).operator_)
        V = np.linalg.svd(np.sqrt(weights)[:, None] * centred(Y, weights))[2][:5]
        np.testing.assert_allclose(np.abs((A * V).sum(axis=1)), 1, atol=1e-5)

    def test_subspace_iteration_loses_hardly_more_than_the_best(self, monkeypatch):
        monkeypatch.setattr(principal, "EXACT", 0)
        Y = zipf_labels(300, n=500)
        A = dense(PLSTCompressor(30, random_state=0).fit(Y).operator_)
        V = np.linalg.svd(centred(Y), full_matrices=False)[2][:30]
        assert kept(centred(Y), A) < 1.01 * kept(centred(Y), V)
        np.testing.assert_array_equal(A, dense(PLSTCompressor(30, random_state=0).fit(Y).operator_))

    def test_fewer_rows_than_labels_are_exact(self, monkeypatch):
        monkeypatch.setattr(principal, "EXACT", 0)
        A = dense(PLSTCompressor(8).fit(Y[:12]).operator_)
        V = np.linalg.svd(centred(Y[:12]), full_matrices=False)[2][:8]
        np.testing.assert_allclose(np.abs((A * V).sum(axis=1)), 1, atol=1e-5)

    def test_labels_that_do_not_vary_have_no_column(self):
        wide = sp.hstack([Y, sp.csr_array((400, 2)), np.ones((400, 1))], format="csr")
        assert dense(PLSTCompressor(10).fit(wide).operator_)[:, -3:].any() == np.False_

    def test_it_must_see_label_vectors(self):
        with pytest.raises(InputError, match="PLSTCompressor learns A from label vectors. Got 50 labels without any"):
            PLSTCompressor(5).fit(50)
        with pytest.raises(InputError, match="n_measurements must be between 1 and 12. Got 20. 12 is the rank that"):
            PLSTCompressor(20).fit(Y[:12])
        with pytest.raises(InputError, match="reserve must be 0 for PLSTCompressor without random rows. Got 3"):
            PLSTCompressor(5, reserve=3).fit(Y)
        with pytest.raises(InputError, match="random_share must be finite and between 0 and 1. Got 2"):
            PLSTCompressor(5, random_share=2).fit(Y)


class TestStacked:
    def test_it_spans_principal_directions_and_random_rows(self):
        A = dense(PLSTCompressor(20, random_share=0.75, random_state=0).fit(Y).operator_)
        V = dense(PLSTCompressor(5).fit(Y).operator_)
        assert np.linalg.matrix_rank(np.vstack([A, V]), tol=1e-4) == 20
        assert (A**2).sum(axis=0).mean() == pytest.approx(1, rel=1e-4)

    def test_labels_not_found_yet_are_white_noise(self):
        A = dense(PLSTCompressor(20, random_share=0.5, random_state=0).fit(Y).operator_)
        C = np.vstack([dense(PLSTCompressor(10).fit(Y).operator_), np.empty((10, 60))])
        R = HadamardCompressor(10, random_state=np.random.RandomState(0)).fit(60).operator_
        C[10:] = dense(R)
        p = Y.mean(axis=0)
        N = (C * (p / (p + 0.03))) @ C.T
        scale = 1 / np.sqrt(np.diag(N))
        N = N * scale * scale[:, None] + 0.3 * np.eye(20)
        T = A @ np.linalg.pinv(scale[:, None] * C)
        white = T @ N @ T.T
        np.testing.assert_allclose(white, white[0, 0] * np.eye(20), atol=1e-3 * white[0, 0])

    def test_new_labels_find_random_columns(self):
        compressor = PLSTCompressor(30, random_share=0.5, reserve=5, random_state=0)
        clf = reference.paper(compressor, RidgeLearner(1.0, updatable=True), "omp")
        clf.partial_fit(X[:200], Y[:200])
        wider = sp.hstack([Y[200:], np.arange(200)[:, None] % 2], format="csr")
        clf.partial_fit(X[200:], wider)
        assert 60 in clf.predict_topk(X[200:], 3).labels


class TestCPLST:
    def test_no_directions_decode_with_less_error_out_of_sample(self):
        # All 60 principal directions are in the span, so that these are the best of all.
        learner = RidgeLearner(1.0)
        A = dense(CPLSTCompressor(20, learner=learner).fit_rows(X, Y).operator_)
        mean = Y.mean(axis=0)
        predicted = learner.fit_out_of_sample(X, Y.toarray()) - mean
        gain = centred(Y).T @ predicted
        gain = gain + gain.T - predicted.T @ predicted
        best = np.linalg.eigh(gain)[1][:, -20:].T

        def error(A):
            return ((centred(Y) - predicted @ A.T @ A) ** 2).sum()

        assert error(A) == pytest.approx(error(best), rel=1e-4)
        assert error(A) < error(dense(PLSTCompressor(20).fit(Y).operator_))
        np.testing.assert_allclose(A @ A.T, np.eye(20), atol=1e-5)

    def test_with_fitted_values_it_is_the_method_of_chen_and_lin(self, monkeypatch):
        # Least squares: the best directions are the first singular vectors of the projection of Y on X.
        few = X[:, :30].toarray().astype(np.float64)
        learner = RidgeLearner(0.0)
        monkeypatch.setattr(
            RidgeLearner, "fit_out_of_sample", lambda self, X, Z: RidgeLearner(0.0).fit(X, Z).predict(X)
        )
        A = dense(CPLSTCompressor(20, learner=learner).fit_rows(few.astype(np.float32), Y).operator_)
        design = few - few.mean(axis=0)
        V = np.linalg.svd(design @ np.linalg.pinv(design) @ centred(Y))[2][:20]
        np.testing.assert_allclose(np.linalg.svd(A @ V.T)[1], 1, atol=1e-3)  # one subspace

    def test_it_needs_the_features(self):
        with pytest.raises(InputError, match="CPLSTCompressor needs the features of the rows"):
            CPLSTCompressor(5).fit(Y)

    def test_weights_reach_its_learner(self):
        weights = np.r_[np.ones(300), np.zeros(100)]
        some = CPLSTCompressor(10).fit_rows(X[:300], Y[:300])
        all_rows = CPLSTCompressor(10).fit_rows(X, Y, weights)
        overlap = np.linalg.svd(dense(some.operator_) @ dense(all_rows.operator_).T)[1]
        np.testing.assert_allclose(overlap, 1, atol=1e-3)


class TestProjection:
    @pytest.mark.parametrize("make", [PLSTCompressor, GaussianCompressor, HadamardCompressor])
    def test_it_is_the_label_vector_closest_to_the_mean_that_has_the_measurements(self, make):
        operator = make_operator(make, 60, 20)
        decoder = ProjectionDecoder(20).fit_labels(Y)
        H = np.random.default_rng(0).normal(size=(5, 20)).astype(np.float32)
        A, mean = dense(operator), Y.mean(axis=0)
        expected = mean + (H - A @ mean) @ np.linalg.pinv(A).T
        np.testing.assert_allclose(expected @ A.T, H, atol=1e-4)
        got = decoder.decode(decoder.prepare(operator), H)
        for row, values in zip(got.toarray(), expected, strict=True):
            best = np.argsort(-values)[:20]
            np.testing.assert_allclose(row[best], values[best], atol=1e-4)

    def test_with_all_directions_it_is_one_against_all(self):
        learner = RidgeLearner(1.0)
        clf = reference.paper(PLSTCompressor(60), learner, ProjectionDecoder(60)).fit(X, Y)
        np.testing.assert_allclose(clf.predict_scores(X).toarray(), learner.fit(X, Y.toarray()).predict(X), atol=1e-4)

    def test_labels_that_come_later_have_mean_zero(self):
        decoder = ProjectionDecoder(5).fit_labels(Y)
        state = decoder.prepare(make_operator(HadamardCompressor, 70, 20))
        assert (state.mean[60:] == 0).all()
        assert decoder.decode(state, np.zeros((0, 20))).shape == (0, 70)

    def test_the_memory_of_many_rows_is_bounded(self, monkeypatch):
        operator, decoder = make_operator(HadamardCompressor, 60, 20), ProjectionDecoder(5).fit_labels(Y)
        H = np.random.default_rng(0).normal(size=(50, 20)).astype(np.float32)
        at_once = decoder.decode(decoder.prepare(operator), H)
        monkeypatch.setattr("labelsense.reconstruct.projection.BLOCK_NUMBERS", 700)
        monkeypatch.setattr("labelsense.reconstruct.projection.BLOCK", 7)
        blocks = decoder.decode(decoder.prepare(operator), H)
        np.testing.assert_array_equal(blocks.indices, at_once.indices)
        np.testing.assert_allclose(blocks.data, at_once.data, rtol=1e-5)


@pytest.mark.parametrize(
    ("compressor", "decoder"),
    [
        (PLSTCompressor(20), ProjectionDecoder()),
        (CPLSTCompressor(20), ProjectionDecoder()),
        (CPLSTCompressor(20, learner=RidgeLearner(0.5)), OMPDecoder(penalty=0.1)),
        (PLSTCompressor(20, random_share=0.75), OMPDecoder(penalty=0.1)),
    ],
)
def test_models_predict_and_are_stored(compressor, decoder, tmp_path):
    clf = reference.paper(compressor, "ridge", decoder, random_state=0).fit(X[:300], Y[:300])
    assert clf.evaluate(X[300:], Y[300:])["P@1"] > 0.6
    clf.save(tmp_path / "a.model")
    again = load_model(tmp_path / "a.model")
    np.testing.assert_array_equal(again.predict_topk(X).labels, clf.predict_topk(X).labels)


def test_words():
    clf = reference.paper("cplst", "ridge", "projection", random_state=0).fit(X, Y)
    assert clf.compressor_.operator_.n_measurements == 60
    assert clf.decoder_.mean_.shape == (60,)


@pytest.mark.parametrize(
    ("compressor", "decoder"),
    [
        (CPLSTCompressor(20), ProjectionDecoder),
        (PLSTCompressor(20), ProjectionDecoder),
        (PLSTCompressor(20, random_share=0.5), OMPDecoder),
    ],
)
def test_a_classifier_chooses_the_decoder_that_suits_and_refines(compressor, decoder):
    clf = CompressedLabelClassifier(compressor, "ridge", random_state=0).fit(X[:300], Y[:300])
    assert type(clf.decoder_) is decoder
    assert clf.evaluate(X[300:], Y[300:])["P@1"] > 0.6
