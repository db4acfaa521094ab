"""labelsense serve and labelsense demo --serve: what they make of their options."""

import sys
from pathlib import Path

import pytest
from serving import TEXTS, make_model
from typer.testing import CliRunner

from labelsense import load_model
from labelsense.cli import app
from labelsense.cli.serve import named_paths
from labelsense.data import load_debtags
from labelsense.serve import server


@pytest.fixture
def started(monkeypatch):
    """What the server would be started with."""
    calls = []

    def serve(models, **settings):
        calls.append((dict(models), settings))
        settings["announce"]("http://127.0.0.1:1/")

    monkeypatch.setattr(server, "serve", serve)
    return calls


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_models_have_the_names_that_are_given_or_those_of_their_files():
    assert named_paths(["a.model", "b=x/c.model", "./d=e"]) == {
        "a": Path("a.model"),
        "b": Path("x/c.model"),
        "d-e": Path("./d=e"),
    }
    with pytest.raises(ValueError, match=r"Two models are called a. Write other=y/a.model"):
        named_paths(["x/a.model", "y/a.model"])
    with pytest.raises(ValueError, match="A name must be of letters"):
        named_paths(["ä=a.model"])


def test_options_reach_the_server(tmp_path, started):
    path, keys, words, texts = (tmp_path / name for name in ("model", "keys", "a.tsv", "b.txt"))
    make_model(path)
    keys.write_text("a-key-for-the-tests\n")
    words.write_text("fox\tfoxes\n")
    texts.write_text("\n".join(TEXTS[:3]) + "\n")
    options = [
        "--vocabulary",
        f"b={words}",
        "--examples",
        texts,
        "--api-key-file",
        keys,
        "--cors",
        "https://example.org",
    ]
    bounds = ["--max-body", 1, "--max-text", 2, "--max-batch", 3, "--timeout", 4, "--max-requests", 5, "--window", 6]
    result = run("serve", f"a={path}", f"b={path}", "--port", 0, "--allow-learning", *options, *bounds)
    assert result.exit_code == 0, result.output
    assert "serving a, b at http://127.0.0.1:1/" in result.output
    ((models, settings),) = started
    assert models == {"a": path, "b": path}
    assert list(settings["subjects"]) == ["b"]
    assert settings["subjects"]["b"].label("fox") == "foxes"
    assert settings["examples"]["a"] == settings["examples"]["b"]
    assert settings["examples"]["a"][0] == {"title": "a red fox jumps", "text": "a red fox jumps"}
    assert (settings["keys"], settings["origins"]) == (["a-key-for-the-tests"], ["https://example.org"])
    assert settings["learning"] is True
    assert settings["window"] == 0.006
    limits = settings["limits"]
    assert (limits.body, limits.text, limits.batch, limits.seconds, limits.concurrent) == (1, 2, 3, 4, 5)


def test_what_cannot_be_is_refused_before_anything_is_loaded(tmp_path, started):
    make_model(tmp_path / "model")
    for arguments, words in (
        ([tmp_path / "none"], "There is no model file"),
        (
            [tmp_path / "model", "--vocabulary", f"other={tmp_path / 'a.tsv'}"],
            "--vocabulary must name one of the models",
        ),
        ([tmp_path / "model", "--vocabulary", tmp_path / "a.tsv"], "There is no vocabulary"),
        ([tmp_path / "model", "--api-key-file", tmp_path / "none"], "No such file"),
    ):
        result = run("serve", *arguments)
        assert result.exit_code == 1
        assert words in result.output
    assert started == []


def test_a_key_that_is_missing_is_asked_for_by_the_name_of_the_option(tmp_path):
    make_model(tmp_path / "model")
    result = run("serve", tmp_path / "model", "--allow-learning", "--port", 0)
    assert result.exit_code == 1
    assert "--api-key-file is needed for learning" in result.output


def test_the_extra_is_named_where_it_is_missing(tmp_path, monkeypatch):
    make_model(tmp_path / "model")
    for module in [name for name in sys.modules if name.startswith("labelsense.serve")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delattr("labelsense.serve", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = run("serve", tmp_path / "model")
    assert result.exit_code == 1
    assert 'uvicorn is missing, which serve needs: pip install "labelsense[serve]"' in result.output


def test_the_demo_serves_two_models_that_learn(tmp_path, started, monkeypatch):
    data = load_debtags()
    few = type(data)(
        data.X_train[:300], data.Y_train[:300], data.X_test[:5], data.Y_test[:5], data.features, data.labels
    )
    monkeypatch.setattr("labelsense.cli.demo_service.load_debtags", lambda: few)
    seen = []
    monkeypatch.setattr(
        "labelsense.cli.demo_service.print_note",
        lambda line: seen.append((line, [load_model(path) for path in started[0][0].values()])),
    )
    result = run("demo", "--serve", "--port", 0)
    assert result.exit_code == 0, result.output
    ((line, models),) = seen
    assert f"#key={started[0][1]['keys'][0]}" in line
    assert started[0][1]["learning"] is True
    for model in models:
        assert "role::program" in model.labels_
        model.partial_fit(["a chess game"], [["role::program"]])
    assert not any(path.exists() for path in started[0][0].values())
