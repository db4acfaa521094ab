"""labelsense serve."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def serve(
    models: Annotated[list[str], typer.Argument(help="Model files, each by itself or as name=file.")],
    host: Annotated[str, typer.Option(help="The interface to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on.")] = 8000,
) -> None:
    """Serve models over HTTP: a page at /, Annif's interface at /v1.

    labelsense serve tags=tags.model
    """
    from labelsense.serve.server import serve as run

    run(named_paths(models), host=host, port=port)


def named_paths(given: list[str]) -> dict[str, Path]:
    """Return files by name: as ``name=file`` says, or by the beginning of the file's own name."""
    found: dict[str, Path] = {}
    for item in given:
        name, equals, file = item.partition("=")
        if not equals or "/" in name:
            file, name = item, re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(item).stem)
        if not NAME.fullmatch(name):
            raise ValueError(
                f"The name of a model must be of letters, digits, - and _. Got {name!r}. Write name={file}."
            )
        if name in found:
            raise ValueError(f"Two models are called {name}. Write other={file}.")
        found[name] = Path(file)
    return found
