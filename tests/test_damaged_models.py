"""Model files changed at random: every number and name of every class is tried, and predicts or is refused."""

import contextlib
import copy
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored import FORMAT1, NAMES, build, nodes, parse, row_for

from labelsense import ModelFileError, load_model
from labelsense._storage import REGISTRY
from labelsense._tree import PLAIN

VALUES = st.one_of(
    st.sampled_from(
        [None, True, False, 0, 1, -1, 24, 32, 2**24, 2**28, 2**31, 2**40, 2**62, 10**30, 0.5, -1e300, 1e300]
    ),
    st.sampled_from([float("nan"), float("inf"), "", "x", "auto", "loo", "filename", "passthrough", [], {}, [1], [[]]]),
    st.sampled_from(
        [{"is": "dtype", "value": "float32"}, {"is": "tuple", "items": []}, {"is": "float", "value": "nan"}]
    ),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
)


def change_tree(draw, entries, top):
    found = list(nodes(top["model"]))
    tree, key, _ = draw(st.sampled_from(found))
    kind = draw(st.sampled_from(["value", "number", "copy", "delete", "name", "class", "kind", "shape", "swap"]))
    names = sorted(entries)
    if kind == "value":
        tree[key] = copy.deepcopy(draw(VALUES))
    elif kind == "number" and isinstance(tree[key], int):
        tree[key] = tree[key] * draw(st.sampled_from([2, 10, -1, 10**6])) + draw(st.integers(-1, 1))
    elif kind == "copy":
        other, where, _ = draw(st.sampled_from(found))
        tree[key] = copy.deepcopy(other[where])
    elif kind == "delete":
        del tree[key]
    elif kind == "name" and isinstance(tree, dict):
        tree[draw(st.sampled_from(sorted({where for _, where, _ in found if isinstance(where, str)})))] = tree.pop(key)
    elif kind == "class":
        tree, key, _ = draw(st.sampled_from([node for node in found if node[1] == "is"]))
        tree[key] = draw(st.sampled_from([*REGISTRY, *PLAIN]))
    elif kind == "kind":
        entries[draw(st.sampled_from(names))]["dtype"] = draw(
            st.sampled_from(["F64", "F32", "I64", "I32", "U8", "BOOL"])
        )
    elif kind == "shape":
        entry = entries[draw(st.sampled_from(names))]
        size = int(np.prod(entry["shape"]))
        entry["shape"] = draw(st.sampled_from([[size], [1, size], [size, 1], entry["shape"][::-1], [size // 2, 2]]))
    elif kind == "swap":
        one, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        entries[one], entries[other] = entries[other], entries[one]


def load_and_predict(path, name, mmap=False):
    """Load a file that may say anything: it is refused, or it predicts a row, or refuses it."""
    model = cause = None
    try:
        model = load_model(path, mmap=mmap)
    except ModelFileError as error:
        cause = error.__cause__
    assert not isinstance(cause, MemoryError)
    # It may want another number of features, texts or no texts; its measurements may not be finite.
    with contextlib.suppress(ValueError, TypeError), np.errstate(all="ignore"):
        if model is not None:
            model.predict_topk(row_for(name), 3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30)  # of each model; `make fuzz` tries more
@given(data=st.data())
def test_a_file_whose_tree_was_changed_predicts_or_is_refused(name, data, tmp_path_factory):
    entries, top, arrays = parse((FORMAT1 / f"{name}.model").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        change_tree(data.draw, entries, top)
    path = tmp_path_factory.mktemp("made-up") / "tags.model"
    path.write_bytes(build(entries, top, arrays))
    load_and_predict(path, name, mmap=data.draw(st.booleans()))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_a_file_cut_off_or_changed_anywhere_predicts_or_is_refused(name, data, tmp_path_factory):
    content = bytearray((FORMAT1 / f"{name}.model").read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        for _ in range(data.draw(st.integers(1, 5))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("broken") / "tags.model"
    path.write_bytes(content)
    load_and_predict(path, name)


CHILD = """
    import resource, sys, warnings
    from pathlib import Path
    warnings.simplefilter("ignore")
    from labelsense import ModelFileError, load_model
    load_model(sys.argv[1] + "/ridge.model")  # whatever is only loaded once
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    resource.setrlimit(resource.RLIMIT_AS, (6 * 10**9,) * 2)
    for path in sorted(Path(sys.argv[2]).iterdir()):
        try:
            load_model(path)
        except ModelFileError as error:
            if isinstance(error.__cause__, MemoryError):
                print(path.name, "tried to allocate")
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) // 1000)
"""


def test_no_number_of_a_header_makes_a_small_file_take_much_memory(tmp_path):
    for name in sorted({*NAMES} - {"ridge_loo", "devore", "sklearn"}):  # which hold what others hold, or skops does
        content = (FORMAT1 / f"{name}.model").read_bytes()
        _, top, _ = parse(content)
        numbers = [place for tree, key, place in nodes(top["model"]) if type(tree[key]) is int]
        groups = {tuple("#" if isinstance(step, int) else step for step in place): place for place in numbers}
        for i, place in enumerate(groups.values()):
            for number in (2**24, 2**31):
                entries, top, arrays = parse(content)
                # A number that is in several places, such as that of the features, is changed in all of them.
                old = value_at(top["model"], place)
                for tree, key, _ in list(nodes(top["model"])):
                    if type(tree[key]) is int and (tree[key] == old or (key == "order" and place[-1] == "n_labels")):
                        tree[key] = number
                (tmp_path / f"{name}-{i}-{number}").write_bytes(build(entries, top, arrays))
    program = [sys.executable, "-c", textwrap.dedent(CHILD), os.fspath(FORMAT1), os.fspath(tmp_path)]
    answer = subprocess.run(program, capture_output=True, text=True, check=True)
    assert int(answer.stdout) < 300, answer.stdout  # megabytes


def value_at(tree, place):
    for step in place:
        tree = tree[step]
    return tree
