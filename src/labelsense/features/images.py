"""The paper's features of images: which kinds of patches an image has, and how many of each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from labelsense._blocks import map_rows, row_blocks
from labelsense._progress import log, report_progress, verbosity
from labelsense._storage import require, require_array, storable
from labelsense._typing import CSR, FloatArray, IntArray
from labelsense._validation import check_count
from labelsense.features._pictures import N_NUMBERS, describe, read_grey

BLOCK_IMAGES = 16  # images whose patches exist at a time
BLOCK_PATCHES = 1024  # patches whose distances to all representatives exist at a time
POOL = 4  # patches drawn for each one chosen, because some are equal


@storable()
class SURFHistogramTransformer(TransformerMixin, BaseEstimator):
    """Images to histograms of patches: the features of the paper's image experiment.

    Each grey patch of an image is described by its 64 SURF numbers, which do not change with brightness and contrast,
    and change little with rotation. ``fit`` takes the descriptors of random patches of the training images as
    representatives. ``transform`` counts, for each representative, the patches of an image that are nearer to it than
    to any other.

    The paper fixes the 10 x 10 patches and the 1,024 representatives. It does not say which patches of an image are
    counted: here they are those of a regular grid, ``spacing`` apart. A flat patch has no SURF descriptor and is not
    counted, so a blank image, or one smaller than a patch, has an empty row.

    The rows are plain counts, as in the paper. Any scaling is one more step of a pipeline, say
    ``FunctionTransformer(scipy.sparse.csr_array.sqrt)``; ``benchmarks/images.py`` compares some.

    Parameters
    ----------
    n_words : int
        How many representatives.
    patch_size : int
        Pixels across a patch.
    spacing : int
        Pixels from one patch to the next.
    image_size : int, optional
        Resize every image first, so that its shorter side has this many pixels. By default the pixels are taken as
        they are. Set it where images come in many sizes, or are so small or so large that 10 pixels show nothing.
    random_state : int, RandomState or None
        Seed of the choice of patches.
    n_jobs : int, optional
        Threads. The result does not depend on it.
    verbose : int
        1 says what is going on, through the logger "labelsense".

    Attributes
    ----------
    representatives_ : array (n_words, 64)

    References
    ----------
    Hsu, Kakade, Langford, Zhang (2009), Multi-label prediction via compressed sensing, section 7.1.
    Bay, Ess, Tuytelaars, Van Gool (2008), Speeded-up robust features (SURF).

    Examples
    --------
    >>> import numpy as np
    >>> from labelsense.features import SURFHistogramTransformer
    >>> images = np.random.default_rng(0).integers(256, size=(5, 40, 30), dtype=np.uint8)
    >>> X = SURFHistogramTransformer(n_words=50, random_state=0).fit_transform(images)
    >>> X.shape, X.sum(axis=1).tolist()  # 7 x 5 patches in each image
    ((5, 50), [35.0, 35.0, 35.0, 35.0, 35.0])
    """

    def __init__(
        self,
        n_words: int = 1024,
        *,
        patch_size: int = 10,
        spacing: int = 5,
        image_size: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_words = n_words
        self.patch_size = patch_size
        self.spacing = spacing
        self.image_size = image_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, images: Any, y: Any = None) -> SURFHistogramTransformer:
        """Choose the representatives.

        ``images`` is a list of paths of image files, a list of arrays, or one array (n, h, w). Arrays are grey, uint8
        or floats from 0 to 1, or colour, uint8 (h, w, 3). What is transparent is taken as white.
        """
        self._check_settings()
        images = _check_images(images)
        start = time.perf_counter()
        with verbosity(self.verbose):
            self.representatives_ = self._draw(images, check_random_state(self.random_state))
            log("chose %d representative patches in %.1f s", self.n_words, time.perf_counter() - start)
        return self

    def _check_settings(self) -> None:
        check_count(self.n_words, "n_words")
        check_count(self.patch_size, "patch_size", low=2)
        check_count(self.spacing, "spacing")
        if self.image_size is not None:
            check_count(self.image_size, "image_size", low=self.patch_size, remedy="An image has to hold a patch.")

    def _check_stored(self) -> None:
        self._check_settings()
        size = self.image_size  # one image then takes less than a gigabyte
        few = size is None or size <= min(256 * self.patch_size, 1024 * self.spacing)
        require(few, f"image_size={size} is too large for its patches")
        require_array(self.representatives_, "representatives_", "float32", (self.n_words, N_NUMBERS), finite=True)

    def transform(self, images: Any) -> CSR:
        """Return how many patches of each image belong to each representative, as CSR (n, n_words) in float32."""
        check_is_fitted(self)
        images = _check_images(images)
        with verbosity(self.verbose):
            return sp.vstack(list(self._histograms(images)), format="csr")

    def _histograms(self, images: Any) -> Iterator[CSR]:
        # Threads describe patches, this one compares them: the product has threads of its own.
        for patches in self._map(partial(self._describe, images), np.arange(len(images)), "histograms of patches"):
            words = nearest(np.concatenate(patches), self.representatives_).astype(np.int32)
            indptr = np.cumsum([0] + [len(part) for part in patches], dtype=np.int32)
            shape = (len(patches), len(self.representatives_))
            histograms = sp.csr_array((np.ones(len(words), np.float32), words, indptr), shape=shape)
            histograms.sum_duplicates()
            yield histograms

    def _draw(self, images: Any, rng: np.random.RandomState) -> FloatArray:
        """Return different descriptors of random patches of random images."""
        order, seeds = rng.permutation(len(images)), rng.randint(2**31, size=len(images))
        several = POOL * -(-self.n_words // len(images))

        def draw(i: int, size: int | None) -> FloatArray:
            return np.random.default_rng(seeds[i]).permutation(self._describe(images, i))[:size]

        for size, chosen in ((several, order[: self.n_words]), (None, order)):  # all patches where those are too few
            parts = chain.from_iterable(self._map(partial(draw, size=size), chosen, "random patches"))
            pool = np.unique(np.concatenate(list(parts)), axis=0)
            if len(pool) >= self.n_words:
                return pool[rng.choice(len(pool), self.n_words, replace=False)]
        raise ValueError(
            f"n_words={self.n_words} is more than the {len(pool)} different patches that the images have. "
            "Lower n_words or spacing, or give more images."
        )

    def _describe(self, images: Any, i: int) -> FloatArray:
        grey = read_grey(images[i], f"images[{i}]")
        return describe(grey, self.patch_size, self.spacing, self.image_size)

    def _map(self, function: Callable[[int], FloatArray], chosen: IntArray, step: str) -> Iterator[list[FloatArray]]:
        """Yield ``function`` of the chosen image numbers, some at a time."""
        for block in row_blocks(len(chosen), BLOCK_IMAGES):
            report_progress(step, block.start / len(chosen))

            def one(row: slice, some: IntArray = chosen[block]) -> FloatArray:
                return function(int(some[row.start]))

            yield map_rows(one, block.stop - block.start, 1, self.n_jobs)


def nearest(points: FloatArray, representatives: FloatArray) -> IntArray:
    """Return the number of the nearest representative of each point, the lowest where several are equally near.

    |x - c|^2 without |x|^2, which is the same for every c: one matrix product for a block of points.
    """
    half = (representatives**2).sum(axis=1) / 2
    found = np.empty(len(points), np.int64)
    for rows in row_blocks(len(points), BLOCK_PATCHES):
        found[rows] = np.argmin(half - points[rows] @ representatives.T, axis=1)
    return found


def _check_images(images: Any) -> Any:
    if isinstance(images, (str, os.PathLike)):
        raise TypeError(f"images must be a list of paths or of arrays. Got one path, {os.fspath(images)}. Pass [path].")
    images = images if isinstance(images, np.ndarray) else list(images)
    if len(images) == 0:
        raise ValueError("images is empty. Pass at least one path or array.")
    return images
