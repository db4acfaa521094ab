"""Vocabularies: what is read of each format, and how labels of documents find their subjects."""

import gzip
import json
import sys

import pytest
import rdflib
from serving import TEXTS, serving
from typer.testing import CliRunner

from labelsense import load_model
from labelsense.cli import app
from labelsense.data import Examples
from labelsense.data.adapt import labels_for, with_uris
from labelsense.data.subjects import Subject, Subjects, read_subjects
from labelsense.errors import FormatError, InputError, ModelFileError

TURTLE = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix ex: <http://example.org/> .
ex:game a skos:Concept ; skos:prefLabel "games"@en, "pelit"@fi ; skos:narrower ex:board .
ex:chess a skos:Concept ; skos:prefLabel "chess"@en, "shakki"@fi ; skos:notation "794.1" ; skos:broader ex:board .
ex:board a skos:Concept ; skos:prefLabel "board games"@en .
ex:old a skos:Concept ; skos:prefLabel "old"@en ; owl:deprecated true .
ex:scheme a skos:ConceptScheme ; skos:prefLabel "no concept"@en .
"""
EX = "http://example.org/"


def test_skos_has_labels_notations_and_relations(tmp_path):
    path = tmp_path / "subjects.ttl"
    path.write_text(TURTLE)
    subjects = read_subjects(path)
    assert len(subjects) == 3
    assert subjects.languages == ["en", "fi"]
    assert subjects.label(f"{EX}chess") == "chess"
    assert subjects.label(f"{EX}chess", "fi") == "shakki"
    assert subjects.label(f"{EX}board", "fi") == "board games"  # where there is none in Finnish
    assert subjects.notation(f"{EX}chess") == "794.1"
    assert subjects.broader(f"{EX}chess") == [f"{EX}board"]
    assert subjects.broader(f"{EX}board") == [f"{EX}game"]  # as narrower says, from the other side
    assert subjects.narrower(f"{EX}board") == [f"{EX}chess"]
    assert f"{EX}old" not in subjects
    assert subjects.label(f"{EX}old") is None


def test_other_forms_of_skos_say_the_same(tmp_path):
    graph = rdflib.Graph().parse(data=TURTLE, format="turtle")
    (tmp_path / "subjects.ttl").write_text(TURTLE)
    expected = read_subjects(tmp_path / "subjects.ttl")._to_parts()
    for name, format in (("a.rdf", "xml"), ("a.nt", "nt"), ("a.jsonld", "json-ld")):
        graph.serialize(tmp_path / name, format=format, encoding="utf-8")
        assert read_subjects(tmp_path / name)._to_parts() == expected
    (tmp_path / "a.ttl.gz").write_bytes(gzip.compress(TURTLE.encode()))
    assert read_subjects(tmp_path / "a.ttl.gz")._to_parts() == expected


def test_labels_that_are_no_text_are_left_out(tmp_path):
    path = tmp_path / "subjects.ttl"
    path.write_text(TURTLE.replace('"board games"@en', '"board games"@en, ex:game, []'))
    assert read_subjects(path).label(f"{EX}board") == "board games"


def test_concepts_whose_uri_has_spaces_are_left_out(tmp_path):
    path = tmp_path / "subjects.ttl"
    path.write_text(
        TURTLE + "ex:chess skos:broader <http://x/a b> . <http://x/a b> a skos:Concept . < http://x/c> a skos:Concept ."
    )
    subjects = read_subjects(path)
    assert len(subjects) == 3
    assert subjects.broader(f"{EX}chess") == [f"{EX}board"]


@pytest.mark.parametrize("context", ["{0}", [{}, "{0}"], {"@import": "{0}"}])
def test_contexts_of_json_ld_are_not_fetched(context, tmp_path):
    elsewhere, path = tmp_path / "context.json", tmp_path / "a.jsonld"
    elsewhere.write_text('{"@context": {"Concept": "http://www.w3.org/2004/02/skos/core#Concept"}}')
    content = json.dumps({"@context": context, "@graph": [{"@id": "urn:1", "@type": "Concept"}]})
    path.write_text(content.replace("{0}", elsewhere.as_uri()))
    with pytest.raises(FormatError, match="must be in the file itself, so that nothing is fetched"):
        read_subjects(path)


XML = """<!DOCTYPE rdf:RDF [<!ENTITY skos "http://www.w3.org/2004/02/skos/core#"> <!ENTITY fox {0}>]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:s="&skos;">
<s:Concept rdf:about="urn:1"><s:prefLabel>a &fox;</s:prefLabel></s:Concept></rdf:RDF>"""


def test_entities_of_xml_are_plain_text(tmp_path):
    path = tmp_path / "a.rdf"
    path.write_text(XML.format("'fox'"))
    assert read_subjects(path).label("urn:1") == "a fox"
    for entity in ("'&skos;&skos;'", "SYSTEM 'elsewhere.txt'"):  # which could stand for gigabytes, or for any file
        path.write_text(XML.format(entity))
        with pytest.raises(FormatError, match="The entity 'fox' must be plain text"):
            read_subjects(path)


def test_a_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("labelsense.data.subjects.MOST_BYTES", 1000)
    for size in (990, 991):
        (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"urn:1\tfox\n" + b"\n" * size))
        if size == 990:
            assert len(read_subjects(tmp_path / "a.tsv.gz")) == 1
    with pytest.raises(FormatError, match="must have at most 1,000 bytes when it is unpacked"):
        read_subjects(tmp_path / "a.tsv.gz")


def test_annif_tables(tmp_path):
    tsv, csv = tmp_path / "a.tsv", tmp_path / "a.csv"
    tsv.write_text(f"<{EX}1>\tchess\t794.1\n{EX}2\tgo\n")
    subjects = read_subjects(tsv)
    assert (subjects.label(f"{EX}1"), subjects.notation(f"{EX}1")) == ("chess", "794.1")
    assert (subjects.label(f"{EX}2"), subjects.notation(f"{EX}2")) == ("go", None)
    csv.write_text(f'uri,label_en,label_fi,notation\n{EX}1,"chess, fast",shakki,1\n<{EX}2>,go,,\n')
    subjects = read_subjects(csv)
    assert subjects.label(f"{EX}1", "en") == "chess, fast"
    assert subjects.label(f"{EX}2", "fi") == "go"
    assert subjects.languages == ["en", "fi"]


@pytest.mark.parametrize(
    ("name", "content", "error", "words"),
    [
        ("a.ttl", b"no turtle", FormatError, "cannot be read as turtle"),
        ("a.ttl", b"", FormatError, "has no subjects"),
        ("a.tsv", b"no tab\n", FormatError, "line 1: expected a URI, a tab and a label"),
        ("a.tsv", b"a\tb\na\tc\n", FormatError, "line 2: a is there a second time"),
        ("a.tsv", b"\xff\t\xff", FormatError, "is not UTF-8"),
        ("a.csv", b"id,name\n1,2\n", FormatError, "must have the columns uri and label_en"),
        ("a.csv", b"uri,label_en\n,x\n", FormatError, "line 2: expected a URI"),
        ("a.tsv.gz", b"no gzip", FormatError, "is not a whole gzip file"),
        ("a.txt", b"a\tb\n", InputError, "ends with one of"),
    ],
)
def test_files_that_are_no_vocabulary(tmp_path, name, content, error, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=words):
        read_subjects(tmp_path / name)


def test_a_missing_file_and_a_missing_package(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="There is no vocabulary"):
        read_subjects(tmp_path / "none.ttl")
    (tmp_path / "a.ttl").write_text(TURTLE)
    monkeypatch.setitem(sys.modules, "rdflib", None)
    with pytest.raises(ImportError, match=r"labelsense\[skos\]"):
        read_subjects(tmp_path / "a.ttl")


def test_labels_become_uris():
    subjects = Subjects(
        [Subject("u1", {"en": "chess", "fi": "shakki"}), Subject("u2", {"en": "go"}), Subject("u3", {"fi": "go"})]
    )
    examples = Examples(["a", "b"], [["chess", "u1", "u2"], ["shakki", "go", "ludo"]])
    found, unknown = with_uris(examples, subjects)
    assert found.Y == [["u1", "u2"], ["u1", "go", "ludo"]]  # go is the name of two
    assert unknown == ["go", "ludo"]
    assert with_uris(examples, None) == (examples, [])


def train(folder, *options):
    """Train on a few texts with the command line, in this process."""
    names = [["foxes", "red"], ["hens", "foxes"], ["chess", "game"], ["chess", "hens"]] * 10
    lines = [f"{text}\t{'|'.join(labels)}\n" for text, labels in zip(TEXTS, names, strict=True)]
    (folder / "docs.tsv").write_text("text\tlabels\n" + "".join(lines))
    (folder / "subjects.tsv").write_text("u:fox\tfoxes\nu:hen\thens\nu:chess\tchess\t794.1\nu:cat\tcats\n")
    arguments = [
        "train",
        folder / "docs.tsv",
        "-o",
        folder / "model",
        "--vocabulary",
        folder / "subjects.tsv",
        *options,
    ]
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_training_with_a_vocabulary_reports_what_it_lacks_and_remembers_it(tmp_path):
    result = train(tmp_path, "--updatable")
    assert result.exit_code == 0, result.output
    assert "vocabulary  4 subjects; 2 labels are not in it: red, game" in result.output
    model = load_model(tmp_path / "model")
    assert set(model.labels_) == {"u:fox", "u:hen", "u:chess", "red", "game"}
    assert model.subjects_.label("u:fox") == "foxes"
    assert labels_for(model, Examples(["x"], [["hens", "red"]])) == [["u:hen", "red"]]
    with serving(tmp_path / "model") as client:
        (best, *_) = client.post("/v1/projects/tags/suggest", data={"text": "a chess game"}).json()["results"]
        assert (best["uri"], best["label"]) in {("u:chess", "chess"), ("game", "game")}
        (chess,) = client.get("/ui/projects/tags/labels?query=chess").json()["labels"]
        assert (chess["label"], chess["notation"]) == ("chess", "794.1")


def test_a_stored_vocabulary_is_checked(tmp_path):
    train(tmp_path)
    model = load_model(tmp_path / "model")
    for part, value in (("uris", ["a", "a", "b", "c"]), ("notations", [1, 2, 3, 4]), ("labels", [1]), ("broader", [])):
        parts = {**model.subjects_._to_parts(), part: value}
        with pytest.raises((ValueError, TypeError)):
            Subjects._from_parts(parts)
    parts = model.subjects_._to_parts()
    assert Subjects._from_parts(parts)._to_parts() == parts
    content = (tmp_path / "model").read_bytes()
    (tmp_path / "model").write_bytes(content.replace(b"u:hen", b"u:fox"))
    with pytest.raises(ModelFileError):
        load_model(tmp_path / "model")
