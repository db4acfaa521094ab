"""Rows in chunks: sums of a fixed shape, and which rows are where."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelsense._chunks import FAN_IN, ListChunks, split, split_rows, tree_sum


def sum_in_groups(results):
    """Add up groups of eight, then their sums, level by level."""
    while len(results) > 1:
        groups = [results[i : i + FAN_IN] for i in range(0, len(results), FAN_IN)]
        results = []
        for first, *others in groups:
            for other in others:
                first = first + other
            results.append(first)
    return results[0]


@given(n=st.integers(1, 600), seed=st.integers(0, 9))
def test_the_sum_is_that_of_a_tree(n, seed):
    numbers = np.random.default_rng(seed).normal(size=n).astype(np.float32)
    assert tree_sum(iter([x for x in numbers])) == sum_in_groups(list(numbers))


def test_arrays_are_added_in_place_of_the_first():
    arrays = [np.full(3, float(i)) for i in range(100)]
    np.testing.assert_array_equal(tree_sum(iter(arrays)), np.full(3, 4950.0))


@given(
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=6),
    start=st.integers(0, 40),
    stop=st.integers(0, 40),
    step=st.integers(1, 5),
    seed=st.integers(0, 9),
)
def test_rows_are_found_in_their_chunks(lengths, start, stop, step, seed):
    values = np.arange(sum(lengths))
    chunks = ListChunks(np.split(values, np.cumsum(lengths)[:-1]), lengths)
    some = np.flatnonzero(np.random.default_rng(seed).uniform(size=len(values)) < 0.5)
    for chosen in (some, slice(start, stop, step), slice(None)):
        parts = list(chunks.results(lambda chunk, rows: chunk[rows], split_rows(chosen, chunks.lengths)))
        np.testing.assert_array_equal(np.concatenate(parts), values[chosen])
    for part, chunk in zip(split(values, chunks.lengths), chunks.chunks, strict=True):
        np.testing.assert_array_equal(part, chunk)


def test_results_keep_their_order():
    chunks = ListChunks([1, 2, 3], [1, 1, 1])
    assert list(chunks.results(lambda x: x)) == [1, 2, 3]
    assert chunks.map(lambda x: 10 * x).total(lambda x: x) == 60
    assert chunks.n_rows == 3
    with pytest.raises(TypeError):
        chunks.total(lambda x: str(x) if x == 1 else x)
