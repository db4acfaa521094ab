"""Rows, labels and candidates for the tests of refinement."""

import numpy as np
import scipy.sparse as sp

from labelsense.data import make_tagged_documents
from labelsense.refine.candidates import Candidates
from labelsense.refine.stage import as_rows


def problem(n=200, d=30, p=60, seed=0):
    X, Y = make_tagged_documents(n_samples=n, n_features=p, n_labels=d, random_state=seed)
    return as_rows(X), sp.csr_array(Y, dtype=np.float32)


def random_candidates(n, d, seed=0, share=0.4):
    pattern = sp.csr_array(np.random.default_rng(seed).uniform(size=(n, d)) < share)
    return Candidates(pattern.indptr.astype(np.int64), pattern.indices.astype(np.int32), d)
