"""Feature files that are wrong are refused with their line; writing that fails leaves nothing behind."""

import bz2
import gzip
import lzma

import numpy as np
import pytest
import scipy.sparse as sp
from test_formats import FEATURE_FORMATS, documents, write

from labelsense.data import (
    FORMATS,
    Examples,
    FormatError,
    detect_format,
    read_examples,
    stream_examples,
    write_examples,
)
from labelsense.data.formats import rows as rows_module

ARFF_HEAD = "@relation x\n@attribute a numeric\n@attribute b {0,1}\n@data\n"


class TestErrors:
    @pytest.mark.parametrize(
        ("name", "text", "message"),
        [
            ("xc", "2 6 4\n1 5:1\n1 5;0.2\n", "data, line 3: expected feature:value, got '5;0.2'"),
            ("xc", "1 6 4\n1 5:1 2\n", "line 2: expected feature:value, got '2'"),
            ("xc", "1 6 4\n1 5:1x\n", "line 2: expected feature:value, got '5:1x'"),
            ("xc", "1 6 4\n1 5:1e\n", "line 2: expected feature:value, got '5:1e'"),
            ("xc", "1 6 4\n1;2 5:1\n", "line 2: expected label numbers separated by commas, got '1;2'"),
            ("xc", "1 6 4\n1, 5:1\n", "line 2: expected label numbers separated by commas, got '1,'"),
            ("xc", "1 6 4\n4 5:1\n", "line 2: expected labels below 4, got '4'"),
            ("xc", "1 6 4\n1 6:1\n", "line 2: expected features below 6, got '6:1'"),
            ("xc", "1 6 4\n1 99999999999999999999999:1\n", "line 2: expected features below 6, got '9999"),
            ("xc", "1 6 4\n1 5:nan\n", "line 2: expected a finite value, got '5:nan'"),
            ("xc", "1 6 4\n1 5:-Inf\n", "line 2: expected a finite value, got '5:-Inf'"),
            ("xc", "1 6 4\n1 5:1e39\n", "line 2: expected a finite value, got '5:1e39'"),
            ("xc", "1 6 4\n1 5:1 2:2 5:3\n", "line 2: feature 5 appears twice"),
            ("xc", "3 6 4\n1 5:1\n", "data: the header promises 3 rows, and the file has 1. Is it truncated?"),
            ("xc", "1 6 4\n1 5:1\n\n2 5:1\n", "line 4: expected no more rows, since the header promises 1"),
            ("xc", "1 6\n", "line 1: expected the numbers of rows, features and labels, got '1 6'"),
            ("xc", "1 6 9999999999\n", "line 1: expected at most 2147483647 features and labels, got 9999999999"),
            ("libsvm", "1 1:1\n\n# x\n-1 1:1\n", "line 4: expected label numbers separated by commas, got '-1'"),
            ("libsvm", "1.5 1:1\n", "line 1: expected label numbers separated by commas, got '1.5'"),
            ("libsvm", "1 1:1\n3 x:1\n", "line 2: expected feature:value, got 'x:1'"),
            ("libsvm", "1 2147483647:1\n", "line 1: expected features below 2147483647, got '2147483647:1'"),
            ("arff", "@relation x\nhello\n", "line 2: expected @attribute or @data, got 'hello'"),
            ("arff", "@attribute 'x numeric\n", "line 1: expected @attribute name type"),
            ("arff", "@attribute x string\n", "line 1: expected a numeric attribute or one with values such as {0,1}"),
            ("arff", "@attribute x {red,blue}\n", "line 1: expected a numeric attribute"),
            ("arff", "@relation x\n", "data: expected a line @data, and there is none."),
            ("arff", "@relation 'x: -C 3'\n@attribute a real\n@data\n", "-C 3 asks for more labels than there are"),
            ("arff", ARFF_HEAD + "1\n", "line 5: expected 2 values, got 1"),
            ("arff", ARFF_HEAD + "%\n1,\n", "line 6: expected a number, got ''"),
            ("arff", ARFF_HEAD + "1,1\n?,1\n", "line 6: expected attribute and finite value, got '0 ?'"),
            ("arff", ARFF_HEAD + "{0 1,1 nan}\n", "line 5: expected attribute and finite value, got '1 nan'"),
            ("arff", ARFF_HEAD + "{0 1\n", "line 5: expected a closing brace, got '{0 1'"),
            (
                "arff",
                ARFF_HEAD.replace("0,1", "1,0") + "0,0\n{0 1}\n",
                "line 6: expected no sparse row, since 'b' does not",
            ),
            ("arff", ARFF_HEAD + "{7 1}\n", "line 5: expected attribute and finite value, got '7 1'"),
            ("arff", ARFF_HEAD.replace("x", "'-C -1'") + "1,0\n1,2\n", "line 6: expected 0 or 1 for a label, got '2'"),
            ("arff", b"@relation \xff\n", r"line 1: expected UTF-8, got b'\xff' after 10 bytes"),
        ],
    )
    def test_names_the_line(self, tmp_path, name, text, message):
        path = write(tmp_path, text)
        for read in (read_examples, lambda *args: list(stream_examples(*args))):
            with pytest.raises(FormatError) as error:
                read(path, name)
            assert message in str(error.value)
            assert str(path) in str(error.value)

    def test_line_numbers_count_all_chunks(self, tmp_path, monkeypatch):
        monkeypatch.setattr(rows_module, "CHUNK", 64)
        path = write(tmp_path, "# c\n\n" * 100 + "1 1:1\n" * 100 + "1 oops\n" + "1 1:1\n" * 100)
        with pytest.raises(FormatError, match="line 301: expected feature:value, got 'oops'"):
            read_examples(path)

    @pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
    def test_truncated_and_damaged_compression(self, tmp_path, compress):
        write_examples(tmp_path / "a.xc", documents())
        packed = compress((tmp_path / "a.xc").read_bytes())
        with pytest.raises(FormatError, match="the compressed data end too early. The file is truncated"):
            read_examples(write(tmp_path, packed[: len(packed) // 2]), "xc")
        damaged = packed[:300] + bytes(200) + packed[500:]
        with pytest.raises(FormatError, match="the compressed data are damaged"):
            read_examples(write(tmp_path, damaged), "xc")

    def test_npz_folders(self, tmp_path):
        with pytest.raises(
            FormatError, match="expected a folder with X.npz, with images, with files that end in .txt, or with parts"
        ):
            read_examples(tmp_path)
        X = sp.csr_array(np.eye(3))
        sp.save_npz(tmp_path / "X_train.npz", X)
        with pytest.raises(FormatError, match="a training and a test part. Read it with labelsense.data.load_dataset"):
            read_examples(tmp_path)
        sp.save_npz(tmp_path / "X.npz", X)
        sp.save_npz(tmp_path / "Y.npz", 2 * X)
        with pytest.raises(FormatError, match="Y.npz: Y must be binary"):
            read_examples(tmp_path)
        sp.save_npz(tmp_path / "Y.npz", X[:2])
        with pytest.raises(FormatError, match="X.npz has 3 rows and Y.npz has 2"):
            read_examples(tmp_path)
        (tmp_path / "Y.npz").unlink()
        write(tmp_path, "a\nb\n", "features.txt")
        with pytest.raises(FormatError, match="features.txt has 2 names, and X.npz has 3 columns"):
            read_examples(tmp_path)
        write(tmp_path, b"\xff\n", "features.txt")
        with pytest.raises(FormatError, match="features.txt: expected UTF-8"):
            read_examples(tmp_path)
        (tmp_path / "features.txt").unlink()
        sp.save_npz(tmp_path / "X.npz", X * np.inf)
        with pytest.raises(FormatError, match="X.npz: expected finite values"):
            read_examples(tmp_path)
        bad = {"format": b"csr", "shape": (3, 3), "indptr": [0, 1, 2, 3], "indices": [0, 1, 7], "data": np.ones(3)}
        np.savez(tmp_path / "X.npz", **bad)
        with pytest.raises(FormatError, match="X.npz: expected a CSR matrix"):
            read_examples(tmp_path)
        np.savez(tmp_path / "X.npz", **(bad | {"data": np.array([1, 2, None])}))
        with pytest.raises(FormatError, match="X.npz: expected a matrix saved by scipy.sparse.save_npz"):
            read_examples(tmp_path)
        with pytest.raises(FormatError, match="expected a folder with X.npz and Y.npz, got a file"):
            read_examples(tmp_path / "X.npz", "npz")

    def test_arff_labels(self, tmp_path):
        path = write(tmp_path, ARFF_HEAD + "1,1\n", "a.arff")
        write(tmp_path, "<labels><label name='z'/></labels>", "a.xml")
        with pytest.raises(
            FormatError, match="a.xml: the label 'z' must be one attribute of .*a.arff; 0 have this name"
        ):
            read_examples(path)
        write(tmp_path, "<labels>", "a.xml")
        with pytest.raises(FormatError, match="a.xml: expected an XML file with the names of the labels"):
            read_examples(path)

    def test_unknown_formats(self, tmp_path):
        with pytest.raises(FormatError, match="data: the file is empty"):
            read_examples(write(tmp_path, ""))
        with pytest.raises(FormatError, match="the format is unknown. Pass format= one of parquet, arff"):
            detect_format(write(tmp_path, b"\x00\x01\x02"))
        with pytest.raises(ValueError, match="format must be one of 'parquet'.*Got 'xls'"):
            read_examples(write(tmp_path, "1"), "xls")
        with pytest.raises(ValueError, match="The name 'a.npz' does not tell the format. Pass format= one of"):
            write_examples(tmp_path / "a.npz", documents(3))
        with pytest.raises(FileNotFoundError):
            read_examples(tmp_path / "none")
        with pytest.raises(ValueError, match="rows must be at least 1. Got 0"):
            next(stream_examples(tmp_path / "data", rows=0))
        assert " ".join(FORMATS) == "parquet arff jsonl xc libsvm tsv csv npz images folder parts txt"


class TestWritingFails:
    @pytest.mark.parametrize("name", FEATURE_FORMATS)
    def test_nothing_is_left_behind(self, tmp_path, name):
        def broken():
            yield documents(10)
            raise RuntimeError("no more")

        with pytest.raises(RuntimeError, match="no more"):
            write_examples(tmp_path / "new", broken(), name)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("name", FEATURE_FORMATS)
    def test_what_was_there_stays(self, tmp_path, name):
        write_examples(tmp_path / "old", documents(10), name)
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        bad = sp.csr_array(np.array([[np.nan]], np.float32))
        with pytest.raises(ValueError, match="X contains NaN or infinity, which no format holds"):
            write_examples(tmp_path / "old", [documents(10), Examples(bad, None)], name)
        assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    @pytest.mark.parametrize("name", FEATURE_FORMATS)
    def test_refusals(self, tmp_path, name):
        X = sp.csr_array(np.eye(2, dtype=np.float32))
        with pytest.raises(ValueError, match=f"{name} holds features, and these examples are texts"):
            write_examples(tmp_path / "a", Examples(["a"], None), name)
        with pytest.raises(ValueError, match=f"{name} holds label numbers, and these examples have label names"):
            write_examples(tmp_path / "a", Examples(X, [["a"], []]), name)
        with pytest.raises(ValueError, match="Y must be binary"):
            write_examples(tmp_path / "a", Examples(X, 2 * X), name)
        with pytest.raises(ValueError, match="X and Y must have the same number of rows. Got 2 and 1"):
            write_examples(tmp_path / "a", Examples(X, X[:1]), name)
        with pytest.raises(ValueError, match="There is nothing to write: examples is empty"):
            write_examples(tmp_path / "a", [], name)

    def test_names_that_cannot_be_written(self, tmp_path):
        X = sp.csr_array(np.eye(2, dtype=np.float32))
        with pytest.raises(
            ValueError, match="names of features and labels in an ARFF file must differ. Got 'web' twice"
        ):
            write_examples(tmp_path / "a.arff", Examples(X, X, ["web", "b"], ["web", "c"]))
        with pytest.raises(ValueError, match="has a character that XML files cannot hold"):
            write_examples(tmp_path / "a.arff", Examples(X, X, None, ["\x01", "c"]))
        with pytest.raises(ValueError, match="All rows of an ARFF file have the same attributes"):
            write_examples(tmp_path / "a.arff", [Examples(X, X), Examples(X, X[:, :1])])
        with pytest.raises(ValueError, match="A name in a folder of npz files is one line"):
            write_examples(tmp_path / "a", Examples(X, X, ["a\nb", "c"]))
        with pytest.raises(ValueError, match="Y has labels for 2 of 4 rows"):
            write_examples(tmp_path / "a", [Examples(X, X), Examples(X, None)])
