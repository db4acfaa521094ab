"""Data files in pieces: each row is in one of them, and what cannot be cut is refused."""

import pytest
import scipy.sparse as sp

from labelsense.data import Examples, read_examples, write_examples
from labelsense.data.splits import split_files

TEXTS = [f"text number {number}" for number in range(50)]
LISTS = [[f"label {number % 3}"] for number in range(50)]
X, Y = sp.eye_array(50, 9, format="csr"), sp.eye_array(50, 4, format="csr")


def test_lines_are_each_in_one_piece(tmp_path):
    texts = [*TEXTS, "é" * 300]
    write_examples(tmp_path / "d.jsonl", Examples(texts, [["a"]] * len(texts)))
    size = (tmp_path / "d.jsonl").stat().st_size
    for piece in (size // 2, 100, 37):
        splits = split_files(tmp_path / "d.jsonl", size=piece)
        assert len(splits) == -(-size // piece)
        assert [text for split in splits for text in split.read().X] == texts


def test_refusals(tmp_path):
    with pytest.raises(ValueError, match="there are no such files"):
        split_files(tmp_path / "*.jsonl")
    for name in ("a.jsonl", "b.tsv"):
        write_examples(tmp_path / name, Examples(TEXTS, LISTS))
    with pytest.raises(ValueError, match="must be of one format. Got jsonl, tsv"):
        split_files(tmp_path)
    for name in ("a.svm", "b.svm"):
        write_examples(tmp_path / name, Examples(X, Y))
    with pytest.raises(ValueError, match="Convert them to xc first"):
        split_files(tmp_path / "*.svm")


def test_files_that_are_not_cut(tmp_path):
    for name in ("a.jsonl.gz", "b.jsonl.gz", "_hidden.jsonl.gz"):
        write_examples(tmp_path / name, Examples(TEXTS, LISTS))
    splits = split_files(tmp_path, size=10)
    assert [split.path[-10:] for split in splits] == ["a.jsonl.gz", "b.jsonl.gz"]
    assert [len(split.read()) for split in splits] == [50, 50]


def test_fields_of_lines(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"title": "a fox", "labels": ["x"]}\n' * 30)
    splits = split_files(tmp_path / "a.jsonl", text_fields=["title"], size=200)
    assert len(splits) > 1
    rows = [text for split in splits for text in split.read().X]
    assert rows == read_examples(tmp_path / "a.jsonl", text_fields=["title"]).X == ["a fox"] * 30
