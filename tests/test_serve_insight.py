"""What the page asks: how, labels, completion, the model, examples."""

import copy

import numpy as np
import pytest
from serving import WITH_KEY, make_model, serving, wait_for

from labelsense import CompressedLabelClassifier, RidgeLearner
from labelsense.data.subjects import Subject, Subjects
from labelsense.serve.catalogue import Catalogue

SUBJECTS = Subjects(
    [
        Subject("fox", {"en": "foxes", "fi": "ketut"}, "599.77", ("animal",)),
        Subject("hen", {"en": "hens"}, None, ("animal",)),
        Subject("animal", {"en": "animals", "fi": "eläimet"}),
        Subject("chess", {"en": "chess", "fi": "shakki"}, "794.1"),
        Subject("game", {"fi": "pelit"}),
    ]
)
PAGE = "/ui/projects/tags"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    make_model(path)
    return path


@pytest.fixture(scope="module")
def client(path):
    examples = {"tags": [{"title": "a game", "text": "a chess game"}]}
    with serving(path, subjects=SUBJECTS, examples=examples) as client:
        yield client


def test_how_follows_the_decoder_of_the_model(client, tmp_path):
    model = make_model(tmp_path / "model")
    answer = client.post(f"{PAGE}/how", json={"text": "a chess game"}).json()
    h = model.measure(["a chess game"])[0]
    np.testing.assert_allclose(answer["measurements"], h, atol=1e-6)
    assert answer["decoder"] == "OMPDecoder"
    operator, residuals = model.compressor_.operator_, []
    labels = {uri: j for j, uri in enumerate(model.labels_)}
    for number, step in enumerate(answer["steps"], 1):
        assert len(step["taken"]) == 1  # OMP takes one at a time
        assert len(step["coefficients"]) == number
        columns = operator.columns([labels[entry["uri"]] for entry in step["coefficients"]])
        left = h - columns @ [entry["value"] for entry in step["coefficients"]]
        assert step["left"] == pytest.approx(left, abs=1e-5)
        assert step["residual"] == pytest.approx(np.linalg.norm(left) / np.linalg.norm(h), abs=1e-5)
        residuals.append(step["residual"])
    assert residuals == sorted(residuals, reverse=True)
    assert answer["steps"][0]["taken"][0] == {"uri": "chess", "label": "chess", "notation": "794.1"}
    final = {entry["uri"]: entry["value"] for entry in answer["steps"][-1]["coefficients"]}
    scores = model.predict_scores(["a chess game"])
    assert final == pytest.approx(
        {model.labels_[j]: v for j, v in zip(scores.indices, scores.data, strict=True)}, abs=1e-5
    )


def test_suggestions_are_called_as_the_vocabulary_says(client):
    def suggest(**fields):
        answer = client.post("/v1/projects/tags/suggest", json={"text": "two hens and a fox", "limit": 2, **fields})
        return {entry["uri"]: (entry["label"], entry["notation"]) for entry in answer.json()["results"]}

    assert suggest() == {"fox": ("foxes", "599.77"), "hen": ("hens", None)}
    assert suggest(language="fi") == {"fox": ("ketut", "599.77"), "hen": ("hens", None)}
    refused = client.post("/v1/projects/tags/suggest", json={"text": "a", "language": "sv"})
    assert refused.status_code == 400
    assert "en, fi" in refused.json()["detail"]
    project = client.get("/v1/projects/tags").json()
    assert project["vocab"] == {"vocab_id": "tags", "languages": ["en", "fi"], "size": 5, "loaded": True}
    assert project["language"] == project["vocab_language"] == "en"


def test_labels_are_sorted_filtered_and_paged(client):
    def labels(query=""):
        answer = client.get(f"{PAGE}/labels?{query}").json()
        return answer["total"], [entry["uri"] for entry in answer["labels"]]

    assert labels() == (5, ["chess", "fox", "hen", "game", "red"])  # by chess, foxes, hens, pelit, red
    assert labels("sort=uri&order=descending") == (5, ["red", "hen", "game", "fox", "chess"])
    assert labels("sort=count&order=descending&limit=3") == (5, ["chess", "fox", "hen"])
    assert labels("sort=count&order=descending&limit=3&offset=3") == (5, ["game", "red"])
    assert labels("query=ES") == (2, ["chess", "fox"])
    assert labels("query=game") == (1, ["game"])  # by its URI
    assert labels("query=zzz") == (0, [])
    (fox,) = client.get(f"{PAGE}/labels?query=fox&language=fi").json()["labels"]
    assert fox == {
        "uri": "fox",
        "label": "ketut",
        "notation": "599.77",
        "count": 20,
        "broader": [{"uri": "animal", "label": "eläimet", "notation": None}],
        "narrower": [],
    }
    why = client.post("/v1/projects/tags/explain", json={"text": "a fox", "uri": "fox", "language": "fi"}).json()
    assert fox.items() <= why.items()


def test_completion_puts_beginnings_first_then_words_then_the_frequent():
    names = ["board games", "games", "ludogames", "game theory", "hen"]
    catalogue = Catalogue(names, 5)
    counts = np.array([9, 1, 90, 5, 1])
    assert [names[j] for j in catalogue.complete("game", 9, counts)] == [
        "game theory",
        "games",
        "board games",
        "ludogames",
    ]
    assert [names[j] for j in catalogue.complete("", 2, counts)] == ["ludogames", "board games"]
    assert catalogue.complete("xyz", 9, None) == []


def test_a_hundred_thousand_labels_are_searched_like_a_list_of_strings():
    names = [f"label {i:06d}" for i in range(100_000)]
    catalogue = Catalogue(names, len(names))
    found = catalogue.select("0123", "label", False, None)
    assert found.tolist() == [j for j, name in enumerate(names) if "0123" in name]


def test_the_model_tells_what_it_is(client):
    about = client.get(f"{PAGE}/model").json()
    assert about["project_id"] == "tags"
    assert about["takes"] == "text"
    assert (about["n_labels"], about["n_measurements"], about["assignments"]) == (5, 8, 80)
    assert (about["compressor"], about["learner"], about["decoder"]) == (
        "HadamardCompressor",
        "RidgeLearner",
        "OMPDecoder",
    )
    assert about["updates"] is None


@pytest.fixture(scope="module")
def refined(tmp_path_factory):
    """A model with probabilities, and a client of it."""
    rng = np.random.default_rng(0)
    tags = [sorted({f"tag{j}" for j in rng.geometric(0.3, 2) if j < 12}) for _ in range(400)]
    texts = [" ".join([*(f"word{tag}" for tag in row), f"noise{rng.integers(30)}"]) for row in tags]
    model = CompressedLabelClassifier(learner=RidgeLearner(alpha=0.1, updatable=True), features="words", random_state=0)
    path = tmp_path_factory.mktemp("models") / "model"
    model.fit(texts, tags).save(path)
    with serving(path, learning=True) as client:
        yield model, client


def test_a_refined_model_shows_probabilities_and_what_changed(refined):
    model, client = refined
    text = "wordtag1 wordtag2 noise3"
    top = model.predict_topk([text], 3)
    results = client.post("/v1/projects/tags/suggest", data={"text": text, "limit": 3}).json()["results"]
    assert [entry["uri"] for entry in results] == top.labels[0].tolist()
    assert [entry["score"] for entry in results] == pytest.approx(top.scores[0], abs=1e-5)
    about = client.get(f"{PAGE}/model").json()
    assert about["probabilities"] is True
    assert about["threshold"] == pytest.approx(model.threshold_)
    assert about["report"]["expected"]["P@1"] == pytest.approx(model.report_.expected["P@1"])
    assert len(about["report"]["reliability"]) == len(model.report_.reliability)
    refinement = client.post(f"{PAGE}/how", json={"text": text}).json()["refinement"]
    changes = refinement["labels"]
    assert [entry["after"] for entry in changes[:3]] == pytest.approx(top.scores[0], abs=1e-5)
    assert len(changes) == refinement["candidates"]  # they are few here
    scores = {
        "decoder": [entry["before"] for entry in changes],
        "ranker": [model.explain(text, entry["uri"]).ranker.score for entry in changes],
    }
    for judge, values in scores.items():
        places = [1 + sum(other > value + 1e-6 for other in values) for value in values]
        assert [entry["places"][judge] for entry in changes] == places
    why = client.post("/v1/projects/tags/explain", json={"text": text, "uri": "tag1"}).json()
    assert why["exact"] is True
    assert why["constant"] + sum(part["value"] for part in why["parts"]) == pytest.approx(why["score"], abs=1e-4)
    assert why["probability"] == pytest.approx(
        model.predict_proba([text]).toarray()[0, model.labels_.index("tag1")], abs=1e-5
    )
    assert why["ranker"]["parts"][0]["feature"] == "wordtag1"
    assert {text[mark["start"] : mark["end"]] for mark in why["marks"]} >= {"wordtag1", "wordtag2"}


def test_a_refined_model_learns(refined):
    model, client = refined
    row = {"text": "wordtag1 surprise", "subjects": [{"uri": "tag2"}]}
    assert client.post("/v1/projects/tags/learn", json=[row], headers=WITH_KEY).status_code == 204
    wait_for(lambda: client.get(f"{PAGE}/model").json()["updates"]["saved"] == 1)
    expected = copy.deepcopy(model).partial_fit([row["text"]], [["tag2"]]).predict_topk(["wordtag1"], 3)
    results = client.post("/v1/projects/tags/suggest", data={"text": "wordtag1", "limit": 3}).json()["results"]
    assert [entry["score"] for entry in results] == pytest.approx(expected.scores[0], abs=1e-4)


def test_examples_and_the_service(client):
    assert client.get(f"{PAGE}/examples").json() == {"examples": [{"title": "a game", "text": "a chess game"}]}
    service = client.get("/ui/service").json()
    assert service["projects"] == ["tags"]
    assert service["limits"]["batch"] == 32
