"""Folders of tagged images are read as their layouts say, or refused by file and line."""

import numpy as np
import pytest
from PIL import Image

from labelsense.data import read_esp_folder, read_image_folder
from labelsense.features import SURFHistogramTransformer

PICTURE = Image.fromarray(np.random.default_rng(0).integers(256, size=(40, 30), dtype=np.uint8))


class TestImageFolder:
    @pytest.fixture
    def folder(self, tmp_path):
        for name in ("b.png", "a.jpg", "c.BMP"):
            PICTURE.save(tmp_path / name)
        (tmp_path / "tags.tsv").write_text("\ufeffb.png\tsea\tblue sky\tsea\n\na.jpg\tété\n", encoding="utf-8")
        return tmp_path

    def test_tags_file_gives_order_and_tags(self, folder):
        paths, labels = read_image_folder(folder)
        assert paths == [folder / "b.png", folder / "a.jpg"]
        assert labels == [["sea", "blue sky"], ["été"]]
        assert SURFHistogramTransformer(5, random_state=0).fit_transform(paths).shape == (2, 5)

    def test_without_tags_every_image_is_taken(self, folder):
        paths, labels = read_image_folder(str(folder), tags=None)
        assert [path.name for path in paths] == ["a.jpg", "b.png", "c.BMP"]
        assert labels == [[], [], []]

    @pytest.mark.parametrize(
        ("text", "error", "message"),
        [
            ("b.png sea\n", ValueError, "tags.tsv, line 1: no tags. Each line is a file name, a TAB.* Got 'b.png sea'"),
            ("b.png\tsea\n\tsky\n", ValueError, "tags.tsv, line 2: no file name"),
            ("b.png\tsea\nb.png\tsky\n", ValueError, "tags.tsv, line 2: b.png was listed before"),
            ("d.png\tsea\n", FileNotFoundError, "There is no image file .*d.png"),
            ("tags.tsv\tsea\n", ValueError, "tags.tsv is not an image that pillow can read"),
            ("\n", ValueError, "There are no images in .*tags.tsv"),
        ],
    )
    def test_refuses_a_bad_line(self, folder, text, error, message):
        (folder / "tags.tsv").write_text(text)
        with pytest.raises(error, match=message):
            read_image_folder(folder)

    def test_refuses_what_is_not_there(self, folder):
        with pytest.raises(FileNotFoundError, match="There is no file of tags .*words.tsv.* pass tags=None"):
            read_image_folder(folder, "words.tsv")
        with pytest.raises(NotADirectoryError, match="There is no folder .*elsewhere"):
            read_image_folder(folder / "elsewhere")
        (folder / "empty").mkdir()
        with pytest.raises(ValueError, match="There are no images in .*empty"):
            read_image_folder(folder / "empty", tags=None)


class TestESPFolder:
    def test_labels_are_the_lines_of_the_description(self, tmp_path):
        (tmp_path / "images").mkdir()
        (tmp_path / "LabelDesc").mkdir()
        for name in ("2.jpg", "1.jpg", "3.jpg"):
            PICTURE.save(tmp_path / "images" / name)
        (tmp_path / "LabelDesc" / "2.jpg.desc").write_text("tree\nblue sky\n\ntree\n")
        (tmp_path / "LabelDesc" / "1.jpg.desc").write_bytes(b"caf\xe9\r\n")
        paths, labels = read_esp_folder(tmp_path)
        assert [path.name for path in paths] == ["1.jpg", "2.jpg", "3.jpg"]
        assert labels == [["caf\ufffd"], ["tree", "blue sky"], []]

    def test_refuses_another_layout(self, tmp_path):
        (tmp_path / "images").mkdir()
        PICTURE.save(tmp_path / "images" / "1.jpg")
        with pytest.raises(ValueError, match="not laid out like the ESP game's data.* 1 images and 0 files of labels"):
            read_esp_folder(tmp_path)
