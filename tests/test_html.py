"""What notebooks show: well-formed, escaped, without scripts, with the figures of the object."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from labelsense import CompressedLabelClassifier, TopK, advise
from labelsense._html import Curve, html_bar, html_table, svg_chart
from labelsense.data import make_tagged_documents

X, Y = make_tagged_documents(400, 150, 60, noise=0.1, random_state=0)

PARTS = {"table", "tr", "th", "td", "b", "p", "ul", "li", "svg", "rect", "line", "text", "polyline", "circle"}


def parse(html):
    """Return the elements of HTML that is also XML, and has nothing in it that runs or is fetched."""
    root = ElementTree.fromstring(f"<div>{html}</div>")
    for element in [*root.iter()][1:]:
        assert element.tag in PARTS
        assert not {name for name in element.attrib if name.startswith("on") or name in ("href", "src")}
    return root


def texts(root):
    return ["".join(cell.itertext()) for cell in root.iter("td")]


@pytest.fixture(scope="module")
def clf():
    names = [[f"<b>{j}&" for j in Y.indices[a:b]] for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]
    return CompressedLabelClassifier("hadamard", "ridge", "omp", random_state=0).fit(X[:300], names[:300]), names


def test_top_k(clf):
    model, _ = clf
    top = model.predict_topk(X[300:], 3)
    root = parse(top._repr_html_())
    assert len(root.findall(".//tr")) == 21
    assert texts(root)[1].startswith(f"{top.labels[0, 0]} {top.scores[0, 0]:.2f}, ")
    assert "and 80 rows more" in "".join(root.itertext())
    empty = TopK(np.array([[3, -1]]), np.array([[0.5, 0.0]], np.float32))
    assert texts(parse(empty._repr_html_())) == ["0", "3 0.50"]


def test_diagnosis(clf):
    model, names = clf
    diagnosis = model.diagnose(X[300:], names[300:])
    root = parse(diagnosis._repr_html_())
    assert f"{100 * diagnosis.precision:.1f}" in texts(root)
    assert diagnosis.reason in "".join(root.itertext())
    assert len(root.findall(".//rect")) == 5


def test_evaluation(clf):
    model, names = clf
    result = model.evaluate(X[300:], names[300:])
    root = parse(result._repr_html_())
    assert texts(root)[:2] == ["precision", f"{100 * result['P@1']:.1f}"]
    assert len(root.findall(".//circle")) == 20
    plain = reference.paper(random_state=0).fit(X, Y).evaluate(X, Y)
    assert not parse(plain._repr_html_()).findall(".//svg")


def test_advice():
    advice = advise(X, Y, budget="fast")
    root = parse(advice._repr_html_())
    bold = ["".join(cell.itertext()) for cell in root.iter("b")]
    assert bold[0] == f"{advice.n_measurements:,}"
    assert len(root.findall(".//circle")) == 2 * len(advice.options)
    assert [item.text for item in root.iter("li")] == list(advice.reasons)


@given(st.lists(st.lists(st.text(st.characters(categories=["L", "P", "S", "N"]), max_size=5), min_size=2, max_size=2)))
def test_a_table_shows_what_it_is_given(rows):
    assert texts(parse(html_table(["a", "<b>"], rows))) == [cell for row in rows for cell in row]


@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(-1, 2)), min_size=1, max_size=8), st.booleans())
def test_a_chart_keeps_its_points_inside(points, log_x):
    x, y = zip(*points, strict=True)
    root = parse(svg_chart([Curve("<it>", x, y, "red")], "x", "y", y_range=(0, 1), log_x=log_x))
    assert len(root.findall(".//circle")) == len(points)
    for circle in root.iter("circle"):
        assert 0 <= float(circle.get("cx")) <= 380
        assert 0 <= float(circle.get("cy")) <= 230


def test_bars_are_bounded():
    assert parse(html_bar(7, "red")).find(".//rect").get("width") == "160.0"
    assert parse(html_bar(-1, "red")).find(".//rect").get("width") == "0.0"
