"""The schema of text formats: where the text, the labels and the id of a document are sought. Annif's corpora."""

import json

import pytest

from labelsense.data import Examples, FormatError, read_examples, stream_examples, write_examples

SOUGHT = "'text', 'title', 'body' or 'description'"


def write(folder, text, name):
    path = folder / name
    path.write_text(text)
    return path


def write_lines(folder, *records, name="docs.jsonl"):
    return write(folder, "".join(json.dumps(record) + "\n" for record in records), name)


class TestAnnif:
    """What Annif calls document corpora."""

    def test_tsv(self, tmp_path):
        lines = "Birds\t<http://x/1> <http://x/2>\nFish\thttp://x/3 https://x/4\nEggs\turn:isbn:5\nNothing\t\n"
        examples = read_examples(write(tmp_path, lines, "corpus.tsv"))
        assert examples.X == ["Birds", "Fish", "Eggs", "Nothing"]
        assert examples.Y == [["http://x/1", "http://x/2"], ["http://x/3", "https://x/4"], ["urn:isbn:5"], []]

    @pytest.mark.parametrize(
        "uris", ["<http://x/1> <http://x/2>", "http://x/1 http://x/2", "http://x/1  <http://x/2> "]
    )
    def test_csv(self, tmp_path, uris):
        text = f'document_id,text,subject_uris,year\nd1,"Birds, too",{uris},1999\n,Fish,,\n'
        examples = read_examples(write(tmp_path, text, "corpus.csv"))
        assert examples.X == ["Birds, too", "Fish"]
        assert examples.Y == [["http://x/1", "http://x/2"], []]
        assert examples.ids == ["d1", None]

    def test_json_lines(self, tmp_path):
        path = write_lines(
            tmp_path,
            {"document_id": "d1", "text": "a", "subjects": [{"uri": "http://x/1", "label": "x"}, {"label": "y"}]},
            {"document_id": 2, "text": "b", "metadata": {"title": "t"}, "subjects": []},
        )
        examples = read_examples(path)
        assert (examples.Y, examples.ids) == ([["http://x/1", "y"], []], ["d1", "2"])

    def test_folder(self, tmp_path):
        for name, text in {
            "a.txt": "Birds\nand more",
            "a.tsv": "<http://x/1>\tbirds\n\nhttp://x/2\tair\n",
            "a.key": "not taken\n",
            "b.txt": "\ufeffFish",
            "b.key": "fish\ndeep sea\n\n",
            "c.txt": "Nothing",
            "readme.md": "not taken",
        }.items():
            write(tmp_path, text, name)
        examples = read_examples(tmp_path)
        assert examples.X == ["Birds\nand more", "Fish", "Nothing"]
        assert examples.Y == [["http://x/1", "http://x/2"], ["fish", "deep sea"], []]
        assert examples.ids == ["a", "b", "c"]
        assert [batch.ids for batch in stream_examples(tmp_path, rows=2)] == [["a", "b"], ["c"]]

    def test_folders_that_cannot_be_read(self, tmp_path):
        with pytest.raises(FormatError, match="expected a folder with files that end in .txt, and there are none"):
            read_examples(tmp_path, "folder")
        (tmp_path / "a.txt").write_bytes(b"\xff")
        with pytest.raises(FormatError, match="a.txt: expected UTF-8"):
            read_examples(tmp_path)
        with pytest.raises(FormatError, match="expected a folder with files that end in .txt, got a file"):
            read_examples(tmp_path / "a.txt", "folder")
        with pytest.raises(ValueError, match="folder is read, not written. Write jsonl, tsv, csv or parquet"):
            write_examples(tmp_path / "out", Examples(["a"], None), "folder")

    def test_long_texts_in_folders(self, tmp_path, monkeypatch):
        write(tmp_path, "a" * 101, "a.txt")
        monkeypatch.setattr("labelsense.data.formats.folders.LINE_BYTES", 100)
        with pytest.raises(FormatError, match="a.txt: expected a text of at most"):
            read_examples(tmp_path)


class TestIds:
    @pytest.mark.parametrize("name", ["jsonl", "tsv", "csv", "parquet"])
    def test_are_kept(self, tmp_path, name):
        pytest.importorskip("pyarrow")
        examples = Examples(["a", "b"], [["x"], []], ids=["d, 1", None])
        write_examples(tmp_path / f"a.{name}", examples)
        got = read_examples(tmp_path / f"a.{name}")
        assert (got.X, got.Y, got.ids) == (examples.X, examples.Y, examples.ids)

    def test_are_kept_from_batch_to_batch(self, tmp_path):
        path = write_lines(tmp_path, {"text": "a"}, {"text": "b", "id": "x"}, {"text": "c"})
        assert [batch.ids for batch in stream_examples(path, rows=1)] == [None, ["x"], [None]]
        assert read_examples(path).ids == [None, "x", None]

    def test_that_cannot_be_written(self, tmp_path):
        with pytest.raises(ValueError, match="txt holds no ids, and these examples have some"):
            write_examples(tmp_path / "a.txt", Examples(["a"], None, ids=["x"]))
        batches = [Examples(["a"], None), Examples(["a"], None, ids=["x"])]
        with pytest.raises(ValueError, match="Some rows have document_id, and those before had none"):
            write_examples(tmp_path / "a.csv", batches)

    @pytest.mark.parametrize("value", [True, 1.5, {"$oid": 3}])
    def test_of_other_kinds(self, tmp_path, value):
        path = write_lines(tmp_path, {"text": "a", "id": value})
        with pytest.raises(FormatError, match="line 1: expected a string or an integer under 'id', got"):
            read_examples(path)


class TestTextFields:
    RECORDS = (
        {"title": "T1", "text": "a", "metadata": {"abstract": "A1"}, "labels": ["x"]},
        {"title": None, "text": "b", "metadata": {}, "labels": ["y"]},
    )

    @pytest.mark.parametrize(
        ("fields", "texts"),
        [(["title", "text", "metadata.abstract"], ["T1 a A1", "b"]), (["text"], ["a", "b"]), (("text", "title"), None)],
    )
    @pytest.mark.parametrize("name", ["jsonl", "parquet"])
    def test_are_joined_in_their_order(self, tmp_path, name, fields, texts):
        path = write_lines(tmp_path, *self.RECORDS)
        if name == "parquet":
            pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
            path = tmp_path / "docs.parquet"
            parquet.write_table(pyarrow.Table.from_pylist(list(self.RECORDS)), path)
        examples = read_examples(path, text_fields=fields)
        assert (texts or ["a T1", "b"], [["x"], ["y"]]) == (examples.X, examples.Y)

    @pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("a.tsv", "\t")])
    def test_columns_of_tables(self, tmp_path, name, delimiter):
        path = write(tmp_path, "Title,Abstract\nT,A\n".replace(",", delimiter), name)
        assert read_examples(path, text_fields=["Abstract", "title"]).X == ["A T"]
        assert next(stream_examples(path, text_fields=["abstract"])).X == ["A"]

    @pytest.mark.parametrize("fields", [["abstract"], ["abstract", "text"]])
    def test_that_are_not_there(self, tmp_path, fields):
        sought = " and ".join(map(repr, fields))
        with pytest.raises(FormatError, match=f"line 1: expected a header with a column {sought}, got \\['text'\\]"):
            read_examples(write(tmp_path, "text\na\n", "a.csv"), text_fields=fields)
        with pytest.raises(FormatError, match="expected a text under 'abstract'"):
            read_examples(write_lines(tmp_path, {"text": "a"}), text_fields=fields)

    def test_misspelt_ones_do_not_pass_in_silence(self, tmp_path):
        path = write_lines(tmp_path, *self.RECORDS)
        with pytest.raises(FormatError, match="expected a text under 'metadata.abstarct', and no row has any"):
            read_examples(path, text_fields=["title", "text", "metadata.abstarct"])

    def test_are_for_named_fields(self, tmp_path):
        for name, text in (("a.txt", "a\n"), ("a.svm", "1 1:1\n")):
            with pytest.raises(
                ValueError, match="text_fields is for rows with named fields, in jsonl, tsv, csv or parq"
            ):
                read_examples(write(tmp_path, text, name), text_fields=["title"])
        for wrong in ("title", []):
            with pytest.raises(ValueError, match="text_fields must be a list of names of fields, at least one"):
                read_examples(tmp_path / "a.txt", text_fields=wrong)


class TestErrors:
    def test_say_which_names_are_sought(self, tmp_path):
        with pytest.raises(FormatError, match=f"line 1: expected a text under {SOUGHT}, got \\['words'\\]"):
            read_examples(write_lines(tmp_path, {"words": "a"}))
        with pytest.raises(FormatError, match=f"line 1: expected a header with a column {SOUGHT}, got \\['words'\\]"):
            read_examples(write(tmp_path, "words\na\n", "a.csv"))

    def test_one_name_for_two_columns(self, tmp_path):
        with pytest.raises(FormatError, match="line 1: expected one column 'text', got 2"):
            read_examples(write(tmp_path, "text,Text,labels\na,b,c\n", "a.csv"))

    @pytest.mark.parametrize("subjects", [[{"name": "x"}], [{"uri": 3}], [["x"]], {"uri": "x"}, 3])
    def test_labels_of_other_kinds(self, tmp_path, subjects):
        path = write_lines(tmp_path, {"text": "a", "subjects": subjects})
        with pytest.raises(
            FormatError, match="line 1: expected a string, or a list of strings or of objects with 'uri'"
        ):
            read_examples(path)

    def test_half_characters(self, tmp_path):
        path = write(tmp_path, '{"text": "\\ud83d\\ude00"}\n{"text": "\\ud83d"}\n', "a.jsonl")
        with pytest.raises(FormatError, match="line 2: expected a JSON object.*surrogates not allowed"):
            read_examples(path)
