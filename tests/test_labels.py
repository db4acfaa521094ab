"""Label sets in and out, and the best k of sparse scores."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelsense._labels import Vocabulary, top_k

labels = st.one_of(st.integers(-5, 5), st.text(max_size=3), st.tuples(st.integers(0, 2)), st.booleans())


@given(st.lists(st.sets(labels, max_size=4), min_size=1, max_size=6))
def test_lists_survive_the_round_trip(rows):
    vocabulary, Y = Vocabulary.learn([list(row) for row in rows])
    assert [set(row) for row in vocabulary.lists(Y)] == rows
    assert Y.shape == (len(rows), len(set().union(*rows)))


def test_labels_are_numbered_in_sorted_order():
    vocabulary, Y = Vocabulary.learn([["b", "a"], ["c"], []])
    assert vocabulary.names == ["a", "b", "c"]
    assert Y.toarray().tolist() == [[1, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_labels_that_cannot_be_sorted_keep_their_order():
    assert Vocabulary.learn([["b", 3], [(1,)]])[0].names == ["b", 3, (1,)]


def test_repeated_labels_count_once():
    assert Vocabulary.learn([["a", "a"], ["b"]])[1].toarray().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "form", [np.array(["x", "y", "x"]), pd.Series(["x", "y", "x"]), ["x", "y", "x"], ("x", "y", "x")]
)
def test_one_dimension_is_one_label_per_row(form):
    assert Vocabulary.learn(form)[1].toarray().tolist() == [[1, 0], [0, 1], [1, 0]]


@pytest.mark.parametrize(
    "form", [np.eye(3), np.eye(3, dtype=bool), sp.eye_array(3), sp.eye(3).tocoo(), pd.DataFrame(np.eye(3))]
)
def test_two_dimensions_are_an_indicator(form):
    vocabulary, Y = Vocabulary.learn(form)
    assert vocabulary.names is None
    assert Y.toarray().tolist() == np.eye(3).tolist()


def test_unknown_labels():
    vocabulary, _ = Vocabulary.learn([["a"], ["b"]])
    with pytest.raises(ValueError, match="'z' in row 1. Pass on_unknown='ignore'"):
        vocabulary.read([["a"], ["z", "b"]])
    assert vocabulary.read([["a"], ["z", "b"]], on_unknown="ignore").toarray().tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match="on_unknown must be one of 'error', 'ignore'.*Got 'drop'"):
        vocabulary.read([["a"]], on_unknown="drop")


@pytest.mark.parametrize(
    ("Y", "error", "message"),
    [
        ([[0, 1, 0], [1, 0, 1]], TypeError, "looks like an indicator matrix written as nested lists"),
        ("tags", TypeError, "Y must be an indicator matrix.*Got str"),
        (7, TypeError, "Got int"),
        ([["a"], [None]], ValueError, "None in row 1, which cannot be a label"),
        ([["a"], [float("nan")]], ValueError, "nan in row 1"),
        ([["a"], [["b"]]], ValueError, r"\['b'\] in row 1"),
        (np.array([[1.0, np.nan]]), ValueError, "Input Y contains NaN"),
        (sp.csr_array([[1.0, np.inf]]), ValueError, "Y contains NaN or infinity"),
        (np.array([[1, -1]]), ValueError, "Negative values in data: Y must be 1 where.*Got -1.*pass Y > 0"),
        (np.array([["a", "b"]]), ValueError, "could not convert|numeric"),
    ],
)
def test_bad_labels(Y, error, message):
    with pytest.raises(error, match=message):
        Vocabulary.learn(Y)


def test_labels_must_be_given_as_in_training():
    with pytest.raises(TypeError, match="as label lists. Got a matrix"):
        Vocabulary.learn([["a"], ["b"]])[0].read(np.eye(2))
    with pytest.raises(TypeError, match="as an indicator matrix. Got lists"):
        Vocabulary.learn(np.eye(2))[0].read([["a"]])
    with pytest.raises(ValueError, match="Y must have one column per label, 2. Got 3"):
        Vocabulary.learn(np.eye(2))[0].read(np.eye(3))


@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 8), st.integers(0, 999))
def test_top_k_sorts_by_score_then_column(n, d, k, seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-2, 3, (n, d)).astype(np.float32) / 2
    top = top_k(sp.csr_array(scores), k)
    for row, found, values in zip(scores, *top, strict=True):
        expected = sorted(np.flatnonzero(row), key=lambda j: (-row[j], j))[:k]
        assert found.tolist() == expected + [-1] * (k - len(expected))
        assert values.tolist() == [row[j] for j in expected] + [0] * (k - len(expected))
