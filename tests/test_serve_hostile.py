"""Whatever is sent, the answer is a refusal in words, and the process lives."""

import json
import re
import signal
import socket
import threading
import time

import numpy as np
import pytest
from serving import TAGS, Process, make_model, send, serving

from labelsense import CompressedLabelClassifier
from labelsense.serve.limits import Limits

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
TIGHT = Limits(body=10_000, text=1000, batch=3, seconds=5, labels=20)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    make_model(path)
    with serving(path, limits=TIGHT) as client:
        yield client


def refused(answer, status, words=""):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert words in problem["detail"]
    assert "Traceback" not in answer.text
    assert not {"/home", "/tmp", "/usr", "site-packages", ".py"} & set(
        re.findall(r"/\w+|site-packages|\.py", answer.text)
    )


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "must be JSON"),
        (b"{", 400, "must be JSON"),
        (b"[1, 2]", 400, "must be a JSON object. Got an array"),
        (b"null", 400, "Got nothing"),
        (b"\xff\xfe{}", 400, "must be UTF-8"),
        (b"[" * 5000, 400, "nested too deeply"),
        (b'{"text": NaN}', 400, "must be JSON"),
        (b'{"text": 1}', 400, "text must be a string. Got a number"),
        (b'{"text": ["a"]}', 400, "text must be a string. Got an array"),
        (b'{"txt": "a"}', 400, "text is missing"),
        (b'{"features": [1]}', 409, "This model takes text, not features"),
        (b'{"text": "a", "features": [1]}', 400, "text or features, not both"),
        (b'{"text": "\\ud800"}', 400, "surrogate"),
        (b'{"text": "a", "limit": -1}', 400, "limit must be a whole number from 0"),
        (b'{"text": "a", "limit": 1e38}', 400, "limit"),
        (b'{"text": "a", "limit": true}', 400, "limit"),
        (b'{"text": "a", "limit": "' + b"9" * 5000 + b'"}', 400, "limit"),
        (b'{"text": "a", "limit": ' + b"9" * 5000 + b"}", 400, "must be JSON"),
        (b'{"text": "a", "threshold": 2}', 400, "threshold must be a number from 0 to 1. Got 2"),
        (b'{"text": "a", "threshold": "nan"}', 400, "threshold"),
        (b'{"text": "a", "allow": {}}', 400, "allow must be a JSON array"),
        (b'{"text": "a", "allow": [1]}', 400, "A label of allow must be a string"),
        (b'{"text": "a", "block": ["x"]}', 404, "block must hold labels of the model"),
        (b'{"text": "a", "allow": ' + json.dumps(["fox"] * 21).encode() + b"}", 400, "allow must have at most 20"),
        (b'{"text": "' + b"a" * 1001 + b'"}', 400, "text must have at most 1000 characters"),
        (b'{"text": "' + b"a" * 10_001 + b'"}', 413, "at most 10000 bytes"),
    ],
)
def test_bodies_that_are_no_question(client, body, status, words):
    refused(client.post(f"{TAGS}/suggest", content=body, headers=JSON), status, words)


@pytest.mark.parametrize(
    ("body", "headers", "status", "words"),
    [
        (b"text=%ff", FORM, 400, "UTF-8"),
        ("text=ä".encode(), FORM, 400, "ASCII"),
        (b"a&" * 4990, FORM, 400, "text is missing"),
        (b"text=a&text=b", FORM, 400, "text must be a string"),
        (b"text=a&limit=x", FORM, 400, "limit"),
        (b"text=a", {"Content-Type": "text/plain"}, 415, "Content-Type"),
        (b"text=a", {}, 415, "Content-Type"),
        (b"text=a", FORM | {"Content-Encoding": "gzip"}, 415, "compressed"),
        (b"no boundary", {"Content-Type": "multipart/form-data"}, 400, ""),
        (b"--x\r\nno: end", {"Content-Type": "multipart/form-data; boundary=x"}, 400, ""),
        (
            b'--x\r\nContent-Disposition: form-data; name="text"; filename="f"\r\n\r\n\xff\xff\r\n--x--\r\n',
            {"Content-Type": "multipart/form-data; boundary=x"},
            400,
            "UTF-8",
        ),
    ],
)
def test_forms_that_are_none(client, body, headers, status, words):
    refused(client.post(f"{TAGS}/suggest", content=body, headers=headers), status, words)


def test_a_file_can_be_sent_as_a_form(client):
    answer = client.post(f"{TAGS}/suggest", files={"text": ("a.txt", "a chess game")}, data={"limit": "1"})
    assert [entry["uri"] for entry in answer.json()["results"]] == ["chess"]


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("suggest-batch", {"documents": [{"text": "a"}] * 4}, 400),
        ("suggest-batch", {"documents": {}}, 400),
        ("suggest-batch", {}, 400),
        ("suggest-batch", {"documents": ["a"]}, 400),
        ("suggest-batch", {"documents": [{"text": "a", "document_id": 5}]}, 400),
        ("suggest-batch?limit=x", {"documents": []}, 400),
        ("explain", {"text": "a"}, 400),
        ("explain", {"text": "a", "uri": "no such label"}, 404),
        ("explain", {"text": "a", "uri": "fox", "limit": 0}, 400),
        ("nothing", {}, 404),
    ],
)
def test_other_questions_that_are_none(client, path, content, status):
    refused(client.post(f"{TAGS}/{path}", json=content), status)


@pytest.mark.parametrize(
    "path", ["labels?sort=size", "labels?order=up", "labels?limit=0", "labels?offset=-1", "complete?limit=21"]
)
def test_queries_that_are_none(client, path):
    refused(client.get(f"/ui/projects/tags/{path}"), 400)


def test_methods_that_are_none(client):
    refused(client.get(f"{TAGS}/suggest"), 405)
    refused(client.delete("/v1/projects"), 405)


def test_features_out_of_bounds(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(size=(30, 4)), rng.uniform(size=(30, 9)) < 0.3
    CompressedLabelClassifier(random_state=0).fit(X, Y).save(tmp_path / "model")
    with serving(tmp_path / "model") as client:

        def ask(features):
            return client.post(f"{TAGS}/suggest", json={"features": features})

        rows = ask([0.5, 0, 0, 1.5]).json()
        assert rows == ask({"0": 0.5, "3": 1.5}).json()
        assert all(entry["uri"].isdigit() for entry in rows["results"])
        for features in (
            [1e38, 0, 0, 0],
            [0, 0, -1.1e15, 0],
            [1, 2, 3],
            [None] * 4,
            {"4": 1},
            {"-1": 1},
            {"x": 1},
            {"0": "1"},
            "1 2 3 4",
            5,
        ):
            refused(ask(features), 400, "eatures must")
        for features in ([1e400, 0, 0, 0], [float("nan")] * 4):
            answer = client.post(f"{TAGS}/suggest", content=json.dumps({"features": features}), headers=JSON)
            refused(answer, 400)
        refused(client.post(f"{TAGS}/suggest", json={"text": "a"}), 409, "This model takes features")
        large = ask([1e15, 0, 0, 0])  # finite scores or a refusal
        assert large.status_code in (200, 400)
        how = client.post("/ui/projects/tags/how", json={"features": [0.5, 0, 0, 1.5]})
        assert len(how.json()["measurements"]) == client.get("/ui/projects/tags/model").json()["n_measurements"]


# --- on a real connection -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    make_model(path)
    with Process(f"tags={path}", "--timeout", "1", "--max-body", "100000") as server:
        server.path = path
        yield server
        code, log = server.stop()
        assert code == 0
        assert "Traceback" not in log


def talk(server, content, *, then=b"", close=False):
    """Send bytes, perhaps more of them bit by bit, and return all that comes back."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(content)
        parts = []
        try:
            for byte in then:
                time.sleep(0.1)
                connection.sendall(bytes([byte]))
            if close:
                connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                parts.append(part)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return b"".join(parts)


HEAD = b"POST /v1/projects/tags/suggest HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"


def test_slow_and_cut_off_requests_are_ended(server):
    slow_body = talk(server, HEAD + b"Content-Length: 1000\r\n\r\n", then=b"{" * 6)
    assert slow_body.startswith(b"HTTP/1.1 408")
    assert b"application/problem+json" in slow_body
    assert talk(server, b"POST /v1/projects HTTP/1.1\r\nHos") == b""  # a header that does not come is not waited for
    assert talk(server, b"") == b""
    cut_off = talk(server, HEAD + b"Content-Length: 1000\r\n\r\n{", close=True)
    assert cut_off.startswith(b"HTTP/1.1 400")
    assert b"The request was cut off." in cut_off
    assert talk(server, HEAD + b"Content-Length: 99999999\r\n\r\n").startswith(b"HTTP/1.1 413")
    chunks = b"Transfer-Encoding: chunked\r\n\r\n" + b"ffff\r\n" + b"a" * 0xFFFF + b"\r\n"
    assert b"413" in talk(server, HEAD + chunks + b"ffff\r\n" + b"a" * 0xFFFF + b"\r\n0\r\n\r\n")
    for nonsense in (b"\x16\x03\x01\x02\x00garbage\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET " + b"/a" * 50000):
        answer = talk(server, nonsense)
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"application/problem+json" in answer
    for close in (False, True):  # who has said all there is to say may close one half
        whole = HEAD + b'Content-Length: 13\r\n\r\n{"text": "a"}'
        assert talk(server, whole, close=close).startswith(b"HTTP/1.1 200")
    assert send(server.address, "v2/health/live") == (200, {"live": True})


def test_a_new_model_is_taken_on_a_signal_while_requests_are_answered(server):
    statuses, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            statuses.append(send(server.address, "v1/projects/tags/suggest", {"text": "chess"})[0])

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    assert send(server.address, "ui/projects/tags/model")[1]["n_measurements"] == 8
    make_model(server.path, m=7)
    server.process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 20
    while send(server.address, "ui/projects/tags/model")[1]["n_measurements"] != 7:
        assert time.monotonic() < deadline
    server.path.write_bytes(b"not a model")
    server.process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert send(server.address, "ui/projects/tags/model")[1]["n_measurements"] == 7
    stop.set()
    for asker in askers:
        asker.join()
    assert set(statuses) == {200}
