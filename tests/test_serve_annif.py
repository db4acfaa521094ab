"""Annif's interface, as its clients use it."""

import warnings

import pytest

from labelsense import CompressedLabelClassifier, OneVsAllClassifier, RidgeLearner, load_model
from labelsense.serve.app import make_app
from labelsense.serve.project import Project

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer versions would like another client
    from starlette.testclient import TestClient

TEXTS = ["a red fox jumps", "two hens and a fox", "a chess game", "chess for two players and a hen"] * 10
LABELS = [["fox", "red"], ["hen", "fox"], ["chess", "game"], ["chess", "hen"]] * 10


def make_model(folder, name="tags", **settings):
    learner = RidgeLearner(alpha=0.1, updatable=True)
    model = CompressedLabelClassifier(learner=learner, features="words", random_state=0, **settings)
    model.fit(TEXTS, LABELS).save(folder / f"{name}.model")
    return folder / f"{name}.model"


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def client(model_file):
    with TestClient(make_app({"tags": Project("tags", model_file)})) as client:
        yield client


def test_a_model_is_a_project(client):
    assert client.get("/v1/").json().keys() == {"title", "version"}
    (project,) = client.get("/v1/projects").json()["projects"]
    assert project == client.get("/v1/projects/tags").json()
    assert project["project_id"] == "tags"
    assert project["backend"] == {"backend_id": "labelsense"}
    assert project["vocab"]["size"] == 5
    assert project["is_trained"] is True
    assert client.get("/v1/vocabs").json() == {"vocabs": [project["vocab"]]}


def test_suggestions_are_those_of_the_model(client, model_file):
    top = load_model(model_file).predict_topk(["a chess game"], 3)
    results = client.post("/v1/projects/tags/suggest", data={"text": "a chess game", "limit": 3}).json()["results"]
    assert [result["uri"] for result in results] == top.labels[0].tolist()
    assert [result["score"] for result in results] == pytest.approx(top.scores[0].clip(0, 1), abs=1e-6)
    assert results[0] == {"uri": "chess", "label": "chess", "notation": None, "score": results[0]["score"]}
    again = client.post("/v1/projects/tags/suggest", json={"text": "a chess game", "limit": 3})
    assert again.json()["results"] == results


def test_a_batch_gives_what_each_document_gives_alone(client):
    texts = ["a chess game", "", "the hen and the fox"]
    documents = [{"text": text, "document_id": str(i)} for i, text in enumerate(texts)]
    answer = client.post("/v1/projects/tags/suggest-batch?limit=2&threshold=0.3", json={"documents": documents}).json()
    assert [entry["document_id"] for entry in answer] == ["0", "1", "2"]
    for entry, text in zip(answer, texts, strict=True):
        alone = client.post("/v1/projects/tags/suggest", data={"text": text, "limit": 2, "threshold": 0.3}).json()
        assert [result["uri"] for result in entry["results"]] == [result["uri"] for result in alone["results"]]
        assert all(result["score"] >= 0.3 for result in entry["results"])
        assert len(entry["results"]) <= 2
    assert client.post("/v1/projects/tags/suggest-batch", json={"documents": []}).json() == []


def test_labels_are_allowed_and_blocked_per_request(client):
    def uris(**fields):
        answer = client.post("/v1/projects/tags/suggest", json={"text": "a chess game", **fields})
        return {result["uri"] for result in answer.json()["results"]}

    assert "chess" in uris()
    assert "chess" not in uris(block=["chess"])
    assert uris(allow=["chess", "game"]) <= {"chess", "game"}
    refused = client.post("/v1/projects/tags/suggest", json={"text": "a", "allow": ["chess", "cat"]})
    assert refused.status_code == 404
    assert refused.json()["unknown"] == ["cat"]
    form = client.post("/v1/projects/tags/suggest", data={"text": "a chess game", "block": ["chess", "game"]})
    assert not {"chess", "game"} & {result["uri"] for result in form.json()["results"]}


def test_explanations_add_up_and_mark_words(client):
    text = "Chess, a GAME of chess"
    answer = client.post("/v1/projects/tags/explain", json={"text": text, "uri": "chess"}).json()
    assert sum(part["value"] for part in answer["parts"]) + answer["constant"] + answer["rest"] == pytest.approx(
        answer["score"], abs=1e-5
    )
    assert {part["feature"] for part in answer["parts"]} == {"chess", "game"}
    assert [text[mark["start"] : mark["end"]] for mark in answer["marks"]] == ["Chess", "GAME", "chess"]
    one = client.post("/v1/projects/tags/explain", json={"text": text, "uri": "chess", "limit": 1}).json()
    assert len(one["parts"]) == 1
    assert one["rest"] == pytest.approx(answer["parts"][1]["value"])
    unknown = client.post("/v1/projects/tags/explain", json={"text": text, "uri": "cat"})
    assert (unknown.status_code, unknown.json()["unknown"]) == (404, ["cat"])


def test_models_that_do_not_reconstruct_are_served_too(tmp_path):
    model = OneVsAllClassifier(RidgeLearner(alpha=0.1), features="words").fit(TEXTS, LABELS)
    model.save(tmp_path / "model")
    with TestClient(make_app({"all": Project("all", tmp_path / "model")})) as client:
        results = client.post("/v1/projects/all/suggest", data={"text": "a chess game", "limit": 2}).json()["results"]
        assert {result["uri"] for result in results} == {"chess", "game"}
        assert client.post("/v1/projects/all/explain", json={"text": "chess", "uri": "chess"}).status_code == 409
        assert client.post("/ui/projects/all/how", json={"text": "chess"}).status_code == 409
        assert client.get("/ui/projects/all/model").json()["n_measurements"] is None
