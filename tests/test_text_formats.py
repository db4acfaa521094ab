"""Text files: what is written is read again, the csv and json modules agree, and what is wrong is refused."""

import csv
import gzip
import io
import json
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelsense.data import Examples, FormatError, detect_format, read_examples, stream_examples, write_examples

# Any character but NUL, which the csv module of Python 3.10 refuses, and the byte order mark.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), max_size=12)
labels = st.one_of(texts, st.sampled_from(['a "b", c', "'", "<x>", "tab\there", "ü|;", "two\nlines", " "]))


def rows(text, label):
    return st.lists(st.tuples(text, st.lists(label, max_size=3)), max_size=6)


def examples_of(rows, labelled):
    return Examples([text for text, _ in rows], [names for _, names in rows] if labelled else None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("texts")


def write(folder, text, name="data"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def assert_same(got, expected):
    assert got.X == expected.X
    assert (expected.Y if len(expected) else None) == got.Y or got.Y == expected.Y


class TestRoundTrip:
    @pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
    @given(rows=rows(texts, labels), labelled=st.booleans())
    def test_any_text_and_any_label(self, folder, name, rows, labelled):
        if name == "a.parquet":
            pytest.importorskip("pyarrow")
        expected = examples_of(rows, labelled)
        write_examples(folder / name, expected)
        assert_same(read_examples(folder / name, name[2:]), expected)

    tame = labels.filter(lambda label: "|" not in label and label and label == label.strip())

    @pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
    @given(rows=rows(texts, tame), labelled=st.booleans())
    def test_tables_keep_any_text(self, folder, name, rows, labelled):
        expected = examples_of(rows, labelled)
        write_examples(folder / name, expected)
        assert_same(read_examples(folder / name), expected)

    @given(rows=st.lists(texts.map(lambda text: text.replace("\n", "").replace("\r", "")), max_size=6))
    def test_lines(self, folder, rows):
        write_examples(folder / "a.txt", Examples(rows, None))
        got = read_examples(folder / "a.txt", "txt")
        assert (rows, None) == (got.X, got.Y)

    @pytest.mark.parametrize("source", ["jsonl", "tsv", "csv", "parquet"])
    @pytest.mark.parametrize("target", ["jsonl", "tsv", "csv", "parquet"])
    def test_any_format_converts_to_any_other_in_batches(self, tmp_path, source, target):
        pytest.importorskip("pyarrow")
        expected = Examples([f"text, {i}" for i in range(100)], [[f"l{i % 7}"] * (i % 3 > 0) for i in range(100)])
        write_examples(tmp_path / "from", expected, source)
        batches = list(stream_examples(tmp_path / "from", rows=30))
        assert [len(batch) for batch in batches] == [30, 30, 30, 10]
        write_examples(tmp_path / "to", batches, target)
        assert detect_format(tmp_path / "to") == target
        assert_same(read_examples(tmp_path / "to"), expected)

    @pytest.mark.parametrize("name", ["jsonl", "tsv", "csv", "txt"])
    def test_a_mark_of_byte_order_at_the_start_of_a_text_is_kept(self, tmp_path, name):
        texts = ["\ufeffa", "\ufeffb"]
        write_examples(tmp_path / f"a.{name}", Examples(texts, None))
        assert texts == read_examples(tmp_path / f"a.{name}", name).X

    @pytest.mark.parametrize("name", ["jsonl", "tsv", "csv", "txt"])
    def test_compressed_and_through_a_pipe(self, tmp_path, monkeypatch, name):
        expected = Examples(["ä b", "c, d"], None)
        path = tmp_path / f"a.{name}.gz"
        write_examples(path, expected)
        with gzip.open(path) as file:
            assert "ä b" in file.read().decode()
        assert_same(read_examples(path), expected)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
        assert_same(read_examples("-", name), expected)

    def test_an_indicator_is_written_as_names(self, tmp_path):
        Y = sp.csr_array(np.array([[1, 0], [1, 1]], np.float32))
        write_examples(tmp_path / "a.jsonl", Examples(["a", "b"], Y, labels=["x", "y"]))
        assert read_examples(tmp_path / "a.jsonl").Y == [["x"], ["x", "y"]]
        write_examples(tmp_path / "a.jsonl", Examples(["a", "b"], Y))
        assert read_examples(tmp_path / "a.jsonl").Y == [["0"], ["0", "1"]]

    def test_batches_are_bounded_in_size(self, tmp_path, monkeypatch):
        monkeypatch.setattr("labelsense.data.formats.fields.BATCH_BYTES", 100)
        path = write(tmp_path, "0123456789\n" * 100)
        batches = list(stream_examples(path))
        assert {len(batch) for batch in batches[:-1]} == {11}
        assert sum(len(batch) for batch in batches) == 100

    def test_long_documents(self, tmp_path):
        expected = Examples(["word " * 100_000], [["long"]])
        for name in ("a.csv", "a.tsv", "a.jsonl"):
            write_examples(tmp_path / name, expected)
            assert_same(read_examples(tmp_path / name), expected)


class TestJSONLines:
    def test_keys(self, tmp_path):
        lines = [
            {"text": "a", "labels": ["x", "y"], "id": 3},
            {"title": "b", "body": "c", "tags": "z"},
            {"description": "e", "title": "d", "body": None},
            {"text": "f", "title": "not taken", "labels": None},
        ]
        path = write(tmp_path, "\ufeff" + "\r\n\r\n".join(json.dumps(line) for line in lines))
        examples = read_examples(path)
        assert examples.X == ["a", "b c", "d e", "f"]
        assert examples.Y == [["x", "y"], ["z"], [], []]

    def test_no_labels_at_all(self, tmp_path):
        path = write(tmp_path, '{"text": "a"}\n{"text": "b"}\n')
        assert read_examples(path).Y is None
        later = write(tmp_path, '{"text": "a"}\n{"text": "b", "tags": ["x"]}\n{"text": "c"}')
        assert [batch.Y for batch in stream_examples(later, rows=1)] == [None, [["x"]], [[]]]
        assert read_examples(later).Y == [[], ["x"], []]

    def test_what_is_written_is_plain_json(self, tmp_path):
        write_examples(tmp_path / "a.jsonl", Examples(["ü\n"], [["x"]]))
        assert json.loads((tmp_path / "a.jsonl").read_text()) == {"text": "ü\n", "labels": ["x"]}


class TestTables:
    def test_reads_what_the_csv_module_writes(self, tmp_path):
        for name, delimiter in (("csv", ","), ("tsv", "\t")):
            with (tmp_path / name).open("w", newline="") as file:
                writer = csv.writer(file, delimiter=delimiter)
                writer.writerow(["id", "Title", "body", "tags"])
                writer.writerow([1, 'say "hi", now', "two\r\nlines", "x | y"])
                writer.writerow([2, "", "b\t", ""])
            examples = read_examples(tmp_path / name)
            assert detect_format(tmp_path / name) == name
            assert examples.X == ['say "hi", now two\r\nlines', " b\t"]
            assert examples.Y == [["x", "y"], []]

    def test_the_csv_module_reads_what_is_written(self, tmp_path):
        write_examples(tmp_path / "a.csv", Examples(['a "b", c\n'], [["x", "y"]]))
        with (tmp_path / "a.csv").open(newline="") as file:
            assert list(csv.DictReader(file)) == [{"text": 'a "b", c\n', "labels": "x|y"}]

    def test_annif(self, tmp_path):
        path = write(tmp_path, '"Quoted" birds\t<http://x/p1> <http://x/p2>\r\n\r\nfish\t\nhens\ta b|c\n')
        examples = read_examples(path)
        assert detect_format(path) == "tsv"
        assert examples.X == ['"Quoted" birds', "fish", "hens"]
        assert examples.Y == [["http://x/p1", "http://x/p2"], [], ["a b", "c"]]

    @pytest.mark.parametrize("name", ["tsv", "csv"])
    @pytest.mark.parametrize("label", ["a|b", "", " a"])
    def test_labels_that_cannot_be_written(self, tmp_path, name, label):
        with pytest.raises(ValueError, match=r"A label in a table must not be empty, contain '\|' or begin or end"):
            write_examples(tmp_path / "a", Examples(["x"], [[label]]), name)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("jsonl", '{"text": "a"}\n{"text": \n', "line 2: expected a JSON object, got '{\"text\": '"),
        ("jsonl", '{"text": "a"}\n\n["a"]\n', "line 3: expected a JSON object, got '[\"a\"]'"),
        (
            "jsonl",
            '{"body": null}\n',
            "line 1: expected a text under 'text', 'title', 'body' or 'description', got ['body']",
        ),
        ("jsonl", '{"text": 5}\n', "line 1: expected a string under 'text', got 5"),
        (
            "jsonl",
            '{"text": "", "labels": [3]}\n',
            "line 1: expected a string, or a list of strings or of objects with 'uri' or 'label', under 'labels'",
        ),
        ("jsonl", b'{"text": "\xe4"}\n', "line 1: expected UTF-8, got b'\\xe4' after 10 bytes"),
        (
            "csv",
            "a,b\n",
            "line 1: expected a header with a column 'text', 'title', 'body' or 'description', got ['a', 'b']",
        ),
        ("csv", "text,labels\na,b\nc\n", "line 3: expected 2 columns, got 1"),
        ("csv", 'text,labels\n"a"b,c\n', "line 2: expected quoted cells, got something else"),
        ("tsv", 'text\tlabels\nx\ty\n"open\tc\n\n', "line 4: expected quoted cells, got something else"),
        ("tsv", "a\t<b>\nc\n", "line 2: expected a text, a tab and labels, got 1 columns"),
        ("txt", b"a\n\xff\n", "line 2: expected UTF-8, got b'\\xff' after 0 bytes"),
    ],
)
def test_errors_name_the_line(tmp_path, name, text, message):
    path = write(tmp_path, text)
    with pytest.raises(FormatError) as error:
        read_examples(path, name)
    assert str(error.value).startswith(f"{path}, {message}")


class TestRefusals:
    @pytest.mark.parametrize("name", ["jsonl", "tsv", "csv", "txt", "parquet"])
    def test_when_writing(self, tmp_path, name):
        if name == "parquet":
            pytest.importorskip("pyarrow")
        X = sp.csr_array(np.eye(2, dtype=np.float32))
        with pytest.raises(ValueError, match=f"{name} holds texts, and these examples are features"):
            write_examples(tmp_path / "a", Examples(X, None), name)
        with pytest.raises(ValueError, match="X and Y must have the same number of rows. Got 1 and 2"):
            write_examples(tmp_path / "a", Examples(["a"], [[], []]), name)
        assert list(tmp_path.iterdir()) == []

    def test_what_lines_cannot_hold(self, tmp_path):
        with pytest.raises(ValueError, match="txt holds no labels, and these examples have some"):
            write_examples(tmp_path / "a.txt", Examples(["a"], [["b"]]))
        with pytest.raises(ValueError, match=r"A text in a txt file is one line. Got 'a\\nb'. Write jsonl instead"):
            write_examples(tmp_path / "a.txt", Examples(["a\nb"], None))

    def test_labels_that_come_late(self, tmp_path):
        batches = [Examples(["a"], None), Examples(["b"], [["c"]])]
        with pytest.raises(ValueError, match="Some rows have labels, and those before had none"):
            write_examples(tmp_path / "a.csv", batches)
        write_examples(tmp_path / "a.csv", batches[::-1])
        assert read_examples(tmp_path / "a.csv").Y == [["c"], []]

    def test_standard_output(self):
        with pytest.raises(ValueError, match="Examples are written to a file, which standard output is not"):
            write_examples("-", Examples(["a"], None), "txt")


class TestParquet:
    def test_errors(self, tmp_path, monkeypatch):
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        path = tmp_path / "a.parquet"
        parquet.write_table(pyarrow.table({"text": ["a", None]}), path)
        with pytest.raises(
            FormatError, match="a.parquet, row 2: expected a text under 'text', 'title', 'body' or 'description', got"
        ):
            read_examples(path)
        path.write_bytes(path.read_bytes()[:-5])
        with pytest.raises(FormatError, match="a.parquet: expected a Parquet file"):
            read_examples(path)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"PAR1....")))
        with pytest.raises(FormatError, match="standard input: a Parquet file is read from disk"):
            read_examples("-")

    def test_without_pyarrow(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ImportError, match=r'Parquet files need pyarrow: pip install "labelsense\[parquet\]"'):
            write_examples(tmp_path / "a.parquet", Examples(["a"], None))
        with pytest.raises(ImportError, match="Parquet files need pyarrow"):
            read_examples(write(tmp_path, b"PAR1...."))
