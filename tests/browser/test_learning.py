"""Labels that are accepted, rejected and added on the page are learned, and can be forgotten."""

import pytest
from conftest import CHESS
from playwright.sync_api import expect
from serving import KEY, send, wait_for
from test_text import choose, write


def acknowledged(address):
    """Return how many updates there are, when the model has learned them."""
    wait_for(lambda: updates(address)["applied"] == updates(address)["acknowledged"])
    return updates(address)["acknowledged"]


def updates(address):
    return send(address, "ui/projects/debtags/model")[1]["updates"]


def scores(address):
    results = send(address, "v1/projects/debtags/suggest", {"text": CHESS, "limit": 400})[1]["results"]
    return {result["uri"]: result["score"] for result in results}


def row(page, name):
    return page.locator(f'#labels li[data-uri="{name}"]')


def judge(page, name, verdict):
    row(page, name).hover()
    row(page, name).get_by_role("button", name=verdict).click()


@pytest.fixture
def page(open_page, learner):
    page = open_page(f"#key={KEY}", learner)
    write(page, CHESS)
    return page


def test_what_was_learned_can_be_forgotten(page, learner):
    assert KEY not in page.url
    before, count = scores(learner), acknowledged(learner)
    above = page.locator("#labels li.above .name").all_inner_texts()
    low = page.locator("#labels li.below .name").last.inner_text()
    judge(page, above[0], "reject")
    judge(page, low, "accept")
    expect(row(page, above[0]).locator(".verdict")).to_have_text("rejected")
    expect(row(page, low).locator(".verdict")).to_have_text("accepted")
    page.get_by_role("combobox", name="Add a label").press_sequentially("sound")
    expect(page.locator("#completions li").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    added = page.locator("[role=option][aria-selected=true]").evaluate("option => option.firstChild.data")
    page.keyboard.press("Enter")
    expect(row(page, added).locator(".verdict")).to_have_text("added")
    expected = [*above[1:], low, added]
    expect(page.locator("#lesson-text")).to_contain_text(f"this text has {len(expected)} labels")
    assert sorted(page.locator("#lesson-text b").inner_text().split(", ")) == sorted(expected)
    page.get_by_role("button", name="Learn this").click()
    expect(page.locator("#learned-text")).to_contain_text("Learned that “A console program")
    assert acknowledged(learner) == count + 1
    expect(page.locator("#lesson")).to_be_hidden()
    after = scores(learner)
    assert after[low] > before[low]
    expect(row(page, low).locator(".score").first).to_have_text(f"{after[low]:.2f}")
    page.get_by_role("button", name="Forget it").click()
    expect(page.locator("#learned-text")).to_contain_text("Forgotten")
    assert acknowledged(learner) == count + 2
    expect(row(page, low).locator(".verdict")).to_have_text("accepted")  # as it was before
    assert scores(learner) == pytest.approx(before, abs=1e-4)


def test_verdicts_are_given_by_keys_and_taken_back(page):
    page.locator("#labels .label").first.focus()
    first, second = page.locator("#labels li").nth(0), page.locator("#labels li").nth(1)
    page.keyboard.press("a")
    expect(first.locator(".verdict")).to_have_text("accepted")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("r")
    expect(second.locator(".verdict")).to_have_text("rejected")
    expect(page.locator("#status")).to_contain_text("rejected")
    page.keyboard.press("r")
    expect(second.locator(".verdict")).to_have_text("")
    page.get_by_role("button", name="Take back").click()
    expect(first.locator(".verdict")).to_have_text("")
    expect(page.locator("#lesson")).to_be_hidden()


def test_a_new_label_can_be_learned(page, learner):
    page.get_by_role("combobox", name="Add a label").fill("game::of-kings")
    expect(page.get_by_role("option", name="a new label")).to_be_visible()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Learn this").click()
    expect(page.locator("#learned-text")).to_contain_text("game::of-kings")
    wait_for(lambda: send(learner, "ui/projects/debtags/labels?query=of-kings")[1]["total"] == 1)


def test_who_has_no_key_is_asked_for_it(open_page, learner):
    page, count = open_page("", learner, expected=["status of 401"]), acknowledged(learner)
    write(page, CHESS)
    judge(page, page.locator("#labels .name").first.inner_text(), "accept")
    page.get_by_role("button", name="Learn this").click()
    expect(page.get_by_role("alert")).to_contain_text("This needs an API key")
    page.get_by_label("API key").fill(KEY)
    page.get_by_role("button", name="Use it").click()
    expect(page.locator("#learned-text")).to_contain_text("Learned")
    expect(page.get_by_role("alert")).to_be_hidden()
    assert acknowledged(learner) == count + 1


def test_reasons_are_of_the_model_that_has_learned(page):
    choose(page, page.locator("#labels .name").first.inner_text())
    total = page.locator(".sum b").inner_text()
    judge(page, page.locator("#labels .name").first.inner_text(), "reject")
    page.get_by_role("button", name="Learn this").click()
    expect(page.locator(".sum b")).not_to_have_text(total)


def test_where_learning_is_off_nothing_of_it_is_shown(open_page):
    page = open_page()
    write(page, CHESS)
    expect(page.locator("#adding")).to_be_hidden()
    assert page.get_by_role("button", name="accept").count() == 0
    page.locator("#labels .label").first.focus()
    page.keyboard.press("a")
    expect(page.locator("#lesson")).to_be_hidden()
