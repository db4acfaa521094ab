"""The contract of every decoder, each against an independent implementation, and the paper's Theorem 2."""

import warnings

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from conftest import COMPRESSORS, DECODERS, RANDOM_COMPRESSORS, GroupOMP, NonnegativeOMP, dense, make_operator
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import orthogonal_mp
from sklearn.model_selection import GridSearchCV

from labelsense import (
    CorrelationDecoder,
    CoSaMPDecoder,
    DeVoreCompressor,
    FoBaDecoder,
    HadamardCompressor,
    LassoDecoder,
    MultistageLassoDecoder,
    OMPDecoder,
    WhitenedCompressor,
    theory,
)
from labelsense._validation import check_measurements
from labelsense.compress import DenseOperator
from labelsense.reconstruct import Decoder


def planted(A, k, n, noise, seed, signs=(-1, 1)):
    """Return n noisy measurements of k-sparse vectors (float32), and the vectors."""
    rng = np.random.default_rng(seed)
    d = A.shape[1]
    Y = np.zeros((n, d))
    for y in Y:
        y[rng.choice(d, k, replace=False)] = rng.uniform(0.5, 2, k) * rng.choice(signs, k)
    H = Y @ A.T
    errors = rng.normal(size=H.shape)
    errors *= noise * np.linalg.norm(H, axis=1, keepdims=True) / np.linalg.norm(errors, axis=1, keepdims=True)
    return (H + errors).astype(np.float32), Y


def decode(decoder, operator, H):
    return decoder.decode(decoder.prepare(operator), H).toarray()


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("compressor", COMPRESSORS)
class TestContract:
    def test_recovers_planted_labels(self, decoder, compressor):
        # Without a search only a single label is certain to be found; the Lasso finds the labels but shrinks them, in
        # stages all but those near the threshold; groups are tried for labels that are in them.
        k = 1 if decoder in (CorrelationDecoder, LassoDecoder, MultistageLassoDecoder, GroupOMP) else 3
        operator = make_operator(compressor, 200, 121)
        signs = [1] if decoder is NonnegativeOMP else [-1, 1]
        H, Y = planted(dense(operator), k, 50, noise=0, seed=0, signs=signs)
        got = decode(decoder(n_nonzero=k), operator, H)
        np.testing.assert_array_equal(got != 0, Y != 0)
        if decoder is not LassoDecoder:
            np.testing.assert_allclose(got, Y, atol=1e-4)

    def test_output_is_canonical_and_as_sparse_as_asked(self, decoder, compressor):
        operator = make_operator(compressor, 300, 60)
        H, _ = planted(dense(operator), 5, 20, noise=0.5, seed=1)
        out = decoder(n_nonzero=7).decode(operator.kernel(), H)
        assert out.shape == (20, 300)
        assert out.dtype == np.float32
        assert out.has_canonical_format
        assert np.diff(out.indptr).max() <= 7
        assert out.indices.max() < 300

    def test_among_some_labels_equals_a_matrix_of_these(self, decoder, compressor):
        operator = make_operator(compressor, 200, 121)
        H, _ = planted(dense(operator), 3, 9, noise=0.3, seed=3)
        rng = np.random.default_rng(0)
        chosen = [np.sort(rng.permutation(200)[:size]) for size in (30, 0, 2, 5, 17, 1, 40, 0, 30)]
        starts, labels = np.concatenate([[0], np.cumsum(list(map(len, chosen)))]), np.concatenate(chosen)
        chooses, state = decoder(n_nonzero=5), operator.kernel()
        found = chooses.decode_among(operator, state, H, starts, labels)
        expected = Decoder.decode_among(chooses, operator, state, H, starts, labels)
        np.testing.assert_allclose(found, expected, atol=2e-3)
        assert found.any()

    def test_path_equals_separate_runs(self, decoder, compressor):
        operator = make_operator(compressor, 150, 50)
        H, _ = planted(dense(operator), 4, 20, noise=0.5, seed=2)
        sizes = [6, 1, 3, 3, 10]
        state = operator.kernel()
        for size, solution in zip(sizes, decoder().path(state, H, sizes), strict=True):
            expected = decoder(n_nonzero=size).decode(state, H)
            np.testing.assert_array_equal(solution.toarray(), expected.toarray())

    def test_zero_input_gives_no_labels(self, decoder, compressor):
        operator = make_operator(compressor, 100, 30)
        assert decoder().decode(operator.kernel(), np.zeros((3, operator.n_measurements))).nnz == 0
        assert decoder().decode(operator.kernel(), np.zeros((0, operator.n_measurements))).shape == (0, 100)

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_support_as_large_as_possible_is_finite(self, decoder, compressor):
        operator = make_operator(compressor, 60, 25)
        m = operator.n_measurements
        H = np.random.default_rng(0).normal(size=(10, m)).astype(np.float32)
        out = decoder(n_nonzero=m).decode(operator.kernel(), H)
        assert np.isfinite(out.data).all()
        assert np.diff(out.indptr).max() <= m
        with pytest.raises(ValueError, match=f"n_nonzero must be between 1 and {m}. Got {m + 1}. A support larger"):
            decoder(n_nonzero=m + 1).decode(operator.kernel(), H)

    def test_rows_do_not_depend_on_their_neighbours(self, decoder, compressor):
        operator = make_operator(compressor, 100, 40)
        H, _ = planted(dense(operator), 4, 10, noise=1, seed=3)
        together = decode(decoder(), operator, H)
        alone = np.vstack([decode(decoder(), operator, h[None]) for h in H])
        np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("decoder", DECODERS)
class TestHardInput:
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @given(seed=st.integers(0, 10**6), copies=st.integers(1, 5), rank=st.integers(1, 6), size=st.integers(1, 8))
    def test_rank_deficient_and_duplicate_columns_stay_finite(self, decoder, seed, copies, rank, size):
        rng = np.random.default_rng(seed)
        base = rng.normal(size=(10, rank)) @ rng.normal(size=(rank, 8))
        A = np.hstack([base] * copies)
        operator = DenseOperator(A.T)
        H = (rng.normal(size=(4, 10)) + A @ rng.integers(0, 2, A.shape[1])).astype(np.float32)
        size = min(size, A.shape[1])
        out = decoder(n_nonzero=size).decode(operator.kernel(), H)
        assert np.isfinite(out.data).all()
        # Whatever was chosen, it fits no worse than nothing.
        residual = H - out @ A.T
        assert (np.linalg.norm(residual, axis=1) <= np.linalg.norm(H, axis=1) * (1 + 1e-4)).all()

    def test_a_zero_column_is_never_chosen(self, decoder):
        rng = np.random.default_rng(0)
        A = rng.normal(size=(20, 30))
        A[:, [0, 7]] = 0
        out = decoder(n_nonzero=5).decode(DenseOperator(A.T).kernel(), rng.normal(size=(10, 20)))
        assert not np.isin(out.indices, [0, 7]).any()

    def test_phantom_columns_of_the_hadamard_matrix_are_never_chosen(self, decoder):
        # 600 labels of 1024 columns: unmasked, most rows would choose one that does not exist.
        operator = make_operator(HadamardCompressor, 600, 200)
        H = np.random.default_rng(0).normal(size=(200, 200)).astype(np.float32)
        assert decoder().decode(operator.kernel(), H).indices.max() < 600

    def test_fewer_labels_than_asked_for(self, decoder):
        operator = make_operator(HadamardCompressor, 3, 4)
        out = decoder(n_nonzero=4).decode(operator.kernel(), operator.columns([1]).T)
        np.testing.assert_allclose(out.toarray(), [[0, 1, 0]], atol=1e-6)

    def test_the_stored_and_the_implicit_hadamard_matrix_decode_alike(self, decoder):
        implicit = make_operator(HadamardCompressor, 240, 80)
        stored = DenseOperator(dense(implicit).T)
        H, _ = planted(dense(implicit), 5, 100, noise=0.5, seed=4)
        np.testing.assert_allclose(decode(decoder(), implicit, H), decode(decoder(), stored, H), atol=1e-4)

    def test_a_matrix_too_wide_for_its_gram_decodes_alike(self, decoder, monkeypatch):
        operator = DenseOperator(np.random.default_rng(0).normal(size=(300, 40)))
        H, _ = planted(dense(operator), 5, 50, noise=0.5, seed=5)
        with_gram = decode(decoder(), operator, H)
        monkeypatch.setattr("labelsense.compress.base.GRAM_BYTES", 0)
        np.testing.assert_allclose(decode(decoder(), operator, H), with_gram, atol=1e-4)

    def test_states_its_output_sparsity_and_its_guarantee(self, decoder):
        assert decoder.output_sparsity(4) >= 4
        assert decoder.guarantee
        assert decoder.learns == (decoder is GroupOMP)

    def test_bad_parameters(self, decoder):
        state = make_operator(HadamardCompressor, 50, 20).kernel()
        with pytest.raises(ValueError, match="n_nonzero must be an integer or 'auto'. Got 'all'"):
            decoder(n_nonzero="all").decode(state, np.zeros((1, 20)))
        with pytest.raises(ValueError, match="n_nonzero must be between 1 and 20. Got 0"):
            decoder(n_nonzero=0).decode(state, np.zeros((1, 20)))
        with pytest.raises(ValueError, match="H must have one column per measurement, 20. Got 19"):
            decoder().decode(state, np.zeros((1, 19)))
        with pytest.raises(ValueError, match="sizes must name at least one support size"):
            decoder().path(state, np.zeros((1, 20)), [])
        with pytest.raises(ValueError, match="H contains NaN"):
            decoder().decode(state, np.full((1, 20), np.nan))


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


class TestWhitened:
    """Decoding in coordinates in which A' h is one transform, against the same matrix stored."""

    @given(d=st.integers(2, 200), seed=st.integers(0, 10**6), data=st.data())
    def test_decodes_as_the_stored_matrix_does(self, d, seed, data):
        order = 1 << (d - 1).bit_length()
        m = data.draw(st.integers(2, order))
        operator = make_operator(WhitenedCompressor, d, m, seed)
        H = np.random.default_rng(seed).normal(size=(20, m)).astype(np.float32)
        decoder = data.draw(st.sampled_from([OMPDecoder(penalty=0.1), FoBaDecoder(), CoSaMPDecoder(), LassoDecoder()]))
        decoder.set_params(n_nonzero=min(d, max(1, m // 4)))
        got = decode(decoder, operator, H)
        expected = decode(decoder, DenseOperator(operator.columns(np.arange(d)).T), H)
        # Ties, where two columns or two sets of them are equally good, may end another way in other roundings.
        same = np.abs(got - expected).max(axis=1) < 1e-3
        left, right = (np.linalg.norm(H - Y @ dense(operator).T, axis=1) for Y in (got, expected))
        assert (same | (np.abs(left - right) < 0.2 * np.linalg.norm(H, axis=1))).all()
        assert same.mean() >= 0.8


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


def lasso_penalty(A, h, y):
    """Return the lambda for which y solves the Lasso, checking the optimality conditions."""
    c = A.T @ (h - A @ y)
    penalty = np.abs(c).max()
    np.testing.assert_allclose(c[y != 0], penalty * np.sign(y[y != 0]), atol=1e-5)
    return penalty


def knot(A, h, y):
    """Return the direction w of the path at a Lasso solution, and how fast lambda and the joining column close in."""
    c, J = A.T @ (h - A @ y), np.flatnonzero(y)
    joining = np.setdiff1d(np.flatnonzero(np.abs(c) > np.abs(c).max() - 1e-9), J)
    w = np.linalg.lstsq(A[:, J].T @ A[:, J], np.sign(y[J]), rcond=None)[0]
    rates = 1 - np.sign(c[joining]) * (A[:, joining].T @ A[:, J] @ w)
    return w, rates.min(where=rates > 1e-9, initial=1)  # columns that depend on those of J stay at lambda


@pytest.mark.parametrize("compressor", RANDOM_COMPRESSORS)
def test_lasso_equals_lars_path_at_every_size_with_drops(compressor):
    drops = ties = 0
    for seed in range(100):
        operator = make_operator(compressor, 250, 40, seed)
        A = dense(operator)
        H, _ = planted(A, 5, 1, noise=0.5, seed=seed)
        h = H[0].astype(np.float64)
        coefs = reference.lasso_path(A, h, 28)
        sizes = (np.abs(coefs) > 1e-10).sum(axis=0)
        # Correlations are floats: one rounding for each stage of the transform, and one for each step of the path.
        rounding = (8 + 28) * 2.0**-24 * np.linalg.norm(h) * np.linalg.norm(A, axis=0).max()
        for size, solution in enumerate(LassoDecoder().path(operator.kernel(), H, range(1, 16)), start=1):
            got, expected = solution.toarray()[0], coefs[:, int(np.argmax(sizes >= size))]
            # A knot is where a correlation meets lambda: the more slowly they close in, the less is its place known.
            w, closing = knot(A, h, expected)
            error = rounding / closing
            assert lasso_penalty(A, h, got) == pytest.approx(lasso_penalty(A, h, expected), abs=error)
            if np.abs(got - expected).max() > error * (1 + np.abs(w).max()):
                ties += 1  # dependent columns of a small Hadamard matrix: two solutions
                break
        # Where a column joins, the support grows from knot to knot; where one is dropped, it does not.
        drops += int((np.diff(sizes[: int(np.argmax(sizes >= 15)) + 1]) <= 0).sum())
    assert drops >= 5
    assert ties <= (2 if compressor in (HadamardCompressor, WhitenedCompressor) else 0)


@pytest.mark.parametrize("compressor", RANDOM_COMPRESSORS)
def test_foba_equals_the_slow_version_with_real_deletions(compressor):
    deletions = 0
    for seed in range(60):
        operator = make_operator(compressor, 120, 36, seed)
        A = dense(operator)
        H, _ = planted(A, 5, 3, noise=0.3, seed=seed)
        got = decode(FoBaDecoder(n_nonzero=10), operator, H)
        for h, y in zip(H.astype(np.float64), got, strict=True):
            expected, deleted = reference.foba(A, h, 10)
            np.testing.assert_allclose(y, expected, atol=1e-4)
            deletions += deleted
    assert deletions >= 10


@pytest.mark.parametrize("compressor", RANDOM_COMPRESSORS)
@pytest.mark.parametrize("noise", [0.0, 0.5, 1.5])
def test_cosamp_equals_the_slow_version(compressor, noise):
    operator = make_operator(compressor, 200, 80)
    A = dense(operator)
    H, _ = planted(A, 5, 60, noise, seed=6)
    got = decode(CoSaMPDecoder(n_nonzero=5), operator, H)
    expected = np.vstack([reference.cosamp(A, h, 5) for h in H.astype(np.float64)])
    np.testing.assert_allclose(got, expected, atol=1e-4)


@pytest.mark.parametrize("compressor", COMPRESSORS)
def test_correlation_equals_the_slow_version(compressor):
    operator = make_operator(compressor, 200, 80)
    A = dense(operator)
    H, _ = planted(A, 5, 60, noise=0.5, seed=7)
    got = decode(CorrelationDecoder(n_nonzero=6), operator, H)
    expected = np.vstack([reference.correlation(A, h, 6) for h in H.astype(np.float64)])
    np.testing.assert_allclose(got, expected, atol=1e-4)


def test_foba_without_deletions_is_omp():
    operator = make_operator(HadamardCompressor, 300, 60)
    H, _ = planted(dense(operator), 5, 50, noise=1, seed=8)
    np.testing.assert_array_equal(
        decode(FoBaDecoder(n_nonzero=10, nu=0), operator, H), decode(OMPDecoder(n_nonzero=10), operator, H)
    )
    with pytest.raises(ValueError, match="nu must be finite and between 0 and 0.999. Got 1"):
        decode(FoBaDecoder(nu=1), operator, H)


def test_cosamp_needs_a_round():
    with pytest.raises(ValueError, match="max_rounds must be at least 1. Got 0"):
        decode(CoSaMPDecoder(max_rounds=0), make_operator(HadamardCompressor, 50, 20), np.zeros((1, 20)))


def test_ties_go_to_the_lowest_label():
    columns = np.eye(4)[[2, 0, 0, 1]]  # labels 1 and 2 are the same
    for decoder in DECODERS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            out = decoder(n_nonzero=1).decode(DenseOperator(columns).kernel(), [[1.0, 0, 0, 0]])
        if decoder not in (LassoDecoder, MultistageLassoDecoder):  # the first knot is where the second would join
            assert out.indices.tolist() == [1]


class Correlations(Decoder):
    """In plain Python: all that a decoder has to have, as CONTRIBUTING.md promises."""

    def decode(self, state, H):
        H, s = check_measurements(H, state.n_measurements), self.support_size(state)
        C = state.correlate(H)
        top = np.argsort(-np.abs(C), axis=1, kind="stable")[:, :s]
        Y = np.zeros_like(C)
        np.put_along_axis(Y, top, np.take_along_axis(C, top, axis=1), axis=1)
        return sp.csr_array(Y)


class TestPlainPython:
    def problem(self, n=300):
        rng = np.random.default_rng(0)
        Y = (rng.uniform(size=(n, 50)) < 0.08).astype(int)
        Y[:, 0] = 1
        return Y + 0.2 * rng.normal(size=Y.shape), Y

    @pytest.mark.parametrize("compressor", COMPRESSORS)
    def test_every_method_of_the_classifier(self, compressor):
        X, Y = self.problem()
        clf = reference.paper(compressor(49), decoder=Correlations(6), random_state=0, n_jobs=2)
        clf.fit(X[:200], Y[:200])
        scores = clf.predict_scores(X[200:])
        A, H = dense(clf.compressor_.operator_), clf.measure(X[200:])
        nth = np.sort(np.abs(H @ A), axis=1)[:, [-6]]
        np.testing.assert_allclose(scores.toarray(), np.where(np.abs(H @ A) >= nth, H @ A, 0), atol=1e-4)
        assert clf.predict_topk(X[200:], k=3).labels.shape == (100, 3)
        assert clf.predict(X[200:]).shape == (100, 50)
        assert clf.evaluate(X[200:], Y[200:])["P@1"] > 0.9
        assert clf.diagnose(X[200:], Y[200:], k=3).n_rows == 100

    def test_a_path_is_a_run_for_each_size(self):
        operator = make_operator(HadamardCompressor, 60, 20)
        H = np.random.default_rng(0).normal(size=(10, 20)).astype(np.float32)
        decoder = Correlations()
        state = decoder.prepare(operator)
        for size, solution in zip([5, 1, 5], decoder.path(state, H, [5, 1, 5]), strict=True):
            assert (np.diff(solution.indptr) == size).all()
            np.testing.assert_array_equal(solution.toarray(), Correlations(size).decode(state, H).toarray())
        assert decoder.n_nonzero == "auto"
        with pytest.raises(ValueError, match="sizes must name at least one"):
            decoder.path(state, H, [])

    def test_grid_search(self):
        X, Y = self.problem()
        clf = reference.paper(HadamardCompressor(40), decoder=Correlations(), random_state=0)
        search = GridSearchCV(clf, {"decoder__n_nonzero": [1, 5]}, cv=2).fit(X, Y)
        assert (search.cv_results_["mean_test_score"] > 0.3).all()
        assert search.best_estimator_.decoder_.n_nonzero == search.best_params_["decoder__n_nonzero"] == 5

    def test_what_it_need_not_say(self):
        assert (Correlations.output_sparsity(3), Correlations.guarantee, Correlations.learns) == (
            3,
            "none stated",
            False,
        )
        assert not theory.guaranteed(Correlations(4), np.eye(40), 2)
        with pytest.raises(TypeError, match="abstract method"):
            Decoder()
