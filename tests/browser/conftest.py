"""A browser, and servers for it: models of the bundled debtags, of which one server may learn."""

import shutil

import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright
from serving import KEY, Process
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from labelsense import (
    CompressedLabelClassifier,
    HadamardCompressor,
    LogTfidfTransformer,
    OneVsAllClassifier,
    RidgeLearner,
)
from labelsense.data import load_debtags
from labelsense.refine import Refiner

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHESS = "A console program to play chess against the computer, with an opening book and a strong engine."
MAIL = "A mail server that receives messages over SMTP, filters spam and delivers them to local mailboxes."
EXAMPLES = f'{{"id": "a chess game", "text": "{CHESS}"}}\n{{"id": "a mail server", "text": "{MAIL}"}}\n'
SKOS = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<game::board:chess> a skos:Concept ; skos:prefLabel "chess"@en ; skos:broader <game::board> .
<game::board> a skos:Concept ; skos:prefLabel "board games"@en .
"""
ROWS = 5000

expect.set_options(timeout=10_000)


def sentences(X, words):
    """Return texts that have these counts of words."""
    rows = zip(X.indptr, X.indptr[1:], strict=False)
    return [" ".join(np.repeat(words[X.indices[a:b]], X.data[a:b].astype(int))) for a, b in rows]


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Return a folder with models: debtags, which can learn, others, and one of features."""
    folder = tmp_path_factory.mktemp("models")
    data = load_debtags()
    X, Y = data.X_train[:ROWS], data.Y_train[:ROWS]
    texts = sentences(X, np.array(data.features))
    labels = [[data.labels[j] for j in Y.indices[a:b]] for a, b in zip(Y.indptr, Y.indptr[1:], strict=False)]
    small = Refiner(n_candidates=20, n_calibration=200)
    for name, m, rows, refiner in (
        ("debtags", 200, ROWS, None),
        ("other", 60, 2000, None),
        ("refined", 100, 2000, small),
    ):
        words = CountVectorizer(max_features=1500, dtype=np.float32, token_pattern="[a-z][a-z0-9+#]+")
        model = CompressedLabelClassifier(
            HadamardCompressor(m, reserve=10, random_state=0),
            RidgeLearner(alpha=1.0, updatable=name == "debtags"),
            "omp",
            refiner=refiner,
            features=make_pipeline(words, LogTfidfTransformer()),
        )
        model.fit(texts[:rows], labels[:rows]).save(folder / f"{name}.model")
    OneVsAllClassifier(RidgeLearner(alpha=1.0)).fit(X[:500, :50], Y[:500]).save(folder / "features.model")
    (folder / "examples.jsonl").write_text(EXAMPLES)
    (folder / "subjects.ttl").write_text(SKOS)
    (folder / "keys").write_text(KEY)
    return folder


@pytest.fixture(scope="session")
def server(models):
    """Return the address of a server of four models that does not learn."""
    examples, vocabulary = f"debtags={models / 'examples.jsonl'}", f"refined={models / 'subjects.ttl'}"
    options = ("--examples", examples, "--vocabulary", vocabulary)
    with Process(
        *options, *(models / f"{name}.model" for name in ("debtags", "other", "refined", "features"))
    ) as process:
        yield process.address


@pytest.fixture(scope="session")
def learner(models, tmp_path_factory):
    """Return the address of a server that learns."""
    path = tmp_path_factory.mktemp("learner") / "debtags.model"
    shutil.copy(models / "debtags.model", path)
    with Process("--allow-learning", "--api-key-file", models / "keys", path) as process:
        yield process.address


@pytest.fixture(scope="session")
def chromium():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as playwright:
        # The sandbox does not work for root, and these pages are our own.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium, server):
    """Return a function that opens the page; in the end nothing may have gone wrong or have gone elsewhere."""
    contexts, problems = [], []

    def open_page(hash="", address=server, expected=(), ready=True, **settings):
        settings = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"} | settings
        context = chromium.new_context(**settings)
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()

        def watch(kind, text):
            if not any(part in text for part in expected):
                problems.append(f"{kind}: {text}")

        page.on("pageerror", lambda error: watch("error", str(error)))
        page.on("console", lambda message: watch("console", message.text))
        page.on(
            "request",
            lambda request: request.url.startswith((address, "data:", "blob:")) or watch("elsewhere", request.url),
        )
        page.goto(f"{address}{hash}")
        if ready:
            expect(page.locator("#nothing")).not_to_be_empty()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []
