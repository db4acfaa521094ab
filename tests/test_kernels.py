"""The builds of the kernels for different processors give the same bytes, and the types are those of the stub."""

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest
from reference import hadamard

from labelsense import _kernels
from labelsense._kernels import _generic

SIZES = [(3, 4, 2), (60, 64, 20), (1000, 1024, 200), (5000, 8192, 300), (40_000, 65_536, 100)]
DECODERS = [
    ("omp", (False, 0.0)),
    ("omp", (True, 0.1)),
    ("foba", (0.5,)),
    ("cosamp", (50,)),
    ("lasso", ()),
    ("correlation", ()),
    ("multistage_lasso", (0.25, 10)),
    ("group_omp", (np.array([0, 2, 3]), np.array([0, 1, 1]))),
]


def variants():
    if not _generic.has_avx2():
        pytest.skip("this processor runs the generic kernels only")
    from labelsense._kernels import _v3

    return _generic, _v3


def run(kernels, operator, name, H, size, *extra):
    index = np.zeros((len(H), 1, size), np.int64)
    value = np.zeros((len(H), 1, size), np.float32)
    count = np.zeros((len(H), 1), np.int64)
    getattr(kernels, name)(operator, H, [size], index, value, count, *extra)
    return index, value, count


@pytest.mark.parametrize(("d", "order", "m"), SIZES)
@pytest.mark.parametrize(("name", "extra"), DECODERS)
def test_same_bytes_on_every_processor(d, order, m, name, extra):
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(order, m, replace=False)).astype(np.int64)
    H = rng.normal(size=(5, m)).astype(np.float32)
    results = [run(kernels, kernels.Hadamard(rows, order, d), name, H, min(m, 10), *extra) for kernels in variants()]
    for generic, v3 in zip(*results, strict=True):
        np.testing.assert_array_equal(generic, v3)


@pytest.mark.parametrize(("name", "extra"), DECODERS)
@pytest.mark.parametrize("m", [2, 20, 100])
def test_the_same_bytes_of_whitened_measurements(m, name, extra):
    rng = np.random.default_rng(0)
    d, order, width = 200, 256, m + -m % 16
    rows = np.sort(rng.choice(order, m, replace=False)).astype(np.int64)
    matrices = [np.tril(rng.normal(size=(m, width))).astype(np.float32) for _ in range(2)]
    columns = np.pad(rng.normal(size=(d, m)), [(0, 0), (0, width - m)]).astype(np.float32)
    H, norms = rng.normal(size=(37, m)).astype(np.float32), np.ones(d, np.float32)
    results = []
    for kernels in variants():
        operator = kernels.Whitened(kernels.Hadamard(rows, order, d), *matrices, columns, norms)
        results.append(run(kernels, operator, name, H, min(m, 10), *extra))
    for generic, v3 in zip(*results, strict=True):
        np.testing.assert_array_equal(generic, v3)


@pytest.mark.parametrize(("name", "extra"), DECODERS)
@pytest.mark.parametrize("what", ["columns", "gram", "inverse_norms"])
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 3e38])
def test_a_matrix_of_no_numbers_gives_finite_scores_in_range(name, extra, what, odd):
    """No caller hands them over; but whatever overflows inside looks like this to the searches, at every place."""
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(40, 12)).astype(np.float32)
    arrays = {"columns": columns, "gram": columns @ columns.T, "inverse_norms": np.ones(40, np.float32)}
    H = rng.normal(size=(20, 12)).astype(np.float32)
    for share in (0.1, 1):
        changed = {key: array.copy() for key, array in arrays.items()}
        changed[what][rng.uniform(size=changed[what].shape) <= share] = odd
        for kernels in (_generic, _kernels):
            index, value, count = run(kernels, kernels.Dense(*changed.values(), 1.0), name, H, 10, *extra)
            assert np.isfinite(value).all()
            assert 0 <= index.min() <= index.max() < 40
            assert 0 <= count.min() <= count.max() <= 10


@pytest.mark.parametrize("order", [64, 128, 1024, 4096])
def test_transform_is_a_product_with_the_hadamard_matrix(order):
    x = np.random.default_rng(0).normal(size=order)
    for kernels in (_generic, _kernels):
        transformed = x.astype(np.float32)
        kernels.transform(transformed)
        np.testing.assert_allclose(transformed, hadamard(order) @ x, atol=1e-3)


def test_the_same_text_on_every_processor():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32)
    values = values[np.isfinite(values)]
    features = np.arange(len(values), dtype=np.int32)
    starts = np.arange(0, len(values) + 1, 1, dtype=np.int64)
    texts = [bytes(kernels.format_rows(starts, features, starts, features, values, 0)) for kernels in variants()]
    assert texts[0] == texts[1]
    for kernels in variants():
        parsed = kernels.parse_rows(texts[0], len(values), len(values), True)
        np.testing.assert_array_equal(parsed.take_features()[0].view(np.uint32), values.view(np.uint32))
        np.testing.assert_array_equal(parsed.take_labels()[0], features)


def test_the_fastest_variant_is_in_use():
    assert _kernels.Hadamard is variants()[1].Hadamard


def test_the_stub_has_the_names_and_parameters_of_the_kernels():
    tree = ast.parse(Path(_kernels.__file__).with_suffix(".pyi").read_text())
    defined = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    values = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)} - {"TypeAlias"}
    public = {name for name in vars(_kernels) if not name.startswith("_") and name != "import_module"}
    assert {name for name in (*defined, *values) if not name.startswith("_")} - {"TextRows"} == public
    for name, node in defined.items():
        if isinstance(node, ast.ClassDef):
            members = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            members |= {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
            kind = getattr(_generic, "AmongHadamard" if name == "Among" else name)  # there is one for each operator
            assert members - {"__init__"} == {item for item in vars(kind) if not item.startswith("_")}
        else:
            for signature, *_ in getattr(_generic, name).__nb_signature__:
                assert len(node.args.args) == signature.count(": "), name
    assert inspect.isclass(_kernels.Hadamard)
