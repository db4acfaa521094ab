"""The page in a browser: labels while one types, the threshold, reasons, and what becomes of the text."""

import json
import re

import pytest
from conftest import CHESS, MAIL
from playwright.sync_api import expect
from serving import send

DEBTAGS = "v1/projects/debtags"
METRICS = """id => {
    const element = document.getElementById(id), style = getComputedStyle(element);
    const { font, paddingLeft, borderLeftWidth, letterSpacing, whiteSpace } = style;
    return [element.offsetWidth, element.scrollHeight, font, paddingLeft, borderLeftWidth, letterSpacing, whiteSpace];
}"""
DROP = """text => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([text], "a.txt", { type: "text/plain" }));
    document.getElementById("sheet").dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true }));
}"""


def shown(page):
    """Return the labels of the page with their numbers."""
    rows = page.locator("#labels li")
    return [(row.locator(".name").inner_text(), row.locator(".score").first.inner_text()) for row in rows.all()]


def suggestions(server, text, limit=10, model="debtags"):
    return send(server, f"v1/projects/{model}/suggest", {"text": text, "limit": limit})[1]["results"]


def suggested(server, text, limit=10, model="debtags"):
    """Return what the page should show."""
    return [(result["label"], f"{result['score']:.2f}") for result in suggestions(server, text, limit, model)]


def write(page, text):
    """Put a text in, and wait for its labels."""
    with page.expect_response(lambda answer: answer.url.endswith("/suggest")):
        page.locator("#document").fill(text)
    expect(page.locator("#labels li").first).to_be_visible()


def choose(page, name):
    page.locator("#labels .label").filter(has_text=name).first.click()
    expect(page.locator("#reasons")).to_be_visible()
    expect(page.locator("#reasons-title")).to_contain_text(name)


def test_labels_appear_while_one_types(open_page, server):
    page = open_page()
    expect(page.locator("#nothing")).to_contain_text("This model gives a text the labels that suit it")
    asked = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/suggest") else None)
    with page.expect_response(lambda answer: answer.url.endswith("/suggest")):
        page.locator("#document").press_sequentially(CHESS, delay=1)
    expect(page.locator("#labels li")).to_have_count(10)
    expect(page.locator("#labels .score").first).to_have_text(suggested(server, CHESS)[0][1])
    assert sorted(shown(page)) == sorted(suggested(server, CHESS))
    assert len(asked) < len(CHESS) / 10  # not for every key
    for row in page.locator("#labels li").all():
        width = row.locator(".bar").first.evaluate("bar => new DOMMatrix(getComputedStyle(bar).transform).a")
        assert width == pytest.approx(float(row.locator(".score").first.inner_text()), abs=0.006)


def stop_the_clock(page):
    page.clock.install(time=0)
    page.clock.pause_at(1000)


def test_the_old_labels_stay_until_the_new_ones_are_there(open_page):
    page = open_page()
    write(page, CHESS)
    before = shown(page)
    held = []
    page.route("**/suggest", lambda route: held.append(route))
    stop_the_clock(page)
    page.locator("#document").fill(MAIL)
    page.clock.run_for(140)
    assert not held  # somebody may still be typing
    with page.expect_request("**/suggest"):
        page.clock.run_for(20)
    page.clock.run_for(400)
    expect(page.locator("#busy")).to_be_hidden()
    page.clock.run_for(200)
    expect(page.locator("#busy")).to_be_visible()
    assert shown(page) == before
    held[0].continue_()
    expect(page.locator("#busy")).to_be_hidden()
    assert shown(page) != before


def test_a_late_answer_does_not_replace_a_later_one(open_page, server):
    page = open_page()
    held = []
    page.route("**/suggest", lambda route: held.append(route) if not held else route.continue_())
    page.locator("#document").fill(CHESS)
    page.wait_for_timeout(250)
    page.locator("#document").fill(MAIL)
    expect(page.locator("#labels li")).to_have_count(10)
    page.unroute_all(behavior="ignoreErrors")
    page.wait_for_timeout(100)
    assert sorted(shown(page)) == sorted(suggested(server, MAIL))


def test_rows_keep_their_places_while_their_ranks_change_by_one(open_page):
    page = open_page()
    arrange = """async ([scores, before]) => (await import("/labels.js"))
        .arrange(Object.entries(scores).map(([uri, score]) => ({uri, score})), [...before].map(uri => ({uri})))
        .map(item => item.uri).join("")"""

    def arranged(scores, before):
        return page.evaluate(arrange, [scores, before])

    assert arranged({"a": 0.9, "b": 0.8, "c": 0.7}, "") == "abc"
    assert arranged({"a": 0.8, "b": 0.9, "c": 0.7}, "abc") == "abc"  # neighbours have changed places
    assert arranged({"a": 0.6, "b": 0.9, "c": 0.7}, "abc") == "bca"  # a has fallen by two
    assert arranged({"a": 0.4, "b": 0.6}, "ab") == "ba"  # on two sides of the threshold
    assert arranged({"d": 0.95, "a": 0.8, "b": 0.9}, "ab") == "dba"


def test_the_number_of_labels_is_bounded(open_page, server):
    page = open_page()
    write(page, CHESS)
    page.locator("#limit").fill("3")
    expect(page.locator("#labels li")).to_have_count(3)
    page.locator("#limit").fill("30")
    expect(page.locator("#labels li")).to_have_count(len(suggested(server, CHESS, 30)))


def test_the_threshold_is_a_slider_and_a_line_to_drag(open_page, server):
    page = open_page()
    write(page, CHESS)
    scores = [result["score"] for result in suggestions(server, CHESS)]

    def above():
        return page.locator("#labels li.above").count()

    assert above() == sum(score >= 0.5 for score in scores)
    page.locator("#threshold").fill("0.2")
    assert above() == sum(score >= 0.2 for score in scores)
    rows = [row.bounding_box() for row in page.locator("#labels li").all()]
    line = page.locator("#line").bounding_box()
    page.mouse.move(line["x"] + 50, line["y"] + line["height"] / 2)
    page.mouse.down()
    page.mouse.move(line["x"] + 50, rows[2]["y"] + 1, steps=5)
    page.mouse.up()
    assert above() == 2
    assert scores[2] < float(page.locator("#threshold-value").inner_text()) <= scores[1]
    line = page.locator("#line").bounding_box()
    assert line["y"] + line["height"] / 2 == pytest.approx(rows[2]["y"], abs=2)
    page.get_by_role("button", name="back to 0.50").click()
    assert above() == sum(score >= 0.5 for score in scores)


def test_why_the_words_for_and_against_add_up(open_page, server):
    page = open_page()
    write(page, CHESS)
    choose(page, "game::board:chess")
    answer = send(server, f"{DEBTAGS}/explain", {"text": CHESS, "uri": "game::board:chess", "limit": 16})[1]
    parts = page.locator(".parts li")
    values = [float(value.replace("−", "-")) for value in parts.locator(".score").all_inner_texts()]
    assert parts.locator(".name").all_inner_texts()[0] == "chess"
    total = float(page.locator(".sum b").inner_text())
    assert total == pytest.approx(answer["score"], abs=1e-3)
    assert sum(values) == pytest.approx(total, abs=1e-3 * len(values))
    largest = max(abs(mark["value"]) for mark in answer["marks"])
    expected = [CHESS[m["start"] : m["end"]] for m in answer["marks"] if abs(m["value"]) >= largest / 12]
    assert page.locator("#mirror mark").all_inner_texts() == expected
    assert "chess" in page.locator("#mirror mark.for.strength-3").all_inner_texts()
    page.keyboard.press("Escape")
    expect(page.locator("#reasons")).to_be_hidden()
    expect(page.locator("#mirror mark")).to_have_count(0)


def test_marks_lie_behind_their_words(open_page):
    page = open_page()
    text = "🙂🙂 ein Zeichen 𝒳 mehr: " + CHESS + "\n\n" + "much more of chess " * 80
    write(page, text)
    choose(page, "game::board:chess")
    assert "chess" in page.locator("#mirror mark").all_inner_texts()
    assert set(page.locator("#mirror mark.strength-3").all_inner_texts()) <= {"chess"}
    assert page.evaluate(METRICS, "mirror") == page.evaluate(METRICS, "document")
    page.locator("#document").press("Home")
    page.locator("#document").evaluate("area => area.setSelectionRange(0, 0)")
    page.keyboard.type("xy ")
    assert "chess" in page.locator("#mirror mark").all_inner_texts()  # they have moved along
    assert page.locator("#mirror").inner_text().startswith("xy 🙂🙂")


def test_how_the_decoder_takes_labels_while_the_residual_falls(open_page, server):
    page = open_page()
    write(page, CHESS)
    choose(page, "role::program")
    page.get_by_role("button", name="How").click()
    answer = send(server, "ui/projects/debtags/how", {"text": CHESS})[1]
    steps = page.locator(".steps li")
    expect(steps).to_have_count(len(answer["steps"]))
    assert steps.locator(".name").all_inner_texts() == [step["taken"][0]["label"] for step in answer["steps"]]
    left = [float(words.split()[0]) for words in steps.locator(".left").all_inner_texts()]
    assert left == sorted(left, reverse=True)
    assert left[-1] < 0.95

    def bars():
        paths = [page.locator(id).get_attribute("d") for id in ("#bars-for", "#bars-against")]
        heights = [abs(float(y) - 50) for path in paths for y in re.findall(r"V([\d.]+)", path)]
        return len(heights), sum(height**2 for height in heights) ** 0.5

    count, end = bars()
    assert count == 200
    for _ in answer["steps"]:
        page.locator("#step-back").click()
    _, start = bars()
    assert end / start == pytest.approx(answer["steps"][-1]["residual"], abs=0.01)
    expect(page.locator("#step-back")).to_be_disabled()
    expect(steps.first).to_be_hidden()
    page.locator("#step-on").click()
    expect(steps.first).to_be_visible()
    expect(page.locator("#step-words")).to_contain_text(f"step 1 of {len(answer['steps'])}: role::program")
    expect(page.locator(".refinement")).to_contain_text("no refinement")


def test_the_course_can_be_played(open_page):
    page = open_page(reduced_motion="no-preference")
    write(page, CHESS)
    choose(page, "role::program")
    page.get_by_role("button", name="How").click()
    stop_the_clock(page)
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.locator("#step-words")).to_contain_text("before the first step")
    page.clock.run_for(2000)
    expect(page.locator("#step-words")).to_contain_text("step 2 of")
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(5000)
    expect(page.locator("#step-words")).to_contain_text("step 2 of")
    page.get_by_role("button", name="Play", exact=True).click()
    page.clock.run_for(60_000)
    expect(page.locator("#step-on")).to_be_disabled()
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()


def first_changed(server, text):
    """Return the first label, with its number, of which refinement makes more than what the words say, or less."""
    for result in suggestions(server, text, model="refined"):
        told = send(server, "v1/projects/refined/explain", {"text": text, "uri": result["uri"]})[1]
        if abs(told["probability"] - told["score"]) > 0.01:
            return result["label"], f"{result['score']:.2f}"
    raise AssertionError("refinement changes nothing")


def test_what_refinement_changed_is_the_last_line(open_page, server):
    page = open_page()
    page.locator("#project").select_option("refined")
    expect(page.locator("#threshold-origin")).to_contain_text("chosen by F1")
    write(page, CHESS)
    assert shown(page)[0] == suggested(server, CHESS, model="refined")[0]
    name, score = first_changed(server, CHESS)
    assert (name, score) in shown(page)
    choose(page, name)
    expect(page.locator("#why .lead")).to_contain_text(f"Refinement makes it {score}")
    judges = page.locator("#why .equation")
    assert judges.count() == 2  # the measurements, and the classifier of the label
    for judge in judges.all():
        values = [float(value.replace("−", "-")) for value in judge.locator(".parts .score").all_inner_texts()]
        assert sum(values) == pytest.approx(float(judge.locator(".sum b").inner_text()), abs=1e-3 * len(values))
    page.get_by_role("button", name="How").click()
    change = page.locator(".change.chosen")
    expect(change.locator(".name")).to_have_text(name)
    refinement = send(server, "ui/projects/refined/how", {"text": CHESS})[1]["refinement"]
    (found,) = [entry for entry in refinement["labels"] if entry["label"] == name]
    expect(change.locator(".score")).to_have_text(f"{found['before']:.2f} → {score}")
    verdict = page.locator(".verdicts")
    expect(verdict).to_contain_text(f"{found['before']:.2f} → {score}")
    expect(verdict).to_contain_text(f"of {refinement['candidates']} candidates")
    assert verdict.locator("li").count() == len(found["places"]) == 7
    assert found["places"]["ranker"] == int(verdict.locator("li b").last.inner_text().rstrip("stndrh"))


def test_approximations_are_called_so(open_page, server):
    page = open_page()
    answer = send(server, f"{DEBTAGS}/explain", {"text": CHESS, "uri": "role::program"})[1]
    inexact = {**answer, "exact": False, "probability": 0.93}
    page.route("**/explain", lambda route: route.fulfill(json=inexact))
    write(page, CHESS)
    choose(page, "role::program")
    expect(page.locator("#why")).to_contain_text("An approximation")
    expect(page.locator("#why")).to_contain_text("Refinement makes it 0.93")


def test_reasons_follow_the_text(open_page):
    page = open_page()
    write(page, CHESS)
    choose(page, "role::program")
    first = page.locator(".sum b").inner_text()
    write(page, "A console program to play chess.")
    expect(page.locator(".sum b")).not_to_have_text(first)
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#reasons")).to_be_hidden()
    expect(page.locator("#labels li")).to_have_count(0)


def test_models_that_cannot_tell_say_so(open_page):
    page = open_page()
    page.locator("#project").select_option("features")
    expect(page.locator("#document")).to_have_attribute("placeholder", re.compile("Features as JSON"))
    page.locator("#document").fill("a text")
    expect(page.locator("#trouble")).to_contain_text("takes features, not texts")


def test_features_are_taken_as_json(open_page, server):
    page = open_page(expected=["status of 409"])
    page.locator("#project").select_option("features")
    expect(page.locator("#document")).to_have_attribute("placeholder", re.compile("Features as JSON"))
    write(page, '{"3": 2, "7": 1}')
    results = send(server, "v1/projects/features/suggest", {"features": {"3": 2, "7": 1}})[1]["results"]
    assert [label for label, _ in shown(page)] == [result["label"] for result in results]
    page.locator("#labels .label").first.click()
    expect(page.locator("#why")).to_contain_text("cannot tell")


def test_two_models_are_compared(open_page, server):
    page = open_page()
    write(page, CHESS)
    with page.expect_response(lambda answer: "/other/suggest" in answer.url):
        page.locator("#compare").select_option("other")
    expect(page.locator("#legend")).to_contain_text("other")
    ours, theirs = dict(suggested(server, CHESS)), dict(suggested(server, CHESS, model="other"))
    expect(page.locator("#labels li")).to_have_count(len(ours.keys() | theirs.keys()))
    for row in page.locator("#labels li").all():
        name = row.locator(".name").inner_text()
        assert row.locator(".score").all_inner_texts() == [ours.get(name, "–"), theirs.get(name, "–")]
    page.locator("#compare").select_option("")
    expect(page.locator("#labels li")).to_have_count(10)


def test_labels_are_shown_in_the_language_that_is_chosen(open_page, server):
    page = open_page()
    about = send(server, "ui/projects/debtags/model")[1]
    about["vocab"]["languages"] = ["en", "fi"]
    names = {"en": "chess", "fi": "shakki"}

    def answer(route):
        label = names[route.request.post_data_json["language"]]
        route.fulfill(json={"results": [{"uri": "http://x/1", "label": label, "notation": "79", "score": 0.9}]})

    page.route("**/ui/projects/debtags/model", lambda route: route.fulfill(json=about))
    page.route("**/suggest", answer)
    page.reload()
    write(page, CHESS)
    assert shown(page) == [("79 chess", "0.90")]
    page.get_by_label("Labels in").select_option("fi")
    expect(page.locator("#labels .name")).to_have_text("79 shakki")
    assert page.locator("#labels .name").get_attribute("title") == "http://x/1"


def test_examples_and_files_become_the_text(open_page, server):
    page = open_page()
    page.get_by_role("button", name="a mail server").click()
    expect(page.locator("#document")).to_have_value(MAIL)
    expect(page.locator("#labels li")).to_have_count(10)
    assert shown(page) == suggested(server, MAIL)
    page.locator("#file").set_input_files({"name": "chess.txt", "mimeType": "text/plain", "buffer": CHESS.encode()})
    expect(page.locator("#document")).to_have_value(CHESS)
    page.evaluate(DROP, MAIL)
    expect(page.locator("#document")).to_have_value(MAIL)
    page.locator("#file").set_input_files({"name": "a.bin", "mimeType": "text/plain", "buffer": b"\x00\x01"})
    expect(page.locator("#trouble")).to_contain_text("a.bin is not a text")


def test_labels_are_copied_and_saved(open_page, server):
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    write(page, CHESS)
    above = [(r["label"], f"{r['score']:.2f}") for r in suggestions(server, CHESS) if r["score"] >= 0.5]
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "\n".join(f"{a}\t{b}" for a, b in above)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save").click()
    with open(download.value.path()) as file:
        saved = json.load(file)
    assert saved["text"] == CHESS
    assert [label["uri"] for label in saved["labels"]] == [label for label, _ in above]


def test_the_text_is_kept(open_page, server):
    page = open_page()
    write(page, CHESS)
    page.reload()
    expect(page.locator("#document")).to_have_value(CHESS)
    expect(page.locator("#labels li")).to_have_count(10)
    page.get_by_role("button", name="Clear").click()
    page.reload()
    expect(page.locator("#nothing")).to_be_visible()
    expect(page.locator("#document")).to_have_value("")


def test_errors_say_what_to_do_and_leave_the_text(open_page):
    page = open_page(expected=["Failed to load resource"])
    write(page, CHESS)
    page.route("**/suggest", lambda route: route.abort())
    page.locator("#document").fill(MAIL)
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer. Your text is kept here")
    expect(page.locator("#document")).to_have_value(MAIL)
    assert page.locator("#labels li").count() == 10
    page.unroute("**/suggest")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert")).to_be_hidden()
    page.locator("#document").evaluate(
        "area => { area.value = 'x'.repeat(1000001); area.dispatchEvent(new Event('input')) }"
    )
    expect(page.get_by_role("alert")).to_contain_text(
        "has 1,000,001 characters, and the server takes 1,000,000. Shorten it."
    )


def test_texts_and_labels_are_never_markup(open_page):
    page = open_page()
    evil = '<img src=x onerror="window.hit=1">'
    result = {"uri": evil, "label": evil, "notation": evil, "score": 0.9}
    part = {"feature": evil, "value": 0.5}
    why = {
        **result,
        "probability": None,
        "constant": 0,
        "parts": [part],
        "rest": 0,
        "exact": True,
        "marks": [{"start": 0, "end": 4, "value": 1}],
    }
    page.route("**/suggest", lambda route: route.fulfill(json={"results": [result]}))
    page.route("**/explain", lambda route: route.fulfill(json=why))
    write(page, evil)
    page.locator("#labels .label").click()
    expect(page.locator("#why")).to_contain_text(evil)
    assert page.locator("img").count() == 0
    assert page.evaluate("window.hit") is None
