"""What the paper's image features are worth: histograms of SURF patches against the pixels themselves.

    python benchmarks/images.py --data folder [--validate] [--moved PIXELS]

Needs the extra ``images`` and the data set tabler_icons in the folder given, or in LABELSENSE_DATA: 5,166 icons of
96 x 96 pixels with 1,000 tags, half for training. With --validate more settings are compared, in five folds of the
training rows; the test rows play no part in it. With --moved every icon is first moved by up to that many pixels each
way, training rows too: icons are all drawn on one grid, photographs are not.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from PIL import Image
from sklearn.model_selection import KFold
from sklearn.preprocessing import FunctionTransformer

from labelsense import (
    CompressedLabelClassifier,
    HadamardCompressor,
    LogTfidfTransformer,
    OMPDecoder,
    OneVsAllClassifier,
    RidgeLearner,
    TopK,
)
from labelsense.features import SURFHistogramTransformer
from labelsense.metrics import precision_at_k

SHARED = Path(__file__).resolve().parents[2] / "shared"
MEASUREMENTS = 200
SCALINGS = {
    "counts": FunctionTransformer(),
    "square roots": FunctionTransformer(sp.csr_array.sqrt),
    "log tf-idf": LogTfidfTransformer(),
}


def load(folder, moved):
    images = np.load(folder / "images.npz")["images"]
    steps = np.random.default_rng(0).integers(-moved, moved + 1, size=(len(images), 2))
    images = np.stack([np.roll(image, step, axis=(0, 1)) for image, step in zip(images, steps, strict=True)])
    Y = sp.csr_array(sp.load_npz(folder / "Y.npz")).astype(np.float32)
    split = np.load(folder / "split.npz")
    return images, Y, split["train"], split["test"]


def pixels(side):
    """Return a transformer of images to that many pixels across, from 0 to 1."""

    def shrink(images):
        small = [Image.fromarray(image).resize((side, side), Image.Resampling.BOX) for image in images]
        return np.stack(small).reshape(len(images), -1).astype(np.float32) / 255

    return FunctionTransformer(shrink)


def surf(**settings):
    return SURFHistogramTransformer(random_state=0, n_jobs=-1, **settings)


def features(title, transformer, data):
    """Return the features of training and test images; print what they cost, all threads together."""
    images, _, train, test = data
    start = time.process_time()
    transformer.fit(images[train])
    fitted = time.process_time()
    X, X_test = transformer.transform(images[train]), transformer.transform(images[test])
    each = (time.process_time() - fitted) / (len(train) + len(test))
    print(f"{title}: fit {fitted - start:.1f} s, {1000 * each:.1f} ms of processor time for each image", flush=True)
    return X, X_test


def line(title, model, parts, data):
    """Fit on training rows, print precision on test rows."""
    _, Y, train, test = data
    X, X_test = parts
    start = time.perf_counter()
    top = model.fit(X, Y[train]).predict_topk(X_test, 5)
    seconds = time.perf_counter() - start
    scores = "  ".join(f"{100 * precision_at_k(Y[test], top, k):5.2f}" for k in (1, 3, 5))
    print(f"  {title:<55} {scores}   {seconds:5.1f} s, alpha {model.learner_.alpha_:.3g}", flush=True)


def one_against_all():
    return OneVsAllClassifier(RidgeLearner("loo", random_state=0))


def compressed():
    learner = RidgeLearner("loo", random_state=0)
    return CompressedLabelClassifier(
        HadamardCompressor(MEASUREMENTS), learner, OMPDecoder(), refiner=None, random_state=0, n_jobs=-1
    )


def scaled(X, scaling):
    return SCALINGS[scaling].fit_transform(X)


def most_frequent(data):
    """Print what the same five labels for every image would score."""
    _, Y, train, test = data
    best = np.argsort(-Y[train].sum(axis=0), kind="stable")[:5]
    top = TopK(np.tile(best, (len(test), 1)), np.ones((len(test), 5), np.float32))
    scores = "  ".join(f"{100 * precision_at_k(Y[test], top, k):5.2f}" for k in (1, 3, 5))
    print(f"  {'the most frequent tags for all':<55} {scores}", flush=True)


def validate(data):
    """Compare settings by five folds of the training rows, one-against-all. Representatives see no labels."""
    images, _, train, _ = data
    kinds = {f"pixels, {side} x {side}": pixels(side).transform(images[train]) for side in (96, 48, 32)}
    for patch_size, spacing in ((10, 5), (20, 5), (32, 8)):
        title = f"SURF, patches of {patch_size}, {spacing} apart"
        X, _ = features(title, surf(patch_size=patch_size, spacing=spacing), (images, None, train, train[:1]))
        kinds |= {f"{title}, {scaling}": scaled(X, scaling) for scaling in SCALINGS}
    print("P@1, P@3, P@5 in percent on training rows held out, one-against-all")
    for title, X in kinds.items():
        scores = [fold_scores(X, rest, out, data) for rest, out in KFold(5, shuffle=True, random_state=0).split(train)]
        mean, error = np.mean(scores, axis=0), np.std(scores, axis=0) / np.sqrt(len(scores))
        cells = "  ".join(f"{m:5.2f} ± {e:.2f}" for m, e in zip(mean, error, strict=True))
        print(f"  {title:<55} {cells}", flush=True)


def fold_scores(X, rest, out, data):
    _, Y, train, _ = data
    top = one_against_all().fit(X[rest], Y[train[rest]]).predict_topk(X[out], 5)
    return [100 * precision_at_k(Y[train[out]], top, k) for k in (1, 3, 5)]


def test(data):
    """Compare the features on the test rows."""
    kinds = {
        "pixels, 96 x 96": features("pixels", pixels(96), data),
        "pixels, 32 x 32": features("pixels", pixels(32), data),
    }
    parts = features("SURF, as in the paper", surf(), data)
    kinds["SURF, counts (the paper)"] = parts
    kinds["SURF, square roots of counts"] = tuple(scaled(part, "square roots") for part in parts)
    print("P@1, P@3, P@5 in percent on the test rows")
    most_frequent(data)
    for title, parts in kinds.items():
        line(f"{title}; one-against-all", one_against_all(), parts, data)
        line(f"{title}; compressed, m = {MEASUREMENTS}, OMP", compressed(), parts, data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("LABELSENSE_DATA", SHARED / "data")))
    parser.add_argument("--validate", action="store_true", help="compare settings on training rows held out")
    parser.add_argument("--moved", type=int, default=0, help="move every icon by up to so many pixels")
    arguments = parser.parse_args()
    folder = arguments.data / "tabler_icons"
    if not folder.is_dir():
        parser.error(f"no data set tabler_icons in {arguments.data}; give --data or set LABELSENSE_DATA")
    (validate if arguments.validate else test)(load(folder, arguments.moved))


if __name__ == "__main__":
    main()
