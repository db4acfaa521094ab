"""labelsense advise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from labelsense.advisor import advise as give_advice
from labelsense.cli.console import Data, Format, Json, console, labels_of, print_json, read_rows, working
from labelsense.cli.train import choose_features
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
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    json: Json = False,
) -> None:
    """Tell before training how many measurements to take, which decoder, what to expect and what it costs."""
    with working(f"reading {data}"):
        examples = read_rows(data, format)
    labels = labels_of(examples, data)
    word = choose_features("auto", examples, updatable=False)
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
