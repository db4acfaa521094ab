"""Folders of documents: texts with their labels beside them, or images with their tags."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from labelsense._blocks import row_blocks
from labelsense.data.formats.base import Examples, Format
from labelsense.data.formats.fields import Row, in_batches
from labelsense.data.formats.source import LINE_BYTES, Source
from labelsense.data.image_folders import read_image_folder
from labelsense.errors import FormatError
from labelsense.features._pictures import require_extra

TAGS = "tags.tsv"


class TextFolder(Format):
    """A folder of texts in files that end in .txt, as Annif keeps full-text documents.

    The labels of ``a.txt`` are in ``a.tsv``, a URI, a tab and a name per line, of which the URI counts; or else in
    ``a.key``, a name per line. A text without such a file has no labels. The id of a document is the file's name
    without its end. The order is that of the names.
    """

    name = "folder"
    suffixes = ()

    def sniff(self, head: bytes) -> bool:
        return False  # a folder has no bytes

    def stream(self, source: Source, rows: int) -> Iterator[Examples]:
        if source.path is None or not source.is_folder:
            raise FormatError(f"{source.name}: expected a folder with files that end in .txt, got a file.")
        paths = sorted(source.path.glob("*.txt"))
        if not paths:
            raise FormatError(f"{source.name}: expected a folder with files that end in .txt, and there are none.")
        return in_batches((Row(_read(path), _labels(path), path.stem) for path in paths), rows)


def _labels(path: Path) -> list[str] | None:
    for suffix in (".tsv", ".key"):
        file = path.with_suffix(suffix)
        if file.is_file():
            lines = [line.strip() for line in _read(file).split("\n") if line.strip()]
            return lines if suffix == ".key" else [line.partition("\t")[0].strip("<> ") for line in lines]
    return None


def _read(path: Path) -> str:
    if path.stat().st_size > LINE_BYTES:
        raise FormatError(f"{path}: expected a text of at most {LINE_BYTES >> 20} MB, got a longer one.")
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: expected UTF-8 ({error}).") from None


class Images(Format):
    """A folder of images, whose tags are in its file tags.tsv, or one image; see ``read_image_folder``.

    A line of tags.tsv is a file name, a tab, and tags with tabs between them. Without it the images are all those of
    the folder, and have no tags. The id of an image is the file's name.
    """

    name = "images"
    suffixes = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp")

    def sniff(self, head: bytes) -> bool:
        return False  # pillow tells, by more than the head

    def stream(self, source: Source, rows: int) -> Iterator[Examples]:
        require_extra()
        if source.path is None:
            raise FormatError("standard input: expected a folder of images, or an image file.")
        if source.is_folder:
            tagged = (source.path / TAGS).is_file()
            paths, tags = read_image_folder(source.path, TAGS if tagged else None)
        else:
            paths, tags, tagged = [source.path], [[]], False
        for block in row_blocks(len(paths), rows):
            names = [str(path) for path in paths[block]]
            ids: list[str | None] = [path.name for path in paths[block]]
            yield Examples(names, tags[block] if tagged else None, ids=ids, images=True)
