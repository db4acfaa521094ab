"""What the commands share: their arguments, how they print, and what they check of files before any work."""

from __future__ import annotations

import importlib
import io
import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from labelsense._files import check_writable
from labelsense._progress import PROGRESS, logger, verbosity
from labelsense.cli.options import in_options
from labelsense.data import FORMATS
from labelsense.data.formats.source import logger as guesses


class _Screen(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # which commands end on; rich would leave with an error


console = _Screen(highlight=False)
errors = _Screen(stderr=True, highlight=False)

UNBOUNDED = 100_000  # columns of a pipe

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Format = Annotated[
    str | None, typer.Option(help=f"Format of the data, where the name does not tell: {', '.join(FORMATS)}.")
]
TextFields = Annotated[
    str | None,
    typer.Option(
        help="Fields that make the text, with commas between them: title,text,metadata.abstract. The model does not "
        "remember them: name the same ones each time."
    ),
]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler, such as tcp://host:8786: its workers do the work.")
]
Workers = Annotated[int | None, typer.Option(min=1, help="Work with so many processes on this machine, by Dask.")]
Data = Annotated[Path, typer.Argument(help="A data file, a folder of texts or images, or - for standard input.")]
Model = Annotated[Path, typer.Argument(help="A model file written by train.")]

SCHEMA = (
    "Data: the end of a file's name tells its format (.jsonl, .tsv, .csv, .parquet, .txt; .xc, .svm, .arff; then .gz, "
    ".bz2 or .xz), or else its content does. Fields of jsonl, tsv, csv and parquet: text, or else title, body and "
    "description; labels, or else tags, subjects or subject_uris; document_id, or else id. In tables, labels have | "
    "between them, subject_uris blanks. A TSV without header has a text, a tab and labels per line. A folder has .txt "
    "files with .tsv or .key files of labels, or images with tags.tsv, or X.npz and Y.npz. Lines have at most 64 MB."
)


def names_of(fields: str | None) -> list[str] | None:
    """Return the names of --text-fields."""
    return None if fields is None else [name for name in (part.strip() for part in fields.split(",")) if name]


def number_of_bytes(text: str) -> float:
    """Return the bytes of an option such as 500M, 2G or 1.5G."""
    match = re.fullmatch(r"(\d+\.?\d*)([kmgt]?)(i?b)?", text.strip().lower())
    if match is None or float(match[1]) == 0:
        raise ValueError(f"--memory must be a number of bytes, such as 500M or 2G. Got {text}.")
    return float(match[1]) * 1000 ** " kmgt".index(match[2] or " ")


def require_dask() -> Any:
    """Return the module labelsense.dask, or say what is missing."""
    return importlib.import_module("labelsense.dask")


@contextmanager
def connected(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """Give a client of a Dask cluster, and print where its dashboard is."""
    if scheduler is not None and workers is not None:
        raise ValueError("--scheduler and --workers exclude each other. Pass one of them.")
    with require_dask().connect(scheduler, workers) as client:
        print_note(f"dashboard: {client.dashboard_link}")
        yield client


class _Bar(logging.Handler):
    """Shows what the library says of its long steps as a progress bar."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self.progress = progress
        self.task = progress.add_task("", total=None)
        self.step = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg == PROGRESS and isinstance(record.args, tuple):
            step, percent = record.args
            if step != self.step:  # time left is that of the step
                self.step = str(step)
                self.progress.reset(self.task)
            self.progress.update(self.task, description=str(step), total=100, completed=float(str(percent)))
        elif not is_note(record):
            self.progress.update(self.task, description=record.getMessage(), total=None)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a progress bar on the terminal while the library works; nothing where there is no terminal."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(20),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)
    with progress if errors.is_terminal else nullcontext():  # rich before 14.3 ends a hidden bar with an empty line
        bar = _Bar(progress)
        progress.update(bar.task, description=what)
        level = logger.level
        logger.addHandler(bar)
        logger.setLevel(logging.INFO)
        try:
            with verbosity(1):
                yield
        finally:
            logger.removeHandler(bar)
            logger.setLevel(level)


def is_note(record: logging.LogRecord) -> bool:
    """Tell whether a message is for the user to keep: what was guessed of a file, and warnings."""
    return record.name == guesses.name or record.levelno >= logging.WARNING


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if is_note(record):
            print_note(record.getMessage())


@contextmanager
def noting() -> Iterator[None]:
    """Print on standard error what the library guesses of files, and what it warns of."""
    notes, level = _Notes(), guesses.level
    logger.addHandler(notes)
    guesses.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(notes)
        guesses.setLevel(level)


def print_note(message: str, style: str | None = None) -> None:
    """Print one line on standard error, in the words of the command line."""
    line = f"labelsense: {in_options(' '.join(message.split()))}"
    errors.print(line, style=style, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print one line of JSON."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Print names and what they are, in two columns."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, value)
    print_table(table)


def print_table(table: Table) -> None:
    """Print a table as wide as the screen, or as COLUMNS says; into a pipe as wide as it is, without blanks at ends."""
    for column in table.columns:
        if column.overflow == "ellipsis" and not column.no_wrap:
            column.overflow = "fold"
    if console.is_terminal:
        return console.print(table, markup=False)
    bound = os.environ.get("COLUMNS", "")
    plain = Console(file=io.StringIO(), highlight=False, width=int(bound) if bound.isdigit() else UNBOUNDED)
    with plain.capture() as capture:
        plain.print(table, markup=False)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))


def percent(figures: dict[str, float], names: Iterable[str]) -> str:
    """Return some of the figures in percent, on a line."""
    return "  ".join(f"{name} {100 * figures[name]:.1f}" for name in names)


def check_output(path: Path, *read: Path | None, folder: bool = False) -> None:
    """Refuse, before any work, a file that cannot be written, or whose writing would destroy what is read.

    With ``folder`` it may be a folder that is there.
    """
    for other in read:
        if other is not None and other.exists() and path.exists() and path.samefile(other):
            raise ValueError(f"{path} is read, and writing to it would destroy it. Name another file for the output.")
    if not (folder and path.is_dir()):
        check_writable(path)
