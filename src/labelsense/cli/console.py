"""What the commands share: how they print, and how they read what they are given."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import scipy.sparse as sp
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from labelsense._blocks import row_blocks
from labelsense._progress import REPORT, logger, showing
from labelsense.data import FORMATS, Examples, read_examples, read_image_folder, stream_examples
from labelsense.labels import Vocabulary

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

IMAGES = {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp"}
TAGS = "tags.tsv"

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Format = Annotated[
    str | None, typer.Option(help=f"Format of the data, if the content does not tell: {', '.join(FORMATS)}.")
]
Data = Annotated[Path, typer.Argument(help="A data file, - for standard input, or a folder of images.")]
Model = Annotated[Path, typer.Argument(help="A model file written by train.")]


class _Bar(logging.Handler):
    """Shows what the library says of its long steps as a progress bar."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self.progress = progress
        self.task = progress.add_task("", total=None)

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg == REPORT and isinstance(record.args, tuple):
            step, percent = record.args
            self.progress.update(self.task, description=str(step), total=100, completed=float(str(percent)))
        else:
            self.progress.update(self.task, description=record.getMessage(), total=None)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a progress bar on the terminal while the library works; nothing where there is no terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn())
    progress = Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)
    with progress if errors.is_terminal else nullcontext():  # rich before 14.3 ends a hidden bar with an empty line
        bar = _Bar(progress)
        progress.update(bar.task, description=what)
        level = logger.level
        logger.addHandler(bar)
        logger.setLevel(logging.INFO)
        try:
            with showing(1):
                yield
        finally:
            logger.removeHandler(bar)
            logger.setLevel(level)


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
    console.print(table)


def percent(figures: dict[str, float], names: Iterable[str]) -> str:
    """Return some of the figures in percent, on a line."""
    return "  ".join(f"{name} {100 * figures[name]:.1f}" for name in names)


def read_rows(path: Path, format: str | None) -> Examples:
    """Return a data file, or a folder of images with their tags."""
    return next(_image_rows(path, None)) if _holds_images(path) else read_examples(path, format)


def stream_rows(path: Path, format: str | None, rows: int | None = None) -> Iterator[Examples]:
    """Yield the batches of a data file, of a folder of images, or of one image."""
    return _image_rows(path, rows) if _holds_images(path) else stream_examples(path, format, rows)


class ImageFiles(Examples):
    """Examples whose X holds the names of image files."""


def _holds_images(path: Path) -> bool:
    if path.is_dir():
        return not (path / "X.npz").exists() and any(file.suffix.lower() in IMAGES for file in path.iterdir())
    return path.suffix.lower() in IMAGES


def _image_rows(path: Path, rows: int | None) -> Iterator[Examples]:
    if path.is_dir():
        tagged = (path / TAGS).is_file()
        paths, tags = read_image_folder(path, TAGS if tagged else None)
    else:
        paths, tags, tagged = [path], [[]], False
    for block in row_blocks(len(paths), rows or len(paths)):
        yield ImageFiles([str(name) for name in paths[block]], tags[block] if tagged else None)


def labels_of(examples: Examples, path: Path) -> Any:
    """Return the labels as training wants them: names where there are names, else the indicator matrix."""
    if examples.Y is None:
        raise ValueError(f"{path} has no labels to learn from or to compare with.")
    if isinstance(examples.Y, list) or examples.labels is None:
        return examples.Y
    return Vocabulary(examples.labels, len(examples.labels)).lists(examples.Y)


def features_for(model: Any, examples: Examples) -> Any:
    """Return X as the model takes it: rows of a format that does not state its width get the columns they lack."""
    X = examples.X
    expected = getattr(model if model.features_ is None else model.features_, "n_features_in_", 0)
    if not isinstance(X, list) and X.shape[1] < expected:
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], expected))
    return X


def truth_for(model: Any, examples: Examples, path: Path) -> Any:
    """Return the labels as the model was given them in training."""
    Y = labels_of(examples, path)
    d = model.vocabulary_.n_labels
    if not isinstance(Y, list) and model.vocabulary_.names is None and Y.shape[1] < d:
        Y = sp.csr_array((Y.data, Y.indices, Y.indptr), shape=(Y.shape[0], d))
    return Y
