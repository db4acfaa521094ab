"""Files of format 1 and of a few texts, and their trees, for the tests of what a model file may hold."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import reference
import scipy.sparse as sp

FORMAT1 = Path(__file__).parent / "data" / "format1"
STORED = json.loads((FORMAT1 / "predictions.json").read_text())
NAMES = sorted(STORED["models"])
TEXTS, LISTS = ["a red fox", "a blue hen", "red and blue", "a hen and a fox"] * 5, [["fox"], ["hen"], ["x"], ["y"]] * 5


def parse(content):
    """Return the entries of the arrays, the tree and the arrays of a model file."""
    length = struct.unpack("<Q", content[:8])[0]
    entries = json.loads(content[8 : 8 + length])
    return entries, json.loads(entries.pop("__metadata__")["labelsense"]), content[8 + length :]


def build(entries, top, data):
    header = json.dumps({**entries, "__metadata__": {"labelsense": json.dumps(top)}}).encode()
    return struct.pack("<Q", len(header)) + header + data


def changed(path, change):
    """Write a model file again with its tree changed."""
    entries, top, data = parse(path.read_bytes())
    change(top["model"])
    path.write_bytes(build(entries, top, data))
    return path


def nodes(tree, path=()):
    """Yield everything inside a tree as (container, key, path)."""
    for key, item in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        yield tree, key, (*path, key)
        if isinstance(item, (dict, list)):
            yield from nodes(item, (*path, key))


def row_for(name):
    """Return a row that the stored model of this name takes."""
    kind = STORED["models"][name]["rows"]
    rows = STORED["rows"]["dense" if kind == "sparse" else kind][:1]
    if kind == "texts":
        return rows
    rows = np.array(rows, np.uint8 if kind == "images" else np.float64)
    return sp.csr_array(rows) if kind == "sparse" else rows


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tags.model"


@pytest.fixture
def words(path):
    reference.paper(features="words", random_state=0).fit(TEXTS, LISTS).save(path)
    return path


@pytest.fixture
def ridge(path):
    path.write_bytes((FORMAT1 / "ridge.model").read_bytes())
    return path
