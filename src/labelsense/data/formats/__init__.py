"""Reading and writing data files, whatever their format.

======== ==============================================================================================
xc       Extreme Classification repository: ``n p d``, then ``3,17 5:0.2 9:1`` per row, numbered from 0
libsvm   the same without the first line; features numbered from 1
arff     Mulan and MEKA, with the XML file of the label names
npz      a folder with X.npz and Y.npz of scipy, features.txt and labels.txt
jsonl    ``{"text": "a red fox", "labels": ["fox", "red"]}`` per line
tsv, csv a header with ``text`` and ``labels``; labels separated by ``|``
txt      one text per line, no labels
parquet  columns ``text`` and ``labels``; needs pyarrow
======== ==============================================================================================

The classes of ``FORMATS`` say exactly what each takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from labelsense._validation import check_choice, check_count
from labelsense.data.formats.arff import ARFF
from labelsense.data.formats.base import COLUMN_LIMIT, Examples, Format
from labelsense.data.formats.npz import NPZ
from labelsense.data.formats.parquet import Parquet
from labelsense.data.formats.rows import XC, LibSVM
from labelsense.data.formats.source import FormatError, Source, strip_compression
from labelsense.data.formats.texts import JSONLines, Lines, Table

__all__ = [
    "FORMATS",
    "Examples",
    "Format",
    "FormatError",
    "detect_format",
    "read_examples",
    "stream_examples",
    "write_examples",
]

# In the order in which their turn comes when the content decides; any text is "txt".
_ALL: list[Format] = [
    Parquet(),
    ARFF(),
    JSONLines(),
    XC(),
    LibSVM(),
    Table("tsv", "\t"),
    Table("csv", ","),
    NPZ(),
    Lines(),
]
FORMATS: dict[str, Format] = {format.name: format for format in _ALL}


def read_examples(path: Any, format: str | None = None) -> Examples:
    r"""Read a data file into memory.

    Parameters
    ----------
    path : str or Path
        A file, compressed by gzip, bzip2 or xz or not at all; a folder of npz files; or "-" for standard input.
    format : str, optional
        A key of ``FORMATS``. By default the content tells, see :func:`detect_format`.

    Returns
    -------
    examples : Examples
        All rows.

    Raises
    ------
    FormatError
        If the file is not what the format wants, with the line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from labelsense.data import read_examples
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.txt"
    ...     _ = path.write_text("2 3 4\n1,3 0:0.5 2:1\n 1:2\n")
    ...     examples = read_examples(path)
    >>> examples.X.toarray()
    array([[0.5, 0. , 1. ],
           [0. , 2. , 0. ]], dtype=float32)
    >>> examples.Y.indices.tolist()
    [1, 3]
    """
    with Source(path) as source:
        return _format_of(source, format).read(source)


def stream_examples(path: Any, format: str | None = None, rows: int | None = None) -> Iterator[Examples]:
    r"""Read a data file batch by batch, in memory that does not grow with the file.

    All batches have the same numbers of columns. There is at least one batch, which may have no rows.

    Parameters
    ----------
    path : str or Path
        As for :func:`read_examples`.
    format : str, optional
        As for :func:`read_examples`.
    rows : int, optional
        The most rows of a batch. By default a batch has at most about 32 MB of text.

    Yields
    ------
    batch : Examples
        The next rows.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from labelsense.data import stream_examples
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "texts.txt"
    ...     _ = path.write_text("a red fox\ntwo hens\nan egg\n")
    ...     [batch.X for batch in stream_examples(path, rows=2)]
    [['a red fox', 'two hens'], ['an egg']]
    """
    limit = COLUMN_LIMIT if rows is None else check_count(rows, "rows")
    with Source(path) as source:
        yield from _format_of(source, format).stream(source, limit)


def write_examples(path: Any, examples: Examples | Iterable[Examples], format: str | None = None) -> None:
    """Write a data file. It is written under another name and renamed, so that it is complete or not there.

    Parameters
    ----------
    path : str or Path
        The end of the name tells the format, and the compression if it is .gz, .bz2 or .xz. A name without a suffix
        stands for a folder of npz files.
    examples : Examples, or iterable of Examples
        What to write, at once or batch by batch, in memory that does not grow with the number of batches.
    format : str, optional
        A key of ``FORMATS``, whatever the name is.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from labelsense.data import Examples, write_examples
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.jsonl"
    ...     write_examples(path, Examples(["a red fox"], [["fox", "red"]]))
    ...     print(path.read_text())
    {"text": "a red fox", "labels": ["fox", "red"]}
    <BLANKLINE>
    """
    path = Path(path)
    if str(path) == "-":
        raise ValueError(
            "Examples are written to a file, which standard output is not. Pass a file name instead of '-'."
        )
    kind = _format_of_name(path) if format is None else check_choice(format, "format", FORMATS)
    batches = iter([examples] if isinstance(examples, Examples) else examples)
    first = next(batches, None)
    if first is None:
        raise ValueError("There is nothing to write: examples is empty. Pass at least one batch, if only without rows.")
    kind.write(path, _chain(first, batches))


def detect_format(path: Any) -> str:
    r"""Return the name of a file's format. The content decides, not the name; text of no other format is "txt".

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from labelsense.data import detect_format
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "data.txt"
    ...     _ = path.write_text("3,17 5:0.2 9:1\n")
    ...     detect_format(path)
    'libsvm'
    """
    with Source(path) as source:
        return _format_of(source, None).name


def _format_of(source: Source, format: str | None) -> Format:
    if format is not None:
        return check_choice(format, "format", FORMATS)
    if source.is_folder:
        return FORMATS["npz"]
    if not source.head:
        raise FormatError(f"{source.name}: the file is empty.")
    for candidate in FORMATS.values():
        if candidate.sniff(source.head):
            return candidate
    raise FormatError(f"{source.name}: the format is unknown. Pass format= one of {', '.join(FORMATS)}.")


def _format_of_name(path: Path) -> Format:
    name = strip_compression(path.name)
    if "." not in name:
        return FORMATS["npz"]
    for candidate in FORMATS.values():  # txt is the last, so that .xc.txt is xc
        if name.endswith(candidate.suffixes):
            return candidate
    raise ValueError(f"The name {path.name!r} does not tell the format. Pass format= one of {', '.join(FORMATS)}.")


def _chain(first: Examples, others: Iterator[Examples]) -> Iterator[Examples]:
    yield first
    yield from others
