"""Label sets in and out, and the best k of sparse scores."""

import datetime
import json
import os
import subprocess
import sys
import tracemalloc
from enum import Enum

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelsense import InputError
from labelsense.labels import Vocabulary, scale_columns, top_k

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


def test_labels_of_mixed_types_are_numbered_in_one_order():
    labels = ["b", 3, (1, "x"), "a", (1, 2), True, 2.5, ((),)]
    expected = [True, 2.5, 3, "a", "b", (1, 2), (1, "x"), ((),)]
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(len(labels))
        assert Vocabulary.learn([[labels[i]] for i in order])[0].names == expected


def test_the_order_does_not_depend_on_the_hash_seed():
    code = (
        "from labelsense.labels import Vocabulary;"
        "print(Vocabulary.learn([{'a', i % 7, ('t', i % 3), f'x{i % 5}'} for i in range(20)])[0].names)"
    )
    environments = ({**os.environ, "PYTHONHASHSEED": seed} for seed in "01")
    printed = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout
        for env in environments
    ]
    assert len(set(printed)) == 1


def test_repeated_labels_count_once():
    assert Vocabulary.learn([["a", "a"], ["b"]])[1].toarray().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("form", [np.array, pd.Series, pl.Series, pa.array, list, tuple])
def test_one_number_per_row_is_its_label(form):
    vocabulary, Y = Vocabulary.learn(form([4, 7, 4]))
    assert vocabulary.names == [4, 7]
    assert Y.toarray().tolist() == [[1, 0], [0, 1], [1, 0]]


@pytest.mark.parametrize(
    "form", [np.eye(3), np.eye(3, dtype=bool), sp.eye_array(3), sp.eye(3).tocoo(), pd.DataFrame(np.eye(3))]
)
def test_a_matrix_is_an_indicator(form):
    vocabulary, Y = Vocabulary.learn(form)
    assert vocabulary.names is None
    assert Y.toarray().tolist() == np.eye(3).tolist()


LISTS = [["a", "b"], [], ["c", "a"]]
ROWS = {
    "tuples": [tuple(row) for row in LISTS],
    "sets": [set(row) for row in LISTS],
    "arrays": [np.array(row, dtype=object) for row in LISTS],
    "arrays of str": [np.array(row, dtype=str) for row in LISTS],
    "an array of lists": np.array([*LISTS, None], dtype=object)[:3],
    "pandas": pd.Series(LISTS),
    "polars": pl.Series(LISTS),
    "pyarrow": pa.array(LISTS),
    "pyarrow chunks": pa.chunked_array([LISTS[:1], LISTS[1:]]),
    "pyarrow scalars": list(pa.array(LISTS)),
    "lists of pyarrow scalars": [list(row) for row in pa.array(LISTS)],
}


@pytest.mark.parametrize("form", ROWS)
def test_every_form_of_label_lists_gives_plain_strings(form):
    vocabulary, Y = Vocabulary.learn(ROWS[form])
    assert vocabulary.names == ["a", "b", "c"]
    assert {type(name) for name in vocabulary.names} == {str}
    assert Y.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 1]]


class Colour(str, Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (np.int32(3), 3),
        (np.float64(2.5), 2.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (pa.scalar("a"), "a"),
        (Colour.RED, "red"),
        ((np.int64(1), ("x", np.str_("y"))), (1, ("x", "y"))),
    ],
)
def test_labels_become_objects_of_python(given, plain):
    name = Vocabulary.learn([[given], []])[0].names[0]
    assert (name, type(name)) == (plain, type(plain))
    assert json.loads(json.dumps(name)) == (list(map(list_of, plain)) if isinstance(plain, tuple) else plain)


def list_of(value):
    return list(value) if isinstance(value, tuple) else value


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "pandas, sparse": lambda columns: pd.DataFrame(columns).astype(pd.SparseDtype("int64", 0)),
}


@pytest.mark.parametrize("form", FRAMES)
class TestDataFrames:
    def test_columns_are_labels(self, form):
        vocabulary, Y = Vocabulary.learn(FRAMES[form]({"b": [1, 0], "a": [1, 1]}))
        assert vocabulary.names == ["b", "a"]
        assert Y.toarray().tolist() == [[1, 1], [0, 1]]

    def test_columns_come_in_any_order_and_some_may_be_missing(self, form):
        vocabulary, _ = Vocabulary.learn(FRAMES[form]({"b": [1, 0], "a": [1, 1]}))
        assert vocabulary.read(FRAMES[form]({"a": [1, 0], "b": [0, 1]})).toarray().tolist() == [[0, 1], [1, 0]]
        assert vocabulary.read(FRAMES[form]({"a": [1, 0]})).toarray().tolist() == [[0, 1], [0, 0]]
        assert vocabulary.read([["a"], ["b", "a"]]).toarray().tolist() == [[0, 1], [1, 1]]

    def test_unknown_columns(self, form):
        vocabulary, _ = Vocabulary.learn(FRAMES[form]({"b": [1, 0], "a": [1, 1]}))
        frame = FRAMES[form]({"z": [0, 1], "b": [1, 1]})
        with pytest.raises(InputError, match="not in the training data: 'z' in row 1"):
            vocabulary.read(frame)
        known, unseen = vocabulary.read_counting_unknown(frame)
        assert known.toarray().tolist() == [[1, 0], [1, 0]]
        assert unseen.tolist() == [0, 1]
        extended, Y = vocabulary.extend(frame)
        assert extended.names == ["b", "a", "z"]
        assert Y.toarray().tolist() == [[1, 0, 0], [1, 0, 1]]

    @pytest.mark.parametrize("cell", [["x"], "x, y"], ids=["lists", "texts"])
    def test_a_column_that_holds_the_labels(self, form, cell):
        if form != "pandas, sparse":
            with pytest.raises(InputError, match=r"Its column 'tags' holds .*pass y\['tags'\].*split first"):
                Vocabulary.learn(FRAMES[form]({"tags": [cell, cell]}))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["a", "a"], "one column per label. Got 'a' more than once"),
        (pd.date_range("2020-01-01", periods=2), "a column Timestamp.* cannot be a label"),
    ],
)
def test_bad_columns(columns, message):
    with pytest.raises(InputError, match=message):
        Vocabulary.learn(pd.DataFrame(np.eye(2), columns=columns))


def test_unknown_labels():
    vocabulary, _ = Vocabulary.learn([["a"], ["b"]])
    y = [["a"], ["z", "b", "z"]]
    with pytest.raises(InputError, match="not in the training data: 'z' in row 1"):
        vocabulary.read(y)
    known, unseen = vocabulary.read_counting_unknown(y)
    assert known.toarray().tolist() == [[1, 0], [0, 1]]
    assert unseen.tolist() == [0, 1]


def test_columns_of_labels():
    vocabulary, _ = Vocabulary.learn([["a"], ["b", (1, 2)]])
    assert vocabulary.columns_of([(1, 2), "a"], "allow").tolist() == [2, 0]
    assert Vocabulary(None, 5).columns_of(np.array([4, 0]), "allow").tolist() == [4, 0]
    with pytest.raises(InputError, match="block must hold labels of the training data. Got 'z'"):
        vocabulary.columns_of(["a", "z"], "block")
    with pytest.raises(InputError, match="allow must hold labels of the training data. Got 5"):
        Vocabulary(None, 5).columns_of([5], "allow")
    with pytest.raises(TypeError, match=r"allow must be a list of labels. Got 'a'. Pass \['a'\]"):
        vocabulary.columns_of("a", "allow")


def test_decoding_makes_the_names_once():
    vocabulary = Vocabulary([f"label {j}" for j in range(200_000)], 200_000)
    vocabulary.decode_columns(np.array([[3, -1]]))
    tracemalloc.start()
    assert vocabulary.decode_columns(np.array([[3, -1]])).tolist() == [["label 3", None]]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ([[0, 1, 0], [1, 0, 1]], TypeError, "looks like an indicator matrix written as nested lists"),
        ("tags", TypeError, "y must be an indicator matrix.*Got str"),
        (7, TypeError, "Got int"),
        ([["a"], [None]], InputError, "None in row 1, which cannot be a label"),
        ([["a"], [float("nan")]], InputError, "nan in row 1"),
        ([["a"], [["b"]]], InputError, r"\['b'\] in row 1"),
        ([["a"], ["b", b"c"]], InputError, "b'c' in row 1, which cannot be a label. Labels are strings, numbers"),
        ([["a"], [datetime.date(2020, 1, 1)]], InputError, "datetime.date.* in row 1"),
        ([["a"], [np.datetime64("2020-01-01")]], InputError, "datetime64.* in row 1"),
        ([["a"], [np.timedelta64(1, "D")]], InputError, "timedelta64.* in row 1"),
        ([["a"], [frozenset("a")]], InputError, "frozenset.* in row 1"),
        ([["a"], [("a", b"c")]], InputError, "in row 1, which cannot be a label"),
        ([["a"], None], InputError, r"Got None in row 1. Pass \[\] for no labels"),
        ([["a"], 3], InputError, r"Got 3 in row 1. Pass \[3\]"),
        ([["a"], "b"], InputError, r"Got 'b' in row 1. If each row has one label, pass \[\[label\] for label in y\]"),
        (["a, b", "c"], InputError, "Got 'a, b' in row 0.*have to be split first"),
        (np.array(["a", "b"]), InputError, "Got 'a' in row 0"),
        (pd.Series(["a", "b"]), InputError, "Got 'a' in row 0"),
        (pl.Series(["a", "b"]), InputError, "Got 'a' in row 0"),
        (pa.array(["a", "b"]), InputError, "Got 'a' in row 0"),
        (np.array([0.0, 0.5]), InputError, "Got 0.5 in row 1. Pass an indicator matrix"),
        (np.array([0.0, np.inf]), InputError, "Got inf in row 1"),
        (np.array([[0.3, 0.5]]), InputError, "y must be binary.*Got 0.3"),
        (np.array([[0, 2]]), InputError, "y must be binary.*Got 2. Pass y > 0, or one list of labels per row"),
        (np.array([[1.0, np.nan]]), InputError, "Input y contains NaN"),
        (sp.csr_array([[1.0, np.inf]]), InputError, "y contains NaN or infinity"),
        (np.array([[1, -1]]), InputError, "Negative values in data: y must be 1 where.*Got -1.*pass y > 0"),
        (np.array([["a", "b"]]), InputError, r"Got .*'a'.*pass y.tolist\(\)"),
        (np.array([["a", "b"]], dtype=object), InputError, r"Got 'a'.*pass y.tolist\(\)"),
    ],
)
def test_bad_labels(y, error, message):
    with pytest.raises(error, match=message):
        Vocabulary.learn(y)


def test_labels_must_be_given_as_in_training():
    with pytest.raises(TypeError, match="as label lists or a data frame.*Got an indicator matrix"):
        Vocabulary.learn([["a"], ["b"]])[0].read(np.eye(2))
    with pytest.raises(TypeError, match="as an indicator matrix. Got label lists"):
        Vocabulary.learn(np.eye(2))[0].read([["a"]])
    with pytest.raises(InputError, match="y must have one column per label, 2. Got 3"):
        Vocabulary.learn(np.eye(2))[0].read(np.eye(3))


@given(st.integers(1, 5), st.integers(1, 40), st.integers(1, 8), st.integers(0, 999))
def test_top_k_sorts_by_score_then_column(n, d, k, seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-2, 3, (n, d)).astype(np.float32) / 2
    top = top_k(sp.csr_array(scores), k)
    for row, found, values in zip(scores, *top, strict=True):
        expected = sorted(np.flatnonzero(row), key=lambda j: (-row[j], j))[:k]
        empty = min(k, d) - len(expected)  # no more places than labels
        assert found.tolist() == expected + [-1] * empty
        assert values.tolist() == [row[j] for j in expected] + [0] * empty


def test_columns_are_scaled_and_scaled_back():
    M = sp.random_array((20, 7), density=0.4, rng=0, dtype=np.float32).tocsr()
    factors = np.linspace(0.5, 3, 7)
    scaled = scale_columns(M, factors)
    np.testing.assert_allclose(scaled.toarray(), M.toarray() * factors, rtol=1e-6)
    np.testing.assert_allclose(scale_columns(scaled, 1 / factors).toarray(), M.toarray(), rtol=1e-6)
