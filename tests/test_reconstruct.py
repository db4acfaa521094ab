"""The contract of every decoder, and what each does with input that is hard."""

import warnings

import numpy as np
import pytest
from conftest import COMPRESSORS, DECODERS, GroupOMP, NonnegativeOMP, decode, dense, make_operator, planted
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from labelsense import (
    CorrelationDecoder,
    CoSaMPDecoder,
    FoBaDecoder,
    HadamardCompressor,
    LassoDecoder,
    MultistageLassoDecoder,
    OMPDecoder,
    WhitenedCompressor,
)
from labelsense.compress import DenseOperator
from labelsense.reconstruct import Decoder


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


def test_ties_go_to_the_lowest_label():
    columns = np.eye(4)[[2, 0, 0, 1]]  # labels 1 and 2 are the same
    for decoder in DECODERS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            out = decoder(n_nonzero=1).decode(DenseOperator(columns).kernel(), [[1.0, 0, 0, 0]])
        if decoder not in (LassoDecoder, MultistageLassoDecoder):  # the first knot is where the second would join
            assert out.indices.tolist() == [1]


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
