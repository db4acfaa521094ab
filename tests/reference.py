"""Slow, obvious versions of the algorithms, as oracles. Dense double-precision NumPy, one vector at a time."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path

from labelsense import CompressedLabelClassifier


def hadamard(order):
    """Sylvester's Hadamard matrix."""
    H = np.ones((1, 1))
    while len(H) < order:
        H = np.block([[H, H], [H, -H]])
    return H


def fit(A, h, J):
    """Least squares of h on the columns J."""
    y = np.zeros(A.shape[1])
    y[J] = np.linalg.lstsq(A[:, J], h, rcond=None)[0]
    return y


def top(values, k):
    """The k largest, ties to the lowest index."""
    return np.argsort(-values, kind="stable")[:k]


def correlation(A, h, s):
    return fit(A, h, top(np.abs(A.T @ h), s))


def with_penalty(A, h, penalty):
    """The rows that turn least squares into ridge regression."""
    d = A.shape[1]
    return np.vstack([A, np.sqrt(penalty) * np.eye(d)]), np.concatenate([h, np.zeros(d)])


def omp(A, h, s, penalty=0):
    norms = np.linalg.norm(A, axis=0)
    A, h = with_penalty(A, h, penalty)
    J = []
    y = np.zeros(A.shape[1])
    for _ in range(s):
        c = np.abs(A.T @ (h - A @ y)) / norms
        c[J] = 0
        J.append(int(np.argmax(c)))
        y = fit(A, h, J)
    return y


def nonnegative_omp(A, h, s, penalty=0):
    """Lawson and Hanson's method up to s columns, with exact refits; returns the solution and the number of drops."""
    norms = np.linalg.norm(A, axis=0)
    A, h = with_penalty(A, h, penalty)
    J, drops = [], 0
    y = np.zeros(A.shape[1])
    while len(J) < s:
        c = A.T @ (h - A @ y) / norms
        c[J] = 0
        if c.max() <= 1e-6 * np.linalg.norm(h):
            break
        J.append(int(np.argmax(c)))
        while (target := fit(A, h, J)).min() < 0:
            steps = {j: y[j] / (y[j] - target[j]) for j in J if target[j] < 0}
            first = min(steps, key=steps.get)
            y += steps[first] * (target - y)
            y[first] = 0
            J.remove(first)
            drops += 1
        y = target
    return y, drops


def foba(A, h, s, nu=0.5):
    """Zhang's FoBa with exact refits; returns the first solution with s columns and the number of deletions."""
    norms = np.linalg.norm(A, axis=0)
    J, gains, deletions = [], [], 0
    y = np.zeros(A.shape[1])
    while len(J) < s:
        c = np.abs(A.T @ (h - A @ y)) / norms
        c[J] = 0
        before = np.sum((h - A @ y) ** 2)
        J.append(int(np.argmax(c)))
        y = fit(A, h, J)
        gains.append(before - np.sum((h - A @ y) ** 2))
        while len(J) > 1:
            error = np.sum((h - A @ y) ** 2)
            costs = []
            for j in J:
                without = y.copy()
                without[j] = 0
                costs.append(np.sum((h - A @ without) ** 2) - error)
            if min(costs) > nu * gains[-1]:
                break
            J.pop(int(np.argmin(costs)))
            gains.pop()
            deletions += 1
            y = fit(A, h, J)
    return y, deletions


def cosamp(A, h, s, max_rounds=50):
    y = np.zeros(A.shape[1])
    r = h
    for _ in range(max_rounds):
        T = sorted(set(top(np.abs(A.T @ r), 2 * s)) | set(np.flatnonzero(y)))
        b = fit(A, h, T)
        keep = top(np.abs(b), s)
        new = np.zeros_like(y)
        new[keep] = b[keep]
        if not np.linalg.norm(h - A @ new) < np.linalg.norm(r):
            break
        y, r = new, h - A @ new
    return y


def lasso_path(A, h, steps):
    """Scikit-learn's knots of the path, (d, knots). What it warns of is at its end, and our business is before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return lars_path(A, h, method="lasso", max_iter=steps)[2]


def lasso(A, h, s, free=()):
    """The first knot with s non-zeros of the Lasso without a penalty on the columns ``free``.

    The free columns fit what the others leave by least squares, so the others solve the Lasso of what is orthogonal.
    """
    free = list(free)
    rest = np.setdiff1d(np.arange(A.shape[1]), free)
    orthogonal = np.eye(len(A)) - A[:, free] @ np.linalg.pinv(A[:, free])
    coefs = lasso_path(orthogonal @ A[:, rest], orthogonal @ h, 2 * s + 8)
    sizes = (np.abs(coefs) > 1e-10).sum(axis=0) + len(free)
    y = np.zeros(A.shape[1])
    y[rest] = coefs[:, int(np.argmax(sizes >= s))]
    return y + fit(A, h - A @ y, free)


def multistage_lasso(A, h, s, theta=0.25, max_stages=10):
    """Zhang's multi-stage relaxation; returns the solution and the number of stages."""
    y, free = lasso(A, h, s), []
    threshold = theta * np.abs(y).max()
    for stage in range(1, max_stages):
        large = np.flatnonzero(np.abs(y) > threshold).tolist()
        if large == free:
            return y, stage
        y, free = lasso(A, h, s, large), large
    return y, max_stages


def group_omp(A, h, s, groups):
    """Huang, Zhang and Metaxas: the block with the largest gain per coding length that fits into s."""
    d, norms = A.shape[1], np.linalg.norm(A, axis=0)
    blocks = [({j}, np.log2(2 * d)) for j in range(d)] + [(set(group), np.log2(2 * len(groups))) for group in groups]
    J = []
    y = np.zeros(d)
    while len(J) < s:
        c = A.T @ (h - A @ y) / norms
        fresh = [(sorted(block - set(J)), bits) for block, bits in blocks]
        worth = [np.sum(c[new] ** 2) / (len(new) + bits) if len(new) <= s - len(J) else 0 for new, bits in fresh]
        J += fresh[int(np.argmax(worth))][0]
        y = fit(A, h, J)
    return y


def ridge(X, Z, alpha, weights=None):
    """Ridge with an unpenalised intercept, by the augmented least-squares problem."""
    x_mean, z_mean = np.average(X, axis=0, weights=weights), np.average(Z, axis=0, weights=weights)
    root = np.sqrt(np.ones(len(X)) if weights is None else weights)[:, None]
    Xc, Zc = root * (X - x_mean), root * (Z - z_mean)
    p = X.shape[1]
    stacked = np.vstack([Xc, np.sqrt(alpha) * np.eye(p)])
    W = np.linalg.lstsq(stacked, np.vstack([Zc, np.zeros((p, Z.shape[1]))]), rcond=None)[0]
    return W, z_mean - x_mean @ W


def boosted_log_odds(F, truth, rounds, rate, leaves, least_rows, penalty, bins=64):
    """Log odds of rows after boosting: every cut of every leaf tried, the leaf with the largest gain split first."""
    n = len(F)
    cuts = []
    for column in np.sort(F, axis=0).T:
        found = column[[max(0, b * n // bins - 1) for b in range(1, bins)]]
        cuts.append(np.unique(found[found < column[-1]]))
    odds = np.full(n, np.log(truth.mean() / (1 - truth.mean())))
    for _ in range(rounds):
        p = 1 / (1 + np.exp(-odds))
        first, second = p - truth, p * (1 - p)

        def strength(rows, first=first, second=second):
            return first[rows].sum() ** 2 / (second[rows].sum() + penalty)

        tree = [np.arange(n)]
        while len(tree) < leaves:
            splits = [
                (strength(rows[low]) + strength(rows[~low]) - strength(rows), place, low)
                for place, rows in enumerate(tree)
                for f in range(F.shape[1])
                for cut in cuts[f]
                if least_rows <= (low := F[rows, f] <= cut).sum() <= len(rows) - least_rows
            ]
            if not splits or (best := max(splits, key=lambda split: split[0]))[0] <= 0:
                break
            _, place, low = best
            rows = tree.pop(place)
            tree += [rows[low], rows[~low]]
        for rows in tree:
            odds[rows] -= rate * first[rows].sum() / (second[rows].sum() + penalty)
    return odds


def loss_decoding(M, f, loss):
    """The total loss of each label: over all subproblems, of the margin of its half."""
    m, d = M.shape
    return np.array([sum(loss(M[s, j] * f[s]) for s in range(m)) for j in range(d)])


def subset_average(subsets, z, d):
    """The estimate of each label from differences z between subsets and their complements."""
    estimate = np.zeros(d)
    for i in range(d):
        for subset, difference in zip(subsets, z, strict=True):
            estimate[i] += difference if i in subset else -difference
    return estimate / len(subsets)


def sperr(k, y):
    """The paper's sparsity error of one vector."""
    rest = sorted(np.abs(y), reverse=True)[k:]
    return sum(v**2 for v in rest) + sum(rest) ** 2 / k


def isometry(A, J):
    """How far the squared singular values of the columns J are from 1."""
    values = np.zeros(len(J))
    found = np.linalg.svd(A[:, J], compute_uv=False) ** 2
    values[: len(found)] = found
    return np.abs(values - 1).max()


def paper(compressor="hadamard", learner="ridge", decoder="omp", **settings):
    """The paper's method, nothing refined; whatever is not given is as plain as can be."""
    return CompressedLabelClassifier(compressor, learner, decoder, refiner=None, **settings)
