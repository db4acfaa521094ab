"""Folders of tagged images."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from labelsense.errors import FormatError
from labelsense.features._pictures import check_picture, import_extra

LAYOUT = "Each line is a file name, a TAB, and tags with TABs between them."


def read_image_folder(
    folder: str | os.PathLike[str], tags: str | None = "tags.tsv"
) -> tuple[list[Path], list[list[str]]]:
    r"""Return the paths of the images of a folder and the tags of each.

    The file ``tags`` in the folder says which images there are, in the order of the result. Each of its lines is a file
    name, a TAB, and tags with TABs between them; the encoding is UTF-8 and empty lines are skipped::

        cat.png     animal  pet
        boat.jpg    sea

    With ``tags=None`` the images are all those of the folder, by name, and have no tags: what a fitted model tags.
    Every file is checked to be an image that pillow knows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from labelsense.data import read_image_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("L", (8, 8)).save(Path(folder, "night.png"))
    ...     _ = Path(folder, "tags.tsv").write_text("night.png\tdark\tsky\n")
    ...     paths, labels = read_image_folder(folder)
    >>> paths[0].name, labels
    ('night.png', [['dark', 'sky']])
    """
    folder = _check_folder(folder)
    if tags is None:
        known = import_extra("PIL.Image").registered_extensions()
        listed: dict[str, list[str]] = {p.name: [] for p in sorted(folder.iterdir()) if p.suffix.lower() in known}
    else:
        listed = _read_tags(folder / tags)
    if not listed:
        raise FormatError(f"There are no images in {folder if tags is None else folder / tags}.")
    paths = [folder / name for name in listed]
    for path in paths:
        check_picture(path)
    return paths, list(listed.values())


def read_esp_folder(folder: str | os.PathLike[str]) -> tuple[list[Path], list[list[str]]]:
    r"""Return the paths and the labels of the images of the ESP game, the paper's image data.

    ``folder`` is the one that the archive unpacks to, ``ESP-ImageSet``: the images are ``images/*.jpg`` and the labels
    of ``images/a.jpg`` are the lines of ``LabelDesc/a.jpg.desc``. Images are sorted by name. One without a file of
    labels has none. The images are not opened here.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from labelsense.data import read_esp_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, text in (("images/a.jpg", ""), ("LabelDesc/a.jpg.desc", "tree\nblue sky\n")):
    ...         Path(folder, name).parent.mkdir()
    ...         _ = Path(folder, name).write_text(text)
    ...     read_esp_folder(folder)[1]
    [['tree', 'blue sky']]
    """
    folder = _check_folder(folder)
    paths = sorted((folder / "images").glob("*.jpg"))
    described = {path.name.removesuffix(".desc") for path in (folder / "LabelDesc").glob("*.desc")}
    if not paths or described.isdisjoint(path.name for path in paths):
        raise FormatError(
            f"{folder} is not laid out like the ESP game's data: images/*.jpg and LabelDesc/*.jpg.desc. Found "
            f"{len(paths)} images and {len(described)} files of labels. Name the folder ESP-ImageSet of the archive."
        )
    return paths, [_read_labels(folder, path.name) if path.name in described else [] for path in paths]


def _read_labels(folder: Path, name: str) -> list[str]:
    text = (folder / "LabelDesc" / f"{name}.desc").read_text(encoding="utf-8", errors="replace")
    return _distinct(text.splitlines())


def _read_tags(path: Path) -> dict[str, list[str]]:
    """Return the tags of each file name."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no file of tags {path}. {LAYOUT} For images without tags pass tags=None.")
    listed: dict[str, list[str]] = {}
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: expected UTF-8 ({error}).") from None
    for number, line in enumerate(lines, start=1):
        name, *words = (word.strip() for word in line.split("\t"))
        tags = _distinct(words)
        if not name and not tags:
            continue
        if not name or not tags:
            raise FormatError(f"{path}, line {number}: no {'tags' if name else 'file name'}. {LAYOUT} Got {line!r}.")
        if name in listed:
            raise FormatError(f"{path}, line {number}: {name} was listed before. Write all its tags in one line.")
        listed[name] = tags
    return listed


def _distinct(words: Any) -> list[str]:
    """Return the words that are not empty, once each, in order."""
    return list(dict.fromkeys(word.strip() for word in words if word.strip()))


def _check_folder(folder: str | os.PathLike[str]) -> Path:
    path = Path(folder)
    if not path.is_dir():
        raise NotADirectoryError(f"There is no folder {path}.")
    return path
