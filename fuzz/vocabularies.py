"""Vocabulary files: every subject that was read can be asked for, and a model file keeps them all."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fuzz.target import Run, Target
from labelsense.data import FormatError
from labelsense.data.subjects import Subjects, read_subjects

ENDS = ("ttl", "tsv", "csv", "nt", "rdf", "jsonld", "n3", "tsv.gz")  # the first letter of an input says which

TURTLE = b"""@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix : <http://x/> .
:1 a skos:Concept ; skos:prefLabel "fox"@en, "kettu"@fi ; skos:notation "5" ; skos:broader :2 .
:2 a skos:Concept ; skos:prefLabel "animal" ; skos:narrower :1 ; <http://www.w3.org/2002/07/owl#deprecated> false .
"""
TRIPLE = (
    b"<http://x/1> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.w3.org/2004/02/skos/core#Concept> .\n"
)
XML = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:s="http://www.w3.org/2004/02/skos/core#">
<s:Concept rdf:about="http://x/1"><s:prefLabel xml:lang="en">fox</s:prefLabel></s:Concept></rdf:RDF>"""
JSONLD = b"""{"@id": "http://x/1", "@type": "http://www.w3.org/2004/02/skos/core#Concept",
"http://www.w3.org/2004/02/skos/core#prefLabel": [{"@value": "fox", "@language": "en"}]}"""
TSV, CSV = (
    b"<http://x/1>\tfox\t5\n<http://x/2>\then\n",
    b'uri,label_en,label_fi,notation\nhttp://x/1,"fox, red",kettu,5\n',
)


@contextmanager
def read(folder: Path) -> Iterator[Run]:
    def run(data: bytes) -> None:
        number = data[0] - ord("a") if data else -1
        if not 0 <= number < len(ENDS):
            return
        path = folder / f"vocabulary.{ENDS[number]}"
        path.write_bytes(data[1:])
        try:
            subjects = read_subjects(path)
        except FormatError:
            return
        check(subjects)

    yield run


def check(subjects: Subjects) -> None:
    """Ask for everything, and take the vocabulary apart and make it again as model files do."""
    assert len(subjects) > 0
    parts = subjects._to_parts()
    assert Subjects._from_parts(parts)._to_parts() == parts
    for uri in parts["uris"]:
        name = subjects.label(uri)
        assert uri in subjects
        assert name is None or subjects.resolve(name) in (uri, name) or subjects.resolve(name) in subjects
        assert all(uri in subjects.narrower(other) for other in subjects.broader(uri))


def _seeds() -> list[bytes]:
    contents = (TURTLE, TSV, CSV, TRIPLE, XML, JSONLD, TURTLE, gzip.compress(TSV, mtime=0))
    return [bytes([ord("a") + number]) + content for number, content in enumerate(contents)]


WORDS = (
    "skos:prefLabel",
    "skos:broader",
    "skos:Concept",
    "@prefix",
    "rdf:about",
    "@context",
    "@graph",
    "label_en",
    "<!ENTITY",
)
TARGETS = [
    Target("vocabulary", read, _seeds, WORDS, ("rdflib.plugins.parsers.notation3", "rdflib.plugins.parsers.rdfxml"))
]
