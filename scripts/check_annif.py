"""Use the service from Annif and annif-client, which are in an environment of their own; `make test-annif` runs this.

Two models of the bundled debtags are served, a refined one and one that is not; Annif uses them as backends of kind
`http`, one by one and in an ensemble, suggests and evaluates. What it measures must be what labelsense measures. Prints
what they say, and fails if any of it is not so.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from labelsense import CompressedLabelClassifier, HadamardCompressor, RidgeLearner
from labelsense.data import load_debtags
from labelsense.metrics import precision_at_k

BASE = "http://example.org/debtags/"
TRAIN, TEST = 4000, 300
CLIENT = """
import sys, json
from annif_client import AnnifClient
client = AnnifClient(sys.argv[1] + "v1/")
print("api_info", client.api_info)
print("projects", [project["project_id"] for project in client.projects])
print("project", client.get_project("omp"))
print("suggest", client.suggest("omp", sys.argv[2], limit=3, threshold=0.1))
documents = [{"text": sys.argv[2], "document_id": "a"}, {"text": "", "document_id": "b"}]
print("suggest_batch", client.suggest_batch("omp", documents, limit=2))
try:
    client.get_project("none")
except ValueError as error:
    print("missing", error)
try:
    client.learn("omp", [{"text": "a", "subjects": []}])
except Exception as error:
    print("learn", error)
"""


def main() -> None:
    annif = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts, rows, expected = make_models(folder)
        write_annif_files(folder, texts, rows)
        server, address = start(folder)
        try:
            run_client(annif, folder, address, texts[0])
            run_annif(annif, folder, address, texts[0], expected)
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(30) == 0
    print("\nAnnif and annif-client work with the service.")


def make_models(folder: Path) -> tuple[list[str], list[list[str]], dict[str, float]]:
    data = load_debtags()
    uris = np.array([BASE + label for label in data.labels])

    def documents(X, Y, n):
        words = np.array(data.features)
        texts = [" ".join(np.repeat(words[X[[i]].indices], X[[i]].data.astype(int))) for i in range(n)]
        return texts, [uris[Y[[i]].indices].tolist() for i in range(n)]

    texts, rows = documents(data.X_train, data.Y_train, TRAIN)
    test_texts, test_rows = documents(data.X_test, data.Y_test, TEST)
    expected = {}
    for decoder, refiner in (("omp", "auto"), ("correlation", None)):
        model = CompressedLabelClassifier(
            HadamardCompressor(200),
            RidgeLearner(alpha=1.0),
            decoder,
            refiner=refiner,
            features="words",
            budget="fast",
            random_state=0,
        )
        model.fit(texts, rows).save(folder / f"{decoder}.model")
        Y, _ = model.vocabulary_.read_counting_unknown(test_rows)
        columns = model.vocabulary_.columns_of(model.labels_, "labels")
        assert (columns == np.arange(len(columns))).all()
        expected[decoder] = precision_at_k(Y, model.predict_scores(test_texts), 1)
    (folder / "vocabulary.tsv").write_text(
        "".join(f"<{uri}>\t{label}\n" for uri, label in zip(uris, data.labels, strict=True))
    )
    return test_texts, test_rows, expected


def write_annif_files(folder: Path, texts: list[str], rows: list[list[str]]) -> None:
    lines = [f"{text}\t{' '.join(f'<{uri}>' for uri in uris)}\n" for text, uris in zip(texts, rows, strict=True)]
    (folder / "test.tsv").write_text("".join(lines))


def start(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    command = [Path(sys.executable).parent / "labelsense", "serve", "--port", "0"]
    models = [folder / "omp.model", folder / "correlation.model"]
    log = folder / "log"
    with log.open("wb") as file:
        server = subprocess.Popen([*command, *models, "--vocabulary", folder / "vocabulary.tsv"], stderr=file)
    while " at http" not in log.read_text():
        assert server.poll() is None, log.read_text()
        time.sleep(0.1)
    return server, log.read_text().split(" at ")[1].split()[0]


def run_client(annif: Path, folder: Path, address: str, text: str) -> None:
    said = run([annif / "bin" / "python", "-c", CLIENT, address, text], folder)
    assert "'project_id': 'omp'" in said
    assert "projects ['omp', 'correlation']" in said
    assert "'document_id': 'b'" in said
    assert "missing There is no project 'none'" in said
    assert "learn 403" in said


def run_annif(annif: Path, folder: Path, address: str, text: str, expected: dict[str, float]) -> None:
    projects = [
        f"[{name}]\nname={name}\nlanguage=en\nbackend=http\nvocab=debtags\nendpoint={address}v1/projects/{name}/suggest\n"
        for name in expected
    ]
    projects.append(
        "[both]\nname=both\nlanguage=en\nbackend=ensemble\nvocab=debtags\nsources=omp,correlation\nlimit=100\n"
    )
    (folder / "projects.cfg").write_text("\n".join(projects))
    command = annif / "bin" / "annif"
    run([command, "load-vocab", "debtags", "vocabulary.tsv", "--language", "en"], folder)
    run([command, "list-projects"], folder)
    for project in ("omp", "both"):
        assert BASE in run([command, "suggest", project, "--limit", "5"], folder, text)
    for project in ("omp", "correlation", "both"):
        said = run([command, "eval", project, "test.tsv", "--limit", "10", "--metrics-file", "metrics.json"], folder)
        figures = json.loads((folder / "metrics.json").read_text())
        measured = next(value for name, value in figures.items() if re.match(r"Precision@1$|Precision_1$", name))
        assert "Precision@1" in said
        if project in expected:
            assert abs(measured - expected[project]) < 0.005, (project, measured, expected[project])


def run(command: list[object], folder: Path, text: str | None = None) -> str:
    words = [str(word) for word in command]
    print(f"\n$ {Path(words[0]).name} {' '.join(word for word in words[1:] if len(word) < 100)}")
    done = subprocess.run(words, cwd=folder, input=text, capture_output=True, text=True, timeout=600)
    print(done.stdout + "\n".join(line for line in done.stderr.splitlines() if "Warning" not in line))
    assert done.returncode == 0, done.stderr
    return done.stdout


if __name__ == "__main__":
    main()
