from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Floats: TypeAlias = NDArray[np.float32]
_Doubles: TypeAlias = NDArray[np.float64]
_Places: TypeAlias = NDArray[np.int64]
_Columns: TypeAlias = NDArray[np.int32]

FEATURE_TILE: int

class Hadamard:
    def __init__(self, rows: _Places, order: int, n_labels: int) -> None: ...
    @property
    def n_measurements(self) -> int: ...
    @property
    def n_labels(self) -> int: ...
    def compress(self, indptr: _Places, indices: _Places, data: _Floats, Z: _Floats) -> None: ...
    def correlate(self, R: _Floats, C: _Floats) -> None: ...
    def columns(self, J: _Places, out: _Floats) -> None: ...
    def gram_vector(self, out: _Floats) -> None: ...

class Dense:
    def __init__(self, columns: _Floats, gram: _Floats | None, inverse_norms: _Floats, unit: float) -> None: ...
    @property
    def n_measurements(self) -> int: ...
    @property
    def n_labels(self) -> int: ...

class Whitened:
    def __init__(
        self, rows: Hadamard, whitening: _Floats, inverse_whitening: _Floats, columns: _Floats, inverse_norms: _Floats
    ) -> None: ...
    @property
    def n_measurements(self) -> int: ...
    @property
    def n_labels(self) -> int: ...

class Among:
    @property
    def n_measurements(self) -> int: ...
    @property
    def n_labels(self) -> int: ...

Kernel: TypeAlias = Hadamard | Dense | Whitened | Among

def among(kernel: Hadamard | Dense | Whitened, starts: _Places, labels: _Columns) -> Among: ...

class Scores:
    def fill(self, out: _Floats) -> None: ...

class StoredScores(Scores):
    def __init__(self, scores: _Floats) -> None: ...

class HadamardScores(Scores):
    def __init__(self, op: Hadamard, R: _Floats, weights: _Floats) -> None: ...

class SparseScores(Scores):
    def __init__(
        self,
        x_starts: _Places,
        x_indices: _Columns,
        x: _Floats,
        s_starts: _Places,
        s_indices: _Columns,
        s: _Floats,
        row_weights: _Floats,
        label_weights: _Floats,
    ) -> None: ...

class TextRows:
    lines: int
    first_feature: int
    n_features: int
    n_labels: int
    problem: int
    token: bytes
    def take_labels(self) -> tuple[_Columns, _Places]: ...
    def take_features(self) -> tuple[_Floats, _Columns, _Places]: ...

def transform(x: _Floats) -> None: ...
def correlation(
    state: Kernel, H: _Floats, sizes: list[int], index: _Places, value: _Floats, count: _Places
) -> list[int]: ...
def omp(
    state: Kernel,
    H: _Floats,
    sizes: list[int],
    index: _Places,
    value: _Floats,
    count: _Places,
    nonnegative: bool,
    penalty: float,
) -> list[int]: ...
def foba(
    state: Kernel, H: _Floats, sizes: list[int], index: _Places, value: _Floats, count: _Places, nu: float
) -> list[int]: ...
def cosamp(
    state: Kernel, H: _Floats, sizes: list[int], index: _Places, value: _Floats, count: _Places, max_rounds: int
) -> list[int]: ...
def lasso(state: Kernel, H: _Floats, sizes: list[int], index: _Places, value: _Floats, count: _Places) -> list[int]: ...
def multistage_lasso(
    state: Kernel,
    H: _Floats,
    sizes: list[int],
    index: _Places,
    value: _Floats,
    count: _Places,
    theta: float,
    max_stages: int,
) -> list[int]: ...
def group_omp(
    state: Kernel,
    H: _Floats,
    sizes: list[int],
    index: _Places,
    value: _Floats,
    count: _Places,
    starts: _Places,
    members: _Places,
) -> list[int]: ...
def times_dense(
    indptr: _Places, indices: _Columns, data: _Floats, begin: int, end: int, B: _Floats, C: _Floats
) -> None: ...
def times_sparse(
    indptr: _Places,
    indices: _Columns,
    data: _Floats,
    begin: int,
    end: int,
    b_indptr: _Places,
    b_indices: _Columns,
    b_data: _Floats,
    C: _Floats,
) -> None: ...
def tile_starts(indptr: _Places, indices: _Columns, data: _Floats, starts: _Places) -> None: ...
def gram(
    indptr: _Places,
    indices: _Columns,
    data: _Floats,
    columns: _Places,
    rows: _Columns,
    places: _Places,
    starts: _Places,
    begin: int,
    end: int,
    G: _Floats | _Doubles,
) -> None: ...
def quadratic_forms(
    indptr: _Places,
    indices: _Columns,
    data: _Floats,
    columns: _Places,
    rows: _Columns,
    places: _Places,
    begin: int,
    end: int,
    S: _Floats,
    q: _Doubles,
) -> None: ...
def finish_product(
    Q: _Floats, P: _Floats, alpha: float, mean: _Floats, shift: _Floats, begin: int, end: int, curvature: _Doubles
) -> None: ...
def take_step(
    W: _Floats,
    R: _Floats,
    P: _Floats,
    Q: _Floats,
    step: _Floats,
    inverse: _Floats,
    begin: int,
    end: int,
    squares: _Doubles,
    preconditioned: _Doubles,
) -> None: ...
def turn_direction(P: _Floats, R: _Floats, turn: _Floats, inverse: _Floats, begin: int, end: int) -> None: ...
def train_ranker(
    indptr: _Places,
    indices: _Columns,
    data: _Floats,
    squares: _Doubles,
    n_features: int,
    label_starts: _Places,
    rows: _Columns,
    has: NDArray[np.uint8],
    begin: int,
    end: int,
    n_first: int,
    C: float,
    tol: float,
    max_rounds: int,
    smallest: float,
) -> tuple[tuple[_Floats, _Columns, _Places, _Floats], tuple[_Floats, _Columns, _Places, _Floats], int]: ...
def mark_strongest(indptr: _Places, indices: _Columns, data: _Floats, k: int, kept: NDArray[np.uint8]) -> None: ...
def shortlist(
    scores: list[Scores],
    weights: list[float],
    sure_starts: _Places,
    sure: _Columns,
    sure_values: _Floats,
    k: int,
    labels: _Columns,
    counts: _Places,
    values: _Floats,
) -> bool: ...
def top_entries(indptr: _Places, indices: _Columns, data: _Doubles, labels: _Places, values: _Floats) -> None: ...
def largest_of_rows(values: _Floats, places: _Columns, found: _Floats) -> None: ...
def nearest(
    indptr: _Places,
    indices: _Columns,
    data: _Floats,
    w_indptr: _Places,
    w_indices: _Columns,
    w_data: _Floats,
    n_labels: int,
    labels: _Columns,
    counts: _Places,
) -> None: ...
def margins(
    indptr: _Places,
    indices: _Columns,
    data: _Floats,
    n_features: int,
    w_indptr: _Places,
    w_indices: _Columns,
    w_data: _Floats,
    bias: _Floats,
    starts: _Places,
    rows: _Columns,
    places: _Places,
    begin: int,
    end: int,
    out: _Floats,
) -> None: ...
def standing(starts: _Places, begin: int, end: int, scores: _Floats, first: int, out: _Floats) -> None: ...

class Booster:
    def __init__(
        self,
        features: _Floats,
        truth: NDArray[np.uint8],
        rate: float,
        leaves: int,
        least_rows: int,
        penalty: float,
        n_drawn: int,
    ) -> None: ...
    def grow(self, trees: int) -> None: ...
    def trees(self) -> tuple[float, _Places, _Columns, _Doubles, _Columns]: ...

def add_trees(
    roots: _Places, feature: _Columns, value: _Doubles, left: _Columns, features: _Floats, out: _Doubles
) -> None: ...
def parse_rows(text: bytes, n_labels: int, n_features: int, plain: bool) -> TextRows: ...
def format_rows(
    label_starts: _Places, labels: _Columns, feature_starts: _Places, features: _Columns, values: _Floats, first: int
) -> NDArray[np.uint8]: ...
