"""labelsense demo --serve: two models of the bundled data, and the page to try them on."""

from __future__ import annotations

import secrets
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

import numpy as np

from labelsense import CompressedLabelClassifier, HadamardCompressor, RidgeLearner, WhitenedCompressor
from labelsense.cli.console import console, print_note, working
from labelsense.cli.serve import load_server, logging_to_stderr
from labelsense.data import load_debtags
from labelsense.features import text_words

ROWS = 6000  # to learn from, so that it starts soon
WORDS = 3000  # few, so that a model has learned seconds after it was told
MEASUREMENTS = 200
EXAMPLES = {
    "a chess game": "A console program to play chess against the computer, with an opening book and a strong engine.",
    "a mail server": "A fast and secure mail transfer agent that delivers mail over SMTP, with filters against spam.",
    "a Python library": "Python module to read and write spreadsheets. This package contains the documentation.",
    "a photo viewer": "Lightweight image viewer for the GNOME desktop that shows photos and their metadata.",
    "a game of cards": "A collection of solitaire card games with many rules, a graphical interface and statistics.",
    "a file system tool": "Command line utilities to create, check and repair file systems on disks and partitions.",
}


def serve_demo(port: int) -> None:
    """Train, serve, and open the page; the models are gone when it ends."""
    run, _ = load_server()
    key = secrets.token_urlsafe(16)
    with tempfile.TemporaryDirectory(prefix="labelsense-") as folder:
        with working("training"):
            paths = _train(Path(folder))
        examples = [{"title": title, "text": text} for title, text in EXAMPLES.items()]

        def announce(address: str) -> None:
            page = f"{address}#key={key}"
            print_note(f"serving {', '.join(paths)}; the page is {page}, Ctrl-C ends it")
            if console.is_terminal:
                webbrowser.open(page)

        with logging_to_stderr():
            run(
                paths,
                port=port,
                keys=[key],
                learning=True,
                examples={name: examples for name in paths},
                announce=announce,
            )


def _train(folder: Path) -> dict[str, Path]:
    """Return the files of two models: ours, refined, and the paper's with a quarter of the measurements."""
    data = load_debtags()
    words, labels = np.array(data.features), data.labels or []
    some = np.random.default_rng(0).permutation(data.X_train.shape[0])[:ROWS]
    texts = [" ".join(np.repeat(words[row.indices], row.data.astype(np.int64))) for row in _rows(data.X_train[some])]
    tags = [[labels[j] for j in row.indices] for row in _rows(data.Y_train[some])]
    common: dict[str, Any] = {"features": text_words(WORDS), "updatable": True, "random_state": 0, "n_jobs": -1}
    models = {
        "debtags": CompressedLabelClassifier(WhitenedCompressor(MEASUREMENTS), budget="fast", **common),
        "debtags-small": CompressedLabelClassifier(
            HadamardCompressor(MEASUREMENTS // 4), RidgeLearner(alpha=1.0), "omp", refiner=None, **common
        ),
    }
    paths = {}
    for name, model in models.items():
        paths[name] = folder / f"{name}.model"
        model.fit(texts, tags).save(paths[name])
    return paths


def _rows(M: Any) -> Any:
    return (M[[i]] for i in range(M.shape[0]))
