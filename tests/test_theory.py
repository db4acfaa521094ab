"""The paper's bounds: each number against brute force, and none of them violated by planted or adversarial cases."""

from itertools import combinations, product

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from conftest import COMPRESSORS, DECODERS, dense, make_operator
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from labelsense import (
    BernoulliCompressor,
    CorrelationDecoder,
    CoSaMPDecoder,
    DeVoreCompressor,
    FoBaDecoder,
    HadamardCompressor,
    OMPDecoder,
    OneVsAllClassifier,
    RidgeLearner,
    SECOCClassifier,
    theory,
)
from labelsense.compress import DenseOperator

SEEDS = st.integers(0, 10**6)


def tiny_matrix(seed, m, d, kind="gaussian"):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, d)) if kind == "gaussian" else rng.choice([-1.0, 1.0], (m, d))
    return (A / np.sqrt(m)).astype(np.float32).astype(np.float64)


def with_isometry(seed, m, d):
    """Return a square or tall matrix that is nearly orthonormal: its restricted isometry constants are below 1."""
    rng = np.random.default_rng(seed)
    orthonormal = np.linalg.qr(rng.normal(size=(m, d)))[0]
    return (orthonormal + rng.uniform(0, 0.15) * rng.normal(size=(m, d)) / np.sqrt(m)).astype(np.float32)


class TestIsometry:
    def test_two_columns_by_hand(self):
        A = [[1.0, 0.6], [0.0, 0.8]]  # the Gram matrix has eigenvalues 0.4 and 1.6
        assert theory.coherence(A) == pytest.approx(0.6)
        assert theory.rip_constant(A, 1) == pytest.approx(0, abs=1e-6)
        for bound in (theory.rip_constant, theory.rip_upper_bound, theory.rip_lower_bound):
            assert bound(A, 2) == pytest.approx(0.6)

    def test_columns_that_are_not_of_norm_one(self):
        A = np.diag([2.0, 0.5])  # squared norms 4 and 0.25
        assert theory.rip_constant(A, 1) == theory.rip_upper_bound(A, 1) == theory.rip_lower_bound(A, 1) == 3
        short = 0.5 * np.array([[1.0, 0.6], [0.0, 0.8]])  # eigenvalues 0.1 and 0.4: the low end counts
        assert theory.rip_constant(short, 2) == pytest.approx(0.9)
        assert theory.rip_upper_bound(short, 2) == pytest.approx(0.9)

    @given(SEEDS, st.sampled_from(["gaussian", "signs"]), st.integers(2, 8), st.integers(2, 8), st.data())
    def test_exact_lies_between_the_bounds_and_equals_brute_force(self, seed, kind, m, d, data):
        k = data.draw(st.integers(1, min(d, 4)))
        A = tiny_matrix(seed, m, d, kind)
        exact = theory.rip_constant(A, k)
        assert exact == pytest.approx(max(reference.isometry(A, J) for J in combinations(range(d), k)), abs=1e-6)
        assert theory.rip_lower_bound(A, k, n_trials=5, random_state=seed) <= exact + 1e-6
        assert exact <= theory.rip_upper_bound(A, k) + 1e-6

    @given(SEEDS, st.integers(1, 3))
    def test_no_sparse_vector_violates_the_upper_bound(self, seed, k):
        rng = np.random.default_rng(seed)
        compressor = COMPRESSORS[seed % len(COMPRESSORS)]
        operator = make_operator(compressor, 60, 49, seed % 7)
        delta, A = theory.rip_upper_bound(operator, k), dense(operator)
        x = np.zeros(60)
        gram = np.abs(A.T @ A - np.eye(60))
        x[np.append(rng.choice(60, k - 1, replace=False), gram.max(axis=1).argmax())] = rng.normal(size=1)  # the worst
        assert abs(np.sum((A @ x) ** 2) - np.sum(x**2)) <= delta * np.sum(x**2) + 1e-6

    def test_the_search_finds_the_worst_support_of_small_matrices(self):
        for seed, k in product(range(3), (2, 3)):
            A = tiny_matrix(seed, 8, 12)
            assert theory.rip_lower_bound(A, k, random_state=0) == pytest.approx(theory.rip_constant(A, k), abs=1e-6)

    def test_the_search_beats_random_supports_and_is_reproducible(self):
        operator = make_operator(HadamardCompressor, 300, 80)
        A, rng = dense(operator), np.random.default_rng(0)
        random = max(reference.isometry(A, rng.choice(300, 6, replace=False)) for _ in range(500))
        found = theory.rip_lower_bound(operator, 6, n_trials=20, random_state=0)
        assert random < found <= theory.rip_upper_bound(operator, 6)
        assert found == theory.rip_lower_bound(operator, 6, n_trials=20, random_state=0)

    def test_omp_sparsity_is_where_theorem_2_ends(self):
        operator = make_operator(DeVoreCompressor, 23**2, 23**2)  # degree 1: coherence 1/23
        assert theory.omp_sparsity(operator) == 2
        assert theory.omp_sparsity(np.eye(4)) == 4
        assert theory.omp_sparsity(make_operator(HadamardCompressor, 100, 40)) == 0

    def test_refusals(self):
        operator = make_operator(HadamardCompressor, 100, 40)
        with pytest.raises(ValueError, match="at most 200000 supports.*Got 75287520 of size 5. Use rip_lower_bound"):
            theory.rip_constant(operator, 5)
        for function in (theory.rip_constant, theory.rip_lower_bound, theory.rip_upper_bound):
            with pytest.raises(ValueError, match="k must be between 1 and 100. Got 101"):
                function(operator, 101)
        with pytest.raises(ValueError, match="n_trials must be at least 1. Got 0"):
            theory.rip_lower_bound(operator, 2, n_trials=0)


class TestSparsityError:
    def test_by_hand(self):
        y = [0.0, -2.0, 1.0, 0.5]
        assert theory.sparsity_error(y, 1).tolist() == [1 + 0.25 + 1.5**2]
        assert theory.sparsity_error(y, 2).tolist() == [0.25 + 0.5**2 / 2]
        assert theory.sparsity_error(y, 3).tolist() == [0]

    @given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 9), SEEDS)
    def test_equals_the_definition_row_by_row(self, k, n, d, seed):
        rng = np.random.default_rng(seed)
        Y = rng.integers(-3, 4, (n, d)) * (rng.uniform(size=(n, d)) < 0.7)
        got = theory.sparsity_error(sp.csr_array(Y.astype(float)), k)
        np.testing.assert_allclose(got, [reference.sperr(k, y) for y in Y])
        np.testing.assert_array_equal(got, theory.sparsity_error(Y, k))

    def test_k_is_checked(self):
        with pytest.raises(ValueError, match="k must be at least 1. Got 0"):
            theory.sparsity_error([1.0, 2.0], 0)


class TestTheorem1:
    def test_factors_by_hand(self):
        assert theory.regret_factors(C=1, delta=0) == (8, 36)
        assert theory.regret_factors(C=4, delta=0.5) == (36, 196)
        assert theory.regret_factors(C=4, delta=1) == (np.inf, np.inf)
        with pytest.raises(ValueError, match="C must be finite and at least 0. Got -1"):
            theory.regret_factors(-1, 0)
        with pytest.raises(ValueError, match="delta must be finite and at least 0. Got -0.1"):
            theory.regret_factors(1, -0.1)

    @staticmethod
    def sides(A, y, h, guess, k):
        """Return both sides for any vectors: the factor C is whatever makes the theorem's condition true."""
        head = np.zeros_like(y)
        head[reference.top(np.abs(y), k)] = y[reference.top(np.abs(y), k)]
        rival = np.sum((A @ head - h) ** 2)
        C = np.sum((A @ guess - h) ** 2) / rival
        order = min(k + np.count_nonzero(guess), A.shape[1])
        C1, C2 = theory.regret_factors(C, theory.rip_constant(A, order))
        return np.sum((guess - y) ** 2), C1 * np.sum((h - A @ y) ** 2) + C2 * reference.sperr(k, y)

    @given(SEEDS, st.integers(1, 2), st.integers(1, 3), st.floats(0.01, 3), st.floats(0, 2))
    def test_holds_for_any_guess_and_any_target(self, seed, k, size, noise, tail):
        rng = np.random.default_rng(seed)
        A = with_isometry(seed, 9, 8)
        y = tail * rng.normal(size=8) ** 3
        y[:k] += rng.normal(size=k) * 3
        guess = np.zeros(8)
        guess[rng.choice(8, size, replace=False)] = rng.normal(size=size) * 3
        h = A @ (y if seed % 2 else guess) + noise * rng.normal(size=9)
        left, right = self.sides(A, y, h, guess, k)
        assert left <= right * (1 + 1e-9)

    def test_a_search_for_counterexamples_fails(self):
        rng = np.random.default_rng(0)
        highest = 0.0
        for seed in range(4):
            A = with_isometry(seed, 8, 8)
            y, h = rng.normal(size=8), rng.normal(size=8)
            guess = np.where(np.arange(8) < 2, rng.normal(size=8), 0)
            best = 0.0
            for _ in range(150):  # hill climbing on left / right
                step = 0.3 * rng.normal(size=(3, 8))
                trial = y + step[0], h + step[1], np.where(guess != 0, guess + step[2], 0)
                left, right = self.sides(A, *trial, 1)
                if left / right > best:
                    best, (y, h, guess) = left / right, trial
            highest = max(highest, best)
        assert 0.01 < highest <= 1  # the search does get somewhere

    @pytest.mark.parametrize("decoder", DECODERS)
    @given(seed=SEEDS, noise=st.floats(0.01, 2))
    def test_holds_for_every_decoder(self, decoder, seed, noise):
        rng = np.random.default_rng(seed)
        A = with_isometry(seed, 10, 9)
        y = np.where(rng.uniform(size=9) < 0.3, rng.normal(size=9), 0.1 * rng.normal(size=9))
        h = (A @ y + noise * rng.normal(size=10)).astype(np.float32)
        guess = decoder(n_nonzero=2).decode(DenseOperator(A.T).kernel(), [h]).toarray()[0]
        left, right = self.sides(A, y, h, guess, 1)
        assert left <= right * (1 + 1e-6)


def known_problem(d, seed, n=60, groups=6, tail=0.0):
    """Return rows X, E[y given x] and drawn labels: rows of a group share two likely labels, and perhaps rare ones."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % groups
    means = np.zeros((groups, d), np.float32)
    for row in means:
        row[rng.choice(d, 2, replace=False)] = rng.uniform(0.3, 1, 2)
        row[rng.choice(d, 5, replace=False)] += tail
    P = np.minimum(means[group], 1)
    return np.eye(groups)[group], sp.csr_array(P), (rng.uniform(size=P.shape) < P).astype(float)


class TestTheorem3:
    @pytest.mark.parametrize("decoder", DECODERS)
    @settings(max_examples=20)
    @given(
        case=st.sampled_from(["devore", "hadamard", "whole"]), k=st.integers(1, 2), seed=SEEDS, tail=st.floats(0, 0.1)
    )
    def test_is_never_violated(self, decoder, case, k, seed, tail):
        compressor, d = {
            "devore": (DeVoreCompressor(23**2), 200),
            "hadamard": (HadamardCompressor(120, random_state=seed), 128),
            "whole": (HadamardCompressor(64), 64),
        }[case]
        X, P, Y = known_problem(d, seed, tail=tail)
        assume(Y.any())
        clf = reference.paper(compressor, RidgeLearner(0.1), decoder(n_nonzero=2 * k), random_state=0)
        sides = theory.regret_transform(clf.fit(X, Y), X, P, k)
        assert sides.delta < 1
        assert 0 < sides.error <= sides.bound < np.inf

    def test_is_what_its_parts_say(self):
        X, P, Y = known_problem(64, 0, tail=0.05)
        clf = reference.paper(HadamardCompressor(60), decoder=CoSaMPDecoder(4), random_state=0).fit(X, Y)
        sides = theory.regret_transform(clf, X, P, 2)
        A, H, F, P = dense(clf.compressor_.operator_), clf.measure(X), clf.predict_scores(X).toarray(), P.toarray()
        head = np.where(np.sort(P, axis=1)[:, [-2]] <= P, P, 0)
        assert sides.error == pytest.approx(np.mean(np.sum((F - P) ** 2, axis=1)), rel=1e-5)
        assert sides.regression_error == pytest.approx(np.mean(np.sum((H - P @ A.T) ** 2, axis=1)), rel=1e-5)
        assert sides.sparsity_error == pytest.approx(np.mean([reference.sperr(2, p) for p in P]), rel=1e-5)
        ratios = np.sum((F @ A.T - H) ** 2, axis=1) / np.sum((head @ A.T - H) ** 2, axis=1)
        assert sides.measured
        assert pytest.approx(ratios.max(), rel=1e-4) == sides.C
        assert sides.delta == pytest.approx(theory.rip_upper_bound(A, 6))
        assert theory.regret_factors(sides.C, sides.delta) == (sides.C1, sides.C2)
        assert sides.bound == sides.C1 * sides.regression_error + sides.C2 * sides.sparsity_error
        assert sides.scaled_error == theory.scaled_error(clf.compressor_.operator_, H, P, 2)
        assert sides.secoc_bound == 4 * 2**2 * sides.scaled_error

    def test_omp_under_theorem_2_needs_no_measuring(self):
        X, P, Y = known_problem(200, 0)
        fit = reference.paper(DeVoreCompressor(23**2), decoder=OMPDecoder(4)).fit(X, Y)
        sides = theory.regret_transform(fit, X, P, 2)
        assert (sides.C, sides.measured) == (23, False)
        assert sides.delta <= 0.3  # Lemma 7 with 3k
        assert theory.regret_transform(fit, X, P, 3).measured  # coherence 2/23 and four steps do for k = 2 at most

    def test_nothing_is_certain_from_delta_1_on(self):
        X, P, Y = known_problem(200, 0)
        clf = reference.paper(HadamardCompressor(30), decoder=OMPDecoder(6), random_state=0).fit(X, Y)
        assert theory.regret_transform(clf, X, P, 3).bound == np.inf
        assert theory.regret_transform(clf, X, P, 3, delta=0.5).bound < np.inf

    def test_a_perfect_fit_is_no_division_by_zero(self):
        X, _, _ = known_problem(32, 0)
        P = sp.csr_array(np.eye(6, 32)[X.argmax(axis=1)])
        clf = reference.paper(HadamardCompressor(32), RidgeLearner(1e-6), CorrelationDecoder(2)).fit(X, P)
        sides = theory.regret_transform(clf, X, P, 1)
        assert sides.error < 1e-8
        assert sides.error <= sides.bound + 1e-8

    @pytest.mark.parametrize("decoder", DECODERS)
    def test_guaranteed_is_the_condition_of_each_decoder(self, decoder):
        whole = np.eye(40)
        expected = decoder in (OMPDecoder, CoSaMPDecoder, FoBaDecoder)
        assert theory.guaranteed(decoder(decoder.output_sparsity(2)), whole, 2) == expected
        assert not theory.guaranteed(decoder(1), whole, 2)
        coherent = make_operator(HadamardCompressor, 100, 40)
        assert not theory.guaranteed(decoder(decoder.output_sparsity(2)), coherent, 2)

    def test_a_penalty_is_not_in_the_paper(self):
        assert theory.guaranteed(OMPDecoder(4), np.eye(40), 2)
        assert not theory.guaranteed(OMPDecoder(4, penalty=0.1), np.eye(40), 2)

    @pytest.mark.parametrize(("decoder", "q"), [(OMPDecoder, 11), (CoSaMPDecoder, 31), (FoBaDecoder, 71)])
    def test_guaranteed_begins_where_the_paper_says(self, decoder, q):
        # Degree 1, k = 1: coherence 1/q, so 0.1 >= 1/q for OMP, 3/q for the 4k of CoSaMP, 7/q for the 8k of FoBa.
        operators = {p: DeVoreCompressor(p * p).fit(p * 3).operator_ for p in (q, {11: 7, 31: 29, 71: 67}[q])}
        got = {p: theory.guaranteed(decoder(decoder.output_sparsity(1)), A, 1) for p, A in operators.items()}
        assert got[q]
        assert sum(got.values()) == 1

    def test_refusals(self):
        X, P, Y = known_problem(64, 0)
        clf = reference.paper(HadamardCompressor(60)).fit(X, Y)
        with pytest.raises(TypeError, match="model must be a CompressedLabelClassifier. Got OneVsAllClassifier"):
            theory.regret_transform(OneVsAllClassifier().fit(X, Y), X, P, 1)
        with pytest.raises(ValueError, match="P must have one column per label, 64. Got 63"):
            theory.regret_transform(clf, X, P[:, :63], 1)
        with pytest.raises(ValueError, match="same number of rows"):
            theory.regret_transform(clf, X, P[:5], 1)
        with pytest.raises(ValueError, match="k must be between 1 and 64. Got 65"):
            theory.regret_transform(clf, X, P, 65)
        with pytest.raises(ValueError, match="delta must be finite and at least 0. Got -1"):
            theory.regret_transform(clf, X, P, 1, delta=-1)


class TestSECOC:
    @given(SEEDS, st.integers(1, 3), st.sampled_from(["gaussian", "signs"]))
    def test_ranges_equal_brute_force(self, seed, k, kind):
        A = tiny_matrix(seed, 4, 6, kind)
        vectors = np.array([y for y in product([0, 1], repeat=6) if sum(y) <= k])
        measured = vectors @ A.T
        np.testing.assert_allclose(theory.label_ranges(A, k), np.ptp(measured, axis=0), atol=1e-6)

    def test_ranges_of_blocks_of_columns(self, monkeypatch):
        A = tiny_matrix(0, 5, 40)
        whole = theory.label_ranges(A, 3)
        monkeypatch.setattr("labelsense.theory.codes.BLOCK_COLUMNS", 7)
        np.testing.assert_allclose(theory.label_ranges(A, 3), whole)

    def test_scaled_error_by_hand(self):
        # Row 0 has range 2 and errors 1 and 0, row 1 has range 1 and errors 0 and 1, row 2 is never used.
        A = [[1.0, -1.0], [1.0, 0.0], [0.0, 0.0]]
        H = [[2.0, 1.0, 5.0], [-1.0, 1.0, 5.0]]
        assert theory.scaled_error(A, H, [[1, 0], [0, 1]], k=1) == pytest.approx((1 / 4 + 0 + 0 + 1) / 4)
        assert theory.scaled_error(np.zeros((1, 2)), [[3.0]], [[1, 0]], k=1) == 0

    @pytest.mark.parametrize("compressor", [HadamardCompressor, BernoulliCompressor])
    @given(seed=SEEDS, k=st.integers(1, 4))
    def test_the_regression_error_is_at_most_4_k2_r(self, compressor, seed, k):
        # Hence C1 times it is at most C1 times the guarantee of SECOC.
        rng = np.random.default_rng(seed)
        operator = make_operator(compressor, 30, 16, seed % 10)
        P = (rng.uniform(size=(5, 30)) < 0.1) * rng.uniform(size=(5, 30))
        H = rng.normal(size=(5, 16))
        error = np.mean(np.sum((H.astype(np.float32) - operator.compress(P)) ** 2, axis=1))
        assert error <= theory.secoc_bound(theory.scaled_error(operator, H, P, k), k) * (1 + 1e-5)

    @given(SEEDS, st.sampled_from([13, 32]))
    def test_secoc_keeps_its_promise(self, seed, d):
        X, P, Y = known_problem(d, seed)
        assume(Y.any())
        k = int(max(Y.sum(axis=1).max(), (P.toarray() > 0).sum(axis=1).max()))
        clf = SECOCClassifier(RidgeLearner(0.5), n_nonzero=d).fit(X, Y)
        [(code, learner)] = clf.parts_
        error = np.mean(np.sum((clf.predict_scores(X) - P).toarray() ** 2, axis=1))
        bound = theory.secoc_bound(theory.scaled_error(code, learner.predict(X), P, k), k)
        assert 0 < error <= bound * (1 + 1e-5)


class TestTheorem4:
    def test_factor_by_hand(self):
        assert theory.linear_factor(96, failure=np.exp(-1)) == pytest.approx(1.5)
        assert theory.linear_factor(23, failure=np.exp(-1)) == np.inf  # the proof needs a root below 1
        assert theory.linear_factor(10, failure=1) == 1

    @given(st.integers(1, 5000), st.floats(1e-6, 0.999))
    def test_the_worst_spectrum_fails_as_rarely_as_promised(self, m, failure):
        # All errors in one direction: the ratio of the two sides is a chi-square variable over m, whose tail is known.
        factor = theory.linear_factor(m, failure=failure)
        assume(np.isfinite(factor))
        assert chi2.sf(m * factor, m) <= failure

    @given(SEEDS, st.integers(1, 30), st.floats(0, 2))
    def test_no_random_instance_violates_it(self, seed, rank, noise):
        rng = np.random.default_rng(seed)
        X, P = rng.normal(size=(25, 6)), sp.csr_array((rng.uniform(size=(25, 40)) < 0.1) * 1.0)
        B = rng.normal(size=(6, rank)) @ rng.normal(size=(rank, 40)) * noise
        A = DenseOperator(rng.normal(size=(40, 300)) / 300**0.5)
        sides = theory.linear_compression(A, B, X, P)
        assert 0 < sides.compressed_error <= sides.bound < np.inf

    def test_violations_over_many_matrices_are_rarer_than_the_failure_probability(self):
        # Rank one is the worst case. A promise as bold as this is broken now and then.
        rng = np.random.default_rng(0)
        X, P, B = np.eye(1), np.zeros((1, 30)), rng.normal(size=(1, 30))
        failure, violations = 0.9, 0
        for seed in range(300):
            A = DenseOperator(np.random.default_rng(seed).normal(size=(30, 30)) / 30**0.5)
            sides = theory.linear_compression(A, B, X, P, failure=failure)
            violations += sides.compressed_error > sides.bound
        assert 0 < violations <= failure * 300

    def test_both_sides_equal_the_slow_version_in_blocks_too(self, monkeypatch):
        rng = np.random.default_rng(0)
        X, B, P = sp.random_array((20, 7), density=0.5, rng=rng), rng.normal(size=(7, 15)), rng.uniform(size=(20, 15))
        A = tiny_matrix(0, 9, 15)
        V = X @ B - P
        monkeypatch.setattr("labelsense.theory.linear.BLOCK_NUMBERS", 50)
        sides = theory.linear_compression(A, B, X, P, failure=0.8)
        assert sides.error == pytest.approx(np.mean(np.sum(V**2, axis=1)), rel=1e-5)
        assert sides.compressed_error == pytest.approx(np.mean(np.sum((V @ A.T) ** 2, axis=1)), rel=1e-5)
        assert sides.bound == pytest.approx(theory.linear_factor(9, failure=0.8) * sides.error)

    def test_a_perfect_predictor_stays_perfect(self):
        P = np.eye(5, 12)
        sides = theory.linear_compression(tiny_matrix(0, 4, 12), P, np.eye(5), P)
        assert (sides.error, sides.compressed_error, sides.bound) == (0, 0, 0)

    def test_refusals(self):
        P = np.eye(5, 12)
        with pytest.raises(ValueError, match=r"B must have shape \(5, 12\), features by labels. Got \(12, 5\)"):
            theory.linear_compression(tiny_matrix(0, 4, 12), P.T, np.eye(5), P)
        with pytest.raises(ValueError, match="failure must be finite and between.*Got 2. It is a probability"):
            theory.linear_factor(10, failure=2)
