"""The page is for everyone: keyboard, screen reader, dark, narrow, offline, and light."""

from pathlib import Path

import pytest
from conftest import CHESS, MAIL
from playwright.sync_api import expect
from serving import KEY, send
from test_batch import JSONL, upload
from test_model import reported as reported
from test_text import choose, write

import labelsense.serve

AUDIT = (Path(__file__).parent / "audit.js").read_text()
PAGE = Path(labelsense.serve.__file__).parent / "page"
LOOK = """() => {
    const element = document.activeElement, outline = getComputedStyle(element).outlineStyle;
    return [element.id || element.textContent.trim(), outline !== "none" || element.matches("body, #document")];
}"""
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


def audit(page):
    assert page.evaluate(AUDIT) == []


@pytest.mark.parametrize("settings", [{}, {"color_scheme": "dark"}, PHONE], ids=["light", "dark", "phone"])
def test_nothing_keeps_people_out(open_page, learner, settings):
    page = open_page(f"#key={KEY}", learner, **settings)
    audit(page)
    write(page, CHESS)
    page.locator("#labels .label").nth(1).focus()
    page.keyboard.press("a")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("r")
    expect(page.locator("#lesson")).to_be_visible()
    page.locator("#add").fill("sou")
    expect(page.locator("#completions li").first).to_be_visible()
    audit(page)
    page.keyboard.press("Escape")
    choose(page, page.locator("#labels .name").first.inner_text())
    audit(page)
    page.get_by_role("button", name="How", exact=True).click()
    expect(page.locator(".steps")).to_be_visible()
    audit(page)
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Help").click()
    audit(page)
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page.get_by_role("link", name="Batch").click()
    upload(page, "a.jsonl", JSONL)
    expect(page.locator("#batch-about")).to_contain_text("done")
    audit(page)


@pytest.mark.parametrize("settings", [{}, {"color_scheme": "dark"}, PHONE], ids=["light", "dark", "phone"])
def test_nothing_of_a_model_keeps_people_out(reported, settings):
    reported.set_viewport_size(settings.get("viewport", {"width": 1280, "height": 900}))
    reported.emulate_media(color_scheme=settings.get("color_scheme", "light"))
    expect(reported.locator("#table tbody tr").first).to_be_visible()
    closed = reported.locator("details:not([open]) > summary")
    while closed.count():
        closed.first.click()
    audit(reported)


def test_the_audit_finds_what_is_wrong(open_page):
    page = open_page()
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<button></button><p id=text-tools>a</p><h4>b</h4>')")
    page.evaluate("document.querySelector('h4').style.color = '#999'")
    found = " ".join(page.evaluate(AUDIT))
    for words in ("no name: button", "twice: #text-tools", "heading leaps: b", "contrast"):
        assert words in found


def test_everything_can_be_done_by_keys(open_page):
    page = open_page()
    expect(page.locator("#document")).to_be_focused()
    page.keyboard.type(CHESS)
    expect(page.locator("#labels li").nth(9)).to_be_visible()
    for _ in range(8):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('#labels .label')"):
            break
    labels = page.locator("#labels .label")
    expect(labels.first).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(labels.nth(2)).to_be_focused()
    assert labels.nth(2).evaluate("label => getComputedStyle(label).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(page.locator("#reasons")).to_be_visible()
    expect(labels.nth(2)).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Escape")
    expect(page.locator("#reasons")).to_be_hidden()
    expect(labels.nth(2)).to_be_focused()
    page.keyboard.press("End")
    expect(labels.last).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("#limit")).to_be_focused()  # one stop for the list
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#threshold-value")).to_have_text("0.49")


def test_each_stop_of_the_tab_key_is_seen(open_page):
    page = open_page()
    write(page, CHESS)
    choose(page, "role::program")
    page.locator("body").click(position={"x": 2, "y": 2})
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        look = page.evaluate(LOOK)
        if look[0] in seen:
            break
        seen.append(look[0])
        assert look[1], look[0]
    wanted = [
        "project",
        "Text",
        "Batch",
        "Model",
        "theme",
        "help-open",
        "document",
        "open",
        "limit",
        "threshold",
        "copy",
        "show-why",
        "reasons-close",
    ]
    assert [name for name in seen if name in wanted] == wanted


def test_changes_are_told_politely(open_page):
    page = open_page()
    assert page.get_by_role("status").get_attribute("class") == "spoken"
    write(page, CHESS)
    expect(page.get_by_role("status")).to_contain_text("above the threshold: role::program")
    row = page.get_by_role("list", name="Labels").get_by_role("button", name="role::program")
    expect(row).to_have_accessible_name(
        row.locator(".name").inner_text() + " " + row.locator(".score").first.inner_text()
    )


def test_dark_is_what_the_system_says_until_one_chooses(open_page):
    page = open_page(color_scheme="dark")

    def paper():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    dark = paper()
    page.emulate_media(color_scheme="light")
    expect(page.get_by_role("button", name="Dark")).to_be_visible()
    assert paper() != dark
    page.get_by_role("button", name="Dark").click()
    assert paper() == dark
    page.reload()
    assert paper() == dark
    expect(page.get_by_role("button", name="Light")).to_be_visible()


def test_on_a_phone_reasons_are_a_sheet_below(open_page):
    page = open_page(**PHONE)
    write(page, CHESS)
    text, labels = page.locator("#document").bounding_box(), page.locator("#labels").bounding_box()
    assert text["y"] + text["height"] < labels["y"]
    page.locator("#labels .label").nth(1).tap()
    sheet = page.locator("#reasons")
    expect(sheet).to_be_focused()
    box = sheet.bounding_box()
    assert box["y"] + box["height"] == pytest.approx(740, abs=1)
    assert box["y"] > 250
    page.get_by_role("button", name="Close").tap()
    expect(sheet).to_be_hidden()


def test_views_are_addresses(open_page, server):
    page = open_page()
    page.get_by_role("link", name="Model").click()
    expect(page.locator("#view-model")).to_be_visible()
    expect(page.get_by_role("link", name="Model")).to_have_attribute("aria-current", "page")
    page.go_back()
    expect(page.locator("#view-text")).to_be_visible()
    expect(page).to_have_title("labelsense")


def test_the_page_is_light_and_complete_in_itself(open_page, server):
    files = list(PAGE.iterdir())
    assert {path.suffix for path in files} == {".html", ".css", ".js"}
    assert sum(path.stat().st_size for path in files) < 150_000
    page = open_page()
    paths = page.evaluate("performance.getEntriesByType('resource').map(entry => new URL(entry.name).pathname)")
    loaded = [path for path in paths if not path.startswith(("/ui/", "/v1/"))]
    assert sorted(loaded) == sorted(f"/{path.name}" for path in files if path.suffix != ".html")  # each of them, once


def test_where_every_request_needs_a_key_the_page_asks_for_it(open_page, server):
    page = open_page(expected=["status of 401"])

    def guard(route):
        known = route.request.headers.get("authorization") == f"Bearer {KEY}"
        route.continue_() if known else route.fulfill(status=401, json={"detail": "This needs an API key."})

    page.route("**/ui/**", guard)
    page.route("**/v1/**", guard)
    page.reload()
    page.get_by_label("API key").fill(KEY)
    page.get_by_role("button", name="Use it").click()
    expect(page.locator("#project")).to_have_value("debtags")
    write(page, MAIL)
    page.reload()
    expect(page.locator("#labels li").first).to_be_visible()
    assert send(server, "ui/service")[0] == 200
