"""Data sets from their public homes."""

from __future__ import annotations

import os
import shutil
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from labelsense.data.dataset import PARTS, Dataset
from labelsense.data.formats import read_examples

CHUNK = 2**16


class FetchError(OSError):
    """A data set could not be fetched, or is not the one that was wanted."""


def fetch_dataset(entry: dict[str, Any], folder: Path) -> None:
    """Fetch a data set of the registry into a folder, which appears when all is there and has the right checksum."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        for part in ("header", "train", "test"):
            _download(entry["fetch"] + entry[part], work / _local_name(part), entry["home"], folder)
        data = _read(work)
        if data.sha256() != entry["sha256"]:
            raise FetchError(
                f"What {entry['fetch']} gives is not the data set that was tested: its sha256 is {data.sha256()}, and "
                f"{entry['sha256']} was expected. Nothing was kept."
            )
        _write(data, work / "done")
        os.replace(work / "done", folder)
    finally:
        shutil.rmtree(work)


def _local_name(part: str) -> str:
    return "data.xml" if part == "header" else f"data-{part}.arff"


def _download(url: str, path: Path, home: str, folder: Path) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    try:
        with urllib.request.urlopen(url, timeout=30) as answer, open(path, "wb") as file:
            size = int(answer.headers.get("Content-Length") or 0) or None
            with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
                task = progress.add_task(url.rsplit("/", 1)[-1], total=size)
                while chunk := answer.read(CHUNK):
                    file.write(chunk)
                    progress.advance(task, len(chunk))
    except (urllib.error.URLError, OSError) as error:
        raise FetchError(
            f"{url} could not be fetched: {getattr(error, 'reason', error)}. Without a network, get it from {home} "
            f"elsewhere, and put {', '.join(part + '.npz' for part in PARTS)} (`labelsense convert` writes them) into "
            f"{folder}, or into a folder {folder.name} of the folder that LABELSENSE_DATA names."
        ) from error


def _read(work: Path) -> Dataset:
    train, test = (read_examples(work / _local_name(part), "arff") for part in ("train", "test"))
    return Dataset(train.X, train.Y, test.X, test.Y, train.features or [], train.labels or [])


def _write(data: Dataset, folder: Path) -> None:
    folder.mkdir()
    for part in PARTS:
        sp.save_npz(folder / f"{part}.npz", sp.csr_array(getattr(data, part), dtype=np.float32))
    (folder / "features.txt").write_text("\n".join(data.features))
    (folder / "labels.txt").write_text("\n".join(data.labels))
