"""The results as JSON lines: written as they come, read back after an interruption."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from labelsense.experiments.settings import Problem, Run

NAME = "runs.jsonl"


def read_lines(folder: Path) -> dict[Run, dict[str, Any]]:
    """Return the results of each run; a last line that was cut off is no line."""
    path = folder / NAME
    if not path.is_file():
        return {}
    found = {}
    for number, line in enumerate(_whole(path).splitlines(), start=1):
        try:
            fields = json.loads(line)
            run = fields.pop("run")
            found[Run(**{**run, "problem": Problem(**run["problem"])})] = fields
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}, line {number} is not a result of this version: {error}. Delete it.") from error
    return found


def append_line(folder: Path, run: Run, results: dict[str, Any]) -> None:
    """Add the results of a run."""
    path = folder / NAME
    with open(path, "a+b") as file:
        file.truncate(len(_whole(path)))
        file.write(json.dumps({"run": asdict(run), **results}).encode() + b"\n")


def _whole(path: Path) -> bytes:
    """Return the lines that have an end."""
    content = path.read_bytes()
    return content[: content.rfind(b"\n") + 1]
