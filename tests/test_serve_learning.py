"""A model that is served learns exactly, each update once, whatever happens to the process."""

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import reference
import scipy.sparse as sp
from serving import KEY, LABELS, TAGS, TEXTS, WITH_KEY, Process, make_model, send, serving, wait_for

from labelsense import CompressedLabelClassifier, RidgeLearner, load_model
from labelsense.data.subjects import Subject, Subjects

KILLED = (OSError, http.client.HTTPException, json.JSONDecodeError)  # what a client sees of it
MORE = [("a cat and a fox", ["fox"]), ("a game for hens", ["game", "hen"]), ("red chess", ["chess", "red"])]


def documents(pairs):
    return [{"text": text, "subjects": [{"uri": uri} for uri in uris]} for text, uris in pairs]


def weights(model):
    return np.vstack([model.learner_.coef_, model.learner_.intercept_[None, :]])


def updates(client):
    return client.get("/ui/projects/tags/model").json()["updates"]


def wait_until_saved(client):
    wait_for(lambda: len(set(updates(client).values())) == 1)


def test_what_was_learned_is_in_the_model_and_in_its_file_exactly(tmp_path):
    path = tmp_path / "model"
    expected = make_model(path)
    expected.partial_fit([text for text, _ in MORE], [uris for _, uris in MORE])
    with serving(path, learning=True) as client:
        for pair in MORE:
            answer = client.post(f"{TAGS}/learn", json=documents([pair]), headers=WITH_KEY)
            assert answer.status_code == 204
        assert answer.headers["Labelsense-Update"] == "3"
        wait_until_saved(client)
        got = client.post(f"{TAGS}/suggest", data={"text": "red chess", "limit": 2}).json()["results"]
        assert [entry["uri"] for entry in got] == expected.predict_topk(["red chess"], 2).labels[0].tolist()
    saved = load_model(path)
    np.testing.assert_allclose(weights(saved), weights(expected), atol=1e-5)
    assert saved.label_counts_.tolist() == expected.label_counts_.tolist()
    assert (tmp_path / "model.journal").read_bytes().count(b"\n") == 1  # what is saved need not be kept


def test_forget_takes_back_what_was_learned(tmp_path):
    path = tmp_path / "model"
    before = make_model(path)
    with serving(path, learning=True) as client:
        for step in ("learn", "forget"):
            assert client.post(f"{TAGS}/{step}", json=documents(MORE), headers=WITH_KEY).status_code == 204
        refused = client.post(f"{TAGS}/forget", json=documents([("x", ["red"])] * 11), headers=WITH_KEY)
        assert (refused.status_code, refused.json()["unknown"]) == (409, ["red"])
        never = client.post(f"{TAGS}/forget", json=documents([("x", ["cat"])]), headers=WITH_KEY)
        assert never.status_code == 409
    np.testing.assert_allclose(weights(load_model(path)), weights(before), atol=1e-5)


def test_new_labels_are_learned_while_there_is_room(tmp_path):
    path = tmp_path / "model"
    make_model(path, reserve=3)  # 8 columns for 5 labels
    with serving(path, learning=True) as client:
        new = documents([("a purple unicorn", ["unicorn"]), ("a dodo", ["dodo"])])
        assert client.post(f"{TAGS}/learn", json=new, headers=WITH_KEY).status_code == 204
        full = client.post(f"{TAGS}/learn", json=documents([("x", ["yak", "zebu"])]), headers=WITH_KEY)
        assert full.status_code == 409
        assert "room for 1 new" in full.json()["detail"]
        wait_until_saved(client)
        assert client.get("/ui/projects/tags/complete?query=uni").json()["labels"][0]["uri"] == "unicorn"
    assert load_model(path).labels_[5:] == ["dodo", "unicorn"]


def test_features_as_large_as_they_may_be_are_learned(tmp_path, caplog):
    """A larger one would be acknowledged and then not be learned: its square is no number of float32."""
    path, learner = tmp_path / "model", RidgeLearner(alpha=0.1, updatable=True)
    reference.paper(learner=learner, random_state=0).fit(np.eye(6), np.eye(6)).save(path)
    documents = [{"features": {"1": number}, "subjects": [{"uri": "2"}]} for number in (1e15, -1e15)]
    with serving(path, learning=True) as client:
        assert client.post(f"{TAGS}/learn", json=documents, headers=WITH_KEY).status_code == 204
        wait_until_saved(client)
    assert load_model(path).n_samples_seen_ == 8
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_vocabulary_says_which_labels_can_be_new(tmp_path):
    path = tmp_path / "model"
    make_model(path, reserve=3)
    subjects = Subjects([Subject(uri, {"en": uri.upper()}) for uri in ("fox", "cat")])
    with serving(path, learning=True, subjects=subjects) as client:
        refused = client.post(f"{TAGS}/learn", json=documents([("x", ["cat", "dog", "fox"])]), headers=WITH_KEY)
        assert (refused.status_code, refused.json()["unknown"]) == (404, ["dog"])
        assert client.post(f"{TAGS}/learn", json=documents([("a cat", ["cat"])]), headers=WITH_KEY).status_code == 204


def test_learning_is_off_unless_allowed_and_needs_a_key(tmp_path):
    path = tmp_path / "model"
    make_model(path)
    with serving(path) as client:
        assert client.post(f"{TAGS}/learn", json=documents(MORE), headers=WITH_KEY).status_code == 403
        assert client.get("/ui/service").json()["learning"] == []
    with serving(path, learning=True) as client:
        assert client.get("/ui/service").json()["learning"] == ["tags"]
        for headers in ({}, {"X-API-Key": KEY + "x"}, {"Authorization": f"Basic {KEY}"}, {"X-API-Key": ""}):
            answer = client.post(f"{TAGS}/learn", json=documents(MORE), headers=headers)
            assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert client.post(f"{TAGS}/learn", json=documents(MORE), headers={"X-API-Key": KEY}).status_code == 204
        assert client.post(f"{TAGS}/learn", json=[], headers=WITH_KEY).status_code == 204


def test_a_model_that_cannot_be_updated_is_served_and_does_not_learn(tmp_path):
    model = CompressedLabelClassifier(learner=RidgeLearner(alpha=0.1), features="words", random_state=0)
    model.fit(TEXTS, LABELS).save(tmp_path / "model")
    with serving(tmp_path / "model", learning=True) as client:
        assert client.post(f"{TAGS}/suggest", data={"text": "chess"}).status_code == 200
        assert client.post(f"{TAGS}/learn", json=documents(MORE), headers=WITH_KEY).status_code == 403


def test_models_of_features_and_numbered_labels_learn(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = sp.csr_array(rng.uniform(size=(40, 6))), sp.csr_array(rng.uniform(size=(40, 9)) < 0.3)
    model = CompressedLabelClassifier(learner=RidgeLearner(alpha=1.0, updatable=True), random_state=0).fit(X, Y)
    model.save(tmp_path / "model")
    row = {"features": {"1": 0.5, "4": 2}, "subjects": [{"uri": "7"}, {"uri": "2"}]}
    with serving(tmp_path / "model", learning=True) as client:
        assert client.post(f"{TAGS}/learn", json=[row], headers=WITH_KEY).status_code == 204
        unknown = client.post(f"{TAGS}/learn", json=[{**row, "subjects": [{"uri": "9"}]}], headers=WITH_KEY)
        assert (unknown.status_code, unknown.json()["unknown"]) == (404, ["9"])
    x, y = np.zeros((1, 6)), np.zeros((1, 9))
    x[0, [1, 4]], y[0, [7, 2]] = (0.5, 2), 1
    np.testing.assert_allclose(weights(load_model(tmp_path / "model")), weights(model.partial_fit(x, y)), atol=1e-5)


def test_a_file_that_somebody_else_replaced_is_not_written_over(tmp_path):
    path = tmp_path / "model"
    make_model(path, reserve=10)
    with serving(path, learning=True) as client:
        client.post(f"{TAGS}/learn", json=documents([("a dodo", ["dodo"])]), headers=WITH_KEY)
        wait_until_saved(client)
        other = make_model(path, reserve=10, m=7)  # a new model, which has never heard of dodos
        client.post(f"{TAGS}/learn", json=documents([("a yak", ["yak"])]), headers=WITH_KEY)
        wait_until_saved(client)
        assert client.get("/ui/projects/tags/model").json()["n_measurements"] == 7
    expected = other.partial_fit(["a yak"], [["yak"]])
    np.testing.assert_allclose(weights(load_model(path)), weights(expected), atol=1e-5)


def test_an_update_that_the_disk_does_not_take_is_not_acknowledged(tmp_path, monkeypatch):
    path = tmp_path / "model"
    before = make_model(path)

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    with serving(path, learning=True) as client:
        with monkeypatch.context() as patch:
            patch.setattr("labelsense.serve.journal.os.fsync", fail)
            answer = client.post(f"{TAGS}/learn", json=documents(MORE), headers=WITH_KEY)
        assert answer.status_code == 503
        assert "Retry-After" in answer.headers
        assert updates(client)["acknowledged"] == 0
    np.testing.assert_array_equal(weights(load_model(path)), weights(before))


def test_a_model_file_that_cannot_be_written_is_tried_again(tmp_path, monkeypatch):
    path = tmp_path / "model"
    make_model(path)
    monkeypatch.setattr("labelsense.serve.learning.RETRY", 0.05)
    save, failures = CompressedLabelClassifier.save, [OSError(28, "No space left on device")] * 2

    def fail_twice(self, path):
        if failures:
            raise failures.pop()
        save(self, path)

    monkeypatch.setattr(CompressedLabelClassifier, "save", fail_twice)
    with serving(path, learning=True) as client:
        assert client.post(f"{TAGS}/learn", json=documents(MORE), headers=WITH_KEY).status_code == 204
        wait_until_saved(client)
    assert not failures


# --- real processes -----------------------------------------------------------------------------------------------

# A process that has loaded everything and forks a server whenever it is told to: so a restart takes milliseconds.
NURSERY = """
import os, sys
from pathlib import Path
from labelsense.serve.server import serve
for line in sys.stdin:
    child = os.fork()
    if not child:
        def announce(address):
            os.write(1, f"{os.getpid()} {address}\\n".encode())
        serve({"tags": Path(sys.argv[1])}, port=0, keys=[sys.argv[2]], learning=True, announce=announce)
        os._exit(0)
    os.waitpid(child, 0)
"""


class Nursery:
    """Starts servers of one model, one after the other."""

    def __init__(self, path):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-c", NURSERY, str(path), KEY]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def start(self):
        self.process.stdin.write("start\n")
        self.process.stdin.flush()
        process, self.address = self.process.stdout.readline().split()
        self.server = int(process)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def test_every_acknowledged_update_is_present_once_after_twenty_kills(tmp_path):
    path = tmp_path / "model"
    base = make_model(path, reserve=8000, m=16)
    acknowledged, sent, answers, stop = set(), set(), [], threading.Event()

    def teach(name):
        i = 0
        while not stop.is_set():
            label = f"{name}-{i}"
            i += 1
            sent.add(label)
            try:
                status, _ = send(nursery.address, f"{TAGS[1:]}/learn", documents([(f"fox {label}", [label])]), WITH_KEY)
            except KILLED:
                time.sleep(0.01)
                continue
            assert status == 204
            acknowledged.add(label)

    def ask():
        while not stop.is_set():
            try:
                answers.append(send(nursery.address, f"{TAGS[1:]}/suggest", {"text": "a red fox", "limit": 2}))
            except KILLED:
                time.sleep(0.01)

    chance = random.Random(0)
    with Nursery(path) as nursery:
        clients = [threading.Thread(target=teach, args=(f"t{i}",)) for i in range(4)] + [threading.Thread(target=ask)]
        for client in clients:
            client.start()
        for _ in range(20):
            known = len(acknowledged)
            wait_for(lambda known=known: len(acknowledged) > known)
            time.sleep(chance.uniform(0, 0.1))
            os.kill(nursery.server, signal.SIGKILL)
            nursery.start()
        wait_for(lambda: answers)
        stop.set()
        for client in clients:
            client.join()
        os.kill(nursery.server, signal.SIGTERM)  # which learns and saves what is left
        nursery.process.stdin.close()
        assert nursery.process.wait(30) == 0
    model = load_model(path)
    counts = dict(zip(model.labels_, model.label_counts_.tolist(), strict=True))
    present = {label for label in counts if label.startswith("t")}
    assert len(acknowledged) >= 20
    assert answers
    assert all(status == 200 and len(answer["results"]) <= 2 for status, answer in answers)  # few, where few score
    assert any(answer["results"] for _, answer in answers)
    assert acknowledged <= present <= sent
    assert all(counts[label] == 1 for label in present)
    order = model.labels_[5:]
    base.partial_fit([f"fox {label}" for label in order], [[label] for label in order])
    np.testing.assert_allclose(weights(model), weights(base), atol=1e-4)


def test_the_command_line_learns_and_stops_when_all_is_saved(tmp_path):
    path, keys = tmp_path / "model", tmp_path / "keys"
    base = make_model(path, reserve=3)
    keys.write_text(f"# mine\n{KEY}\n")
    with Process(f"tags={path}", "--allow-learning", "--api-key-file", keys) as server:
        assert send(server.address, f"{TAGS[1:]}/learn", documents(MORE), WITH_KEY) == (204, None)
        code, log = server.stop()
    assert code == 0
    assert "chess" not in log  # no texts
    assert "POST /v1/projects/tags/learn 204" in log
    base.partial_fit([text for text, _ in MORE], [uris for _, uris in MORE])
    np.testing.assert_allclose(weights(load_model(path)), weights(base), atol=1e-5)
