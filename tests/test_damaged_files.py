"""Damaged and hostile files: a FormatError, in bounded memory, and never anything else."""

import contextlib
import gzip
import io
import shutil
import zipfile
import zlib

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelsense.data import (
    Examples,
    FormatError,
    make_tagged_documents,
    read_examples,
    stream_examples,
    write_examples,
)
from labelsense.data.formats.source import LINE_BYTES

TEXTS = Examples(["a, b", "ü", "c"], [["x", "y"], [], ["z"]], ids=["1", "2", "3"])
FEATURES = Examples(*make_tagged_documents(8, 20, 6, random_state=0))
FILES = {
    "a.jsonl": TEXTS,
    "a.jsonl.gz": TEXTS,
    "a.tsv.xz": TEXTS,
    "a.csv.bz2": TEXTS,
    "a.parquet": TEXTS,
    "a.xc": FEATURES,
    "a.svm": FEATURES,
    "a.arff": FEATURES,
    "a": FEATURES,
}
BYTES = st.sampled_from([b"\0", b"\n", b'"', b"9" * 30, b"\xff" * 8, b"[", b"\t", b",", b"{"])


def refuse_or_read(path, format=None):
    """Read a file both ways; only a FormatError may come of it."""
    for read in (lambda: read_examples(path, format), lambda: list(stream_examples(path, format, rows=2))):
        with contextlib.suppress(FormatError):
            read()


@st.composite
def damages(draw):
    """Draw changes of some bytes: where, relative to the length, how many go, and what comes."""
    place = st.floats(0, 1, exclude_max=True)
    return draw(
        st.lists(st.tuples(place, st.sampled_from([0, 1, 3, 10**9]), st.one_of(st.just(b""), BYTES)), max_size=3)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for name, examples in FILES.items():
        write_examples(folder / name, examples)
    for kind in ("csc", "coo", "bsr", "dia", "csr"):
        (folder / kind).mkdir()
        sp.save_npz(folder / kind / "X.npz", sp.csr_matrix(FEATURES.X).asformat(kind), compressed=kind == "csr")
    return folder


class TestFuzz:
    @pytest.mark.parametrize(
        "name",
        [name for name in FILES if name != "a"]
        + ["a.xml", "a/X.npz", "a/Y.npz", "csc/X.npz", "coo/X.npz", "bsr/X.npz", "dia/X.npz", "csr/X.npz"],
    )
    @given(changes=damages())
    def test_any_damage_is_a_format_error_or_none(self, folder, name, changes):
        if name == "a.parquet":
            pytest.importorskip("pyarrow")
        path = folder / name
        whole = path.read_bytes()
        content = bytearray(whole)
        for place, gone, new in changes:
            at = int(place * len(content))
            content[at : at + gone] = new
        path.write_bytes(content)
        try:
            refuse_or_read(folder / "a.arff" if name == "a.xml" else path.parent if "/" in name else path)
        finally:
            path.write_bytes(whole)

    @given(st.binary(max_size=200))
    @settings(max_examples=100)
    def test_any_bytes(self, folder, content):
        (folder / "any").write_bytes(content)
        for format in (None, "xc", "libsvm", "arff", "jsonl", "tsv", "csv", "txt"):
            refuse_or_read(folder / "any", format)


class TestNumbersAndNesting:
    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("a.jsonl", '{"text": "a", "x": ' + "[" * 100_000 + "]" * 100_000 + "}\n"),
            ("a.jsonl", '{"text": "a", "id": ' + "9" * 5000 + "}\n"),
            ("a.xc", "1" * 5000 + " 3 4\n1 0:1\n"),
            ("a.arff", "@relation 'x -C " + "9" * 5000 + "'\n@attribute a numeric\n@data\n1\n"),
        ],
    )
    def test_are_refused(self, tmp_path, name, text):
        (tmp_path / name).write_text(text)
        with pytest.raises(FormatError, match=name):
            read_examples(tmp_path / name)


class TestNPZ:
    def rewrite(self, folder, matrix=None, compress=zipfile.ZIP_STORED, **members):
        buffer = io.BytesIO()
        sp.save_npz(buffer, sp.csr_array(np.eye(3, dtype=np.float32)) if matrix is None else matrix)
        with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(folder / "X.npz", "w", compress) as new:
            for name in old.namelist():
                content = old.read(name)
                new.writestr(name, members.get(name.removesuffix(".npy"), bytes)(content))

    @pytest.mark.parametrize(
        "members",
        [
            {"indices": lambda b: b.replace(b"}", b"(")},
            {"format": lambda b: b"x"},
            {"indptr": lambda b: b"x"},
            {"shape": lambda b: b * 1000},
            {"indptr": lambda b: b.replace(b"(4,)", b"(2,)")},
            {"data": lambda b: b.replace(b"<f4", b"<c8")},
            {"data": lambda b: b[:-4]},
            {"indices": lambda b: b[:-4] + b"\xff\xff\xff\x7f"},
        ],
    )
    def test_parts_that_do_not_fit(self, tmp_path, members):
        self.rewrite(tmp_path, **members)
        with pytest.raises(FormatError, match="X.npz: expected"):
            read_examples(tmp_path)

    def test_a_length_is_checked_before_anything_of_that_length_is_made(self, tmp_path):
        self.rewrite(tmp_path, indptr=lambda b: b.replace(b"(4,), }        ", b"(9999999999,), }"))
        with pytest.raises(FormatError, match="indptr does not have the length that it says"):
            read_examples(tmp_path)

    def test_columns_out_of_range_in_other_kinds_of_matrices(self, tmp_path):
        csc = sp.csc_matrix(np.eye(3, dtype=np.float32))
        self.rewrite(tmp_path, csc, indices=lambda b: b[:-4] + b"\xff\xff\xff\x7f")
        with pytest.raises(FormatError, match="X.npz: expected a matrix saved by scipy"):
            read_examples(tmp_path)

    @pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.bsr_array])
    def test_starts_that_fall_where_there_are_no_entries(self, tmp_path, kind):
        starts = np.array([0, 9, 16, 0], np.int32)  # scipy looks no further where the last one is 0
        self.rewrite(tmp_path, kind((3, 3)), indptr=lambda b: b[: -starts.nbytes] + starts.tobytes())
        with pytest.raises(FormatError, match="X.npz: expected a matrix saved by scipy"):
            read_examples(tmp_path)

    def test_rows_that_are_only_claimed_take_no_memory(self, tmp_path):
        sp.save_npz(tmp_path / "X.npz", sp.csc_array(([1.0], ([0], [0])), shape=(2**40, 3)))
        with pytest.raises(FormatError, match="1099511627776 rows and 1 numbers: save it as CSR"):
            read_examples(tmp_path)

    def test_starts_that_fall_around_the_largest_number(self, tmp_path):
        matrix = sp.csr_array((4, 3))
        matrix.indptr = np.array([0, 2**62, -(2**63), -(2**62), 0])  # each difference is 2^62, modulo 2^64
        sp.save_npz(tmp_path / "X.npz", matrix)
        with pytest.raises(FormatError, match="indptr does not fit"):
            read_examples(tmp_path)

    def test_values_that_overflow(self, tmp_path):
        for matrix in (sp.csr_array([[1e300]]), sp.csr_array(([3e38, 3e38], ([0, 0], [0, 0])), shape=(1, 1))):
            sp.save_npz(tmp_path / "X.npz", matrix)
            with pytest.raises(FormatError, match="expected finite values"):
                read_examples(tmp_path)

    def test_damaged_deflate(self, tmp_path):
        sp.save_npz(tmp_path / "X.npz", sp.random_array((50, 70), density=0.5, format="csr", random_state=0))
        raw = bytearray((tmp_path / "X.npz").read_bytes())
        at = raw.find(b"indptr.npy") + 60
        raw[at : at + 20] = b"\xff" * 20
        (tmp_path / "X.npz").write_bytes(raw)
        with pytest.raises(FormatError, match="X.npz: expected a matrix saved by scipy"):
            read_examples(tmp_path)


class TestEndlessLines:
    """A line of more than 64 MB is refused, before the rest of it is read. (Here 8 MB, which takes less time.)"""

    LIMIT = LINE_BYTES // 8

    @classmethod
    def bomb(cls, path, head, byte):
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        with path.open("wb") as file:
            file.write(packer.compress(head))
            for _ in range(cls.LIMIT // 2**20 + 20):
                file.write(packer.compress(byte * 2**20))
            file.write(packer.flush())

    @pytest.mark.parametrize(
        ("name", "head", "line"),
        [
            ("a.jsonl.gz", b'\n{"text": "', 2),
            ("a.csv.gz", b"text,labels\n", 2),
            ("a.txt.gz", b"a\nb\n", 3),
            ("a.svm.gz", b"1 1:0.", 1),
            ("a.xc.gz", b"2 3 4\n1 1:0.", 2),
            ("a.arff.gz", b"@relation x\n@attribute a numeric\n@data\n0.", 4),
        ],
    )
    def test_are_refused(self, tmp_path, monkeypatch, name, head, line):
        monkeypatch.setattr("labelsense.data.formats.source.LINE_BYTES", self.LIMIT)
        self.bomb(tmp_path / name, head, b"1")
        with pytest.raises(
            FormatError, match=f"{name}, line {line}: expected lines of at most 64 MB, got a longer one"
        ):
            list(stream_examples(tmp_path / name))

    def test_a_row_of_many_lines(self, tmp_path, monkeypatch):
        monkeypatch.setattr("labelsense.data.formats.tables.LINE_BYTES", 1000)
        path = tmp_path / "a.csv"
        path.write_text('text,labels\n"' + "\n" * 1100 + '",x\n')
        with pytest.raises(FormatError, match="line 1001: expected lines of at most 64 MB"):
            read_examples(path)

    def test_long_lines_below_the_limit_are_read(self, tmp_path):
        text = "a" * (LINE_BYTES // 8)
        with gzip.open(tmp_path / "a.txt.gz", "wt", compresslevel=1) as file:
            file.write(text + "\nb\n" + text)
        assert [text, "b", text] == read_examples(tmp_path / "a.txt.gz").X


class TestStaleXML:
    """An ARFF file without labels has no XML file that names some."""

    X = sp.csr_array(np.eye(3, dtype=np.float32))

    def test_of_the_file_that_was_there(self, tmp_path):
        write_examples(tmp_path / "a.arff", Examples(self.X, self.X))
        write_examples(tmp_path / "a.arff", Examples(self.X, None))
        assert [path.name for path in tmp_path.iterdir()] == ["a.arff"]
        assert read_examples(tmp_path / "a.arff").Y is None

    def test_shared_with_another_part(self, tmp_path):
        write_examples(tmp_path / "a.arff", Examples(self.X, self.X))
        shutil.move(tmp_path / "a.arff", tmp_path / "a-train.arff")
        write_examples(tmp_path / "a-test.arff", Examples(self.X, None))
        assert read_examples(tmp_path / "a-test.arff").Y is None
        assert read_examples(tmp_path / "a-train.arff").labels == ["label0", "label1", "label2"]
