"""labelsense reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labelsense.cli.console import Json, console, print_json, working
from labelsense.experiments import reproduce as run_experiments
from labelsense.experiments.claims import CLAIMS
from labelsense.experiments.report import WORDS
from labelsense.experiments.results import read_results
from labelsense.experiments.settings import PROBLEMS, SEEDS


def reproduce(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder for runs, figures and the page.")] = Path(
        "reproduction"
    ),
    dataset: Annotated[
        list[str] | None,
        typer.Option(help=f"One of {', '.join(PROBLEMS)}; may be repeated. By default those that can be had."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many matrices A to draw for each line.")] = len(SEEDS),
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: few rows, one matrix, m = 100 and 200.")
    ] = False,
    esp: Annotated[Path | None, typer.Option(help="The folder ESP-ImageSet of the ESP game's images.")] = None,
    json: Json = False,
) -> None:
    """Run the paper's experiments and write a page with its figures and claims. What was run before is kept."""
    with working("the paper's experiments"):
        page = run_experiments(output, datasets=dataset, seeds=range(seeds), quick=quick, esp=esp)
    every = read_results(output)
    verdicts = [(claim.text, r.problem.title, claim.verdict(r)) for claim in CLAIMS for r in every]
    if json:
        claims = [{"claim": text, "dataset": title, **verdict._asdict()} for text, title, verdict in verdicts]
        return print_json({"page": str(page), "claims": claims})
    for claim in CLAIMS:
        found = "  ".join(f"{r.problem.title}: {WORDS[claim.verdict(r).holds]}" for r in every)
        console.print(claim.text, style="bold", markup=False)
        console.print(f"  {found}", markup=False)
    console.print(f"saved {page}", markup=False)
