"""labelsense inspect, convert and datasets."""

from __future__ import annotations

import sys
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from labelsense._storage import REGISTRY
from labelsense.cli.console import (
    Data,
    Format,
    Json,
    Model,
    TextFields,
    check_output,
    names_of,
    print_json,
    print_pairs,
    print_table,
    working,
)
from labelsense.data import load_dataset, stream_examples, write_examples
from labelsense.data.datasets import find_dataset, registry
from labelsense.model_file import array_sizes, read_header


def inspect(model: Model, json: Json = False) -> None:
    """Print what is inside a model file, without loading it."""
    header, arrays = read_header(model), array_sizes(model)
    if json:
        sizes = {name: {"kind": kind, "shape": shape, "bytes": size} for name, (kind, shape, size) in arrays.items()}
        return print_json({**header, "arrays": sizes, "bytes": model.stat().st_size})
    tree = header["model"]
    learned = tree["learned"]
    print_pairs(
        [
            ("model", f"{tree['is']}, {model.stat().st_size / 1e6:.1f} MB"),
            ("written by", f"labelsense {header['version']}, format {header['format']}"),
            ("from", f"{learned['n_features_in_']:,} features"),
            ("to", f"{learned['vocabulary_']['parts']['n_labels']:,} labels{_compressed(arrays)}"),
            *((name, _brief(value)) for name, value in tree["settings"].items() if value not in (None, 0)),
        ]
    )
    table = Table("array", "kind", "shape", "MB", box=None, pad_edge=False)
    for name, (kind, shape, size) in sorted(arrays.items(), key=lambda item: -item[1][2]):
        table.add_row(name, kind, " x ".join(f"{n:,}" for n in shape), f"{size / 1e6:.2f}")
    sys.stdout.write("\n")
    print_table(table)


def convert(
    source: Data,
    target: Annotated[Path, typer.Argument(help="Where to write; the end of the name tells the format.")],
    format: Format = None,
    text_fields: TextFields = None,
    to: Annotated[str | None, typer.Option(help="Format to write, whatever the name is.")] = None,
    json: Json = False,
) -> None:
    """Turn a data file into another format, in memory that does not grow with the file. Ids of documents are kept."""
    check_output(target, source, folder=True)
    rows = 0

    def batches() -> Any:
        nonlocal rows
        for batch in stream_examples(source, format, text_fields=names_of(text_fields)):
            rows += len(batch)
            yield batch

    with working(f"converting {source}"):
        write_examples(target, batches(), to)
    if json:
        return print_json({"rows": rows, "file": str(target)})
    print_pairs([("converted", f"{rows:,} rows"), ("saved", str(target))])


def datasets(
    name: Annotated[
        str | None, typer.Argument(help="A data set to fetch and describe; by default all are listed.")
    ] = None,
    json: Json = False,
) -> None:
    """List the data sets that `labelsense.data.load_dataset` knows, or fetch one."""
    known = registry()
    if name is not None:
        data = load_dataset(name)
        entry = known.get(name, {})
        shape = {"train": list(data.X_train.shape), "test": list(data.X_test.shape), "labels": data.Y_train.shape[1]}
        if json:
            return print_json({"name": name, **entry, **shape, "where": _where(name)})
        return print_pairs(
            [
                (name, entry.get("about", "a folder of LABELSENSE_DATA")),
                ("licence", entry.get("licence", "unknown")),
                ("where", _where(name)),
                ("train", f"{data.X_train.shape[0]:,} rows"),
                ("test", f"{data.X_test.shape[0]:,} rows"),
                ("features", " x ".join(f"{n:,}" for n in data.X_train.shape[1:])),
                ("labels", f"{data.Y_train.shape[1]:,}, {data.Y_train.nnz / data.Y_train.shape[0]:.1f} a row"),
            ]
        )
    if json:
        return print_json([{"name": name, **entry, "where": _where(name)} for name, entry in known.items()])
    table = Table("name", "rows", "features", "labels", "MB", "where", box=None, pad_edge=False)
    for name, entry in known.items():
        numbers = [f"{n:,}" for n in (sum(entry["rows"]), entry["features"], entry["labels"])]
        table.add_row(name, *numbers, f"{entry['bytes'] / 1e6:.1f}", _where(name).partition(":")[0])
    table.columns[0].no_wrap, table.columns[0].min_width = True, max(map(len, known))
    print_table(table)
    sys.stdout.write("\n`labelsense datasets NAME` tells more of one, and fetches it.\n")


def _where(name: str) -> str:
    if name == "debtags":
        return "bundled"
    folder = find_dataset(name)
    if folder is not None:
        return f"here: {folder}"
    return "can be fetched" if "fetch" in registry().get(name, {}) else "by hand"


def _compressed(arrays: dict[str, Any]) -> str:
    """Return how many measurements a model has, from the array of its matrix A."""
    for name, axis in (("rows", 0), ("columns", 1), ("whitening", 0)):
        if entry := arrays.get(f"model.compressor_.operator_.{name}"):
            return f", by {entry[1][axis]:,} measurements"
    return ""


def _brief(value: Any) -> str:
    """Return a setting of the tree in a few words."""
    if not isinstance(value, dict):
        return str(value)
    settings = value.get("settings", {})
    if value["is"] == "Pipeline":
        return ", then ".join(step["items"][1]["is"] for step in settings["steps"])
    usual = _defaults(value["is"])
    inside = ", ".join(f"{key}={_brief(item)}" for key, item in settings.items() if item != usual.get(key))
    return f"{value['is']}({inside})" if "settings" in value else value["is"]


def _defaults(name: str) -> dict[str, Any]:
    """Return the default settings of a class."""
    if name not in REGISTRY:
        return {}
    return {name: item.default for name, item in signature(REGISTRY[name].cls).parameters.items()}
