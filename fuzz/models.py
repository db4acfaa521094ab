"""Model files: what is loaded predicts, gives the same after it was saved again, and all else is refused."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz.target import Run, Target
from labelsense import CompressedLabelClassifier, ModelFileError, OneVsAllClassifier, load_model
from labelsense._tensors import KINDS, TensorFile

TEXTS = ["a red fox", "two hens and a fox", "a chess game", "chess and a hen"] * 4
LABELS = [["fox", "red"], ["hen", "fox"], ["chess"], ["chess", "hen"]] * 4


@contextmanager
def load_file(folder: Path) -> Iterator[Run]:
    """Yield a function that loads bytes as a model file. The first line is the header; its length is put before."""
    path = folder / "raw.model"

    def run(data: bytes) -> None:
        header, _, body = data.partition(b"\n")
        path.write_bytes(len(header).to_bytes(8, "little") + header + body)
        use(path)

    yield run


@contextmanager
def load_parts(folder: Path) -> Iterator[Run]:
    """Yield a function that loads a model given as JSON: what the header says, and the numbers of each array."""
    path = folder / "made.model"

    def run(data: bytes) -> None:
        try:
            write_parts(path, json.loads(data))
        except Exception:  # nothing that could be written
            return
        use(path)

    yield run


def write_parts(path: Path, made: Any) -> None:
    """Write a model file, whether it can be read or not."""
    header: dict[str, Any] = {"__metadata__": {"labelsense": json.dumps(made["header"])}}
    body = b""
    for name, (kind, shape, numbers) in made["arrays"].items():
        content = np.array(numbers).astype(KINDS[kind]).tobytes()
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(body), len(body) + len(content)]}
        body += content
    words = json.dumps(header).encode()
    path.write_bytes(len(words).to_bytes(8, "little") + words + body)


def read_parts(path: Path) -> bytes:
    """Return a model file as :func:`write_parts` takes it."""
    with open(path, "rb") as file:
        tensors = TensorFile(file)
        arrays = {
            name: [t.kind, list(t.shape), tensors.take(name).reshape(-1).tolist()]
            for name, t in tensors.tensors.items()
        }
    return json.dumps({"header": json.loads(tensors.about["labelsense"]), "arrays": arrays}).encode()


def use(path: Path) -> None:
    """Load a file, predict, save it and load it again."""
    try:
        model = load_model(path)
    except ModelFileError as error:
        if isinstance(error.__cause__, MemoryError):  # it should have been refused before anything is allocated
            raise error.__cause__ from None
        return
    rows = make_rows(model)
    try:
        top = model.predict_topk(rows, 2)
        model.save(path.with_name("again.model"))
    except (TypeError, ValueError):  # its measurements are not finite, or it wants other rows
        return
    assert np.isfinite(top.scores).all()
    found = load_model(path.with_name("again.model")).predict_topk(rows, 2)
    assert np.array_equal(top.scores, found.scores)
    assert top.labels.tolist() == found.labels.tolist()


def make_rows(model: Any) -> Any:
    if model.takes_text:
        return ["a red fox and two hens", ""]
    p = getattr(model.features_, "n_features_in_", model.n_features_in_)
    return sp.csr_array(([1.0, -2.0], ([0, 0], [0, p - 1])), shape=(2, p), dtype=np.float32)


def make_models() -> list[Any]:
    """Return one model of each kind that has parts of its own."""
    X = np.array([[len(text), text.count("e"), "fox" in text, "hen" in text] for text in TEXTS], float)
    paper: dict[str, Any] = {"refiner": None, "random_state": 0}
    return [
        CompressedLabelClassifier("hadamard", "ridge", "omp", **paper, features="words").fit(TEXTS, LABELS),
        CompressedLabelClassifier("gaussian", "kernel_ridge", "cosamp", **paper).fit(X, LABELS),
        CompressedLabelClassifier("hadamard", "ridge", "correlation", random_state=0, features="standard").fit(
            X, LABELS
        ),
        OneVsAllClassifier().fit(X, LABELS),
    ]


def _files() -> list[Path]:
    folder = Path(tempfile.mkdtemp())
    paths = [folder / f"{number}.model" for number, _ in enumerate(make_models())]
    for path, model in zip(paths, make_models(), strict=True):
        model.save(path)
    return paths


def _seeds_of_files() -> list[bytes]:
    contents = [path.read_bytes() for path in _files()]
    return [
        content[8 : 8 + int.from_bytes(content[:8], "little")]
        + b"\n"
        + content[8 + int.from_bytes(content[:8], "little") :]
        for content in contents
    ]


def _seeds_of_parts() -> list[bytes]:
    return [read_parts(path) for path in _files()]


WORDS = ('{"is": "', '"array"', '"tuple"', '"csr"', '"dict"', '"F32"', '"I64"', '"U8"', '"shape"', '"data_offsets"')
TARGETS = [
    Target("model_file", load_file, _seeds_of_files, WORDS),
    Target("model", load_parts, _seeds_of_parts, WORDS),
]
