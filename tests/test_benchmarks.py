"""The parts of benchmarks/scale.py at a small size: they run, and what they say of models is true."""

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))
import scale


@pytest.fixture
def figures(tmp_path, monkeypatch):
    """What a part of it keeps."""
    monkeypatch.setattr(scale, "RESULTS", tmp_path / "scale.jsonl")
    monkeypatch.setattr(scale, "FIGURE", tmp_path / "growth.svg")
    monkeypatch.setattr(scale, "TEXTS", scale.TEXTS | {"n_features": 200, "n_measurements": 30, "budget": "fast"})
    (tmp_path / "work").mkdir()

    def run(part, *arguments):
        part(tmp_path / "work", *arguments)
        return [json.loads(line) for line in (tmp_path / "scale.jsonl").read_text().splitlines()]

    return run


def test_equal(figures):
    whole, chunks, compared = figures(scale.equal, 600)
    assert (whole["how"], chunks["how"]) == ("in memory", "in chunks")
    assert compared["largest_difference"] < 1e-4
    assert compared["same_top_5"] > 0.99


def test_kills(figures):
    (killed,) = figures(scale.kills, 600, 1)
    assert killed["files_left"] > 0
    assert killed["same_bytes"]
    assert not killed["scratch_left"]


def test_big(figures):
    found, *steps = figures(scale.big, 600)
    assert found["rows"] == 600
    assert {"step", "seconds", "peak_MB"} <= steps[0].keys()
