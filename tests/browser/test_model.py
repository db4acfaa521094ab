"""The model tab: what a model is, what to expect of it, and its labels."""

import pytest
from conftest import CHESS
from playwright.sync_api import expect
from serving import send
from test_text import choose, write

REPORT = {
    "chosen": {"budget": "balanced", "measurements": 200},
    "tried": [{"setting": "ridge, alpha 1", "P@1": 0.8, "P@3": 0.6, "P@5": 0.4}],
    "judges": {"decoder": {"P@1": 0.7, "P@3": 0.5, "P@5": 0.4}, "ranker": {"P@1": 0.8, "P@3": 0.6, "P@5": 0.5}},
    "expected_last": {"P@1": 0.701, "P@3": 0.5, "P@5": 0.402, "rows": 500.0},
    "expected": {"P@1": 0.812, "P@3": 0.588, "P@5": 0.448, "F1": 0.56, "ECE": 0.007, "recall": 0.95, "rows": 3000.0},
    "reliability": [[0.01, 0.012, 900], [0.3, 0.28, 400], [0.7, 0.72, 200], [0.97, 0.96, 100]],
    "curve": [
        {"n_measurements": m, "P@1": p, "P@3": p - 0.2, "P@5": p - 0.3} for m, p in ((20, 0.5), (80, 0.7), (400, 0.8))
    ],
    "notes": ["Rows seem to come in runs."],
}


@pytest.fixture
def reported(open_page, server):
    """Return the page of a model with a report."""
    model = send(server, "ui/projects/debtags/model")[1]
    page = open_page()
    page.route(
        "**/ui/projects/debtags/model",
        lambda route: route.fulfill(
            json={**model, "report": REPORT, "probabilities": True, "refiner": "Refiner", "threshold": 0.4}
        ),
    )
    page.goto(f"{server}#model")
    page.reload()
    return page


def test_what_a_model_is(open_page, server):
    about = send(server, "ui/projects/debtags/model")[1]
    page = open_page("#model")
    expect(page.get_by_role("heading", level=1)).to_have_text("debtags")
    expect(page.locator("#model-lead")).to_contain_text(f"knows {about['n_labels']:,} labels")
    assert page.locator("#model-chain b").all_inner_texts() == ["1,500", "200", f"{about['n_labels']:,}"]
    expect(page.locator("#model-expected")).to_contain_text("labelsense evaluate")
    page.get_by_text("Details").click()
    expect(page.locator("#model-list")).to_contain_text("OMPDecoder")


def test_what_to_expect_with_pictures_and_their_numbers(reported):
    expect(reported.locator("#model-expected")).to_contain_text("81.2 %")
    expect(reported.locator("#model-expected")).to_contain_text("Measured on 3,000 rows")
    last = "last 500 rows, by a model of those before them: P@1 70.1 %"
    expect(reported.locator("#model-expected")).to_contain_text(last)
    reliability, curve = reported.locator("figure.chart").all()
    assert reliability.locator("circle").count() == 4
    assert curve.locator("circle").count() == 9
    reliability.get_by_text("Numbers").click()
    assert reliability.locator("tbody tr").nth(2).inner_text().split("\t") == ["70.0 %", "72.0 %", "200"]
    x, y = (float(reliability.locator("circle").nth(2).get_attribute(name)) for name in ("cx", "cy"))
    ideal = [float(reliability.locator(".ideal").get_attribute(name)) for name in ("x1", "y1", "x2", "y2")]
    assert x == pytest.approx(ideal[0] + 0.7 * (ideal[2] - ideal[0]))
    assert y == pytest.approx(ideal[1] + 0.72 * (ideal[3] - ideal[1]))
    curve.get_by_text("Numbers").click()
    assert curve.locator("tbody tr").first.inner_text().split("\t") == ["20", "50.0 %", "30.0 %", "20.0 %"]
    expect(reported.locator("#model-figures")).to_contain_text("ranker")
    expect(reported.locator("#model-figures")).to_contain_text("Rows seem to come in runs.")
    reported.goto(reported.url.replace("#model", "#text"))
    expect(reported.locator("#threshold-value")).to_have_text("0.40")


def test_a_vocabulary_tells_what_is_broader(open_page, server):
    page = open_page()
    page.locator("#project").select_option("refined")
    page.get_by_role("link", name="Model").click()
    page.get_by_label("Find").fill("chess")
    expect(page.locator("#table tbody tr")).to_have_count(1)
    count = send(server, "ui/projects/refined/labels?query=chess")[1]["labels"][0]["count"]
    assert page.locator("#table thead th").all_inner_texts() == ["Label", "URI", "In training ↓", "Broader"]
    row = page.locator("#table tbody tr").first.locator("th, td")
    assert row.all_inner_texts() == ["chess", "game::board:chess", str(count), "board games"]
    page.get_by_role("link", name="Text", exact=True).click()
    write(page, CHESS)
    choose(page, "chess")
    expect(page.locator("#reasons-related")).to_have_text(f"{count} times in training · broader: board games")


def test_labels_are_sorted_filtered_and_paged_by_the_server(open_page, server):
    page = open_page("#model")

    def listed():
        return page.locator("#table tbody th").all_inner_texts()

    def expected(**query):
        query = {"sort": "count", "order": "descending", "limit": 50} | query
        words = "&".join(f"{key}={value}" for key, value in query.items())
        return [entry["label"] for entry in send(server, f"ui/projects/debtags/labels?{words}")[1]["labels"]]

    total = send(server, "ui/projects/debtags/labels")[1]["total"]
    expect(page.locator("#table tbody tr")).to_have_count(50)
    assert listed() == expected()
    expect(page.locator("#table-place")).to_have_text(f"1 to 50 of {total}")
    expect(page.locator("#table-back")).to_be_disabled()
    page.locator("#table-next").click()
    expect(page.locator("#table-place")).to_have_text(f"51 to 100 of {total}")
    assert listed() == expected(offset=50)
    page.get_by_role("button", name="Label", exact=True).click()
    expect(page.get_by_role("columnheader", name="Label")).to_have_attribute("aria-sort", "ascending")
    expect(page.locator("#table-place")).to_have_text(f"1 to 50 of {total}")
    assert listed() == expected(sort="label", order="ascending")
    page.get_by_role("button", name="Label").click()
    expect(page.get_by_role("columnheader", name="Label")).to_have_attribute("aria-sort", "descending")
    assert listed() == expected(sort="label")
    page.get_by_label("Find").fill("chess")
    expect(page.locator("#table-count")).to_contain_text("with “chess”")
    assert listed() == expected(sort="label", query="chess")
    expect(page.locator("#table-pages")).to_be_hidden()
