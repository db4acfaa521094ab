"""ARFF files of Mulan and MEKA, sparse or dense, with the XML file that says which attributes are labels."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import numpy as np
import scipy.sparse as sp

from labelsense import _kernels
from labelsense.data.formats.base import BATCH_BYTES, Examples, Format, with_features
from labelsense.data.formats.rows import matrices, text
from labelsense.data.formats.source import Source, damaged, strip_compression, writing
from labelsense.errors import FormatError

ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s'"{]+)\s*(.+)""", re.IGNORECASE)
ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
XMLNS = "http://mulan.sourceforge.net/labels"


@dataclass(frozen=True)
class _Header:
    names: list[str]
    is_label: list[bool]
    dense_only: str | None  # an attribute whose first value is not 0: that is what a sparse row leaves out

    def columns(self, label: bool) -> list[int]:
        return [j for j, flag in enumerate(self.is_label) if flag == label]


class ARFF(Format):
    """Attributes of rows, some of which are labels: ARFF as Mulan and MEKA use it.

    The labels are the attributes named in the XML file beside it: of the same name, or of that name without "-train" or
    "-test". Where there is none, MEKA's option in the name of the relation tells: ``-C 5`` means the first five
    attributes, ``-C -5`` the last five. Where there is neither, there are no labels. Attributes are numbers or have
    numbers as values, such as {0,1}. Written are sparse rows with the labels last, the option, and an XML file.
    """

    name = "arff"
    suffixes = (".arff",)

    def sniff(self, head: bytes) -> bool:
        return re.match(rb"(\s|%[^\n]*\n)*@(relation|attribute)\s", head, re.IGNORECASE) is not None

    def stream(self, source: Source, rows: int) -> Iterator[Examples]:
        lines = source.lines()
        header = _read_header(source, lines)
        features, labels = header.columns(False), header.columns(True)
        for numbers, block in _row_texts(source, lines, header, rows):
            parsed = _kernels.parse_rows(b"".join(block), 0, len(header.names), True)
            if parsed.problem:
                token = parsed.token.decode(errors="replace").replace(":", " ", 1)
                raise source.error(numbers[parsed.lines], f"expected attribute and finite value, got {token!r}")
            M, _ = matrices(parsed, 0, len(header.names))
            X, Y = sp.csr_array(M[:, features]), sp.csr_array(M[:, labels])
            odd = np.flatnonzero((Y.data != 0) & (Y.data != 1))
            if len(odd):
                row = int(np.searchsorted(Y.indptr, odd[0], side="right")) - 1
                raise source.error(numbers[row], f"expected 0 or 1 for a label, got '{Y.data[odd[0]]:g}'")
            Y.eliminate_zeros()
            names = [[header.names[j] for j in columns] for columns in (features, labels)]
            yield Examples(X, Y if labels else None, names[0], names[1] if labels else None)

    def write(self, path: Path, batches: Iterator[Examples]) -> None:
        shape = None
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(writing(path))
            for X, Y, batch in with_features(batches, self.name):
                Y = sp.csr_array((X.shape[0], 0), dtype=np.float32) if Y is None else Y
                if shape is None:
                    shape = X.shape[1], Y.shape[1]
                    labels = _write_header(file, path, batch, *shape)
                    if labels:
                        _write_xml(stack.enter_context(writing(_xml_name(path))), labels)
                if shape != (X.shape[1], Y.shape[1]):
                    raise ValueError(f"All rows of an ARFF file have the same attributes. Got {shape}, then others.")
                rows = bytes(text(sp.csr_array(sp.hstack([X, Y])), None, 0))
                file.write(_as_sparse_rows(rows))
        if not labels:
            _xml_name(path).unlink(missing_ok=True)  # of what was here before
            if _find_xml(path) is not None:  # one shared by a training and a test part, whose labels are not here
                with writing(_xml_name(path)) as file:
                    _write_xml(file, [])


def _read_header(source: Source, lines: Iterator[tuple[int, bytes]]) -> _Header:
    names: list[str] = []
    dense_only = option = None
    for number, line in lines:
        declaration = source.decode(number, line).strip()
        word = declaration.split(None, 1)[0].lower() if declaration else "%"
        if word == "@relation":
            option = re.search(r"-[cC]\s+(-?\d+)", declaration)
        elif word == "@attribute":
            name, first = _read_attribute(source, number, declaration)
            names.append(name)
            dense_only = dense_only if first == 0 else name
        elif word == "@data":
            count = int(option[1][:12]) if option else 0
            return _Header(names, _find_labels(source, names, count), dense_only)
        elif not word.startswith("%"):
            raise source.error(number, f"expected @attribute or @data, got {declaration[:80]!r}")
    raise FormatError(f"{source.name}: expected a line @data, and there is none.")


def _read_attribute(source: Source, number: int, declaration: str) -> tuple[str, float]:
    """Return the name of an attribute and its first value, which is 0 for numbers."""
    match = ATTRIBUTE.fullmatch(declaration)
    if not match:
        raise source.error(number, f"expected @attribute name type, got {declaration[:80]!r}")
    name, kind = match.groups()
    values = ["0"]
    if kind.startswith("{"):
        values = [value.strip(" \t'\"") for value in kind.strip().strip("{}").split(",")]
        good = all(re.fullmatch(r"[-+]?\d+(\.\d*)?", value) for value in values)
    else:
        good = kind.split()[0].lower() in ("numeric", "real", "integer")
    if not good:
        raise source.error(
            number, f"expected a numeric attribute or one with values such as {{0,1}}, got {kind[:80]!r}"
        )
    return _unquote(name), float(values[0])


def _unquote(name: str) -> str:
    if name[0] not in "'\"":
        return name
    meant = {escape[1]: character for character, escape in ESCAPES.items()}
    return re.sub(r"\\(.)", lambda match: meant.get(match[1], match[1]), name[1:-1], flags=re.DOTALL)


def _quote(name: str) -> str:
    return "'" + "".join(ESCAPES.get(character, character) for character in name) + "'"


def _find_labels(source: Source, names: list[str], count: int) -> list[bool]:
    """Tell for each attribute whether it is a label, by the XML file or else by MEKA's count."""
    xml = _find_xml(source.path)
    if xml is None:
        if abs(count) > len(names):
            raise FormatError(
                f"{source.name}: -C {count} asks for more labels than there are attributes, {len(names)}."
            )
        first = len(names) + count if count < 0 else 0
        return [first <= j < first + abs(count) for j in range(len(names))]
    with damaged(xml, "an XML file with the names of the labels"):
        elements = ElementTree.parse(xml).iter()
        labels = {element.get("name", "") for element in elements if element.tag.rpartition("}")[2] == "label"}
    for label in sorted(labels):
        n = names.count(label)
        if n != 1:
            raise FormatError(f"{xml}: the label {label!r} must be one attribute of {source.name}; {n} have this name.")
    return [name in labels for name in names]


def _xml_name(path: Path) -> Path:
    return path.with_name(strip_compression(path.name).removesuffix(".arff") + ".xml")


def _find_xml(path: Path | None) -> Path | None:
    if path is None:
        return None
    own = _xml_name(path)
    shared = own.with_name(re.sub(r"[-_](train|test)\.xml$", ".xml", own.name, flags=re.IGNORECASE))
    return next((candidate for candidate in (own, shared) if candidate.exists()), None)


def _row_texts(
    source: Source, lines: Iterator[tuple[int, bytes]], header: _Header, rows: int
) -> Iterator[tuple[list[int], list[bytes]]]:
    """Yield line numbers and rows in batches, each row as the kernel reads it: `` 3:1 17:0.5``."""
    numbers: list[int] = []
    block: list[bytes] = []
    size, started = 0, False
    for number, line in lines:
        line = line.strip()
        if not line or line.startswith(b"%"):
            continue
        if len(block) == rows or size > BATCH_BYTES:
            yield numbers, block
            numbers, block, size, started = [], [], 0, True
        numbers.append(number)
        block.append(_row_text(source, number, line, header))
        size += len(line)
    if block or not started:
        yield numbers, block


def _row_text(source: Source, number: int, line: bytes, header: _Header) -> bytes:
    line = line.translate(None, b"'\"")
    if line.startswith(b"{"):
        if not line.endswith(b"}"):
            got = line[-80:].decode(errors="replace")
            raise source.error(number, f"expected a closing brace, got {got!r}")
        if header.dense_only is not None:
            raise source.error(
                number, f"expected no sparse row, since {header.dense_only!r} does not have 0 as first value"
            )
        return b" " + b" ".join(b":".join(pair.split()) for pair in line[1:-1].split(b",")) + b"\n"
    if line.count(b",") + 1 != len(header.names):
        raise source.error(number, f"expected {len(header.names)} values, got {line.count(b',') + 1}")
    values = [value.strip() for value in line.split(b",")]
    for value in values:
        if not value or b" " in value or b"\t" in value:
            raise source.error(number, f"expected a number, got {value.decode(errors='replace')!r}")
    return b" " + b" ".join(b"%d:%b" % pair for pair in enumerate(values) if pair[1] not in (b"0", b"0.0")) + b"\n"


def _as_sparse_rows(rows: bytes) -> bytes:
    """Return `` 3:1 17:0.5`` as ``{3 1,17 0.5}``, line by line."""
    braced = (b"\n" + rows.translate(bytes.maketrans(b" :", b", "))).replace(b"\n,", b"}\n{")
    return braced[2:-1] + b"}\n" if rows else b""


def _write_header(file: IO[bytes], path: Path, batch: Examples, p: int, d: int) -> list[str]:
    features = batch.features or [f"feature{j}" for j in range(p)]
    labels = batch.labels or [f"label{j}" for j in range(d)]
    seen = set()
    for name in [*features, *labels]:
        if name in seen or not name:
            raise ValueError(
                f"The names of features and labels in an ARFF file must differ. Got {name!r} twice or empty."
            )
        seen.add(name)
    relation = _xml_name(path).stem + (f": -C -{d}" if d else "")
    lines = [f"@relation {_quote(relation)}", ""]
    lines += [f"@attribute {_quote(name)} numeric" for name in features]
    lines += [f"@attribute {_quote(name)} {{0,1}}" for name in labels]
    file.write("\n".join([*lines, "", "@data", ""]).encode())
    return labels


def _write_xml(file: IO[bytes], labels: list[str]) -> None:
    for label in labels:
        if NOT_IN_XML.search(label):
            raise ValueError(f"The label {label!r} has a character that XML files cannot hold. Rename it.")
    rows = "".join(f"<label name={quoteattr(label)}></label>\n" for label in labels)
    file.write(f'<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="{XMLNS}">\n{rows}</labels>\n'.encode())
