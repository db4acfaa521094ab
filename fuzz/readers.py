"""Readers of data files: what is read whole, in a stream and after it was written again is the same, or refused."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz.target import SPLIT, Run, Target
from labelsense.data import Examples, FormatError, make_tagged_documents, read_examples, stream_examples, write_examples
from labelsense.data.formats.base import concatenate, widened

REFUSALS = (FormatError, FileNotFoundError)  # a list of images may name some that are not there
MUCH = 2**20  # bytes
TEXTS = Examples(['a, "b"\n', "ü", "c"], [["x", "y"], [], ["z"]], ids=["1", "2", "3"])
FEATURES = Examples(*make_tagged_documents(4, 9, 5, random_state=0))


def check(path: Path, format: str | None = None, again: Path | None = None) -> None:
    """Read a file in two ways, which have to agree, and, if another path is given, write and read it once more."""
    whole, batches = None, None
    with suppress(*REFUSALS):
        whole = read_examples(path, format)
    rows = 2 if whole is None else 2 + len(whole) // 1000  # a hundred bytes may unpack to a million rows
    with suppress(*REFUSALS):
        batches = list(stream_examples(path, format, rows=rows))
    assert (whole is None) == (batches is None), "a stream is refused where the whole is not, or the other way round"
    if whole is None or batches is None:
        return
    assert all(len(batch) <= rows for batch in batches)
    compare(whole, concatenate(batches))
    if again is not None and len(whole):  # a file without rows may be an empty one, which is refused
        try:
            write_examples(again, whole, format)
        except ValueError:  # tables cannot hold every label, nor ARFF files two columns of one name
            return
        compare(whole, read_examples(again, format))


def compare(first: Examples, second: Examples) -> None:
    """Assert that examples are the same, but for columns without entries on the right."""
    assert first.ids == second.ids
    assert len(first) == len(second)
    for one, other in ((first.X, second.X), (first.Y, second.Y)):
        if one is None or other is None or isinstance(one, list) or isinstance(other, list):
            assert one == other or not (_some(one) or _some(other))
        else:
            width = max(one.shape[1], other.shape[1])
            assert np.isfinite(one.data).all()
            assert (widened(one, width) != widened(other, width)).nnz == 0


def _some(labels: Any) -> bool:
    return any(labels) if isinstance(labels, list) else labels is not None and labels.nnz > 0


@contextmanager
def read_file(name: str, format: str | None, folder: Path) -> Iterator[Run]:
    """Yield a function that reads bytes as a file of this name."""
    path, again = folder / name, folder / f"again.{name}"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        check(path, format, again)

    yield run


@contextmanager
def read_any(folder: Path) -> Iterator[Run]:
    path = folder / "any"

    def run(data: bytes) -> None:
        if not unpacks_to_much(data):
            path.write_bytes(data)
            check(path)

    yield run


def unpacks_to_much(data: bytes) -> bool:
    """Tell whether a few bytes become more rows than there is time for."""
    for module in (gzip, bz2, lzma):
        with suppress(Exception), module.open(io.BytesIO(data)) as file:
            return len(file.read(MUCH)) == MUCH
    return False


@contextmanager
def read_arff(folder: Path) -> Iterator[Run]:
    path, xml, again = folder / "a.arff", folder / "a.xml", folder / "again.arff"

    def run(data: bytes) -> None:
        content, split, labels = data.partition(SPLIT)
        path.write_bytes(content)
        xml.unlink(missing_ok=True)
        if split:
            xml.write_bytes(labels)
        check(path, None, again)

    yield run


NAMES = ("X.npz", "Y.npz", "features.txt", "labels.txt", "tags.tsv", "a.png", "a.txt", "a.tsv", "b.txt", "b.key")
NAMES += ("1.jsonl", "2.jsonl.gz", "1.xc", "2.xc", "1.svm", "2.svm", "1.csv", "2.tsv", "_hidden", "c.txt")


@contextmanager
def read_folder(folder: Path) -> Iterator[Run]:
    """Yield a function that reads a folder: a letter for the name of each file, and its content."""
    place = folder / "files"

    def run(data: bytes) -> None:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for part in data.split(SPLIT):
            number = part[0] - ord("a") if part else -1
            if 0 <= number < len(NAMES):
                (place / NAMES[number]).write_bytes(part[1:])
        check(place)

    yield run


@contextmanager
def read_npz(folder: Path) -> Iterator[Run]:
    """Yield a function that reads matrices whose members are given, so that checksums are right."""
    place = folder / "matrices"
    place.mkdir()

    def run(data: bytes) -> None:
        parts = data.split(SPLIT)
        (place / "Y.npz").unlink(missing_ok=True)
        for name, members in (("X.npz", parts[:5]), ("Y.npz", parts[5:10])):
            if members:
                with zipfile.ZipFile(place / name, "w") as archive:
                    for member, content in zip(("format", "shape", "indptr", "indices", "data"), members, strict=False):
                        archive.writestr(f"{member}.npy", content)
        check(place, "npz", folder / "again")

    yield run


@contextmanager
def read_parquet(folder: Path) -> Iterator[Run]:
    """Yield a function that reads a table whose columns are given as JSON: pyarrow has a fuzzer of its own."""
    import pyarrow
    import pyarrow.parquet

    path, again = folder / "a.parquet", folder / "again.parquet"

    def run(data: bytes) -> None:
        try:
            table = pyarrow.Table.from_pylist([dict(row) for row in json.loads(data)])
            pyarrow.parquet.write_table(table, path)
        except Exception:  # no table
            return
        check(path, None, again)

    yield run


def written(name: str, examples: Examples) -> bytes:
    """Return the bytes of a file."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        write_examples(path, examples)
        if path.is_dir():
            return SPLIT.join(_members(path / "X.npz") + _members(path / "Y.npz"))
        xml = path.with_suffix(".xml")
        return path.read_bytes() + (SPLIT + xml.read_bytes() if xml.exists() else b"")


def _members(path: Path) -> list[bytes]:
    with zipfile.ZipFile(path) as archive:
        return [archive.read(f"{name}.npy") for name in ("format", "shape", "indptr", "indices", "data")]


def _seeds(name: str, examples: Examples, *others: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [written(name, examples), *(text.encode() for text in others)]


def _seeds_of_any() -> list[bytes]:
    line = written("a.jsonl", TEXTS)
    plain = [written(name, TEXTS) for name in ("a.tsv", "a.csv")] + [written(n, FEATURES) for n in ("a.xc", "a.svm")]
    bare = b"a red fox\t<http://example.org/1> <http://example.org/2>\n"
    return [line, gzip.compress(line, mtime=0), bz2.compress(line), lzma.compress(line), *plain, bare, b"two hens\n"]


def _seeds_of_npz() -> list[bytes]:
    seeds = [written("a", FEATURES)]
    for kind in ("csc", "coo", "bsr", "dia"):
        file = io.BytesIO()
        sp.save_npz(file, sp.csr_matrix(FEATURES.X).asformat(kind), compressed=False)
        with zipfile.ZipFile(file) as archive:
            members = {name.removesuffix(".npy"): archive.read(name) for name in archive.namelist()}
        names = ("format", "shape", "indptr", "indices", "data")
        seeds.append(SPLIT.join(members.get(name, b"") for name in names))
    return seeds


def _seeds_of_folders() -> list[bytes]:
    letter = {name: bytes([ord("a") + number]) for number, name in enumerate(NAMES)}
    line, row = b'{"text": "a fox", "labels": ["fox"], "id": 3}\n', b"1,2 1:0.5 3:1\n"
    folders: list[dict[str, bytes]] = [
        {"a.txt": b"a red fox", "a.tsv": b"<http://example.org/1>\tfox\n", "b.txt": b"two hens", "b.key": b"hen\n"},
        {"1.jsonl": line, "2.jsonl.gz": gzip.compress(line, mtime=0), "_hidden": b""},
        {"1.xc": b"1 4 3\n" + row, "2.xc": b"1 5 0\n 1:1\n"},
        {"1.svm": row, "2.svm": b"3 0:1\n"},
        {"1.csv": b"text,labels\na,b\n"},
        {"tags.tsv": b"a.png\tred\tfox\n", "a.png": b"no picture"},
        {"X.npz": b"PK", "features.txt": b"a\nb\n"},
    ]
    return [SPLIT.join(letter[name] + content for name, content in files.items()) for files in folders]


def _seeds_of_parquet() -> list[bytes]:
    rows = [
        [{"text": "a fox", "labels": ["fox", "red"], "document_id": "1"}, {"text": "", "labels": []}],
        [{"title": "a", "body": None, "subjects": [{"uri": "http://example.org/1", "label": "x"}], "id": 3}],
        [{"text": 3, "subject_uris": "<http://example.org/1>"}],
    ]
    return [json.dumps(each).encode() for each in rows]


HEADER = "@relation 'x: -C 2'\n@attribute a {0,1}\n@attribute 'b c' {0, 1}\n@attribute d numeric\n@data\n"
SVM, KEYS = (
    "# remark\n1,3 qid:2 1:0.5 3:1e-3 # x\n\n0:1\n",
    ("text", "title", "body", "labels", "subjects", "document_id"),
)
TARGETS = [
    Target("any", read_any, _seeds_of_any, ("PAR1", "\x1f\x8b", "BZh", "\ufeff", "@relation ")),
    Target(
        "xc", partial(read_file, "a.xc", None), _seeds("a.xc", FEATURES, "2 3 0\n 1:1\n\n"), ("2147483647 ", "1e39")
    ),
    Target("libsvm", partial(read_file, "a.svm", None), _seeds("a.svm", FEATURES, SVM), ("qid:", "2147483647:", "#")),
    Target(
        "arff",
        read_arff,
        _seeds("a.arff", FEATURES, HEADER + "1,0,0.5\n{0 1, 2 3}\n%\n0,'1',0\n"),
        ("@attribute ", "{0,1}", "real", "@data", "-C -1", "<label name='", "====", "?"),
    ),
    Target(
        "jsonl",
        partial(read_file, "a.jsonl", None),
        _seeds("a.jsonl", TEXTS, '{"title": "a", "body": null, "subjects": [{"uri": "u", "label": "l"}]}\n'),
        (*(f'"{key}": ' for key in KEYS), "\\ud800", "null", "1e999", "NaN"),
    ),
    Target(
        "tsv",
        partial(read_file, "a.tsv", None),
        _seeds("a.tsv", TEXTS, "a\t<http://x/1> <urn:2>\n", "title\tsubject_uris\nA\t<urn:1>\n", "a\tb|c\n"),
        (*KEYS, "subject_uris", "<urn:1>", "\t", "|"),
    ),
    Target(
        "csv",
        partial(read_file, "a.csv", None),
        _seeds("a.csv", TEXTS, "title,body,tags,id\nA,b,x|y,1\n"),
        (*KEYS, "subject_uris", '""', "|", "\r\n"),
    ),
    Target(
        "txt", partial(read_file, "a.txt", None), lambda: [b"a red fox\n\ntwo hens\r\n"], ("\ufeff", "\r\n", "1 1 1\n")
    ),
    Target("parquet", read_parquet, _seeds_of_parquet, KEYS),
    Target("folder", read_folder, _seeds_of_folders, ("\n====\n", "http://", "\ufeff")),
    Target(
        "npz",
        read_npz,
        _seeds_of_npz,
        ("'descr': '<f4'", "'descr': '<i8'", "'shape': (4,)", "'fortran_order': True", "\n====\n"),
    ),
]
