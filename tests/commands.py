"""Commands in this process, and the documents and the model that they are tried on."""

import json

import pytest
from typer.testing import CliRunner

from labelsense import cli
from labelsense.data import Examples, make_tagged_documents, write_examples

X, Y = make_tagged_documents(400, 100, n_labels=40, random_state=0)
TEXTS = [" ".join(f"word{j}" for j in X.indices[a:b]) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
LISTS = [[f"tag {j}" for j in Y.indices[a:b]] for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]


def run(*words, stdin=None, code=0):
    """Run a command in this process; return what it wrote to standard output, or to standard error if it fails."""
    result = CliRunner().invoke(cli.app, [str(word) for word in words], input=stdin)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result.stdout if code == 0 else result.stderr


def run_json(*words, **options):
    return json.loads(run(*words, "--json", **options))


@pytest.fixture
def docs(tmp_path):
    path = tmp_path / "docs.jsonl"
    write_examples(path, Examples(TEXTS, LISTS))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    write_examples(folder / "docs.jsonl", Examples(TEXTS, LISTS))
    run("train", folder / "docs.jsonl", "-o", folder / "tags.model", "--budget", "fast")
    return folder / "tags.model"
