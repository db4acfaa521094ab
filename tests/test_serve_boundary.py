"""Keys, other web sites, headers, the log, the metrics, and the files of the page."""

import logging
import re
import socket

import pytest
from serving import KEY, TAGS, WITH_KEY, make_model, serving

from labelsense.errors import InputError
from labelsense.serve.keys import Keys, read_keys
from labelsense.serve.limits import Limits
from labelsense.serve.server import is_loopback, serve

SECRET = "a secret text about chess"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    make_model(path)
    return path


@pytest.fixture(scope="module")
def client(path):
    with serving(path) as client:
        yield client


def test_beyond_this_machine_everything_needs_a_key(path):
    with serving(path, everything=True) as client:
        for address in ("/v1/", "/v1/projects", "/ui/service", "/metrics"):
            assert client.get(address).status_code == 401
            assert client.get(address, headers=WITH_KEY).status_code == 200
        assert client.post(f"{TAGS}/suggest", data={"text": "chess"}).status_code == 401
        assert client.post(f"{TAGS}/suggest", data={"text": "chess"}, headers={"X-API-Key": KEY}).status_code == 200
        for address in ("/v2/health/live", "/v2/health/ready", "/openapi.json", "/docs"):
            assert client.get(address).status_code == 200


def test_there_is_no_start_without_a_key_that_is_needed(path):
    for settings in ({"host": "0.0.0.0"}, {"learning": True}):
        with pytest.raises(InputError, match="api_key_file is needed"):
            serve({"tags": path}, port=0, **settings)
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "example.org")] == [
        *[True] * 3,
        *[False] * 3,
    ]


def test_a_port_that_is_taken_is_refused_before_models_are_loaded(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port} of 127.0.0.1 cannot be listened on"):
            serve({"tags": tmp_path / "missing"}, port=port)


def test_key_files(tmp_path):
    file = tmp_path / "keys"
    file.write_text(f"# the first\n\n  {KEY}  \nanother-key-for-tests\n")
    assert read_keys(file) == [KEY, "another-key-for-tests"]
    file.write_text("# none\n")
    with pytest.raises(InputError, match="has no API key"):
        read_keys(file)
    with pytest.raises(InputError, match="at least 16 characters"):
        Keys(["short"])


def test_scripts_of_other_sites_are_let_in_only_by_name(path, client):
    origin = {"Origin": "https://example.org"}
    assert "access-control-allow-origin" not in client.get("/v1/projects", headers=origin).headers
    with serving(path, origins=["https://example.org"], everything=True) as named:
        ask = {**origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        allowed = named.options(f"{TAGS}/suggest", headers=ask)
        assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, "https://example.org")
        other = named.options(f"{TAGS}/suggest", headers=ask | {"Origin": "https://example.com"})
        assert "access-control-allow-origin" not in other.headers


def test_every_answer_has_the_security_headers(client):
    for answer in (client.get("/v1/"), client.get("/nothing"), client.post(f"{TAGS}/suggest"), client.get("/docs")):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers
    assert client.get("/v1/").headers["cache-control"] == "no-store"


def test_the_files_of_the_page_are_served_and_nothing_else(path, monkeypatch, tmp_path):
    (tmp_path / "page").mkdir()
    for name in ("index.html", "page.css", "page.js", "labels.js"):
        (tmp_path / "page" / name).write_text(name)
    (tmp_path / "secret.js").write_text(SECRET)
    monkeypatch.setattr("labelsense.serve.app.PAGE", tmp_path / "page")
    with serving(path, everything=True) as client:
        (tmp_path / "page" / "later.js").write_text(SECRET)
        assert client.get("/").text == "index.html"
        for name, kind in (("page.css", "text/css"), ("page.js", "javascript"), ("labels.js", "javascript")):
            answer = client.get(f"/{name}")
            assert (answer.status_code, answer.text) == (200, name)
            assert kind in answer.headers["content-type"]
            assert answer.headers["cache-control"] == "no-cache"
            assert client.get(f"/{name}", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
        for name in ("later.js", "secret.js", "../secret.js", "%2e%2e/secret.js", "..%2fsecret.js", "page/page.js"):
            assert client.get(f"/{name}").status_code == 404, name


def test_the_log_tells_what_was_asked_and_not_the_text(client, caplog):
    with caplog.at_level(logging.DEBUG, logger="labelsense"):
        client.post(f"{TAGS}/suggest?text={SECRET}", data={"text": SECRET})
        client.get(f"/ui/projects/tags/complete?query={SECRET}")
        client.get(f"/{SECRET}")
        client.post(f"/v1/projects/{SECRET}/suggest", data={"text": SECRET})
        client.post(f"{TAGS}/suggest", data={"text": SECRET, "limit": SECRET})
    lines = [record.getMessage() for record in caplog.records if record.name == "labelsense.serve.access"]
    assert re.fullmatch(r"testclient POST /v1/projects/tags/suggest 200 \d+\.\d ms", lines[0])
    assert len(lines) == 5
    assert "secret" not in caplog.text


def test_a_failure_of_ours_has_no_traceback_in_the_answer(path, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError(f"{SECRET} in {path}")

    with serving(path) as client:
        monkeypatch.setattr("labelsense.serve.answers.suggest", fail)
        answer = client.post(f"{TAGS}/suggest", data={"text": "chess"})
        assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
        assert answer.json()["detail"] == "The server has failed, and its log says how."
        assert "RuntimeError" in caplog.text
        assert client.get("/v2/health/live").json() == {"live": True}


def test_metrics_count(path):
    with serving(path) as client:
        for _ in range(3):
            client.post(f"{TAGS}/suggest", data={"text": "chess"})
        client.get("/v1/projects/other")
        text = client.get("/metrics").text
    assert 'labelsense_requests_total{endpoint="suggest",status="200"} 3.0' in text
    assert 'labelsense_requests_total{endpoint="show_project",status="404"} 1.0' in text
    assert 'labelsense_request_seconds_count{endpoint="suggest"} 3.0' in text
    assert 'labelsense_labels{project="tags"} 5.0' in text
    assert 'labelsense_waiting_documents{project="tags"} 0.0' in text


def test_more_requests_than_may_be_at_a_time_are_refused(path):
    with serving(path, limits=Limits(concurrent=0)) as client:
        answer = client.get("/v1/projects")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert client.get("/v2/health/live").status_code == 200


def test_the_description_is_whole_and_readable(client):
    description = client.get("/openapi.json").json()
    assert description["openapi"].startswith("3.1")
    routes = {(route.path, method.lower()) for route in client.app.routes for method in (route.methods or ())}
    described = {
        (path, method) for path, item in description["paths"].items() for method in item if method != "parameters"
    }
    undescribed = {"/v1", "/metrics", "/openapi.json", "/docs"}
    assert {(path, method) for path, method in routes if method != "head"} - described == {
        (path, "get") for path in undescribed
    }
    assert described <= routes
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "POST /v1/projects/{project_id}/suggest" in page.text
    assert not re.search(r"(src|href)=.?(https?:)?//|<script|<style", page.text)
    targets = set(re.findall(r'href="#(\w+)"', page.text))
    assert targets <= set(re.findall(r'id="(\w+)"', page.text))
