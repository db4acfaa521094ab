"""What decoding makes of numbers of any size and of columns that depend on others, and the one warning about it."""

import warnings

import numpy as np
import pytest
import reference
from conftest import COMPRESSORS, DECODERS, dense, make_operator
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from labelsense import (
    CorrelationDecoder,
    FoBaDecoder,
    GaussianCompressor,
    HadamardCompressor,
    OMPDecoder,
    RidgeLearner,
    WhitenedCompressor,
)
from labelsense.compress import DenseOperator
from labelsense.reconstruct import DECODERS as WORDS
from labelsense.reconstruct.outcomes import Outcome

quietly = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SEEDS = st.integers(0, 10**6)


def decode(decoder, operator, H):
    return decoder.decode(decoder.prepare(operator), H).toarray().astype(np.float64)


@quietly
@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("compressor", [HadamardCompressor, WhitenedCompressor, GaussianCompressor])
class TestMagnitudes:
    @given(seed=SEEDS, exponent=st.integers(-110, 110))
    @settings(max_examples=15)
    def test_a_power_of_two_scales_the_scores_and_changes_no_digit(self, decoder, compressor, seed, exponent):
        operator = make_operator(compressor, 60, 20, seed)
        H = np.random.default_rng(seed).normal(size=(20, 20)).astype(np.float32)
        expected = np.ldexp(decode(decoder(6), operator, H), exponent)
        np.testing.assert_array_equal(decode(decoder(6), operator, np.ldexp(H, exponent)), expected)

    @given(seed=SEEDS, magnitude=st.floats(-44, 38.4))
    @settings(max_examples=15)
    def test_all_finite_measurements_give_finite_scores(self, decoder, compressor, seed, magnitude):
        operator = make_operator(compressor, 60, 20, seed)
        rng = np.random.default_rng(seed)
        H = np.clip(rng.choice([-1, 1, 0.3], size=(20, 20)) * 10**magnitude, -3.4e38, 3.4e38).astype(np.float32)
        assert np.isfinite(decode(decoder(6), operator, H)).all()
        mixed = np.clip(H * 10 ** rng.uniform(-40, 3, size=H.shape), -3.4e38, 3.4e38).astype(np.float32)
        assert np.isfinite(decode(decoder(6), operator, mixed)).all()


@quietly
@pytest.mark.parametrize("decoder", DECODERS)
class TestStoredMatrices:
    @given(seed=SEEDS, exponent=st.integers(-90, 90))
    @settings(max_examples=20)
    def test_a_power_of_two_in_A_is_taken_out_of_the_scores(self, decoder, seed, exponent):
        rng = np.random.default_rng(seed)
        columns = rng.normal(size=(30, 10)).astype(np.float32)
        H = rng.normal(size=(10, 10)).astype(np.float32)
        expected = np.ldexp(decode(decoder(5), DenseOperator(columns), H), -exponent)
        got = decode(decoder(5), DenseOperator(np.ldexp(columns, exponent)), H)
        np.testing.assert_array_equal(got, expected)

    @given(seed=SEEDS, spread=st.floats(0, 82), low=st.floats(-44, 37.5), size=st.integers(1, 8))
    def test_columns_of_any_lengths_give_finite_scores(self, decoder, seed, spread, low, size):
        rng = np.random.default_rng(seed)
        lengths = 10.0 ** np.clip(low + spread * rng.uniform(size=(20, 1)), -44, 37.5)
        operator = DenseOperator(rng.normal(size=(20, 8)) * lengths)
        for magnitude in (1e-44, 1.0, 3e37):
            H = (rng.normal(size=(8, 8)) * magnitude).astype(np.float32)
            out = decode(decoder(size), operator, H)
            assert np.isfinite(out).all()
            H = H.astype(np.float64)  # whatever was chosen fits no worse than nothing, unless too small for floats
            residual = np.linalg.norm(H - out @ dense(operator).T, axis=1)
            assert (residual <= np.linalg.norm(H, axis=1) * 1.001 + 1e-44 * np.abs(dense(operator)).max()).all()

    @pytest.mark.parametrize("kind", ["chain", "copies", "low rank", "Hilbert"])
    def test_nearly_dependent_columns_fit_no_worse_than_nothing(self, decoder, kind):
        for seed in range(60):
            A, H = nearly_dependent(kind, np.random.default_rng(seed))
            m, d = A.shape
            for size in {min(m, d), max(1, m // 2)}:
                residual = H - decode(decoder(size), DenseOperator(A.T), H) @ A.T
                assert (np.linalg.norm(residual, axis=1) <= 1.01 * np.linalg.norm(H, axis=1)).all()


def nearly_dependent(kind, rng):
    """Return a matrix whose columns depend on each other up to a small share, and measurements."""
    m = int(rng.integers(3, 16))
    d, small = int(rng.integers(m, 3 * m)), 10 ** rng.uniform(-7, -1)
    noise = small * rng.normal(size=(m, d))
    if kind == "chain":  # each new direction is hidden in its column, and is all of the next one
        Q = np.linalg.qr(rng.normal(size=(m, m)))[0]
        A = np.hstack([Q[:, :1], Q[:, :-1] + small * Q[:, 1:], rng.normal(size=(m, d - m))])
    elif kind == "copies":
        A = rng.normal(size=(m, max(1, d // 4)))[:, rng.integers(0, max(1, d // 4), d)] + noise
    elif kind == "low rank":
        rank = int(rng.integers(1, m))
        A = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, d)) + noise
    else:
        A = 1 / (1 + np.arange(m)[:, None] + np.arange(d) + np.abs(noise))
    A = A.astype(np.float32).astype(np.float64)
    return A, np.vstack([rng.normal(size=(6, m)), rng.normal(size=(6, d)) @ A.T]).astype(np.float32)


@quietly
@pytest.mark.parametrize("m", [22, 23, 27, 36, 49])
def test_dependent_columns_of_the_hadamard_matrix_are_left_out(m):
    dependent = 0
    for seed in range(8):
        operator = make_operator(HadamardCompressor, 300, m, seed)
        A = dense(operator)
        H = np.random.default_rng(seed).normal(size=(10, m)).astype(np.float32)
        for h, y in zip(H.astype(np.float64), decode(CorrelationDecoder(m), operator, H), strict=True):
            top, J = np.argsort(-np.abs(A.T @ h), kind="stable")[:m], np.flatnonzero(y)
            assert np.linalg.matrix_rank(A[:, J]) == len(J)
            dependent += np.linalg.matrix_rank(A[:, top]) < m
            best = np.linalg.lstsq(A[:, top], h, rcond=None)[0]
            assert np.linalg.norm(h - A @ y) <= np.linalg.norm(h - A[:, top] @ best) + 1e-2 * np.linalg.norm(h)
    assert dependent > 10


@pytest.mark.parametrize("word", WORDS)
def test_what_floats_cannot_hold_is_said_once_and_left_out(word):
    operator = make_operator(HadamardCompressor, 100, 40)
    decoder = WORDS[word](n_nonzero=10)
    if word == "group_omp":
        decoder.set_params(groups=[[0, 1, 2]])
    signs = np.sign(np.random.default_rng(0).normal(size=(50, 40)))
    H = np.vstack([signs, 3e38 * signs]).astype(np.float32)
    with pytest.warns(
        ConvergenceWarning, match=f"^{type(decoder).__name__}: .* of 100 rows have coeff.*Scale"
    ) as caught:
        out = decode(decoder, operator, H)
    assert len(caught) == 1
    assert (out[:50] != 0).any(axis=1).all()
    left = (out[50:] == 0).all(axis=1).sum()
    assert left > 0
    assert f": {left} of 100 rows have" in str(caught[0].message)


def test_outcomes_are_those_of_the_kernels():
    operator = make_operator(HadamardCompressor, 50, 20)
    counts = OMPDecoder()._run(operator.kernel(), np.zeros((7, 20), np.float32), [1], _found(7))
    assert dict(zip(Outcome, counts, strict=True)) == {
        Outcome.FITTED: 7,
        Outcome.RANK_DEFICIENT: 0,
        Outcome.NOT_CONVERGED: 0,
        Outcome.NOT_FINITE: 0,
    }


def _found(n):
    from labelsense.reconstruct.compiled import Found

    return Found(np.zeros((n, 1, 1), np.int64), np.zeros((n, 1, 1), np.float32), np.zeros((n, 1), np.int64))


def test_one_warning_per_batch_says_what_to_change():
    same = DenseOperator(np.ones((5, 3)))  # five copies of one column
    with pytest.warns(ConvergenceWarning, match="4 of 4 rows got fewer labels than asked.*Lower n_nonzero") as caught:
        out = CorrelationDecoder(n_nonzero=2).decode(same.kernel(), np.ones((4, 3)))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert out.nnz == 4
    short = DenseOperator(np.full((5, 3), 0.01))
    with pytest.warns(ConvergenceWarning, match="3 of 4 rows got fewer.* 1 of 4 rows have coefficients") as caught:
        CorrelationDecoder(n_nonzero=2).decode(short.kernel(), [[1, 1, 1]] * 3 + [[3e38] * 3])
    assert len(caught) == 1


class TestOneWarningPerCall:
    """The columns of A are so few that a support of its size has dependent ones in most rows."""

    def fitted(self, n=700):
        rng = np.random.default_rng(0)
        Y = (rng.uniform(size=(n, 40)) < 0.1).astype(int)
        Y[0, :2] = 1
        X = Y + 0.5 * rng.normal(size=Y.shape)
        clf = reference.paper(HadamardCompressor(8), RidgeLearner(1.0), CorrelationDecoder(8), n_jobs=2)
        return clf.set_params(random_state=0).fit(X, Y), X, Y

    @pytest.mark.parametrize("method", ["predict_scores", "predict_topk", "predict"])
    def test_predicting_many_blocks(self, method):
        clf, X, _ = self.fitted()
        with pytest.warns(ConvergenceWarning, match="CorrelationDecoder: .* of 700 rows got fewer labels") as caught:
            getattr(clf, method)(X)
        assert len(caught) == 1

    @pytest.mark.parametrize("method", ["evaluate", "score", "diagnose"])
    def test_with_labels(self, method):
        clf, X, Y = self.fitted()
        with pytest.warns(ConvergenceWarning, match="rows got fewer labels") as caught:
            getattr(clf, method)(X, Y)
        assert len(caught) == 1

    def test_the_decoder_of_the_model_is_not_touched(self):
        clf, X, _ = self.fitted()
        before = dict(vars(clf.decoder_))
        with pytest.warns(ConvergenceWarning):
            clf.predict_scores(X)
        assert vars(clf.decoder_) == before

    def test_none_where_all_is_well(self):
        decoder = FoBaDecoder(3)
        operator = make_operator(HadamardCompressor, 50, 20)
        state = decoder.prepare(operator)
        with warnings.catch_warnings(), decoder.one_warning() as quiet:
            warnings.simplefilter("error")
            quiet.decode(state, np.eye(20, dtype=np.float32))


@pytest.mark.parametrize("compressor", COMPRESSORS)
class TestProducts:
    """What A is multiplied with may be as large as floats are: the product is finite or refused."""

    @pytest.mark.parametrize("magnitude", [1e-44, 1e20, 3e38])
    def test_compress(self, compressor, magnitude):
        operator = make_operator(compressor, 100, 25)
        Y = np.full((3, 100), magnitude, np.float32)
        if magnitude < 1e30:
            np.testing.assert_allclose(
                operator.compress(Y), Y @ dense(operator).T, rtol=1e-4, atol=1e-4 * magnitude + 1e-42
            )
        else:
            with pytest.raises(ValueError, match="Y and A hold numbers whose products 32-bit floats cannot hold"):
                operator.compress(Y)

    @pytest.mark.parametrize("magnitude", [1e-44, 1e20, 3e38])
    def test_correlate(self, compressor, magnitude):
        operator = make_operator(compressor, 100, 25)
        R = np.sign(dense(operator)[:, :5].T).astype(np.float32) * np.float32(magnitude)
        if magnitude < 1e30:
            np.testing.assert_allclose(
                operator.correlate(R), R @ dense(operator), rtol=1e-4, atol=1e-4 * magnitude + 1e-42
            )
        else:
            with pytest.raises(ValueError, match="R and A hold numbers whose products 32-bit floats cannot hold"):
                operator.correlate(R)
