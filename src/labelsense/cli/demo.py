"""labelsense demo: the bundled data set, a few regressions, two decoders, and a matrix that suits the labels."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from labelsense import (
    CompressedLabelClassifier,
    HadamardCompressor,
    LogTfidfTransformer,
    OMPDecoder,
    OneVsAllClassifier,
    RidgeLearner,
    WhitenedCompressor,
)
from labelsense.cli.console import Json, console, print_json, working
from labelsense.cli.demo_service import serve_demo
from labelsense.data import load_debtags

WORDS = 12


def demo(
    json: Json = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve two models of the data, with a page to try them.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --serve, the port to listen on; 0 is any.")] = 8000,
) -> None:
    """Learn to tag Debian packages, with real data that come with labelsense."""
    if serve:
        return serve_demo(port)
    data = load_debtags()
    scaler = LogTfidfTransformer().fit(data.X_train)
    X, X_test = scaler.transform(data.X_train), scaler.transform(data.X_test)
    n, d = data.Y_train.shape
    if not json:
        console.print(f"{n} Debian packages to learn from, {X_test.shape[0]} to test on: {X.shape[1]} words, {d} tags,")
        console.print(f"{data.Y_train.nnz / n:.1f} tags a package. P@k: how many of the k best tags are true.\n")
        console.print("regressions  decoder            P@1    P@3    P@5   fit s  predict s")
    models, results = _models(d), []
    for m, decoder, model in models:
        with working(f"{m} regressions, {decoder}"):
            start = time.perf_counter()
            model.fit(X, data.Y_train)
            fitted = time.perf_counter()
            figures = model.evaluate(X_test, data.Y_test)
        seconds = {"fit_seconds": fitted - start, "predict_seconds": time.perf_counter() - fitted}
        results.append({"regressions": m, "decoder": decoder, **figures, **seconds})
        if not json:
            precision = " ".join(f"{100 * figures[f'P@{k}']:6.1f}" for k in (1, 3, 5))
            fit, predict = seconds.values()
            console.print(f"{m:>11}  {decoder:<15} {precision} {fit:7.2f} {predict:10.2f}")
    if json:
        return print_json(results)
    row = [1000]  # any will do
    top = models[-2][2].predict_topk(X_test[row], k=5)
    guesses = ", ".join(f"{data.labels[j]} {s:.2f}" for j, s in zip(top.labels[0], top.scores[0], strict=True))
    words = [data.features[j] for j in data.X_test[row].indices]
    console.print(f"\nA test package with the words {', '.join(words[:WORDS])}, ...")
    console.print("  true tags:", ", ".join(data.labels[j] for j in data.Y_test[row].indices))
    console.print("  predicted:", guesses)


def _models(n_labels: int) -> list[tuple[int, str, Any]]:
    learner = RidgeLearner(alpha="loo", random_state=0)
    parts: dict[str, tuple[Any, Any]] = {
        "correlation": (HadamardCompressor, "correlation"),
        "omp": (HadamardCompressor, "omp"),
        "omp, whitened": (WhitenedCompressor, OMPDecoder(penalty=0.1)),
    }
    compressed = [
        (m, title, CompressedLabelClassifier(compressor(m), learner, decoder, refiner=None, random_state=0, n_jobs=-1))
        for m in (50, 100, 200)
        for title, (compressor, decoder) in parts.items()
    ]
    return [*compressed, (n_labels, "one-against-all", OneVsAllClassifier(learner))]
