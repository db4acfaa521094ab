"""Controlled vocabularies: what the URIs that documents are labelled with are called, and how they are related.

Read from SKOS (by rdflib), and from Annif's TSV and CSV.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import warnings
import zlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

from labelsense._storage import Parts, require, storable
from labelsense.errors import FormatError, InputError

SKOS_FORMATS = {
    ".ttl": "turtle",
    ".nt": "nt",
    ".rdf": "xml",
    ".xml": "xml",
    ".skos": "xml",
    ".jsonld": "json-ld",
    ".n3": "n3",
}
MOST_BYTES = 2**30  # of a vocabulary that is unpacked
NO_LANGUAGE = "und"  # what BCP 47 calls a language that nobody has stated


class Subject(NamedTuple):
    """A subject of a vocabulary."""

    uri: str
    labels: dict[str, str]
    notation: str | None = None
    broader: tuple[str, ...] = ()


@storable()
class Subjects:
    """The subjects of a vocabulary, in the order of its file.

    Parameters
    ----------
    subjects : list of Subject
        Each URI once. What ``broader`` names is in the list as well.

    Attributes
    ----------
    languages : list of str
        Those of the labels, the one with the most labels first.

    Examples
    --------
    >>> from labelsense.data.subjects import Subject, Subjects
    >>> chess = Subject("http://example.org/1", {"en": "chess", "fi": "shakki"}, "794.1")
    >>> subjects = Subjects([chess])
    >>> subjects.label("http://example.org/1", "fi"), subjects.resolve("chess")
    ('shakki', 'http://example.org/1')
    """

    def __init__(self, subjects: Sequence[Subject]) -> None:
        self._subjects = {subject.uri: subject for subject in subjects}
        counts: dict[str, int] = {}
        for subject in subjects:
            for language in subject.labels:
                counts[language] = counts.get(language, 0) + 1
        self.languages = sorted(counts, key=lambda language: -counts[language])

    def _to_parts(self) -> Parts:
        each = list(self._subjects.values())
        labels = {language: [subject.labels.get(language) for subject in each] for language in self.languages}
        return {
            "uris": [subject.uri for subject in each],
            "labels": labels,
            "notations": [subject.notation for subject in each],
            "broader": [" ".join(subject.broader) for subject in each],
        }

    @classmethod
    def _from_parts(cls, parts: Parts) -> Subjects:
        uris, labels, notations, broader = (parts[name] for name in ("uris", "labels", "notations", "broader"))
        require(_strings(uris) and len(set(uris)) == len(uris), "the URIs of subjects must be different strings")
        require(isinstance(labels, dict) and _strings(list(labels)), "the labels of subjects must have languages")
        for column in (*labels.values(), notations, broader):
            require(isinstance(column, list) and len(column) == len(uris), "all must be said of each subject")
            require(_strings([item for item in column if item is not None]), "what is said of subjects must be strings")
        rows = zip(uris, notations, broader, *labels.values(), strict=True)
        return cls(
            [
                Subject(uri, {lang: name for lang, name in zip(labels, names, strict=True) if name}, notation, wider)
                for uri, notation, wider, names in ((u, n, tuple((b or "").split()), rest) for u, n, b, *rest in rows)
            ]
        )

    def __len__(self) -> int:
        return len(self._subjects)

    def __contains__(self, uri: object) -> bool:
        return uri in self._subjects

    def label(self, uri: str, language: str | None = None) -> str | None:
        """Return what a subject is called: in this language, or else in the first that has a label for it."""
        subject = self._subjects.get(uri)
        if subject is None:
            return None
        names = subject.labels
        return names.get(language or "") or next((names[lang] for lang in self.languages if lang in names), None)

    def notation(self, uri: str) -> str | None:
        """Return the notation of a subject, such as its number in a classification."""
        subject = self._subjects.get(uri)
        return None if subject is None else subject.notation

    def broader(self, uri: str) -> list[str]:
        """Return the URIs of the wider subjects."""
        subject = self._subjects.get(uri)
        return [] if subject is None else [other for other in subject.broader if other in self._subjects]

    def narrower(self, uri: str) -> list[str]:
        """Return the URIs of the subjects that this one is wider than."""
        return self._narrower.get(uri, [])

    def resolve(self, name: str) -> str:
        """Return the URI of what may be a URI or a label in any language; itself where it is neither, or of several."""
        return name if name in self._subjects else self._by_label.get(name) or name

    @cached_property
    def _narrower(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for subject in self._subjects.values():
            for other in subject.broader:
                found.setdefault(other, []).append(subject.uri)
        return found

    @cached_property
    def _by_label(self) -> dict[str, str | None]:
        found: dict[str, str | None] = {}
        for subject in self._subjects.values():
            for name in set(subject.labels.values()):
                found[name] = subject.uri if found.get(name, subject.uri) == subject.uri else None
        return found


def _strings(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def read_subjects(path: str | os.PathLike[str]) -> Subjects:
    """Return the vocabulary of a file: SKOS (.ttl, .rdf, .nt, .jsonld), Annif's .tsv or .csv; also .gz of these.

    A TSV has a URI, a label and, if it likes, a notation per line; a CSV the columns ``uri``, ``label_en`` and so on,
    ``notation``. Of SKOS the preferred labels, notations, broader and narrower are read; deprecated concepts are not.
    """
    name = Path(path).name.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no vocabulary {path}.")
    if suffix not in SKOS_FORMATS and suffix not in (".tsv", ".csv"):
        known = ", ".join([*SKOS_FORMATS, ".tsv", ".csv"])
        raise InputError(f"A vocabulary must be a file that ends with one of {known}. Got {path}.")
    content = Path(path).read_bytes()
    if os.fspath(path).lower().endswith(".gz"):
        content = _unpack(content, path)
    if suffix in SKOS_FORMATS:
        subjects = _read_skos(content, path, SKOS_FORMATS[suffix])
    else:
        subjects = (_read_tsv if suffix == ".tsv" else _read_csv)(_as_text(content, path), path)
    if not subjects:
        raise FormatError(f"{path} has no subjects.")
    return Subjects(subjects)


def _unpack(content: bytes, path: Any) -> bytes:
    try:
        unpacked = gzip.GzipFile(fileobj=io.BytesIO(content)).read(MOST_BYTES + 1)
    except (EOFError, OSError, zlib.error):
        raise FormatError(f"{path} is not a whole gzip file.") from None
    if len(unpacked) > MOST_BYTES:
        raise FormatError(f"{path} must have at most {MOST_BYTES:,} bytes when it is unpacked. Got more.")
    return unpacked


def _as_text(content: bytes, path: Any) -> io.StringIO:
    try:
        return io.StringIO(content.decode("utf-8-sig"), newline="")
    except UnicodeDecodeError:
        raise FormatError(f"{path} is not UTF-8.") from None


def _read_tsv(file: io.StringIO, path: Any) -> list[Subject]:
    found: dict[str, Subject] = {}
    for number, line in enumerate(file, 1):
        cells = [cell.strip() for cell in line.rstrip("\r\n").split("\t")]
        if cells == [""]:
            continue
        if len(cells) < 2 or not cells[0]:
            raise FormatError(f"{path}, line {number}: expected a URI, a tab and a label. Got {line.strip()[:80]!r}.")
        uri = cells[0].removeprefix("<").removesuffix(">")
        _add(found, Subject(uri, {NO_LANGUAGE: cells[1]} if cells[1] else {}, _third(cells)), f"{path}, line {number}")
    return list(found.values())


def _third(cells: list[str]) -> str | None:
    return cells[2] if len(cells) > 2 and cells[2] else None


def _read_csv(file: io.StringIO, path: Any) -> list[Subject]:
    rows = csv.DictReader(file)
    names = rows.fieldnames or []
    languages = {name: name.removeprefix("label_") for name in names if name.startswith("label_")}
    if "uri" not in names or not languages:
        raise FormatError(f"{path} must have the columns uri and label_en, or of other languages. Got {list(names)}.")
    found: dict[str, Subject] = {}
    try:
        for row in rows:
            place = f"{path}, line {rows.line_num}"
            uri = (row["uri"] or "").strip().removeprefix("<").removesuffix(">")
            if not uri:
                raise FormatError(f"{place}: expected a URI. Got none.")
            labels = {language: row[name].strip() for name, language in languages.items() if (row[name] or "").strip()}
            _add(found, Subject(uri, labels, (row.get("notation") or "").strip() or None), place)
    except csv.Error as error:
        raise FormatError(f"{path}, line {rows.line_num}: {error}.") from None
    return list(found.values())


def _add(found: dict[str, Subject], subject: Subject, place: str) -> None:
    if subject.uri in found:
        raise FormatError(f"{place}: {subject.uri} is there a second time.")
    found[subject.uri] = subject


def _read_skos(content: bytes, path: Any, format: str) -> list[Subject]:
    try:
        import rdflib
        from rdflib.namespace import OWL, RDF, SKOS
    except ImportError as error:
        raise ImportError(f'{path} is SKOS, which rdflib reads: pip install "labelsense[skos]"') from error

    graph = rdflib.Graph()
    try:
        if format == "json-ld":
            _refuse_fetching(json.loads(content))
        if format == "xml":
            _refuse_entities(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what it uses of its own
            graph.parse(data=content, format=format)
    except Exception as error:  # each of its parsers has its own
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise FormatError(f"{path} cannot be read as {format}: {reason}") from error
    concepts = [
        concept
        for concept in graph.subjects(RDF.type, SKOS.Concept, unique=True)
        if isinstance(concept, rdflib.URIRef)
        and concept.split() == [str(concept)]  # a URI has no spaces, which rdflib does not mind
        and not any(bool(flag) for flag in graph.objects(concept, OWL.deprecated))
    ]
    known = set(concepts)

    def one(concept: Any) -> Subject:
        names = [name for name in graph.objects(concept, SKOS.prefLabel) if isinstance(name, rdflib.Literal)]
        labels = sorted((str(name.language or NO_LANGUAGE), str(name)) for name in names)
        notations = sorted(map(str, graph.objects(concept, SKOS.notation)))
        wider = {*graph.objects(concept, SKOS.broader), *graph.subjects(SKOS.narrower, concept)} & known
        return Subject(
            str(concept), dict(reversed(labels)), next(iter(notations), None), tuple(sorted(map(str, wider)))
        )

    return [one(concept) for concept in sorted(concepts)]


def _refuse_entities(content: bytes) -> None:
    """Refuse XML whose entities are of entities, with which a short file can stand for a long text, or elsewhere."""

    def look(name: str, is_parameter: bool, value: str | None, *elsewhere: str | None) -> None:
        if value is None or "&" in value:
            raise ValueError(f"The entity {name!r} must be plain text. Got one of other entities, or of another file.")

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = look
    parser.Parse(content, True)


def _refuse_fetching(tree: Any) -> None:
    """Refuse JSON-LD that names contexts elsewhere, which rdflib would read from other files or from the network."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            named = value if isinstance(value, list) else [value]
            if key in ("@context", "@import") and any(isinstance(item, str) for item in named):
                raise ValueError(f"{key} must be in the file itself, so that nothing is fetched. Got {value!r}.")
    for item in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        _refuse_fetching(item)
