"""Data sets that no choice of ours was made with, derived from others: for a look at what the defaults are worth.

    python benchmarks/derived.py folder
    LABELSENSE_DATA=folder python benchmarks/accuracy.py titles sections ... --budgets balanced

titles      words of a package's title, from the words of its description
sections    the section of a package and its roles, from words
bodies      words of a description, from those of the title: 23 labels a row
names       tags of a package, words of its name and title, and pairs of these, from its description: 71,000 labels
icons       tags of icons, from 16 x 16 grey values
few_tags    the 45 most frequent tags of packages, from 333 rows
few_papers  the 20 most frequent tags of papers (bibtex), from 1,000 rows or fewer

Rows without a label or a feature are left out, and labels without a row to learn from.
"""

import gzip
import json
import os
import re
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import MultiLabelBinarizer

DATA = Path(os.environ.get("LABELSENSE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
PARTS = "X_train", "Y_train", "X_test", "Y_test"
COMMONEST = 150  # words that are in most descriptions, and say nothing


def main(folder):
    random = np.random.default_rng(0)
    packages = read_packages()
    packages = [packages[i] for i in random.permutation(len(packages))]
    sources = list({package["source"]: package for package in packages}.values())
    made = {
        "titles": titles([package for package in sources if len(body(package)) >= 100], 10_500, 4800),
        "sections": sections(sources, 10_700, 5000),
        "bodies": bodies(packages, 7000, 3000),
        "names": names([package for package in packages if len(body(package)) >= 150], 20_000, 5000),
        "icons": icons(300),
        "few_tags": few("debian_debtags", random, 333, 45),
        "few_papers": few("bibtex", random, 1000, 20),
    }
    for name, parts in made.items():
        save(folder / name, *parts)


def read_packages():
    with gzip.open(DATA / "debian_packages" / "packages.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


def title(package):
    return package["text"].partition("\n")[0]


def body(package):
    return package["text"].partition("\n")[2]


def words(text):
    return sorted(set(re.findall(r"[a-z][a-z0-9+]+", text.lower())))


def titles(packages, n_train, n_test):
    return by_words(map(body, packages), [words(title(package)) for package in packages], n_train, n_test)


def sections(packages, n_train, n_test):
    labels = [
        [package["section"].split("/")[-1], *(tag for tag in package["tags"] if tag.startswith("role::"))]
        for package in packages
    ]
    X, Y, X_test, Y_test = by_words((package["text"] for package in packages), labels, n_train, n_test)
    kept = most_frequent(Y, 22)
    return X, Y[:, kept], X_test, Y_test[:, kept]


def bodies(packages, n_train, n_test):
    found = [words(body(package)) for package in packages[: n_train + n_test]]
    counts = Counter(word for row in found[:n_train] for word in row)
    common = {word for word, _ in counts.most_common(COMMONEST)}
    labels = [[word for word in row if counts[word] > 1 and word not in common] for row in found]
    return by_words(map(title, packages), labels, n_train, n_test)


def names(packages, n_train, n_test):
    def labels(package):
        said = re.findall(r"[a-z][a-z0-9+]+", title(package).lower())
        yield from said
        yield from (f"{one} {other}" for one, other in pairwise(said))
        yield from (f"tag {tag}" for tag in package["tags"])
        yield from (f"name {part}" for part in re.findall(r"[a-z0-9]+", package["source"]))

    return by_words(map(body, packages), [sorted(set(labels(package))) for package in packages], n_train, n_test)


def icons(n_labels):
    images = np.load(DATA / "tabler_icons" / "images.npz")["images"]
    grey = images.reshape(len(images), 16, 6, 16, 6).mean(axis=(2, 4)).reshape(len(images), -1) / 255
    Y, split = sp.load_npz(DATA / "tabler_icons" / "Y.npz").tocsr(), np.load(DATA / "tabler_icons" / "split.npz")
    train, test = split["train"], split["test"]
    kept = most_frequent(Y[train], n_labels)
    return grey[train], Y[train][:, kept], grey[test], Y[test][:, kept]


def few(name, random, n_train, n_labels):
    X, Y, X_test, Y_test = (sp.load_npz(DATA / name / f"{part}.npz").tocsr() for part in PARTS)
    rows, kept = random.permutation(X.shape[0])[:n_train], most_frequent(Y, n_labels)
    return X[rows], Y[rows][:, kept], X_test, Y_test[:, kept]


def by_words(texts, labels, n_train, n_test):
    """Return counts of words and labels, of the first rows to learn from and the next ones to test on."""
    texts = list(texts)[: n_train + n_test]
    counter = CountVectorizer(min_df=2, dtype=np.float32).fit(texts[:n_train])
    binarizer = MultiLabelBinarizer(sparse_output=True).fit(labels[:n_train])
    known = set(binarizer.classes_)
    X = counter.transform(texts)
    Y = sp.csr_matrix(binarizer.transform([[label for label in row if label in known] for row in labels[: len(texts)]]))
    return X[:n_train], Y[:n_train], X[n_train:], Y[n_train:]


def most_frequent(Y, n_labels):
    return np.sort(np.argsort(-np.bincount(Y.indices, minlength=Y.shape[1]), kind="stable")[:n_labels])


def save(folder, X, Y, X_test, Y_test):
    kept = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))
    pairs = [whole_rows(X, Y[:, kept]), whole_rows(X_test, Y_test[:, kept])]
    folder.mkdir(parents=True, exist_ok=True)
    for part, matrix in zip(PARTS, [matrix for pair in pairs for matrix in pair], strict=True):
        sp.save_npz(folder / f"{part}.npz", sp.csr_matrix(matrix, dtype=np.float32))
    (X, Y), (X_test, _) = pairs
    print(
        f"{folder.name}: {X.shape[0]} rows, {X_test.shape[0]} to test on, {X.shape[1]} features, {Y.shape[1]} labels, "
        f"{Y.nnz / Y.shape[0]:.1f} a row"
    )


def whole_rows(X, Y):
    X, Y = sp.csr_matrix(X), sp.csr_matrix(Y)
    rows = np.flatnonzero(np.diff(X.indptr) * np.diff(Y.indptr))
    return X[rows], Y[rows]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
