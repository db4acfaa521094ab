"""What is run: the settings of the paper's section "Experimental Validation", as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

KS = tuple(range(1, 11))
RANKING_SIZES = {k: 10 if k < 6 else 2 * k for k in KS}  # precision at k ranks the prediction with so many labels
SIZES = tuple(sorted({*KS, *RANKING_SIZES.values()}))
MEASUREMENTS = (100, 200, 300, 400)
COMPRESSORS = ("hadamard", "gaussian")
DECODERS = ("omp", "foba", "cosamp", "lasso", "correlation")
REFITTED = "lasso_refitted"  # not in the paper: it tells what the shrinking of the Lasso costs
ONE_AGAINST_ALL = "one_against_all"
# Output codes, not run in the paper, with as many subproblems as OMP: random halves, or those of the Hadamard matrix.
CODES = {"omp": "hadamard", "secoc": "hadamard", "ecoc": "bernoulli"}
CODE_MEASUREMENTS = (50, 100, 200, 400, 800)
SEEDS = (0, 1, 2)
SPLIT_SEED = 0
MAX_LABELS = 1000
QUICK_ROWS, QUICK_WORDS = 800, 200


@dataclass(frozen=True)
class Problem:
    """A data set, and how least squares is fitted to it.

    Attributes
    ----------
    dataset : str
        A name that :func:`labelsense.data.load_dataset` knows, or "esp".
    kind : {"text", "image"}
        The paper has one data set of each.
    alpha : float or "loo"
        The penalty: 0.01 for text and none for images, as in the paper. Or the one with the least leave-one-out error
        on the training half, to tell what of a result is due to the fit.
    words : int, optional
        Keep the features that the most training rows have, this many. By default all.
    rows : int, optional
        Take this many random rows only. By default all.
    """

    dataset: str
    kind: str
    alpha: float | str
    words: int | None = None
    rows: int | None = None

    @property
    def name(self) -> str:
        return self.dataset + ("_penalised" if self.alpha == "loo" else "")

    @property
    def title(self) -> str:
        return self.name + (f", {self.rows:,} rows" if self.rows else "")


@dataclass(frozen=True)
class Run:
    """One line of the results: a data set, a matrix A and a decoder."""

    problem: Problem
    compressor: str
    n_measurements: int
    decoder: str
    seed: int


PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem("delicious", "text", 0.01),
        Problem("tabler_icons", "image", 0.0),
        Problem("tabler_icons", "image", "loo"),
        Problem("corel5k", "image", 0.0),
        Problem("corel5k", "image", "loo"),
        Problem("debtags", "text", 0.01, words=1000),
        Problem("esp", "image", 0.0),
    )
}
FALLBACK = "debtags"  # bundled: run where nothing else is there
DEFAULT_DATASETS = ("delicious", "tabler_icons", "tabler_icons_penalised", "corel5k", "corel5k_penalised")


def quickly(problem: Problem) -> Problem:
    """Return a smaller problem, for a first look."""
    words = QUICK_WORDS if problem.kind == "text" else None
    return replace(problem, rows=QUICK_ROWS, words=words)


def one_against_all(problem: Problem) -> Run:
    """Return the run without compression, which has no seed and as many measurements as labels."""
    return Run(problem, "none", 0, ONE_AGAINST_ALL, 0)


def compressed_runs(problem: Problem, n_labels: int, seeds: Sequence[int], quick: bool = False) -> list[Run]:
    """Return the runs of a data set with so many labels. Where m is not less than d, nothing is compressed: no run."""
    measurements, subproblems = (
        (MEASUREMENTS[:2], CODE_MEASUREMENTS[:3]) if quick else (MEASUREMENTS, CODE_MEASUREMENTS)
    )
    kinds = [
        (compressor, m, decoder)
        for m in measurements
        for compressor in COMPRESSORS
        for decoder in (*DECODERS, *([REFITTED] if compressor == "hadamard" else []))
    ]
    kinds += [(compressor, m, decoder) for m in subproblems for decoder, compressor in CODES.items()]
    return [Run(problem, *kind, seed) for seed in seeds for kind in dict.fromkeys(kinds) if kind[1] < n_labels]
