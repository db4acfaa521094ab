"""Pictures to grey pixels, grey pixels to SURF descriptors. The only file that imports pillow and mahotas."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from labelsense._typing import FloatArray
from labelsense.errors import FormatError

WINDOW = 20  # pixels across the square that a SURF descriptor of scale 1 describes
MARGIN = 7  # pixels that SURF reads around that square, because it turns it, and one
N_NUMBERS = 64  # of a descriptor
STEPS = 1024  # a descriptor's numbers are multiples of 1 / STEPS


def import_extra(name: str) -> Any:
    """Return a module of the extra ``images``."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f'Reading images needs the extra: pip install "labelsense[images]". ({error})') from error


def require_extra() -> None:
    """Fail now, and not after the first images, if the extra is not there."""
    for name in ("PIL.Image", "mahotas.features.surf"):
        import_extra(name)


def read_grey(image: Any, name: str) -> FloatArray:
    """Return a picture file or an array as grey pixels (h, w), 0 black to 255 white. ``name`` is for messages."""
    if isinstance(image, (str, os.PathLike)):
        return _file_to_grey(image)
    pixels = np.asarray(image)
    if pixels.ndim == 2 and np.issubdtype(pixels.dtype, np.floating) and pixels.size:
        if not (pixels.min() >= 0 and pixels.max() <= 1):  # so written, NaN is refused too
            raise ValueError(
                f"{name} holds floats, which must be from 0, black, to 1, white. Got {pixels.min():g} to "
                f"{pixels.max():g}. Scale them, or pass uint8."
            )
        return np.asarray(255 * pixels, dtype=np.float32)
    if pixels.dtype != np.uint8 or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4))):
        raise ValueError(
            f"{name} must be a path, a grey array (h, w) of uint8 or of floats from 0 to 1, or a colour array "
            f"(h, w, 3) of uint8. Got shape {pixels.shape} of {pixels.dtype}."
        )
    if pixels.size == 0:
        raise ValueError(f"{name} has no pixels: its shape is {pixels.shape}.")
    return _to_grey(import_extra("PIL.Image").fromarray(pixels))


def check_picture(path: Any) -> None:
    """Refuse a file that is missing or is not a picture. Only its head is read."""
    with _open(path):
        pass


def _open(path: Any) -> Any:
    with _reading(path):
        return import_extra("PIL.Image").open(path)


def _file_to_grey(path: Any) -> FloatArray:
    with _open(path) as picture, _reading(path):
        return _to_grey(import_extra("PIL.ImageOps").exif_transpose(picture))


@contextmanager
def _reading(path: Any) -> Iterator[None]:
    """Turn what pillow makes of a damaged file into a FormatError; what the system says of the disk stays."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no image file {os.fspath(path)}.") from None
    except ImportError:
        raise
    except import_extra("PIL.Image").UnidentifiedImageError:
        raise FormatError(
            f"{os.fspath(path)} is not an image that pillow can read. Convert it to PNG or JPEG, or leave it out."
        ) from None
    except Exception as error:  # there is no list of what it raises
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FormatError(f"{os.fspath(path)} is damaged: {error}. Save it again, or leave it out.") from error


def _to_grey(picture: Any) -> FloatArray:
    if picture.mode.startswith("I"):  # 16-bit grey, which pillow would clip to 8 bits
        return np.asarray(np.asarray(picture) / 257, dtype=np.float32)
    if picture.has_transparency_data:  # icons are often black on nothing: show them on white paper
        picture = picture.convert("RGBA")
        paper = import_extra("PIL.Image").new("RGBA", picture.size, "white")
        paper.alpha_composite(picture)
        picture = paper
    return np.asarray(picture.convert("L"), dtype=np.float32)


def describe(grey: FloatArray, patch_size: int, spacing: int, image_size: int | None) -> FloatArray:
    """Return SURF of the patches that are not flat, one row each, in reading order.

    The image is enlarged until a patch is SURF's window at scale 1: at a smaller scale the wavelets of mahotas would be
    one pixel wide, which is no difference of pixels. One resizing does that and ``image_size`` together.

    Descriptors are rounded. Equal patches at different places then have equal descriptors, and products of descriptors
    are exact in float32, in any order of summation: which representative is nearest depends on no library of products.
    """
    h, w = grey.shape
    if image_size is not None:
        h, w = (max(1, round(side * image_size / min(grey.shape))) for side in grey.shape)
    zoom = WINDOW / patch_size
    top, left = (np.arange(0, side - patch_size + 1, spacing) * zoom for side in (h, w))
    if len(top) == 0 or len(left) == 0:
        return np.empty((0, N_NUMBERS), np.float32)
    Image = import_extra("PIL.Image")
    large = Image.fromarray(grey).resize((round(w * zoom), round(h * zoom)), Image.Resampling.BILINEAR)
    large = np.pad(np.asarray(large, dtype=np.float64), MARGIN, mode="edge")
    centres = np.stack(np.meshgrid(top, left, indexing="ij"), axis=-1).reshape(-1, 2) + (MARGIN + WINDOW / 2)
    points = np.hstack([centres, np.ones((len(centres), 3))])  # scale 1; two numbers that descriptors do not use
    found = import_extra("mahotas.features.surf").descriptors(large, points, descriptor_only=True)
    flat = (found**2).sum(axis=1) < 0.5  # a descriptor has length 1, that of a flat patch 0
    return (np.rint(found[~flat] * STEPS) / STEPS).astype(np.float32)
