"""labelsense train and labelsense update."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from labelsense.chooser import BUDGETS
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
    number_of_bytes,
    percent,
    print_json,
    print_pairs,
    require_dask,
    working,
)
from labelsense.cli.options import in_options
from labelsense.compress import COMPRESSORS
from labelsense.data import stream_examples
from labelsense.data.subjects import read_subjects
from labelsense.out_of_core import train_file
from labelsense.reconstruct import DECODERS
from labelsense.scale import Choices
from labelsense.training import Training
from labelsense.training import update as learn_more

ABOUT = {
    "words": "the most frequent words, log counts * idf, unit rows",
    "hashing": "hashed words, log counts, unit rows",
    "characters": "the most frequent runs of 3 to 5 characters, log counts * idf, unit rows",
    "counts": "log counts * idf, unit rows",
    "unit": "unit rows",
    "standard": "standardised columns",
    "images": "histograms of SURF patches",
    "none": "as they are",
}
FROZEN = {
    "words": "; words and idf are those of this training, update does not add words",
    "characters": "; runs of characters and idf are those of this training",
    "counts": "; idf is that of this training",
}


def train(
    data: Data,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to write the model.")],
    test: Annotated[Path | None, typer.Option(help="Rows to evaluate on, instead of holding some out.")] = None,
    format: Format = None,
    text_fields: TextFields = None,
    features: Annotated[str, typer.Option(help="auto; words, hashing, characters; counts, none; images.")] = "auto",
    n_features: Annotated[int | None, typer.Option(min=2, help="How many words, or hashed words, at most.")] = None,
    budget: Annotated[
        str, typer.Option(help=f"What to spend on choices and refinement: {', '.join(BUDGETS)}.")
    ] = "balanced",
    measurements: Annotated[str, typer.Option("-m", "--measurements", help="Number of regressions, or auto.")] = "auto",
    compressor: Annotated[str, typer.Option(help=f"auto, {', '.join(COMPRESSORS)}.")] = "auto",
    learner: Annotated[str, typer.Option(help="auto, ridge, or kernel_ridge (slower, often better).")] = "auto",
    alpha: Annotated[
        str,
        typer.Option(
            help="Penalty. auto: by the precision of rows left out, or loo if a learner is given. loo: the one with "
            "the least out-of-sample error."
        ),
    ] = "auto",
    decoder: Annotated[str, typer.Option(help=f"auto, {', '.join(DECODERS)}.")] = "auto",
    refine: Annotated[bool, typer.Option(help="Refine what is decoded, and learn probabilities.")] = True,
    held_out: Annotated[
        str,
        typer.Option(
            help="Measure what to expect on rows at random (rows), or also on the last ones, by a model of those "
            "before (last); auto does so where rows come in time or in runs."
        ),
    ] = "auto",
    vocabulary: Annotated[
        Path | None,
        typer.Option(help="What labels are called: SKOS, or Annif's .tsv or .csv. The model remembers it."),
    ] = None,
    updatable: Annotated[
        bool,
        typer.Option(
            help="Keep what `labelsense update` needs. Of long texts that is 8 bytes times the square of the number of "
            "words; there are then as many words as twice that fits into a quarter of the free memory, and at most "
            "20,000."
        ),
    ] = False,
    hold_out: Annotated[
        bool, typer.Option(help="With --no-refine, try a tenth of the rows before training on all.")
    ] = True,
    memory: Annotated[
        str | None,
        typer.Option(
            help="How much memory to take, about, such as 2G; by default half of what is free. A file that needs more "
            "is trained on in chunks; if that is stopped, the same command goes on with it."
        ),
    ] = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    json: Json = False,
) -> None:
    """Learn from a file of texts, features or images with labels, say what to expect, and write a model.

    labelsense train docs.jsonl -o model

    What is not given is chosen by the precision of rows left out. --compressor hadamard --learner ridge --decoder omp
    --no-refine is the paper's method.
    """
    check_output(output, data, test)
    m = _number(measurements, ("auto",), "measurements", int)
    penalty = _number(alpha, ("auto", "loo"), "alpha", float)
    choices = {
        "hold_out": hold_out,
        "features": features,
        "n_features": n_features,
        "n_measurements": m,
        "compressor": compressor,
        "learner": learner,
        "alpha": penalty,
        "decoder": decoder,
        "refiner": "auto" if refine else None,
        "budget": budget,
        "held_out": held_out,
        "updatable": updatable,
        "random_state": seed,
    }
    fields = names_of(text_fields)
    subjects = None if vocabulary is None else read_subjects(vocabulary)
    if scheduler is None and workers is None:
        limit = None if memory is None else number_of_bytes(memory)
        with working(f"reading {data}"):
            training = train_file(
                data,
                output,
                choices,
                memory=limit,
                test=test,
                format=format,
                text_fields=fields,
                subjects=subjects,
            )
    else:
        dask = require_dask()
        with connected(scheduler, workers) as client, working(f"reading {data}"):
            training = dask.train_files(
                data, Choices(**choices), client, test=test, format=format, text_fields=fields, subjects=subjects
            )
            training.model.save(output)
    report = training.report | {"model": str(output), "bytes": output.stat().st_size}
    if json:
        return print_json(report)
    _print_report(training, report, data)


def update(
    model: Model,
    data: Data,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Where to write it, if not in place.")] = None,
    format: Format = None,
    text_fields: TextFields = None,
    json: Json = False,
) -> None:
    """Learn from more rows, exactly: the weights equal those of training on all rows. New labels may appear.

    The model must have been trained with --updatable. Its words, and how rare each is, stay as they were. While a model
    is updated, other updates of it wait.
    """
    target = output or model
    check_output(target, data)
    with working(f"learning from {data}"):
        done = learn_more(model, stream_examples(data, format, text_fields=names_of(text_fields)), output)
    if json:
        return print_json({"rows": done.rows, "new_labels": done.new_labels, "model": str(target)})
    print_pairs([("learned", f"{done.rows:,} rows, {done.new_labels:,} new labels"), ("saved", str(target))])


def _number(text: str, words: tuple[str, ...], name: str, kind: Any) -> Any:
    if text in words:
        return text
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"--{name} must be a number or {' or '.join(words)}. Got {text}.") from None


def _print_report(training: Training, report: dict[str, Any], data: Path) -> None:
    word, kept, chunks = report["features"], report.get("update_bytes"), report.get("out_of_core", False)
    n_features, seconds = report["n_features"], f"in {report['seconds']:.1f} s"
    if "predict_seconds" in report:
        seconds += f"; predicts a row in {1e6 * report['predict_seconds']:,.0f} microseconds"
    lines = [
        ("read", f"{report['rows']:,} rows of {data}, {report['labels']:,} labels{', in chunks' if chunks else ''}"),
        ("features", f"{n_features:,}: {ABOUT[word]}"),
        ("learned", seconds),
    ]
    print_pairs(lines)
    console.print(f"\n{in_options(str(training.model.report_))}\n", markup=False, soft_wrap=True)
    lines = []
    if "evaluated_on" in report:
        lines.append(("evaluate", f"{report['evaluated_on']}: {percent(report, ('P@1', 'P@3', 'P@5', 'nDCG@5'))}"))
    if "subjects" in report:
        unknown = report["unknown_labels"]
        missing = f"; {len(unknown):,} labels are not in it: {', '.join(unknown[:5])}" if unknown else ""
        lines.append(("vocabulary", f"{report['subjects']:,} subjects{missing}"))
    if kept is not None:
        lines.append(("update", f"possible, for {kept / 1e6:,.1f} MB of memory more{FROZEN.get(word, '')}"))
    lines.append(("saved", f"{report['model']}, {report['bytes'] / 1e6:,.1f} MB"))
    print_pairs(lines)
