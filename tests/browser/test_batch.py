"""Files of texts are labelled on the page."""

import csv
import json

from conftest import CHESS, MAIL
from playwright.sync_api import expect
from serving import send

TEXTS = [CHESS, MAIL, 'A library, "quoted", for Python']
JSONL = "".join(json.dumps({"id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(TEXTS))
PARTS = "".join(json.dumps({"title": text, "body": ""}) + "\n\n" for text in TEXTS)
TSV = "\n".join(f"{text}\thttp://x" for text in TEXTS)
NAMED_TSV = "id\ttext\n" + "\n".join(f"d{i}\t{text}" for i, text in enumerate(TEXTS))
CSV = (
    'document_id,text\r\n"d0","' + TEXTS[0] + '"\r\nd1,"' + TEXTS[1] + '"\r\nd2,"A library, ""quoted"", for Python"\r\n'
)


def upload(page, name, content):
    page.locator("#batch-file").set_input_files({"name": name, "mimeType": "text/plain", "buffer": content.encode()})


def expected(server, texts, limit=10, threshold=0.5):
    question = {"documents": [{"text": text} for text in texts], "limit": limit, "threshold": threshold}
    answers = send(server, "v1/projects/debtags/suggest-batch", question)[1]
    return [[result["uri"] for result in answer["results"]] for answer in answers]


def save(page, kind):
    with page.expect_download() as download:
        page.get_by_role("button", name=kind, exact=True).click()
    with open(download.value.path(), newline="") as file:
        return download.value.suggested_filename, file.read()


def test_files_of_texts_get_labels(open_page, server):
    page, labels = open_page("#batch"), expected(server, TEXTS)
    files = {"a.jsonl": JSONL, "b.jsonl": PARTS, "c.tsv": TSV, "d.tsv": "\ufeff" + NAMED_TSV, "e.csv": CSV}
    for name, content in files.items():
        upload(page, name, content)
        expect(page.locator("#batch-about")).to_have_text(f"{name[0]}: 3 of 3 texts, done")
        file, saved = save(page, "JSON lines")
        assert file == f"{name[0]}-labels.jsonl"
        assert [json.loads(line)["labels"] for line in saved.splitlines()] == labels


def test_results_are_shown_and_saved_as_tables(open_page, server):
    page = open_page("#batch")
    page.locator("#batch-limit").fill("3")
    page.locator("#batch-threshold").fill("0.1")
    upload(page, "a.jsonl", JSONL)
    expect(page.locator("#batch-about")).to_contain_text("done")
    labels = expected(server, TEXTS, 3, 0.1)
    pairs = [[f"d{i}", uri] for i, row in enumerate(labels) for uri in row]
    for kind, separator in (("TSV", "\t"), ("CSV", ",")):
        head, *rows = csv.reader(save(page, kind)[1].splitlines(), delimiter=separator)
        assert head == ["document_id", "uri", "label", "score"]
        assert [row[:2] for row in rows] == pairs
    assert page.locator("#batch-table tbody th").all_inner_texts() == ["d0", "d1", "d2"]
    for cell, row in zip(page.locator("#batch-table tbody td").all_inner_texts(), labels, strict=True):
        assert all(uri in cell for uri in row)


def test_many_texts_go_in_several_requests_with_progress(open_page, server):
    page = open_page("#batch")
    sizes = []
    page.on(
        "request",
        lambda request: (
            sizes.append(len(request.post_data_json["documents"]))
            if "batch" in request.url and request.method == "POST"
            else None
        ),
    )
    upload(page, "many.txt", "\n".join(f"{TEXTS[i % 2]} {i}" for i in range(150)))
    expect(page.locator("#batch-about")).to_have_text("many: 150 of 150 texts, done")
    assert sum(sizes) == 150
    assert max(sizes) == send(server, "ui/service")[1]["limits"]["batch"]
    assert page.locator("#batch-progress").evaluate("bar => bar.position") == 1
    expect(page.locator("#batch-table tbody tr")).to_have_count(100)
    expect(page.locator("#batch-more")).to_contain_text("The first 100 are shown")


def test_a_busy_server_is_waited_for_and_a_batch_can_be_stopped(open_page):
    page = open_page("#batch", expected=["status of 503"])
    busy = {"status": 503, "headers": {"Retry-After": "0"}, "json": {"detail": "Too many."}}
    asked = []

    def answer(route):
        asked.append(route)
        if len(asked) == 1:
            route.fulfill(**busy)
        elif len(asked) < 4:
            route.continue_()

    page.route("**/suggest-batch", answer)
    upload(page, "many.txt", "\n".join(TEXTS * 50))
    expect(page.locator("#batch-about")).to_contain_text("64 of 150")
    page.get_by_role("button", name="Stop").click()
    for route in asked[3:]:
        route.fulfill(**busy)
    expect(page.locator("#batch-about")).to_contain_text("stopped")
    assert len(save(page, "JSON lines")[1].splitlines()) == 64


def test_files_that_cannot_be_read_are_refused_in_words(open_page):
    page = open_page("#batch")
    for name, content, words in [
        ("a.jsonl", '{"text": "a"}\n{"text": ', "Line 2 is not a JSON object. Nothing was sent."),
        ("a.jsonl", '{"text": "a"}\n{"txt": "b"}', 'Line 2 has no field "text"'),
        ("a.csv", "a,b\n1,2", 'must have the name "text"'),
        ("a.csv", 'text\n"never ends', "a quote that does not end"),
        ("a.jsonl", "\n", "a.jsonl has no texts"),
    ]:
        upload(page, name, content)
        expect(page.get_by_role("alert")).to_contain_text(words)
        expect(page.locator("#batch-run")).to_be_hidden()
