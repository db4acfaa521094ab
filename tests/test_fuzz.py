"""What the fuzzer kept, without the fuzzer. What it found wrong has tests where it was wrong."""

import os

import pytest
from fuzz.mutate import mutate
from fuzz.targets import TARGETS


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TARGETS)
def test_inputs_are_read_or_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # hundreds of files, and nothing is killed
    corpus = TARGETS[name].corpus()
    assert len(corpus) > 5
    with TARGETS[name].prepare(tmp_path) as run:
        for content in corpus.values():
            run(content)


def test_changes_of_json_are_json_and_many():
    found = {mutate(b'a[{"b": 1, "c": [2, "d"]}]', seed, 1) for seed in range(200)}
    assert None not in found
    assert all(content[:1] == b"a" for content in found)
    assert len(found) > 50
    assert mutate(b"{", 0, 0) is None
