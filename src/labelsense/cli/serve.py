"""labelsense serve."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from labelsense.cli.console import print_note, working
from labelsense.data import read_examples
from labelsense.data.subjects import Subjects, read_subjects

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
EXAMPLES = 20  # on the page
TITLE = 40  # characters of an example that has no name


def serve(
    models: Annotated[list[str], typer.Argument(help="Model files, each by itself or as name=file.")],
    host: Annotated[
        str, typer.Option(help="The interface to listen on; beyond this machine, every request needs an API key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 is any.")] = 8000,
    vocabulary: Annotated[
        list[str] | None,
        typer.Option(help="What labels are called: SKOS, or Annif's .tsv or .csv; of one model, as name=file."),
    ] = None,
    examples: Annotated[
        list[str] | None, typer.Option(help="A file of texts to try on the page; of one model, as name=file.")
    ] = None,
    api_key_file: Annotated[Path | None, typer.Option(help="A file with API keys, one a line.")] = None,
    cors: Annotated[
        list[str] | None, typer.Option(help="A web site whose scripts may use the service: https://example.org.")
    ] = None,
    allow_learning: Annotated[
        bool, typer.Option("--allow-learning", help="Let who has an API key update models, in their files too.")
    ] = False,
    max_body: Annotated[int, typer.Option(min=1, help="Bytes of a request, at most.")] = 10_000_000,
    max_text: Annotated[int, typer.Option(min=1, help="Characters of a text, at most.")] = 1_000_000,
    max_batch: Annotated[int, typer.Option(min=1, help="Documents of a request, at most.")] = 32,
    max_requests: Annotated[int, typer.Option(min=1, help="Requests at a time, at most.")] = 512,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for a request to arrive, and to be answered.")] = 30,
    window: Annotated[
        float, typer.Option(min=0, max=1000, help="Milliseconds that a request may wait for others, at most.")
    ] = 5,
) -> None:
    """Serve models over HTTP: a page at /, Annif's interface at /v1, both described at /docs.

    SIGHUP loads the models again, SIGTERM and Ctrl-C stop when all requests are answered.

    labelsense serve tags=tags.model
    """
    run, service = load_server()
    paths = named_paths(models)
    for path in paths.values():
        if not path.is_file():
            raise FileNotFoundError(f"There is no model file {path}.")
    known = {name: _read_vocabulary(path) for name, path in _for_each(vocabulary, paths, "--vocabulary").items()}
    shown = {name: _read_texts(path) for name, path in _for_each(examples, paths, "--examples").items()}
    with logging_to_stderr():
        run(
            paths,
            host=host,
            port=port,
            subjects=known,
            examples=shown,
            keys=[] if api_key_file is None else service.read_keys(api_key_file),
            origins=cors or [],
            learning=allow_learning,
            limits=service.Limits(max_body, max_text, max_batch, timeout, max_requests),
            window=window / 1000,
            announce=lambda address: print_note(f"serving {', '.join(paths)} at {address}"),
        )


def load_server() -> tuple[Any, Any]:
    """Return the function that serves, and its module, which needs packages that the other commands do not need."""
    try:
        from labelsense.serve import server
    except ImportError as error:
        raise ImportError(f'{error.name} is missing, which serve needs: pip install "labelsense[serve]"') from error
    return server.serve, server


def named_paths(given: list[str]) -> dict[str, Path]:
    """Return files by name: as ``name=file`` says, or by the beginning of the file's own name."""
    found: dict[str, Path] = {}
    for item in given:
        name, path = _split(item)
        name = name or re.sub(r"[^A-Za-z0-9_.-]+", "-", path.stem)
        if not NAME.fullmatch(name):
            raise ValueError(f"A name must be of letters, digits, - and _. Got {name!r}. Write name={path}.")
        if name in found:
            raise ValueError(f"Two models are called {name}. Write other={path}.")
        found[name] = path
    return found


def _split(item: str) -> tuple[str | None, Path]:
    """Return the name and the file of ``name=file``; a file whose own name has = in it can be given as ./file."""
    name, equals, file = item.partition("=")
    return (name, Path(file)) if equals and "/" not in name else (None, Path(item))


def _for_each(given: list[str] | None, models: Iterable[str], option: str) -> dict[str, Path]:
    """Return a file for each model: its own, or else the one that is for all."""
    pairs = [_split(item) for item in given or []]
    for name, path in pairs:
        if name is not None and name not in models:
            raise ValueError(f"{option} must name one of the models {', '.join(models)}. Got {name}={path}.")
    files = dict(pairs)
    found = {model: files.get(model, files.get(None)) for model in models}
    return {model: path for model, path in found.items() if path is not None}


def _read_vocabulary(path: Path) -> Subjects:
    with working(f"reading {path}"):
        return read_subjects(path)


def _read_texts(path: Path) -> list[dict[str, str]]:
    """Return the first texts of a file, with what they are called on the page."""
    examples = read_examples(path)
    if not isinstance(examples.X, list):
        raise ValueError(f"--examples must be a file of texts. Got {path}, which has features.")
    names = examples.ids or [None] * len(examples.X)
    return [
        {"title": name or " ".join(text.split())[:TITLE], "text": text}
        for name, text in list(zip(names, examples.X, strict=True))[:EXAMPLES]
    ]


@contextmanager
def logging_to_stderr() -> Iterator[None]:
    """Write the log of the service, access included, to standard error; it has no texts."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%S"))
    ours, uvicorn = logging.getLogger("labelsense.serve"), logging.getLogger("uvicorn.error")
    before = ours.level, ours.propagate, uvicorn.level
    ours.setLevel(logging.INFO)
    uvicorn.setLevel(logging.WARNING)
    ours.propagate = False
    for logger in (ours, uvicorn):
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in (ours, uvicorn):
            logger.removeHandler(handler)
        ours.setLevel(before[0])
        ours.propagate = before[1]
        uvicorn.setLevel(before[2])
