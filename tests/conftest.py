"""What the contract suites run on: add a line here, and a new compressor, learner or decoder is tested."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, settings
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVR

from labelsense import (
    BernoulliCompressor,
    CorrelationDecoder,
    CoSaMPDecoder,
    DeVoreCompressor,
    FoBaDecoder,
    GaussianCompressor,
    GroupOMPDecoder,
    HadamardCompressor,
    KernelRidgeLearner,
    LandmarkRidgeLearner,
    LassoDecoder,
    MultistageLassoDecoder,
    OMPDecoder,
    PLSTCompressor,
    RidgeLearner,
    SklearnLearner,
    WhitenedCompressor,
)

# `make mutants` runs a test several times in one process.
AGAIN = [HealthCheck.differing_executors] if "MUTANT_UNDER_TEST" in os.environ else []
settings.register_profile("labelsense", deadline=None, derandomize=True, max_examples=50, suppress_health_check=AGAIN)
settings.load_profile("labelsense")

COMPRESSORS = [HadamardCompressor, GaussianCompressor, BernoulliCompressor, WhitenedCompressor, DeVoreCompressor]
RANDOM_COMPRESSORS = COMPRESSORS[:4]


class NonnegativeOMP(OMPDecoder):
    """The contract suites call a decoder by its class alone."""

    def __init__(self, n_nonzero="auto", *, nonnegative=True):
        super().__init__(n_nonzero, nonnegative=nonnegative)


class GroupOMP(GroupOMPDecoder):
    """With groups of labels that every problem has."""

    def __init__(self, n_nonzero="auto", *, groups=((0, 1), (1, 2))):
        super().__init__(groups, n_nonzero)


DECODERS = [
    OMPDecoder,
    NonnegativeOMP,
    FoBaDecoder,
    CoSaMPDecoder,
    LassoDecoder,
    CorrelationDecoder,
    MultistageLassoDecoder,
    GroupOMP,
]
LEARNERS = [
    RidgeLearner(alpha=0.1),
    RidgeLearner(alpha=0.1, solver="primal"),
    RidgeLearner(alpha=0.1, solver="dual"),
    RidgeLearner(alpha=0.1, solver="cg", tol=1e-6),
    RidgeLearner(alpha="loo"),
    KernelRidgeLearner(alpha=0.01),
    LandmarkRidgeLearner(alpha=0.01, random_state=0),
    SklearnLearner(LinearRegression()),
    SklearnLearner(SVR(kernel="linear")),
    SklearnLearner(KNeighborsRegressor()),
]


def problem(n=60, p=12, m=5, seed=0):
    """Return rows and targets that a linear model explains, up to a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * (rng.uniform(size=(n, p)) < 0.4) + 0.3
    return X, X @ rng.normal(size=(p, m)) + 2 + 0.1 * rng.normal(size=(n, m))


def make_operator(compressor, n_labels, n_measurements, seed=0):
    """Return A with about so many rows: DeVore's matrix has the square of a prime."""
    if compressor is DeVoreCompressor:
        primes = [2, 3, 5, 7, 11, 13, 17, 19, 23]
        n_measurements = max(p * p for p in primes if p * p <= max(4, n_measurements))
    labels = zipf_labels(n_labels) if compressor in (WhitenedCompressor, PLSTCompressor) else n_labels
    if compressor is PLSTCompressor:
        labels = sp.vstack([labels, sp.eye_array(n_labels)])  # each label varies
    return compressor(n_measurements=n_measurements, random_state=seed).fit(labels).operator_


def zipf_labels(n_labels, n=200):
    """Return label vectors in which label j, counted from 0, has the frequency 0.6 / (j + 1)."""
    return sp.csr_array(np.random.default_rng(0).uniform(size=(n, n_labels)) < 0.6 / np.arange(1, n_labels + 1))


def dense(operator):
    """Return A as a float64 array."""
    return operator.columns(np.arange(operator.n_labels)).astype(np.float64)


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


def real_data(name):
    """Return a data set of the folder LABELSENSE_DATA, or of the developers' machines; skip where there is none."""
    here = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("LABELSENSE_DATA", here)) / name
    if not folder.is_dir():
        pytest.skip(f"no data set {name}: set LABELSENSE_DATA to a folder that has it")
    parts = ("X_train", "Y_train", "X_test", "Y_test")
    return [sp.csr_array(sp.load_npz(folder / f"{part}.npz")).astype(np.float32) for part in parts]
