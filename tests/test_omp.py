"""OMP against scikit-learn, with a penalty and with a sign, and the paper's Theorem 2."""

import numpy as np
import pytest
import reference
from conftest import COMPRESSORS, RANDOM_COMPRESSORS, decode, dense, make_operator, planted
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.linear_model import orthogonal_mp

from labelsense import DeVoreCompressor, HadamardCompressor, OMPDecoder
from labelsense.compress import DenseOperator


@pytest.mark.parametrize("compressor", RANDOM_COMPRESSORS)
@pytest.mark.parametrize("noise", [0.1, 0.5, 1.0, 1.5])
class TestOMP:
    def test_equals_scikit_learn(self, compressor, noise):
        # 3 matrices x 4 noise levels x 90 = 1,080 problems.
        for seed, (d, m, k) in enumerate([(100, 40, 3), (500, 100, 5), (1000, 200, 10)]):
            operator = make_operator(compressor, d, m, seed)
            A = dense(operator)
            H, _ = planted(A, k, 30, noise, seed)
            norms = np.linalg.norm(A, axis=0)  # scikit-learn wants unit columns
            expected = orthogonal_mp(A / norms, H.T.astype(np.float64), n_nonzero_coefs=2 * k).T / norms
            got = decode(OMPDecoder(n_nonzero=2 * k), operator, H)
            np.testing.assert_array_equal(got != 0, expected != 0)
            np.testing.assert_allclose(got, expected, atol=1e-5)


@pytest.mark.parametrize("compressor", COMPRESSORS)
class TestPenalisedOMP:
    def test_equals_omp_with_the_penalty_as_further_rows(self, compressor):
        # ||h - A y||^2 + penalty ||y||^2 is the least-squares error of [A; sqrt(penalty) I] and [h; 0].
        for seed in range(20):
            operator = make_operator(compressor, 120, 49, seed)
            A, penalty = dense(operator), [0.05, 0.5, 3][seed % 3]
            H, _ = planted(A, 5, 8, noise=1, seed=seed)
            either, positive = (
                decode(OMPDecoder(10, nonnegative=sign, penalty=penalty), operator, H) for sign in (False, True)
            )
            for h, y, z in zip(H.astype(np.float64), either, positive, strict=True):
                np.testing.assert_allclose(y, reference.omp(A, h, 10, penalty), atol=1e-4)
                np.testing.assert_allclose(z, reference.nonnegative_omp(A, h, 10, penalty)[0], atol=1e-4)

    def test_shrinks_towards_zero(self, compressor):
        operator = make_operator(compressor, 120, 49)
        H, _ = planted(dense(operator), 5, 20, noise=1, seed=0)
        lengths = [np.linalg.norm(decode(OMPDecoder(penalty=penalty), operator, H), axis=1) for penalty in (0, 1, 100)]
        assert (lengths[0] > lengths[1]).all()
        assert (lengths[1] > lengths[2]).all()
        assert lengths[2].max() < 0.2

    def test_bad_values(self, compressor):
        operator = make_operator(compressor, 120, 49)
        with pytest.raises(ValueError, match="penalty must be finite and at least 0. Got -1"):
            decode(OMPDecoder(penalty=-1), operator, np.zeros((1, 49)))
        with pytest.raises(TypeError, match="penalty must be a number. Got 'auto'"):
            decode(OMPDecoder(penalty="auto"), operator, np.zeros((1, 49)))


class TestNonnegativeOMP:
    @pytest.mark.parametrize("compressor", COMPRESSORS)
    def test_equals_the_slow_version_with_real_drops(self, compressor):
        # 4 matrices x 25 x 8 = 800 problems.
        drops = 0
        for seed in range(25):
            operator = make_operator(compressor, 120, 49, seed)
            A = dense(operator)
            H, _ = planted(A, 5, 8, noise=1, seed=seed)
            got = decode(OMPDecoder(25, nonnegative=True), operator, H)
            for h, y in zip(H.astype(np.float64), got, strict=True):
                expected, dropped = reference.nonnegative_omp(A, h, 25)
                np.testing.assert_allclose(y, expected, atol=1e-4)
                drops += dropped
        assert drops >= 10

    @pytest.mark.parametrize("compressor", COMPRESSORS)
    def test_with_room_for_all_it_is_nonnegative_least_squares(self, compressor):
        for seed in range(20):
            operator = make_operator(compressor, 60, 30, seed)
            A, m = dense(operator), operator.n_measurements
            H = np.random.default_rng(seed).normal(size=(5, m)).astype(np.float32)
            for h, y in zip(H, decode(OMPDecoder(m, nonnegative=True), operator, H), strict=True):
                slope = A.T @ (h - A @ y)  # the optimality conditions; scipy's nnls of 1.15 misses them at times
                rounding = 1e-4 * float(np.linalg.norm(h))
                assert (y >= 0).all()
                np.testing.assert_allclose(slope[y > 0], 0, atol=rounding)
                assert slope.max() < rounding

    @given(seed=st.integers(0, 10**6), size=st.integers(1, 20), noise=st.floats(0, 3))
    def test_labels_are_positive_and_fitted_by_least_squares(self, seed, size, noise):
        operator = make_operator(HadamardCompressor, 150, 40, seed)
        A = dense(operator)
        H, _ = planted(A, 5, 5, noise, seed)
        for h, y in zip(H, decode(OMPDecoder(size, nonnegative=True), operator, H), strict=True):
            J = np.flatnonzero(y)
            assert (y[J] > 0).all()
            np.testing.assert_allclose(A[:, J].T @ (h - A @ y), 0, atol=1e-4)

    def test_equals_omp_where_omp_takes_positive_correlations_only(self):
        operator = make_operator(HadamardCompressor, 150, 60)
        H, _ = planted(dense(operator), 4, 200, noise=0.8, seed=9, signs=[1])
        state, sizes = operator.kernel(), range(1, 6)
        plain, nonnegative = (
            [y.toarray() for y in OMPDecoder(nonnegative=flag).path(state, H, sizes)] for flag in (False, True)
        )
        # A column enters with the sign of its correlation.
        positive = np.all([(y >= 0).all(axis=1) for y in plain], axis=0)
        assert 20 < positive.sum() < 180
        for y, z in zip(plain, nonnegative, strict=True):
            np.testing.assert_array_equal(y[positive], z[positive])
        assert (plain[-1][~positive] != nonnegative[-1][~positive]).any(axis=1).all()

    def test_a_row_ends_where_no_correlation_is_positive(self):
        decoder = OMPDecoder(n_nonzero=4, nonnegative=True)
        out = decoder.decode(DenseOperator(np.eye(4)).kernel(), [[1, -2, 3, 0], [-5, -6, -7, -8]])
        np.testing.assert_array_equal(out.toarray(), [[1, 0, 3, 0], [0, 0, 0, 0]])
        assert out.nnz == 2


class TestTheorem2:
    """If coherence <= 0.1/k, then ||A y - h||^2 after 2k steps <= 23 ||A y_k - h||^2 for every k-sparse y_k."""

    @given(
        st.sampled_from([("hadamard", 1), ("hadamard", 2), ("devore", 1), ("devore", 2)]),
        st.integers(0, 10**6),
        st.floats(0.01, 10),
    )
    def test_bound(self, case, seed, noise):
        kind, k = case
        if kind == "devore":  # degree 1: coherence 1/q
            q = {1: 11, 2: 23}[k]
            operator = make_operator(DeVoreCompressor, q * q, q * q)
        else:
            operator = make_operator(HadamardCompressor, 100, {1: 127, 2: 127}[k], seed % 50)
        assume(operator.coherence() <= 0.1 / k)
        A = dense(operator)
        H, Y = planted(A, k, 5, noise, seed)
        out = decode(OMPDecoder(n_nonzero=OMPDecoder.output_sparsity(k)), operator, H)
        for h, y, got in zip(H.astype(np.float64), Y, out, strict=True):
            rivals = [y, reference.omp(A, h, k), reference.correlation(A, h, k)]
            best = min(np.sum((A @ rival - h) ** 2) for rival in rivals)
            assert np.sum((A @ got - h) ** 2) <= 23 * best + 1e-8

    def test_against_the_best_k_sparse_vector_of_all(self):
        operator = make_operator(DeVoreCompressor, 121, 121)  # coherence 1/11 <= 0.1
        A = dense(operator)
        H = np.random.default_rng(0).normal(size=(20, 121)).astype(np.float32)
        out = decode(OMPDecoder(n_nonzero=2), operator, H)
        best = np.sum(H.astype(np.float64) ** 2, axis=1) - np.max((H @ A) ** 2, axis=1)  # unit columns, k = 1
        assert (np.sum((H - out @ A.T) ** 2, axis=1) <= 23 * best).all()
