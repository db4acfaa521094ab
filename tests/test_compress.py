"""The contract of every compressor, and what each kind of A promises."""

import pickle

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from conftest import COMPRESSORS, RANDOM_COMPRESSORS, dense, make_operator, zipf_labels
from hypothesis import given
from hypothesis import strategies as st
from reference import hadamard

from labelsense import (
    DeVoreCompressor,
    GaussianCompressor,
    HadamardCompressor,
    LogTfidfTransformer,
    OMPDecoder,
    PLSTCompressor,
    RidgeLearner,
    WhitenedCompressor,
)
from labelsense.compress import auto_measurements
from labelsense.compress.whitened import whiten
from labelsense.data import load_debtags

SIZES = [(2, 2), (3, 2), (17, 9), (64, 64), (100, 50), (130, 121), (1000, 90)]


@pytest.mark.parametrize("compressor", [*COMPRESSORS, PLSTCompressor])
@pytest.mark.parametrize(("d", "m"), SIZES)
class TestContract:
    def test_correlate_is_the_adjoint_of_compress(self, compressor, d, m):
        rng = np.random.default_rng(0)
        A = make_operator(compressor, d, m)
        Y = sp.random_array((5, d), density=0.3, rng=rng, dtype=np.float32).tocsr()
        R = rng.normal(size=(5, A.n_measurements)).astype(np.float32)
        left = (A.compress(Y).astype(np.float64) * R).sum(axis=1)  # <A y, r>
        right = (A.correlate(R).astype(np.float64) * Y.toarray()).sum(axis=1)  # <y, A' r>
        np.testing.assert_allclose(left, right, atol=1e-4)

    def test_columns_compress_and_correlate_are_one_matrix(self, compressor, d, m):
        A = make_operator(compressor, d, m)
        matrix = dense(A)
        assert matrix.shape == (A.n_measurements, d)
        np.testing.assert_allclose(A.compress(sp.eye_array(d)).T, matrix, atol=1e-6)
        np.testing.assert_allclose(A.correlate(np.eye(A.n_measurements)), matrix, atol=1e-6)

    def test_dense_and_sparse_labels_compress_alike(self, compressor, d, m):
        A = make_operator(compressor, d, m)
        Y = sp.random_array((6, d), density=0.5, rng=0, dtype=np.float32)
        np.testing.assert_array_equal(A.compress(Y.tocsr()), A.compress(Y.toarray()))
        assert A.compress(sp.csr_array((3, d))).any() == np.False_

    def test_column_norms(self, compressor, d, m):
        A = make_operator(compressor, d, m)
        np.testing.assert_allclose(A.column_norms, np.linalg.norm(dense(A), axis=0), rtol=1e-5)

    def test_coherence_equals_brute_force(self, compressor, d, m):
        A = make_operator(compressor, d, m)
        unit = dense(A) / np.linalg.norm(dense(A), axis=0)
        gram = np.abs(unit.T @ unit)
        np.fill_diagonal(gram, 0)
        assert A.coherence() == pytest.approx(gram.max(), abs=1e-5)

    def test_some_of_the_measurements_make_a_smaller_matrix_of_the_kind(self, compressor, d, m):
        A = make_operator(compressor, d, m)
        rng = np.random.default_rng(0)
        rows = rng.permutation(A.n_measurements)[: (A.n_measurements + 1) // 2]
        some = A.subset(rows)
        Y = sp.random_array((6, d), density=0.3, rng=rng, dtype=np.float32).tocsr()
        assert type(some) is type(A)
        assert (some.n_measurements, some.n_labels, some.capacity) == (len(rows), d, A.capacity)
        np.testing.assert_allclose(A.subset_measurements(A.compress(Y), rows), some.compress(Y), atol=2e-4)
        # It is made of the rows named and no others: those of A, or those of the Hadamard matrix that A whitens.
        kept = dense(getattr(A, "hadamard", A))[np.sort(rows)]
        assert np.linalg.matrix_rank(np.vstack([kept, dense(some)]), tol=1e-3) == np.linalg.matrix_rank(kept, tol=1e-3)
        assert (some.column_norms**2).mean() == pytest.approx((A.column_norms**2).mean(), rel=0.5)

    def test_all_of_the_measurements_are_the_matrix_itself(self, compressor, d, m):
        A = make_operator(compressor, d, m)
        rows = np.arange(A.n_measurements)
        np.testing.assert_allclose(dense(A.subset(rows[::-1])), dense(A), atol=1e-4)

    def test_survives_pickling(self, compressor, d, m):
        A = make_operator(compressor, d, m)
        np.testing.assert_array_equal(dense(pickle.loads(pickle.dumps(A))), dense(A))


@pytest.mark.parametrize("compressor", RANDOM_COMPRESSORS)
class TestRandomMatrices:
    def test_same_seed_same_bytes(self, compressor):
        a, b, other = (make_operator(compressor, 300, 40, seed) for seed in (3, 3, 4))
        np.testing.assert_array_equal(dense(a), dense(b))
        assert (dense(a) != dense(other)).any()

    def test_coherence_is_of_the_order_the_paper_gives(self, compressor):
        d, m = 1000, 400
        assert make_operator(compressor, d, m).coherence() < 3 * np.sqrt(np.log(d) / m)

    def test_squared_norms_are_kept_on_average(self, compressor):
        A = make_operator(compressor, 500, 200)
        y = sp.random_array((200, 500), density=0.01, rng=1, dtype=np.float32).tocsr()
        ratio = (A.compress(y) ** 2).sum() / (y.data**2).sum()
        assert ratio == pytest.approx(1, abs=0.1)


class TestHadamard:
    @given(d=st.integers(2, 300), data=st.data())
    def test_is_rows_of_the_hadamard_matrix(self, d, data):
        order = 1 << (d - 1).bit_length()
        m = data.draw(st.integers(1, order))
        A = make_operator(HadamardCompressor, d, m, seed=data.draw(st.integers(0, 99)))
        expected = hadamard(order)[A.rows][:, :d] / np.sqrt(m)
        assert len(set(A.rows)) == m
        np.testing.assert_allclose(dense(A), expected, rtol=1e-6)

    def test_all_rows_make_an_orthonormal_basis(self):
        A = dense(make_operator(HadamardCompressor, 128, 128))
        np.testing.assert_allclose(A.T @ A, np.eye(128), atol=1e-6)

    @pytest.mark.parametrize("d", [2**15, 2**20 - 7, 2**24])
    def test_correlates_at_any_size(self, d):
        A = make_operator(HadamardCompressor, d, 5)
        R = np.array([[1.0, -2.0, 3.0, 0.5, 0.25]], np.float32)
        J = np.array([0, 1, d // 3, d - 1])
        np.testing.assert_allclose(A.correlate(R)[:, J], R @ A.columns(J), atol=1e-5)

    def test_costs_a_list_of_row_numbers(self):
        A = make_operator(HadamardCompressor, 2**24, 1000)
        assert len(pickle.dumps(A)) < 10_000


class TestWhitened:
    def test_labels_not_found_yet_are_white_noise(self):
        # N = A V A' + noise, with the correlations of A V A' in place of its covariances, becomes a multiple of I.
        Y = zipf_labels(150)
        A = WhitenedCompressor(40, random_state=0).fit(Y).operator_
        plain, p = dense(A.hadamard), Y.mean(axis=0)
        N = (plain * (p / (p + 0.03))) @ plain.T
        N = N / N[0, 0] + 0.3 * np.eye(40)
        T = A.whitening.astype(np.float64)
        white = T @ N @ T.T
        np.testing.assert_allclose(white, white[0, 0] * np.eye(40), atol=1e-5)
        np.testing.assert_array_equal(A.columns([3]), A.whitening @ A.hadamard.columns([3]))

    def test_rows_are_chosen_for_uncorrelated_measurements(self):
        # The sum of squared covariances of A diag(p) A', with p the frequencies, over ten seeds of each.
        Y = zipf_labels(1000)

        def total(compressor, seed):
            A = compressor(100, random_state=seed).fit(Y).operator_
            weighted = dense(getattr(A, "hadamard", A)) * np.sqrt(Y.mean(axis=0))
            covariance = weighted @ weighted.T
            return np.sum(covariance**2) - np.sum(np.diag(covariance) ** 2)

        chosen, random = (
            [total(compressor, seed) for seed in range(10)] for compressor in (WhitenedCompressor, HadamardCompressor)
        )
        assert max(chosen) < min(random)

    def test_frequent_labels_get_shorter_columns_of_length_one_on_average(self):
        Y = zipf_labels(300)
        norms = WhitenedCompressor(60, random_state=0).fit(Y).operator_.column_norms
        assert (norms**2).mean() == pytest.approx(1, abs=1e-3)
        p = Y.mean(axis=0)
        assert norms[p > 0.05].max() < np.median(norms[p < 0.01])

    @pytest.mark.parametrize("labels", [128, np.zeros((5, 128)), np.ones((5, 128))], ids=["number", "none", "all"])
    def test_equally_frequent_labels_leave_nothing_to_whiten(self, labels):
        A = WhitenedCompressor(30, random_state=0).fit(labels).operator_
        np.testing.assert_allclose(A.whitening, np.eye(30), atol=1e-5)

    @given(d=st.integers(2, 200), data=st.data())
    def test_takes_any_number_of_rows_once(self, d, data):
        order = 1 << (d - 1).bit_length()
        m = data.draw(st.integers(1, order))
        A = make_operator(WhitenedCompressor, d, m, seed=data.draw(st.integers(0, 99)))
        assert len(set(A.hadamard.rows)) == m
        assert np.isfinite(A.whitening).all()

    def test_refuses_what_it_could_not_store(self):
        with pytest.raises(ValueError, match="would take 8.0 GB. Use HadamardCompressor"):
            WhitenedCompressor(1000).fit(2_000_000)


class TestDeVore:
    @pytest.mark.parametrize(("q", "d"), [(3, 9), (5, 100), (7, 300), (11, 1331), (13, 2000)])
    def test_coherence_is_at_most_degree_over_q(self, q, d):
        A = make_operator(DeVoreCompressor, d, q * q)
        degree = next(r for r in range(9) if q ** (r + 1) >= d)
        assert A.coherence() <= degree / q + 1e-6
        assert ((dense(A) > 0).sum(axis=0) == q).all()

    def test_needs_the_square_of_a_prime(self):
        with pytest.raises(ValueError, match=r"square of a prime. Got 100. Use 7\^2 = 49 or 11\^2 = 121"):
            DeVoreCompressor(n_measurements=100).fit(500)


@pytest.mark.parametrize("compressor", RANDOM_COMPRESSORS)
class TestReserve:
    """Columns for labels that do not exist yet."""

    def test_reserved_columns_are_not_in_use(self, compressor):
        A = compressor(n_measurements=20, reserve=200, random_state=0).fit(50).operator_
        assert A.n_labels == 50
        assert A.capacity >= 250
        assert A.correlate(np.ones((1, 20))).shape == (1, 50)
        unit = dense(A) / np.linalg.norm(dense(A), axis=0)
        gram = np.abs(unit.T @ unit)
        np.fill_diagonal(gram, 0)
        assert A.coherence() == pytest.approx(gram.max(), abs=1e-5)
        assert OMPDecoder(5).decode(A.kernel(), np.random.default_rng(0).normal(size=(50, 20))).indices.max() < 50

    def test_taking_them_into_use_leaves_the_others_as_they_are(self, compressor):
        A = compressor(n_measurements=20, reserve=200, random_state=0).fit(50).operator_
        rounding = 1e-6 if compressor is WhitenedCompressor else 0  # a product of matrices rounds by its shape
        np.testing.assert_allclose(dense(A.for_labels(250))[:, :50], dense(A), rtol=0, atol=rounding)
        with pytest.raises(ValueError, match=f"has columns for {A.capacity} labels, and 999 are needed"):
            A.for_labels(999)


class TestNumberOfMeasurements:
    def test_auto_follows_the_documented_rule(self):
        Y = sp.random_array((100, 1000), density=0.004, rng=0).tocsr()
        k = Y.nnz / 100
        assert HadamardCompressor().fit(Y).operator_.n_measurements == auto_measurements(k, 1000)
        assert HadamardCompressor(k=9).fit(Y).operator_.n_measurements == auto_measurements(9, 1000)
        assert HadamardCompressor().fit(1000).operator_.n_measurements == auto_measurements(5, 1000)

    @given(k=st.floats(0, 100), d=st.integers(2, 10**7))
    def test_auto_is_at_most_the_number_of_labels_and_grows_slowly(self, k, d):
        m = auto_measurements(k, d)
        assert 1 <= m <= d
        if m < d:  # doubling the labels costs 6 k measurements more
            assert auto_measurements(k, 2 * d) - m <= 6 * max(k, 1) + 1

    @pytest.mark.parametrize(
        ("compressor", "limit"), [(HadamardCompressor, 1024), (GaussianCompressor, 600)], ids=["hadamard", "gaussian"]
    )
    def test_more_measurements_than_make_sense_are_refused(self, compressor, limit):
        compressor(n_measurements=limit).fit(600)
        with pytest.raises(ValueError, match=f"n_measurements must be between 1 and {limit}. Got {limit + 1}."):
            compressor(n_measurements=limit + 1).fit(600)

    def test_bad_values(self):
        with pytest.raises(ValueError, match="n_measurements must be an integer or 'auto'. Got 'many'"):
            HadamardCompressor(n_measurements="many").fit(100)
        with pytest.raises(TypeError, match="n_measurements must be an integer. Got 2.5 of type float"):
            HadamardCompressor(n_measurements=2.5).fit(100)
        with pytest.raises(ValueError, match=r"At most 2\^24"):
            HadamardCompressor().fit(2**24 + 1)

    def test_a_stored_matrix_beyond_memory_is_refused(self):
        with pytest.raises(ValueError, match=r"would take 8.0 GB. Use HadamardCompressor"):
            GaussianCompressor(n_measurements=1000).fit(2_000_000)


def test_a_subset_of_whitened_rows_is_what_whitening_them_gives():
    A = WhitenedCompressor(40, random_state=0).fit(zipf_labels(100)).operator_
    rows = np.random.default_rng(0).permutation(40)[:15]
    frequencies = np.asarray(zipf_labels(100).mean(axis=0)).ravel()
    np.testing.assert_allclose(dense(A.subset(rows)), dense(whiten(A.hadamard.subset(rows), frequencies)), atol=1e-4)


@pytest.mark.parametrize("rows", [[], [0, 0], [-1], [5]])
def test_subsets_are_of_different_rows_that_there_are(rows):
    A = HadamardCompressor(5, random_state=0).fit(20).operator_
    with pytest.raises(ValueError, match="rows must be different numbers from 0 to 4, and at least one. Got"):
        A.subset(rows)
    with pytest.raises(ValueError, match="rows must be different numbers from 0 to 4, and at least one. Got"):
        A.subset_measurements(np.zeros((1, 5)), rows)


@pytest.mark.parametrize("compressor", COMPRESSORS)
def test_labels_that_are_out_of_range_are_refused_before_compiled_code_follows_them(compressor):
    A = make_operator(compressor, 30, 20)
    Y = zipf_labels(30).astype(np.float32)
    Y.indices[3] = 10**6
    with pytest.raises(ValueError, match="Y must have column numbers from 0 to 29. Got 1000000"):
        A.compress(Y)


def test_operators_refuse_other_shapes():
    A = make_operator(HadamardCompressor, 50, 20)
    with pytest.raises(ValueError, match="Y must have one column per label, 50. Got 49"):
        A.compress(sp.csr_array((3, 49)))
    with pytest.raises(ValueError, match="H must have one column per measurement, 20. Got 50"):
        A.correlate(np.zeros((3, 50)))
    with pytest.raises(ValueError, match="J must hold label numbers from 0 to 49. Got 3 to 50"):
        A.columns([3, 50])


def test_whitened_measurements_give_more_precise_labels_on_real_data():
    data = load_debtags()
    scaler = LogTfidfTransformer().fit(data.X_train)
    X, X_test = scaler.transform(data.X_train[::4]), scaler.transform(data.X_test[::4])
    models = {
        compressor: reference.paper(compressor(50), RidgeLearner(1.0), decoder, random_state=0)
        for compressor, decoder in [(HadamardCompressor, "omp"), (WhitenedCompressor, OMPDecoder(penalty=0.1))]
    }
    plain, whitened = (model.fit(X, data.Y_train[::4]).evaluate(X_test, data.Y_test[::4]) for model in models.values())
    assert whitened["P@1"] > plain["P@1"]
    assert whitened["P@5"] > plain["P@5"] + 0.02
