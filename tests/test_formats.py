"""Feature files: what is written is read again, and others' tools agree."""

import bz2
import gzip
import io
import lzma
import sys

import numpy as np
import pytest
import scipy.io.arff
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.externals import _arff

from labelsense import _kernels
from labelsense.data import (
    Examples,
    detect_format,
    make_tagged_documents,
    read_examples,
    stream_examples,
    write_examples,
)
from labelsense.data.formats import rows as rows_module

FEATURE_FORMATS = ["xc", "libsvm", "arff", "npz"]
BIG = 2**31 - 10

floats = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1e-45, -1.1754944e-38, 3.4028235e38, 0.1, 16777216, 1e5, -7, 8.5899346e9]),
)


@st.composite
def matrices(draw, n, width, values):
    """Draw the rows of a sparse matrix: some are empty, columns may be far out."""
    columns = st.one_of(st.integers(0, min(width, 20) - 1), st.integers(0, width - 1))
    row = st.dictionaries(columns, values, max_size=6).map(lambda row: sorted(row.items()))
    rows = draw(st.lists(row, min_size=n, max_size=n))
    indptr = np.cumsum([0] + [len(row) for row in rows], dtype=np.int32)
    entries = [entry for row in rows for entry in row]
    data, indices = np.array([v for _, v in entries], np.float32), np.array([j for j, _ in entries], np.int32)
    return sp.csr_array((data, indices, indptr), shape=(n, width))


@st.composite
def feature_examples(draw, p=BIG, d=1_000_000, least=0):
    n = draw(st.integers(least, 8))
    X = draw(matrices(n, p, floats))
    return Examples(X, draw(st.one_of(st.none(), matrices(n, d, st.just(1.0)))))


def assert_same_bytes(A, B):
    assert A.shape == B.shape
    for name in ("data", "indices", "indptr"):
        a, b = getattr(A, name), getattr(B, name)
        assert a.dtype == b.dtype or A.nnz == 0  # scipy is not of one mind about the indices of nothing
        assert a.astype(b.dtype).tobytes() == b.tobytes()


def assert_same_numbers(A, B):
    """Compare matrices whose widths and stored zeros may differ."""
    entries = []
    for M in (A, B):
        M = sp.csr_array(M).tocoo()
        keep = M.data != 0
        entries.append(sorted(zip(M.row[keep].tolist(), M.col[keep].tolist(), M.data[keep].tolist(), strict=True)))
    assert A.shape[0] == B.shape[0]
    assert entries[0] == entries[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


def write(folder, text, name="data"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def documents(n=300):
    X, Y = make_tagged_documents(n, 500, 60, random_state=0)
    return Examples(X, Y)


class TestRoundTrip:
    @given(examples=feature_examples())
    def test_xc_keeps_every_byte(self, folder, examples):
        write_examples(folder / "a.xc", examples)
        got = read_examples(folder / "a.xc")
        assert_same_bytes(got.X, examples.X)
        assert (got.Y is None) == (examples.Y is None)
        if got.Y is not None:
            assert_same_bytes(got.Y, examples.Y)

    @pytest.mark.parametrize(("suffix", "unpack"), [(".gz", gzip.open), (".bz2", bz2.open), (".xz", lzma.open)])
    @pytest.mark.parametrize("name", ["a.xc", "a.xc.txt", "a.libsvm", "a.arff"])
    def test_compressed(self, tmp_path, name, suffix, unpack):
        for path in (tmp_path / name, tmp_path / (name + suffix)):
            write_examples(path, documents())
        with unpack(tmp_path / (name + suffix)) as file:
            assert file.read() == (tmp_path / name).read_bytes()
        assert detect_format(tmp_path / (name + suffix)) == detect_format(tmp_path / name)
        assert_same_bytes(read_examples(tmp_path / (name + suffix)).X, read_examples(tmp_path / name).X)

    @given(examples=feature_examples())
    def test_npz_keeps_every_byte_and_scipy_reads_it(self, folder, examples):
        write_examples(folder / "saved", examples)
        got = read_examples(folder / "saved")
        assert_same_bytes(got.X, examples.X)
        assert_same_bytes(sp.load_npz(folder / "saved" / "X.npz"), examples.X)
        assert (folder / "saved" / "Y.npz").exists() == (examples.Y is not None)
        if examples.Y is not None:
            assert_same_bytes(got.Y, examples.Y)

    @given(examples=feature_examples())
    def test_libsvm_keeps_every_number(self, folder, examples):
        write_examples(folder / "a.libsvm", examples)
        got = read_examples(folder / "a.libsvm", format="libsvm")
        assert_same_numbers(got.X, examples.X)
        if examples.Y is not None and examples.Y.nnz:
            assert_same_numbers(got.Y, examples.Y)
        else:
            assert got.Y is None

    names = st.lists(st.text(min_size=1, max_size=4), min_size=7, max_size=7, unique=True)
    printable = names.filter(lambda names: all(c >= " " and c not in "\ufffe\uffff" for n in names for c in n))

    @given(examples=feature_examples(p=4, d=3), names=printable)
    def test_arff_keeps_every_byte_and_any_name(self, folder, examples, names):
        labels = names[4:] if examples.Y is not None else None
        examples = Examples(examples.X, examples.Y, names[:4], labels)
        (folder / "a.xml").unlink(missing_ok=True)
        write_examples(folder / "a.arff", examples)
        got = read_examples(folder / "a.arff")
        assert (got.features, got.labels) == (names[:4], labels)
        assert_same_bytes(got.X, examples.X)
        if labels is not None:
            assert_same_bytes(got.Y, examples.Y)

    def test_npz_keeps_names(self, tmp_path):
        examples = Examples(sp.csr_array(np.eye(2, dtype=np.float32)), None, ["ü", "b c"])
        write_examples(tmp_path / "folder", examples)
        assert read_examples(tmp_path / "folder").features == ["ü", "b c"]
        write_examples(tmp_path / "folder", Examples(examples.X, examples.X))
        assert sorted(file.name for file in (tmp_path / "folder").iterdir()) == ["X.npz", "Y.npz"]

    @pytest.mark.parametrize("source", FEATURE_FORMATS)
    @pytest.mark.parametrize("target", FEATURE_FORMATS)
    def test_any_format_converts_to_any_other_in_batches(self, tmp_path, source, target):
        examples = documents()
        write_examples(tmp_path / "from", examples, source)
        batches = list(stream_examples(tmp_path / "from", source, rows=64))
        assert max(len(batch) for batch in batches) <= 64
        assert len({(batch.X.shape[1], batch.Y.shape[1]) for batch in batches}) == 1
        write_examples(tmp_path / "to", iter(batches), target)
        assert detect_format(tmp_path / "to") == target
        got = read_examples(tmp_path / "to")
        assert_same_numbers(got.X, examples.X)
        assert_same_numbers(got.Y, examples.Y)

    def test_the_same_examples_give_the_same_bytes(self, tmp_path):
        for name in ("a.xc.gz", "b.xc.gz", "a", "b"):
            write_examples(tmp_path / name, documents(20))
        assert (tmp_path / "a.xc.gz").read_bytes() == (tmp_path / "b.xc.gz").read_bytes()
        assert (tmp_path / "a" / "X.npz").read_bytes() == (tmp_path / "b" / "X.npz").read_bytes()


class TestStreaming:
    @pytest.mark.parametrize("name", ["xc", "libsvm"])
    @pytest.mark.parametrize("chunk", [1, 10, 1000])
    def test_chunks_of_any_size_give_the_same_rows(self, tmp_path, monkeypatch, name, chunk):
        write_examples(tmp_path / "data", documents(), name)
        whole = read_examples(tmp_path / "data")
        monkeypatch.setattr(rows_module, "CHUNK", chunk)
        monkeypatch.setattr("labelsense.data.formats.source.HEAD", 16)
        parts = list(stream_examples(tmp_path / "data", name))
        assert len(parts) > 1 or chunk == 1000
        assert_same_bytes(sp.vstack([part.X for part in parts], format="csr"), whole.X)
        assert_same_bytes(sp.vstack([part.Y for part in parts], format="csr"), whole.Y)

    def test_npz_batches_are_bounded_by_entries_too(self, tmp_path, monkeypatch):
        write_examples(tmp_path / "saved", documents())
        whole = read_examples(tmp_path / "saved")
        monkeypatch.setattr("labelsense.data.formats.npz.ENTRIES", 500)
        parts = list(stream_examples(tmp_path / "saved"))
        assert max(part.X.nnz for part in parts) <= 500
        assert_same_bytes(sp.vstack([part.X for part in parts], format="csr"), whole.X)

    @pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz"])
    @pytest.mark.parametrize("name", ["xc", "libsvm"])
    def test_standard_input(self, tmp_path, monkeypatch, name, suffix):
        class Pipe(io.BytesIO):
            def seekable(self):
                return False

            def seek(self, *_):
                raise OSError("a pipe")

        path = tmp_path / f"data.{name}{suffix}"
        write_examples(path, documents())
        for read in (read_examples, stream_examples):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Pipe(path.read_bytes()))))
            got = read("-")
            X = got.X if isinstance(got, Examples) else sp.vstack([batch.X for batch in got], format="csr")
            assert_same_bytes(X, read_examples(path).X)

    @pytest.mark.parametrize("name", FEATURE_FORMATS)
    def test_no_rows(self, tmp_path, name):
        nothing = Examples(sp.csr_array((0, 3), dtype=np.float32), sp.csr_array((0, 2), dtype=np.float32))
        write_examples(tmp_path / "none", nothing, name)
        (batch,) = stream_examples(tmp_path / "none", name)
        assert len(batch) == len(read_examples(tmp_path / "none", name)) == 0
        if name != "libsvm":
            assert (batch.X.shape, batch.Y.shape) == ((0, 3), (0, 2))


class TestLikeOthers:
    """scikit-learn and scipy read what is written here, and the other way round."""

    @pytest.mark.parametrize("zero_based", [True, False])
    @given(examples=feature_examples(p=30, d=10, least=1))
    def test_reads_what_scikit_learn_writes(self, folder, zero_based, examples):
        Y = sp.csr_matrix((len(examples), 10)) if examples.Y is None else sp.csr_matrix(examples.Y)
        path = str(folder / "theirs.svm")
        dump_svmlight_file(sp.csr_matrix(examples.X), Y, path, zero_based=zero_based, multilabel=True, comment="a: b")
        X, labels = load_svmlight_file(path, multilabel=True, dtype=np.float32)
        got = read_examples(path, format="libsvm")
        assert_same_numbers(got.X, X)
        ours = [()] * len(labels) if got.Y is None else [tuple(np.flatnonzero(y)) for y in got.Y.toarray()]
        assert ours == labels

    @given(examples=feature_examples(p=30, d=10))
    def test_scikit_learn_reads_what_is_written(self, folder, examples):
        write_examples(folder / "ours.svm", examples)
        X, labels = load_svmlight_file(str(folder / "ours.svm"), multilabel=True, dtype=np.float32)
        if len(examples):
            assert_same_numbers(X, examples.X)
        if examples.Y is not None:
            assert labels == [tuple(np.flatnonzero(y)) for y in examples.Y.toarray()]

    def test_dense_arff_as_scipy_reads_it(self, tmp_path):
        text = "@relation x\n@attribute a real\n@attribute b integer\n@attribute c {0,1}\n@data\n"
        text += "1.5,2,0\n-0.25,0,1\n1e-3,7,1\n"
        path = write(tmp_path, text)
        theirs, _ = scipy.io.arff.loadarff(path)
        expected = [[float(value) for value in row] for row in theirs]
        np.testing.assert_array_equal(read_examples(path).X.toarray(), np.array(expected, np.float32))

    def test_sparse_arff_as_liac_arff_reads_it(self, tmp_path):
        examples = documents(50)
        write_examples(tmp_path / "a.arff", Examples(examples.X, examples.Y, labels=[f"l{j}, ü" for j in range(60)]))
        theirs = _arff.loads((tmp_path / "a.arff").read_text(), return_type=_arff.COO, encode_nominal=True)
        values, row, column = theirs["data"]
        expected = sp.csr_array((np.array(values, np.float32), (row, column)), shape=(50, 560))
        assert_same_numbers(sp.hstack([examples.X, examples.Y], format="csr"), expected)
        assert [name for name, _ in theirs["attributes"]][500:] == [f"l{j}, ü" for j in range(60)]

    @given(value=floats, digits=st.integers(1, 30), exponent=st.integers(-60, 60))
    def test_decimals_become_the_nearest_float(self, value, digits, exponent):
        from fractions import Fraction

        for word in (f"{value:.{digits}g}", f"{value:.{digits}f}", f"{value!r}e{exponent}".replace("e+", "e")):
            if word.count("e") > 1:
                continue
            parsed = _kernels.parse_rows(f" 0:{word}\n".encode(), 1, 1, True)
            exact = Fraction(word)
            if parsed.problem:
                assert abs(exact) > np.finfo(np.float32).max
                continue
            got = parsed.take_features()[0][0]
            with np.errstate(over="ignore"):
                neighbours = [np.nextafter(got, np.float32(side)) for side in (-np.inf, np.inf)]
            for other in (x for x in neighbours if np.isfinite(x)):
                assert abs(Fraction(float(got)) - exact) <= abs(Fraction(float(other)) - exact)

    def test_a_decimal_next_to_half_way_is_rounded_once(self):
        # Half way between 1 and the next float, and a little more than a double can tell: rounding twice gives 1.
        word = "1.00000005960464477539062500000000001"
        got = _kernels.parse_rows(f" 0:{word}\n".encode(), 1, 1, True).take_features()[0][0]
        assert got == np.nextafter(np.float32(1), np.float32(2))
        assert np.float32(float(word)) == 1


class TestInTheWild:
    def test_xc_with_odd_blanks(self, tmp_path):
        path = write(tmp_path, b"\xef\xbb\xbf4 6 20 \r\n17,3 5:1\t2:0.5 \r\n 0:+1e0\r\n\r\n4\r\n\r\n\r\n")
        examples = read_examples(path)
        np.testing.assert_array_equal(
            examples.X.toarray(), [[0, 0, 0.5, 0, 0, 1], [1, 0, 0, 0, 0, 0], [0] * 6, [0] * 6]
        )
        assert [np.flatnonzero(y).tolist() for y in examples.Y.toarray()] == [[3, 17], [], [], [4]]

    def test_libsvm_with_comments_and_queries(self, tmp_path):
        path = write(tmp_path, "# made by hand\n\n3,1 qid:4 1:2 # note: one\n2:3#two\nqid:9 3:1\n7\n")
        examples = read_examples(path)
        np.testing.assert_array_equal(examples.X.toarray(), [[2, 0, 0], [0, 3, 0], [0, 0, 1], [0, 0, 0]])
        assert [np.flatnonzero(y).tolist() for y in examples.Y.toarray()] == [[1, 3], [], [], [7]]

    @pytest.mark.parametrize(
        ("name", "content"), [("a.svm", "# nothing\n"), ("a.xc", "0 3 2\n"), ("a.csv", "text,labels\n")]
    )
    def test_parts_without_rows(self, tmp_path, name, content):
        write(tmp_path, content, name)
        write(tmp_path, content, f"b.{name.partition('.')[2]}")
        assert len(read_examples(tmp_path)) == sum(map(len, stream_examples(tmp_path))) == 0

    mulan = (
        "\ufeff%  a comment\r\n@RELATION  'scenes: x'\r\n\r\n@ATTRIBUTE\tcolour\tNUMERIC\r\n"
        "@attribute 'it''s'  real\r\n".replace("''", "\\'")
        + "@Attribute \"two words\"{0, 1}\r\n@attribute beach { 0,1 }\r\n@attribute 'Sea, \\'n sun' {0,1}\r\n"
        "@DATA\r\n"
    )
    xml = '<?xml version="1.0"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">\n<label name="beach">'
    xml += '<label name="Sea, \'n sun"></label></label>\n</labels>\n'

    @pytest.mark.parametrize(
        "data",
        [
            "{0 0.5, 2 1 ,3 '1'}\r\n% note\r\n{ }\r\n\r\n{1\t-2,4\t1}\r\n\r\n\r\n",
            '0.5, 0, 1,1 ,0\r\n% note\r\n0,0,0,0,0\r\n\r\n0,-2,0,0,"1"\r\n\r\n',
        ],
        ids=["sparse", "dense"],
    )
    @pytest.mark.parametrize("name", ["scene.arff", "scene-train.arff"])
    def test_mulan(self, tmp_path, data, name):
        write(tmp_path, self.xml, "scene.xml")
        examples = read_examples(write(tmp_path, self.mulan + data, name))
        assert examples.features == ["colour", "it's", "two words"]
        assert examples.labels == ["beach", "Sea, 'n sun"]
        np.testing.assert_array_equal(examples.X.toarray(), np.array([[0.5, 0, 1], [0, 0, 0], [0, -2, 0]], np.float32))
        np.testing.assert_array_equal(examples.Y.toarray(), [[1, 0], [0, 0], [0, 1]])

    @pytest.mark.parametrize(("option", "labels"), [("-C 2", ["a", "b"]), ("-C -1", ["c"]), ("", None)])
    def test_meka(self, tmp_path, option, labels):
        attributes = "".join(f"@attribute {name} {{0,1}}\n" for name in "abc")
        examples = read_examples(write(tmp_path, f"@relation 'x: {option}'\n{attributes}@data\n0,1,1\n"))
        assert examples.labels == labels

    def test_npz_of_other_kinds(self, tmp_path):
        dense = np.array([[0, 2.5], [1, 0], [0, 0]])
        sp.save_npz(tmp_path / "X.npz", sp.csc_matrix(dense))
        sp.save_npz(tmp_path / "Y.npz", sp.csr_matrix(dense > 0))
        examples = read_examples(tmp_path)
        assert examples.X.dtype == examples.Y.dtype == np.float32
        np.testing.assert_array_equal(examples.X.toarray(), dense)
        np.testing.assert_array_equal(examples.Y.toarray(), dense > 0)
