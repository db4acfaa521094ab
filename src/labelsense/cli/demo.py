"""labelsense demo: the bundled data set, the paper's method and the refined one, what each costs, and one package."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from labelsense import CompressedLabelClassifier, HadamardCompressor, OneVsAllClassifier, RidgeLearner
from labelsense.cli.console import Json, console, print_json, working
from labelsense.cli.demo_service import serve_demo
from labelsense.data import load_debtags
from labelsense.features import make_features

ROWS, TEST_ROWS = 5000, 3000  # so that it is done in a minute or two
MEASUREMENTS = 150
PACKAGE = 1000  # the row that is shown: any will do
WORDS, TAGS, REASONS = 10, 3, 4
NEXT = """
Next:
  labelsense train docs.jsonl -o tags.model   your texts, as {"text", "labels"}
  labelsense advise docs.jsonl                what train will choose and reach
  labelsense demo --serve                     models with a page to try them
In Python: CompressedLabelClassifier().fit(X, y); print(clf.report_)"""


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
    rows, test = (
        np.sort(np.random.default_rng(0).permutation(X.shape[0])[:size])
        for X, size in ((data.X_train, ROWS), (data.X_test, TEST_ROWS))
    )
    scaler = make_features("counts").fit(data.X_train[rows])
    X, X_test = scaler.transform(data.X_train[rows]), scaler.transform(data.X_test[test])
    Y, Y_test = data.Y_train[rows], data.Y_test[test]
    if not json:
        console.print(f"{X.shape[0]} Debian packages to learn from, {X_test.shape[0]} to test on: {X.shape[1]} words,")
        console.print(
            f"{Y.shape[1]} tags, {Y.nnz / Y.shape[0]:.1f} a package. P@k: how many of the k best tags are true.\n"
        )
        console.print(f"{'':<26}{'P@1':>6}{'P@3':>6}{'P@5':>6}{'fit s':>8}{'row us':>8}{'MB':>7}")
    results = []
    for name, model in _models().items():
        with working(name):
            results.append({"model": name, **_try(model, X, Y, X_test, Y_test)})
        if not json:
            console.print(_line(results[-1]))
    if json:
        return print_json(results)
    console.print()
    _show_package(model, X_test, data, test)
    console.print(NEXT, markup=False, soft_wrap=True)


def _models() -> dict[str, Any]:
    ridge, paper = RidgeLearner(alpha="loo", random_state=0), HadamardCompressor(MEASUREMENTS)
    return {
        "one-against-all": OneVsAllClassifier(ridge),
        "the paper's method": CompressedLabelClassifier(paper, ridge, "omp", refiner=None, random_state=0, n_jobs=-1),
        'refined, budget="fast"': _refined("fast"),
        "refined, the default": _refined("balanced"),
    }


def _refined(budget: str) -> CompressedLabelClassifier:
    return CompressedLabelClassifier(budget=budget, features="none", random_state=0, n_jobs=-1)


def _try(model: Any, X: Any, Y: Any, X_test: Any, Y_test: Any) -> dict[str, float]:
    """Fit, predict and save; return precisions and costs."""
    start = time.perf_counter()
    model.fit(X, Y)
    fitted = time.perf_counter()
    model.predict_topk(X_test)
    predicted = time.perf_counter()
    figures = model.evaluate(X_test, Y_test)
    with tempfile.TemporaryDirectory(prefix="labelsense-") as folder:
        model.save(Path(folder) / "model")
        size = (Path(folder) / "model").stat().st_size
    return {
        **{name: figures[name] for name in ("P@1", "P@3", "P@5")},
        "fit_seconds": fitted - start,
        "predict_microseconds": 1e6 * (predicted - fitted) / X_test.shape[0],
        "megabytes": size / 1e6,
    }


def _line(result: dict[str, Any]) -> str:
    precisions = "".join(f"{100 * result[name]:6.1f}" for name in ("P@1", "P@3", "P@5"))
    fit, row, size = result["fit_seconds"], result["predict_microseconds"], result["megabytes"]
    return f"{result['model']:<26}{precisions}{fit:8.1f}{row:8.0f}{size:7.1f}"


def _show_package(model: Any, X_test: Any, data: Any, test: Any) -> None:
    """Print what the model says of one package, and why."""
    x, true = X_test[[PACKAGE]], data.Y_test[test[[PACKAGE]]].indices
    words = [data.features[j] for j in x.indices]
    console.print(f"A test package with the words {', '.join(words[:WORDS])}, ...", soft_wrap=True)
    console.print(f"  true tags: {', '.join(data.labels[j] for j in true)}", markup=False, soft_wrap=True)
    top = model.predict_topk(x, k=TAGS)
    for j, probability in zip(top.labels[0], top.scores[0], strict=True):
        found = model.explain(x, int(j)).ranker
        why = ", ".join(f"{data.features[name]} {value:+.2f}" for name, value in found.parts[:REASONS])
        console.print(f"  {data.labels[j]}: probability {probability:.2f}", markup=False)
        console.print(f"    because of {why}", markup=False, soft_wrap=True)
