"""labelsense advise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from labelsense._plots import load_matplotlib
from labelsense.advisor import advise as give_advice
from labelsense.cli.console import (
    Data,
    Format,
    Json,
    TextFields,
    check_output,
    console,
    names_of,
    print_json,
    working,
)
from labelsense.data import read_examples
from labelsense.data.adapt import choose_features, labels_of
from labelsense.features import make_features


def advise(
    data: Data,
    plot: Annotated[Path | None, typer.Option(help="Draw precision against measurements to this file.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="The precision at k that matters.")] = 5,
    sample: Annotated[int, typer.Option(min=50, help="Rows to learn from in the trial, at most.")] = 6000,
    learner: Annotated[str, typer.Option(help="ridge, or kernel_ridge.")] = "ridge",
    related: Annotated[
        bool, typer.Option("--related", help="Neighbouring rows belong together; new rows will come from elsewhere.")
    ] = False,
    format: Format = None,
    text_fields: TextFields = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    json: Json = False,
) -> None:
    """Tell before training how many measurements to take, which decoder, what to expect and what it costs."""
    if plot is not None:
        load_matplotlib()
        check_output(plot, data)
    with working(f"reading {data}"):
        examples = read_examples(data, format, names_of(text_fields))
    labels, word = labels_of(examples), choose_features(examples)
    with working("trying on a sample"):
        X: Any = examples.X if word == "none" else make_features(word).fit_transform(examples.X)
        held_out = "runs" if related else "rows"
        advice = give_advice(X, labels, learner=learner, k=k, sample=sample, held_out=held_out, random_state=seed)
    if json:
        print_json(advice.to_dict())
    else:
        console.print(str(advice), markup=False, soft_wrap=True)
    if plot is not None:
        advice.plot(plot)
