"""Histograms of patches count what they say, whatever the form of the images."""

import sys

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image, ImageDraw
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import (
    check_estimator_cloneable,
    check_estimator_repr,
    check_get_params_invariance,
    check_no_attributes_set_in_init,
    check_parameters_default_constructible,
    check_set_params,
)

from labelsense import HadamardCompressor
from labelsense.features import SURFHistogramTransformer
from labelsense.features._pictures import STEPS, describe, read_grey
from labelsense.features.images import nearest
from labelsense.metrics import precision_at_k

SHAPES = ("circle", "square", "cross", "stripes")


def noise(n=6, h=40, w=30, seed=0):
    """Return images without any flat patch."""
    return np.random.default_rng(seed).integers(20, 200, size=(n, h, w), dtype=np.uint8)


def smooth(h=20, w=20, seed=0):
    """Return a grey image with soft shapes, as floats from 0 to 255."""
    coarse = Image.fromarray(np.random.default_rng(seed).uniform(50, 200, size=(5, 5)).astype(np.float32))
    return np.asarray(coarse.resize((w, h), Image.Resampling.BICUBIC))


def drawings(n, seed):
    """Return drawings of two kinds of shapes at random places, and which kinds."""
    rng = np.random.default_rng(seed)
    images, Y = np.empty((n, 64, 64), np.uint8), np.zeros((n, len(SHAPES)))
    for i in range(n):
        picture = Image.new("L", (64, 64), "white")
        pen = ImageDraw.Draw(picture)
        kinds = rng.choice(len(SHAPES), 2, replace=False)
        Y[i, kinds] = 1
        for kind, corner in zip(kinds, rng.permutation(4), strict=False):
            x, y = np.array(divmod(corner, 2)) * 30 + rng.integers(2, 8, 2)
            draw_shape(pen, SHAPES[kind], x, y)
        images[i] = np.asarray(picture)
    return images, Y


def draw_shape(pen, shape, x, y, size=24):
    if shape == "circle":
        pen.ellipse([x, y, x + size, y + size], outline=0, width=3)
    elif shape == "square":
        pen.rectangle([x, y, x + size, y + size], outline=0, width=3)
    elif shape == "cross":
        pen.line([x, y, x + size, y + size], fill=0, width=3)
        pen.line([x + size, y, x, y + size], fill=0, width=3)
    else:
        for step in range(0, size, 5):
            pen.line([x, y + step, x + size, y + step], fill=0, width=2)


class TestHistograms:
    def test_every_patch_is_counted_once(self):
        X = SURFHistogramTransformer(20, random_state=0).fit_transform(noise(h=40, w=30))
        assert X.shape == (6, 20)
        assert X.dtype == np.float32
        assert X.indices.dtype == np.int32  # many estimators take no other
        assert X.has_canonical_format
        np.testing.assert_array_equal(X.sum(axis=1), 7 * 5)

    @pytest.mark.parametrize(
        ("parameters", "patches"),
        [
            ({"spacing": 10}, 4 * 3),
            ({"spacing": 1}, 31 * 21),
            ({"patch_size": 7, "spacing": 3}, 12 * 8),
            ({"patch_size": 20}, 5 * 3),
            ({"patch_size": 33, "spacing": 1}, 0),
            ({"image_size": 60}, 15 * 11),
            ({"image_size": 15}, 3 * 2),
        ],
    )
    def test_patches_are_those_of_the_grid(self, parameters, patches):
        transformer = SURFHistogramTransformer(8, random_state=0).fit(noise()).set_params(**parameters)
        np.testing.assert_array_equal(transformer.transform(noise()).sum(axis=1), patches)

    def test_counts_the_nearest_representatives(self):
        images = noise()
        transformer = SURFHistogramTransformer(20, random_state=0).fit(images)
        for image, row in zip(images, transformer.transform(images).toarray(), strict=True):
            patches = describe(read_grey(image, "image"), 10, 5, None)
            distances = np.linalg.norm(patches[:, None] - transformer.representatives_, axis=2)
            np.testing.assert_array_equal(row, np.bincount(distances.argmin(axis=1), minlength=20))

    def test_blank_and_tiny_images_have_empty_rows(self):
        blank, tiny = np.full((40, 30), 255, np.uint8), noise(1, 9, 50)[0]
        transformer = SURFHistogramTransformer(20, random_state=0).fit(noise())
        X = transformer.transform([blank, noise()[0], tiny])
        np.testing.assert_array_equal(np.diff(X.indptr) > 0, [False, True, False])
        assert transformer.transform([blank]).shape == (1, 20)

    def test_flat_patches_are_not_counted(self):
        image = np.full((40, 40), 200, np.uint8)
        image[:, :10] = noise(1, 40, 10)[0]
        half = SURFHistogramTransformer(20, random_state=0).fit(noise()).transform([image]).sum()
        assert 14 <= half < 49

    def test_representatives_are_different_patches_of_the_images(self):
        images = noise()
        representatives = SURFHistogramTransformer(50, random_state=0).fit(images).representatives_
        patches = np.concatenate([describe(read_grey(image, "image"), 10, 5, None) for image in images])
        assert representatives.shape == (50, 64)
        assert len(np.unique(representatives, axis=0)) == 50
        assert {row.tobytes() for row in representatives} <= {row.tobytes() for row in patches}

    def test_representatives_are_found_where_most_images_are_blank(self):
        images = np.concatenate([np.zeros((30, 40, 30), np.uint8), noise(1)])
        assert SURFHistogramTransformer(35, random_state=0).fit(images).representatives_.shape == (35, 64)

    def test_does_not_depend_on_threads(self):
        images = noise(70)
        one, two, other = (
            SURFHistogramTransformer(30, random_state=seed, n_jobs=n_jobs).fit(images)
            for seed, n_jobs in ((0, None), (0, 3), (1, None))
        )
        np.testing.assert_array_equal(one.representatives_, two.representatives_)
        assert (one.transform(images) != two.transform(images)).nnz == 0
        assert (one.representatives_ != other.representatives_).any()

    def test_says_what_it_does(self, caplog):
        caplog.set_level("INFO", logger="labelsense")
        SURFHistogramTransformer(5, random_state=0, verbose=1).fit_transform(noise())
        assert "chose 5 representative patches" in caplog.text

    def test_a_pipeline_learns_shapes_from_drawings(self):
        images, Y = drawings(300, seed=0)
        model = make_pipeline(
            SURFHistogramTransformer(100, random_state=0),
            FunctionTransformer(sp.csr_array.sqrt),
            reference.paper(HadamardCompressor(4), random_state=0),
        ).fit(images[:200], Y[:200])
        top = model[-1].predict_topk(model[:-1].transform(images[200:]), 2)
        assert precision_at_k(Y[200:], top, 2) > 0.9  # by chance one half


class TestDescriptors:
    @given(st.integers(0, 1000), st.integers(-50, 50), st.sampled_from([0.25, 1, 1.2]))
    def test_brightness_and_contrast_change_nothing(self, seed, offset, contrast):
        image = smooth(seed=seed)
        found = describe(image, 10, 10, None)
        np.testing.assert_allclose(describe(contrast * image + offset, 10, 10, None), found, atol=1 / STEPS)

    def test_have_unit_length(self):
        np.testing.assert_allclose(np.linalg.norm(describe(smooth(), 10, 2, None), axis=1), 1, atol=4 / STEPS)

    def test_their_products_are_exact_in_float32(self):
        found = describe(smooth(60, 60), 10, 1, None)
        np.testing.assert_array_equal(found @ found.T, found.astype(float) @ found.T.astype(float))

    def test_equal_patches_have_equal_descriptors(self):
        image = np.tile(smooth(10, 10), (8, 8))
        inner = describe(image, 10, 10, None).reshape(8, 8, 64)[1:-1, 1:-1].reshape(-1, 64)
        assert len(np.unique(inner, axis=0)) == 1

    def test_a_quarter_turn_changes_little(self):
        likeness = np.array([self.turned_and_mirrored(smooth(seed=seed)) for seed in range(20)])
        assert np.median(likeness[:, 0]) > 0.9
        assert np.median(likeness[:, 0]) > np.median(likeness[:, 1])

    @staticmethod
    def turned_and_mirrored(image):
        own, *others = (describe(np.ascontiguousarray(i), 20, 20, None)[0] for i in (image, image.T[::-1], image.T))
        return [own @ other for other in others]

    def test_a_patch_is_described_by_its_own_pixels(self):
        image = smooth(60, 60)
        other = image.copy()
        other[:, 30:] = smooth(60, 30, seed=1)
        before, after = (describe(i, 10, 10, None).reshape(6, 6, 64) for i in (image, other))
        np.testing.assert_allclose(after[:, :2], before[:, :2], atol=1 / STEPS)
        assert np.abs(after[:, 3:] - before[:, 3:]).max(axis=2).min() > 0.01


class TestNearest:
    @given(
        hnp.arrays(np.float32, st.tuples(st.integers(0, 30), st.just(3)), elements=st.integers(-3, 3)),
        hnp.arrays(np.float32, st.tuples(st.integers(1, 9), st.just(3)), elements=st.integers(-3, 3)),
    )
    def test_equals_brute_force_with_ties_to_the_lowest(self, points, representatives):
        distances = ((points[:, None] - representatives) ** 2).sum(axis=2)
        np.testing.assert_array_equal(nearest(points, representatives), distances.argmin(axis=1))

    def test_many_points(self):
        rng = np.random.default_rng(0)
        points, representatives = (rng.normal(size=(n, 64)).astype(np.float32) for n in (2500, 40))
        distances = np.linalg.norm(points[:, None].astype(float) - representatives, axis=2)
        np.testing.assert_array_equal(nearest(points, representatives), distances.argmin(axis=1))


class TestForms:
    def test_arrays_lists_floats_and_files_are_the_same_images(self, tmp_path):
        images = noise(4)
        paths = [tmp_path / f"{i}.png" for i in range(4)]
        for path, image in zip(paths, images, strict=True):
            Image.fromarray(image).save(path)
        transformer = SURFHistogramTransformer(20, random_state=0).fit(images)
        expected = transformer.transform(images).toarray()
        colour = [np.repeat(image[:, :, None], 3, axis=2) for image in images]
        for form in (list(images), paths, [str(path) for path in paths], colour, np.array(colour)):
            np.testing.assert_array_equal(transformer.transform(form).toarray(), expected)
        np.testing.assert_allclose(read_grey(images[0] / 255, "image"), images[0], atol=1e-4)

    def test_colours_are_weighed_as_the_eye_does(self):
        rgb = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255]]], np.uint8)
        np.testing.assert_allclose(read_grey(rgb, "image")[0], [76, 150, 29], atol=1)

    def test_what_is_transparent_is_white(self, tmp_path):
        icon = np.zeros((8, 8, 4), np.uint8)
        icon[2:4, :, 3] = 255
        Image.fromarray(icon).save(tmp_path / "icon.png")
        for form in (icon, tmp_path / "icon.png"):
            grey = read_grey(form, "image")
            assert set(grey[2:4].ravel()) == {0}
            assert set(grey[4:].ravel()) == {255}

    def test_sixteen_bits_and_palettes(self, tmp_path):
        deep = np.linspace(0, 65535, 64).reshape(8, 8).astype(np.uint16)
        Image.fromarray(deep).save(tmp_path / "deep.png")
        np.testing.assert_allclose(read_grey(tmp_path / "deep.png", "image"), deep / 257, atol=0.01)
        Image.fromarray((deep // 257).astype(np.uint8)).save(tmp_path / "palette.gif")
        np.testing.assert_allclose(read_grey(tmp_path / "palette.gif", "image"), deep // 257, atol=1)

    def test_photographs_stand_upright(self, tmp_path):
        picture = Image.fromarray(noise(1, 8, 16)[0])
        exif = picture.getexif()
        exif[0x0112] = 6  # the camera was turned
        picture.save(tmp_path / "turned.png", exif=exif)
        assert read_grey(tmp_path / "turned.png", "image").shape == (16, 8)


class TestRefusals:
    @pytest.mark.parametrize(
        ("image", "message"),
        [
            (np.zeros(5), r"images\[1\] must be a path, a grey array .* Got shape \(5,\) of float64"),
            (np.zeros((9, 9), np.int64), r"Got shape \(9, 9\) of int64"),
            (np.zeros((9, 9, 2), np.uint8), r"Got shape \(9, 9, 2\) of uint8"),
            (
                np.full((9, 9), 1.5),
                r"images\[1\] holds floats, which must be from 0, black, to 1, white. Got 1.5 to 1.5",
            ),
            (np.full((9, 9), np.nan), "Got nan to nan. Scale them"),
            (np.zeros((0, 9), np.uint8), r"images\[1\] has no pixels: its shape is \(0, 9\)"),
        ],
    )
    def test_arrays_that_are_not_images(self, image, message):
        transformer = SURFHistogramTransformer(5, random_state=0).fit(noise())
        with pytest.raises(ValueError, match=message):
            transformer.transform([noise()[0], image])

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"n_words": 0}, "n_words must be at least 1. Got 0"),
            ({"patch_size": 1}, "patch_size must be at least 2. Got 1"),
            ({"spacing": 0}, "spacing must be at least 1. Got 0"),
            ({"image_size": 9}, "image_size must be at least 10. Got 9. An image has to hold a patch"),
            ({"n_words": 211}, "n_words=211 is more than the 210 different patches .* Lower n_words or spacing"),
        ],
    )
    def test_parameters(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            SURFHistogramTransformer(**parameters).fit(noise())

    def test_no_list_of_images(self):
        with pytest.raises(TypeError, match=r"list of paths or of arrays. Got one path, cat.png. Pass \[path\]"):
            SURFHistogramTransformer().fit("cat.png")
        with pytest.raises(ValueError, match="images is empty. Pass at least one"):
            SURFHistogramTransformer().fit([])
        with pytest.raises(NotFittedError):
            SURFHistogramTransformer().transform(noise())

    def test_files(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="There is no image file .*cat.png"):
            SURFHistogramTransformer().fit([tmp_path / "cat.png"])
        Image.fromarray(noise(1)[0]).save(tmp_path / "cat.png")
        whole = (tmp_path / "cat.png").read_bytes()
        (tmp_path / "cat.png").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ValueError, match="cat.png is damaged: .* Save it again, or leave it out"):
            SURFHistogramTransformer().fit([tmp_path / "cat.png"])

    @pytest.mark.parametrize("module", ["PIL.Image", "mahotas.features.surf"])
    def test_a_missing_extra_is_named(self, monkeypatch, module):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=r'needs the extra: pip install "labelsense\[images\]"'):
            SURFHistogramTransformer(5).fit(noise())


@pytest.mark.parametrize(
    "check",
    [
        check_estimator_cloneable,
        check_estimator_repr,
        check_get_params_invariance,
        check_no_attributes_set_in_init,
        check_parameters_default_constructible,
        check_set_params,
    ],
)
def test_parameters_are_as_scikit_learn_wants(check):
    # It takes images, not a matrix: only the checks of parameters apply.
    check("SURFHistogramTransformer", SURFHistogramTransformer())
