"""Which format a file is of: its name decides, its content where the name does not tell, and a guess is said."""

import logging

import numpy as np
import pytest
import scipy.sparse as sp

from labelsense.data import FORMATS, Examples, FormatError, detect_format, read_examples, write_examples


def write(folder, text, name="data"):
    path = folder / name
    path.write_text(text)
    return path


class TestNames:
    @pytest.mark.parametrize(
        ("name", "format"),
        [
            ("a.jsonl", "jsonl"),
            ("a.NDJSON", "jsonl"),
            ("a.tsv.gz", "tsv"),
            ("a.csv", "csv"),
            ("a.parquet", "parquet"),
            ("a.arff.bz2", "arff"),
            ("a.xc", "xc"),
            ("a.xc.txt", "xc"),
            ("a.svm.xz", "libsvm"),
            ("a.svmlight", "libsvm"),
            ("a.txt", "txt"),
            ("a.PNG", "images"),
        ],
    )
    def test_the_name_decides_whatever_the_content(self, tmp_path, name, format, caplog):
        with caplog.at_level(logging.INFO, "labelsense"):
            for content in ("prose, and more\n", '{"text": "a"}\n', "text,labels\na,b\n"):
                assert detect_format(write(tmp_path, content, name)) == format
        assert not caplog.records

    @pytest.mark.parametrize(
        ("text", "format"), [("2 3 4\n1 0:1\n2 1:1\n", "xc"), ("3,17 5:0.2 9:1\n", "libsvm"), ("2 hens\n", "txt")]
    )
    def test_three_formats_share_one_name(self, tmp_path, text, format, caplog):
        with caplog.at_level(logging.INFO, "labelsense"):
            assert detect_format(write(tmp_path, text, "data.txt")) == format
        assert [record.getMessage() for record in caplog.records] == [
            f"{tmp_path / 'data.txt'} is read as {format}, going by its content; pass format= if it is not"
        ] * (format != "txt")

    def test_a_broken_first_line_is_an_error_and_not_another_format(self, tmp_path):
        path = write(tmp_path, '{"text": "a\n{"text": "b", "labels": ["x"]}\n', "docs.jsonl")
        with pytest.raises(FormatError, match="docs.jsonl, line 1: expected a JSON object"):
            read_examples(path)

    def test_formats_that_are_written_are_read_by_name(self, tmp_path):
        texts, features = Examples(["a"], [["x"]]), Examples(sp.csr_array(np.eye(3, dtype=np.float32)), None)
        for format in FORMATS.values():
            for suffix in format.suffixes:
                if suffix == ".txt" or format.name == "images":
                    continue
                examples = features if format.name in ("xc", "libsvm", "arff") else texts
                write_examples(tmp_path / f"a{suffix}", examples)
                assert detect_format(tmp_path / f"a{suffix}") == format.name


class TestContent:
    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("12:30 meeting in the hall\n", "txt"),
            ("a line of prose, with a comma\n", "txt"),
            ("a line with\ta tab\n", "txt"),
            ("3 birds\n", "txt"),
            ("{braces} in prose\n", "txt"),
            ("100 20 30\n1 2:1\n", "xc"),
            ("1\n2,3\n4 1:1\n", "libsvm"),
            ("1:0.5 7:1\n", "libsvm"),
            ("# remark\n1 qid:3 5:1\n", "libsvm"),
            ("% remark\n\n@Relation x\n", "arff"),
            ('{"text": "a"}\n', "jsonl"),
            ("text,labels\n", "csv"),
            ("text\tlabels\n", "tsv"),
            ("birds\t<http://x/p1>\n", "tsv"),
        ],
    )
    def test_tells_where_the_name_does_not(self, tmp_path, text, name):
        assert detect_format(write(tmp_path, text)) == name

    @pytest.mark.parametrize("text", ["Title, a story of a fox\n", "Text\n", "body, red, fox\n", "title\tand a tab\n"])
    def test_a_line_that_is_not_clearly_a_header_is_a_text(self, tmp_path, text):
        path = write(tmp_path, text + "more\n")
        assert [text.rstrip("\n"), "more"] == read_examples(path).X

    @pytest.mark.parametrize("header", ["text,labels", "title,body,tags", "document_id,text", "TEXT,year,subject_uris"])
    def test_a_clear_header_is_one(self, tmp_path, header):
        path = write(tmp_path, f"{header}\n{header}\n")
        assert detect_format(path) == "csv"
        assert len(read_examples(path)) == 1

    @pytest.mark.parametrize("name", ["data", "data.model", "-"])
    def test_a_guess_is_logged(self, tmp_path, name, caplog, monkeypatch):
        path = write(tmp_path, "some text\n", "in" if name == "-" else name)
        with caplog.at_level(logging.INFO, "labelsense"), path.open() as file:
            monkeypatch.setattr("sys.stdin", file)
            read_examples("-" if name == "-" else path)
        source = "standard input" if name == "-" else str(path)
        assert caplog.messages == [f"{source} is read as txt, going by its content; pass format= if it is not"]

    def test_a_tsv_file_without_a_header_says_so(self, tmp_path, caplog):
        with caplog.at_level(logging.INFO, "labelsense"):
            examples = read_examples(write(tmp_path, "Text\t<http://x/1>\nfish\t<http://x/2>\n", "a.tsv"))
        assert examples.X == ["Text", "fish"]
        assert caplog.messages == [f"{tmp_path / 'a.tsv'} has no header: a line is read as text, tab, labels"]
