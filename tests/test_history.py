"""The history of performance: a version that got slower is told apart, in figures and on the page."""

import json
import re
import sys
from pathlib import Path

from labelsense import __version__

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "docs" / "extensions")]

import history  # noqa: E402
import performance_history  # noqa: E402

MACHINE = {"processor": "abacus <1>", "cores": 2, "system": "Linux", "python": "3.11", "numpy": "2.4"}


def entry(version, **ratios):
    return {"version": version, "commit": "abc", "date": "2026-01-01", "machine": MACHINE, "ratios": ratios}


def test_versions_are_read_in_their_order(tmp_path):
    for version in ("0.10.0", "0.2.0", "0.9.1"):
        (tmp_path / f"{version}.json").write_text(json.dumps(entry(version, fit=1.0)))
    assert [found["version"] for found in history.read(tmp_path)] == ["0.2.0", "0.9.1", "0.10.0"]


def test_what_is_written_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "FOLDER", tmp_path / "history")
    assert history.write({"fit": 0.123456}) == f"{__version__}.json"
    (found,) = history.read(tmp_path / "history")
    assert (found["version"], found["ratios"]) == (__version__, {"fit": 0.1235})
    assert found["machine"].keys() == MACHINE.keys()


def test_only_more_than_a_tenth_is_a_regression():
    old, new = entry("1.0", fit=1.0, predict=1.0, old=1.0), entry("1.1", fit=1.09, predict=1.12, new=9.0)
    assert history.regressions([old, new]) == [("predict", 1.12)]
    assert history.regressions([new]) == []


def test_the_page_marks_what_got_slower():
    entries = [entry("1.0", fit=1.0, predict=2.0, gone=1.0), entry("1.1", fit=1.2, predict=1.0, new=1.0)]
    rows = dict(re.findall(r"<tr><td>(\w+)</td>(.*?)</tr>", performance_history.page(entries)))
    assert '<td class="worse">+20 %, slower</td>' in rows["fit"]
    assert "<td>\N{MINUS SIGN}50 %</td>" in rows["predict"]
    assert "<td>new</td>" in rows["new"]
    assert "<td>gone</td>" in rows["gone"]
    assert "abacus &lt;1&gt;" in performance_history.page(entries)


def test_a_line_rises_where_a_step_takes_longer():
    places = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', performance_history.line([1.0, None, 4.0]))
    (x0, y0), (x1, y1) = ((float(x), float(y)) for x, y in places)
    assert x1 > x0
    assert y1 < y0  # down is up in SVG
