"""Reading and writing data files, whatever their format.

======= ============================================================================================================
xc      Extreme Classification repository: ``n p d``, then ``3,17 5:0.2 9:1`` per row, numbered from 0; .xc, .txt
libsvm  the same without the first line; features numbered from 1; .libsvm, .svm, .svmlight, .txt
arff    Mulan and MEKA, with the XML file of the label names; .arff
npz     a folder with X.npz and Y.npz of scipy, features.txt and labels.txt
jsonl   ``{"text": "a red fox", "labels": ["fox", "red"]}`` per line; .jsonl, .ndjson
tsv     a header with ``text`` and ``labels``, which are separated by ``|``; or ``text<TAB><uri> <uri>``; .tsv
csv     the same with commas, always with a header; .csv
txt     one text per line, no labels; .txt
parquet columns ``text`` and ``labels``; needs pyarrow; .parquet
folder  a folder of .txt files, each with its labels in a .tsv or .key file beside it
parts   a folder of files of jsonl, tsv, csv, parquet, xc or libsvm, read as one in the order of their names
images  a folder of images with tags.tsv, or one image
======= ============================================================================================================

The end of a file's name tells its format, and behind it may be .gz, .bz2 or .xz. The content decides where the name
does not tell (no known end, a folder, standard input) and among the three formats of .txt; that is logged. The classes
of ``FORMATS`` say exactly what each takes, and :mod:`labelsense.data.formats.fields` which fields of jsonl, tsv, csv
and parquet are read. A line, or a row of a table, has at most 64 MB. What is damaged is refused: ``FormatError``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from labelsense._blocks import row_blocks
from labelsense._progress import report_progress
from labelsense._validation import check_choice, check_count
from labelsense.data.formats.arff import ARFF
from labelsense.data.formats.base import COLUMN_LIMIT, Examples, Format
from labelsense.data.formats.folders import Images, TextFolder
from labelsense.data.formats.npz import NPZ
from labelsense.data.formats.parquet import Parquet
from labelsense.data.formats.parts import Parts
from labelsense.data.formats.rows import XC, LibSVM
from labelsense.data.formats.source import Source, logger, strip_compression
from labelsense.data.formats.tables import Table
from labelsense.data.formats.texts import JSONLines, Lines
from labelsense.errors import FormatError

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
    Images(),
    TextFolder(),
    Lines(),
]
_PARTS = Parts([format for format in _ALL if format.name in ("jsonl", "tsv", "csv", "parquet", "xc", "libsvm")])
_ALL.insert(-1, _PARTS)
FORMATS: dict[str, Format] = {format.name: format for format in _ALL}
WRITTEN_ROWS = 8192  # of a part of examples that are written at once


def read_examples(path: Any, format: str | None = None, text_fields: Sequence[str] | None = None) -> Examples:
    r"""Read a data file into memory.

    Parameters
    ----------
    path : str or Path
        A file, compressed by gzip, bzip2 or xz or not at all; a folder; or "-" for standard input.
    format : str, optional
        A key of ``FORMATS``. By default the name tells, or else the content, see :func:`detect_format`.
    text_fields : sequence of str, optional
        The fields of jsonl, tsv, csv or parquet that make the text, joined with a blank: ``["title", "text",
        "metadata.abstract"]``. By default "text", or else "title", "body" and "description".

    Returns
    -------
    examples : Examples
        All rows.

    Raises
    ------
    FormatError
        If the file is not what the format wants, with the line; or if a line has more than 64 MB.

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
        return replace(_format_of(source, format, text_fields).read(source), name=source.name)


def stream_examples(
    path: Any, format: str | None = None, rows: int | None = None, text_fields: Sequence[str] | None = None
) -> Iterator[Examples]:
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
    text_fields : sequence of str, optional
        As for :func:`read_examples`.

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
        for batch in _format_of(source, format, text_fields).stream(source, limit):
            report_progress(f"reading {source.name}", source.position())
            yield replace(batch, name=source.name)


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
    batches = _in_parts(examples) if isinstance(examples, Examples) else iter(examples)
    first = next(batches, None)
    if first is None:
        raise ValueError("There is nothing to write: examples is empty. Pass at least one batch, if only without rows.")
    if first.images:
        raise ValueError("examples must hold texts or features to be written. Got the names of images.")
    kind.write(path, _chain(first, batches))


def _in_parts(examples: Examples) -> Iterator[Examples]:
    """Yield all rows, some at a time: between two parts there is a look at Ctrl-C."""
    for block in row_blocks(max(1, len(examples)), WRITTEN_ROWS):
        rows = slice(
            block.start, block.stop if block.stop < len(examples) else None
        )  # all: there may be too many labels
        Y = None if examples.Y is None else examples.Y[rows]
        yield replace(examples, X=examples.X[rows], Y=Y, ids=None if examples.ids is None else examples.ids[rows])


def detect_format(path: Any) -> str:
    r"""Return the name of a file's format.

    The end of the name decides. Where it is not known, in a folder, for standard input and among the three formats of
    .txt, the content does; text of no other format is "txt". What was told by the content is logged.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from labelsense.data import detect_format
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "data"
    ...     _ = path.write_text("3,17 5:0.2 9:1\n")
    ...     detect_format(path)
    'libsvm'
    """
    with Source(path) as source:
        return _format_of(source, None).name


def _format_of(source: Source, format: str | None, text_fields: Sequence[str] | None = None) -> Format:
    if isinstance(text_fields, str) or (text_fields is not None and not text_fields):
        raise ValueError(f"text_fields must be a list of names of fields, at least one. Got {text_fields!r}.")
    kind = _detect(source) if format is None else check_choice(format, "format", FORMATS)
    return kind if text_fields is None else kind.with_text_fields(text_fields)


def _detect(source: Source) -> Format:
    if source.is_folder:
        return _detect_folder(source)
    named = _formats_of_name(source.path.name) if source.path is not None else []
    if not source.head:
        raise FormatError(f"{source.name}: the file is empty.")
    if len(named) == 1:
        return named[0]
    for candidate in named or _ALL:
        if candidate.sniff(source.head):
            if candidate not in named[-1:]:
                _log_guess(source, candidate)
            return candidate
    raise FormatError(f"{source.name}: the format is unknown. Pass format= one of {', '.join(FORMATS)}.")


def _detect_folder(source: Source) -> Format:
    assert source.path is not None
    ends = {Path(strip_compression(path.name.lower())).suffix for path in source.path.iterdir()}
    if ".npz" in ends:
        return FORMATS["npz"]
    for name, suffixes in (("images", FORMATS["images"].suffixes), ("folder", (".txt",))):
        if not ends.isdisjoint(suffixes):
            _log_guess(source, FORMATS[name])
            return FORMATS[name]
    if not ends.isdisjoint(_PARTS.ends):
        _log_guess(source, FORMATS["parts"])
        return FORMATS["parts"]
    raise FormatError(
        f"{source.name}: expected a folder with X.npz, with images, with files that end in .txt, or with parts of one "
        "data file."
    )


def _log_guess(source: Source, format: Format) -> None:
    logger.info("%s is read as %s, going by its content; pass format= if it is not", source.name, format.name)


def _formats_of_name(name: str) -> list[Format]:
    """Return the formats that a file name stands for: those with the longest end that fits."""
    name = strip_compression(name.lower())
    lengths = {format: max((len(end) for end in format.suffixes if name.endswith(end)), default=0) for format in _ALL}
    longest = max(lengths.values())
    return [format for format, length in lengths.items() if length == longest > 0]


def _format_of_name(path: Path) -> Format:
    if "." not in strip_compression(path.name):
        return FORMATS["npz"]
    named = _formats_of_name(path.name)
    if not named:
        raise ValueError(f"The name {path.name!r} does not tell the format. Pass format= one of {', '.join(FORMATS)}.")
    return named[-1]


def _chain(first: Examples, others: Iterator[Examples]) -> Iterator[Examples]:
    yield first
    yield from others
