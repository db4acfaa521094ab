"""labelsense advise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labelsense._plots import load_matplotlib
from labelsense.advisor.advise import advise_on
from labelsense.chooser import BUDGETS
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
from labelsense.cli.options import in_options
from labelsense.data import read_examples
from labelsense.data.adapt import labels_of
from labelsense.training import Choices


def advise(
    data: Data,
    plot: Annotated[Path | None, typer.Option(help="Draw precision against measurements to this file.")] = None,
    budget: Annotated[str, typer.Option(help=f"As for train: {', '.join(BUDGETS)}.")] = "balanced",
    k: Annotated[int, typer.Option("-k", min=1, help="The precision at k that the picture is about.")] = 5,
    sample: Annotated[int, typer.Option(min=50, help="Rows to learn from in the rehearsal, at most.")] = 6000,
    learner: Annotated[str, typer.Option(help="auto, ridge, or kernel_ridge.")] = "auto",
    refine: Annotated[bool, typer.Option(help="Refine what is decoded, as for train.")] = True,
    held_out: Annotated[str, typer.Option(help="Which rows to measure on, as for train: auto, rows or last.")] = "auto",
    format: Format = None,
    text_fields: TextFields = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    json: Json = False,
) -> None:
    """Tell before training what `train` will choose, what to expect and what it costs."""
    if plot is not None:
        load_matplotlib()
        check_output(plot, data)
    choices = Choices(
        learner=learner, refiner="auto" if refine else None, budget=budget, held_out=held_out, random_state=seed
    )
    with working(f"reading {data}"):
        examples = read_examples(data, format, names_of(text_fields))
    labels = labels_of(examples)
    with working("trying on a sample"):
        advice = advise_on(choices.make_model(examples), examples.X, labels, k=k, sample=sample)
    if json:
        print_json(advice.to_dict())
    else:
        console.print(in_options(str(advice)), markup=False, soft_wrap=True)
    if plot is not None:
        advice.plot(plot)
