"""Numbers of any size and columns that are not there: learners fit and predict, or name the rule and the remedy."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import problem
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from labelsense import KernelRidgeLearner, LandmarkRidgeLearner, RidgeLearner
from labelsense.errors import InputError
from labelsense.regress.checks import all_finite


def outcomes(learner, X, Z):
    """Fit and predict; return the predictions, or what fit says against it."""
    try:
        model = clone(learner).fit(X, Z)
    except ValueError as error:
        return str(error)
    return model.predict(X)


NUMBERS = [
    RidgeLearner(),
    RidgeLearner(solver="dual"),
    RidgeLearner(solver="cg"),
    RidgeLearner("loo", solver="cg"),
    RidgeLearner("loo", fit_intercept=False),
    RidgeLearner(0),
    KernelRidgeLearner(),
    KernelRidgeLearner("polynomial"),
    KernelRidgeLearner("cosine", "loo"),
    KernelRidgeLearner(max_memory=0),
    LandmarkRidgeLearner(n_landmarks=10),
]


class TestMagnitude:
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize("learner", NUMBERS, ids=str)
    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    @given(exponent=st.integers(-44, 40), targets=st.sampled_from([-44, 0, 38]))
    @settings(max_examples=25)
    def test_fit_refuses_what_predict_could_not_do(self, learner, form, exponent, targets):
        X, Z = problem(20, 6, 2)
        with np.errstate(all="raise", under="ignore"):
            H = outcomes(learner, form(X / np.abs(X).max() * 10.0**exponent), Z / np.abs(Z).max() * 10.0**targets)
        assert "Scale the" in H if isinstance(H, str) else np.isfinite(H).all()
        assert isinstance(H, str) or exponent < 20
        assert isinstance(H, str) or exponent > -44  # what underflows has lost its variation
        assert not (-20 < exponent < 5 and targets <= 0 and isinstance(H, str))

    @pytest.mark.parametrize("scale", [1e19, 3e37])
    def test_ridge_names_the_rule_and_the_remedy(self, scale):
        X, Z = problem()
        with pytest.raises(
            ValueError, match="X is too large for sums of squares in float32.*Scale the features.*MaxAbs"
        ):
            RidgeLearner().fit(X * scale, Z)
        with pytest.raises(ValueError, match="X is too large for sums of squares in float32"):
            RidgeLearner().partial_fit(X * scale, Z)

    def test_kernel_ridge_names_the_kernel(self):
        X, Z = problem()
        with pytest.raises(
            ValueError, match=r"too large for PolynomialKernel\(\): rows of length.*inf.*Scale the rows"
        ):
            KernelRidgeLearner("polynomial").fit(X * 1e10, Z)

    def test_targets_that_do_not_fit_are_refused(self):
        X, Z = problem()
        with pytest.raises(ValueError, match="y must fit in float32, up to 3.4e.38. Got .*Scale the targets"):
            RidgeLearner().fit(X, Z * 1e40)

    @pytest.mark.parametrize("learner", [RidgeLearner(), KernelRidgeLearner("polynomial")], ids=str)
    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    def test_rows_that_overflow_are_refused_by_predict(self, learner, form):
        X, Z = problem()
        model = clone(learner).fit(form(X), 100 * Z)
        with pytest.raises(
            ValueError, match="The predictions do not fit in float32: X has entries up to .*Scale it as"
        ):
            model.predict(form(X * 1e37))
        with pytest.raises(ValueError, match="Input X contains infinity or a value too large for dtype..float32"):
            model.predict(form(X * 1e300))

    def test_sums_that_overflow_are_not_taken_for_entries_that_do(self):
        assert all_finite(np.full((3, 3), 3e38, np.float32))
        assert not all_finite(np.array([1.0, np.inf, -np.inf], np.float32))

    @pytest.mark.parametrize("learner", [RidgeLearner(), KernelRidgeLearner()], ids=str)
    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    def test_features_that_float32_takes_for_constant_are_refused(self, learner, form):
        X, Z = problem()
        X[:, 3] += 1e8
        steps = [learner.fit, learner.fit_out_of_sample, *([learner.partial_fit] if learner.takes_updates else [])]
        for step in steps:
            with pytest.raises(InputError, match="1 of them lose it: feature 3 varies by .* around 1e.08. Scale the"):
                step(form(X), Z)
        X[:, 3] = 1e8 + 0.1  # constant indeed
        clone(learner).fit(form(X), Z)
        X[:, 3] = np.arange(60) * 1e8  # not small beside its size
        clone(learner).fit(form(X), Z)


@pytest.mark.parametrize("learner", [RidgeLearner(), KernelRidgeLearner()], ids=str)
@pytest.mark.parametrize("column", [-1, 12, 10**6, -(10**9)])
def test_column_numbers_out_of_range_are_refused(learner, column):
    X, Z = problem()
    X = sp.csr_array(X.astype(np.float32))
    model = clone(learner).fit(X, Z)
    X.indices[5] = column
    with pytest.raises(ValueError, match=f"X must have column numbers from 0 to 11. Got {column}"):
        model.predict(X)
    with pytest.raises(ValueError, match=f"X must have column numbers from 0 to 11. Got {column}"):
        model.fit(X, Z)
