"""labelsense predict and labelsense evaluate."""

from __future__ import annotations

import json as json_lines
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from rich.table import Table

from labelsense import load_model
from labelsense._files import replacing
from labelsense._plots import load_matplotlib
from labelsense.cli.console import (
    Data,
    Format,
    Json,
    Model,
    Scheduler,
    TextFields,
    Workers,
    check_output,
    connected,
    console,
    names_of,
    print_json,
    print_table,
    require_dask,
    working,
)
from labelsense.data import Examples, read_examples, stream_examples
from labelsense.data.adapt import features_for, labels_for
from labelsense.evaluation import check_table_name

ROWS = 8192  # predicted between two writes


def predict(
    model: Model,
    data: Data = Path("-"),
    k: Annotated[int, typer.Option("-k", min=1, help="How many labels a row, at most.")] = 5,
    threshold: Annotated[float | None, typer.Option(help="Leave out labels with a lower score.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write JSON lines to this file.")] = None,
    format: Format = None,
    text_fields: TextFields = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    json: Json = False,
) -> None:
    """Predict the labels of texts, features or images: one JSON object a row, or a table on a terminal.

    An object has "labels", "scores", and "document_id" where the data have one.

    echo "a game of chess" | labelsense predict model
    """
    if output is not None:
        check_output(output, model, data)
    if scheduler is not None or workers is not None:
        with connected(scheduler, workers) as client:
            rows = require_dask().read(data, format, names_of(text_fields))
            task = _Answer(load_model(model), k, threshold)
            answers = chain.from_iterable(require_dask().pieces.in_order(task, rows, client))
            return _show(answers, output, json)
    batches = stream_examples(data, format, ROWS, names_of(text_fields))
    _show(_answers(load_model(model, mmap=True), batches, k, threshold), output, json)


def _show(answers: Iterator[tuple[str, dict[str, Any]]], output: Path | None, json: bool) -> None:
    if output is not None:
        with replacing(output) as temporary, open(temporary, "w", encoding="utf-8") as file:
            _write(answers, file)
    elif json or not console.is_terminal:
        _write(answers, sys.stdout)
    else:
        _print(answers)


def evaluate(
    model: Model,
    data: Data,
    k: Annotated[list[int] | None, typer.Option("-k", min=1, help="Cut-offs; by default 1, 3 and 5.")] = None,
    per_label: Annotated[
        Path | None, typer.Option(help="Write count, precision, recall and F1 of each label to this .tsv or .csv.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw precision by place, and how reliable probabilities are, to this file.")
    ] = None,
    format: Format = None,
    text_fields: TextFields = None,
    json: Json = False,
) -> None:
    """Compare a model's predictions with the labels of a file: rankings, sets of labels and probabilities."""
    if plot is not None:
        load_matplotlib()
        check_output(plot, model, data)
    if per_label is not None:
        check_table_name(per_label)
        check_output(per_label, model, data)
    loaded = load_model(model)
    with working(f"reading {data}"):
        examples = read_examples(data, format, names_of(text_fields))
    with working("evaluating"):
        result = loaded.evaluate(
            features_for(loaded, examples), labels_for(loaded, examples), sorted(set(k or (1, 3, 5)))
        )
    if per_label is not None:
        result.write_labels(per_label)
    if plot is not None:
        result.plot(plot)
    if json:
        return print_json({"rows": result.n_rows, **result})
    console.print(str(result), markup=False, soft_wrap=True)


class _Answer:
    """Predicts for a piece of rows, in another process."""

    def __init__(self, model: Any, k: int, threshold: float | None) -> None:
        self.model, self.k, self.threshold = model, k, threshold

    def __call__(self, rows: Examples) -> list[tuple[str, dict[str, Any]]]:
        return list(_answers(self.model, iter([rows]), self.k, self.threshold))


def _answers(
    model: Any, batches: Iterator[Examples], k: int, threshold: float | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what a person would know a row by, and what is predicted for it."""
    for batch in batches:
        if not len(batch):
            continue
        top = model.predict_topk(features_for(model, batch), k)
        for i, (labels, scores) in enumerate(zip(top.labels.tolist(), top.scores.tolist(), strict=True)):
            kept = [
                (label, round(score, 4))
                for label, score in zip(labels, scores, strict=True)
                if label is not None and label != -1 and (threshold is None or score >= threshold)
            ]
            name = None if batch.ids is None else batch.ids[i]
            answer = {} if name is None else {"document_id": name}
            yield (
                name or _beginning(batch, i),
                answer | {"labels": [label for label, _ in kept], "scores": [s for _, s in kept]},
            )


def _beginning(batch: Examples, i: int) -> str:
    """Return how a text begins, or the first features of a row."""
    if isinstance(batch.X, list):
        return " ".join(batch.X[i][:200].split())
    start, stop = batch.X.indptr[i], batch.X.indptr[i + 1]
    names = batch.features
    return ", ".join(names[j] if names else str(j) for j in batch.X.indices[start:stop][:8])


def _write(answers: Iterator[tuple[str, dict[str, Any]]], file: IO[str]) -> None:
    for _, answer in answers:
        file.write(json_lines.dumps(answer, ensure_ascii=False) + "\n")
    file.flush()


def _print(answers: Iterator[tuple[str, dict[str, Any]]]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("row", max_width=40, no_wrap=True, overflow="ellipsis")
    table.add_column("labels", overflow="fold")
    for row, answer in answers:
        pairs = zip(answer["labels"], answer["scores"], strict=True)
        table.add_row(row, ", ".join(f"{label} {score:.2f}" for label, score in pairs))
    print_table(table)
