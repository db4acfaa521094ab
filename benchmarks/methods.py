"""What the methods beyond the paper gain and cost, on real data: the figures of docs/methods.md.

    python benchmarks/methods.py [space] [propensity] [groups] [ensembles] [characters]

Data sets are those of LABELSENSE_DATA. Precision on the test split, in percent; ridge with alpha 1 on log(1 + count)
idf features, ten labels kept per row; means over three seeds where something is random. All regressions of a data set
are one factorisation, so it is quick: some minutes in all.
"""

import argparse
import gzip
import os
from itertools import chain
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelsense import (
    CompressedLabelClassifier,
    CPLSTCompressor,
    GroupOMPDecoder,
    HadamardCompressor,
    LogTfidfTransformer,
    OMPDecoder,
    PLSTCompressor,
    ProjectionDecoder,
    RidgeLearner,
    WhitenedCompressor,
)
from labelsense.features import text_characters, text_words
from labelsense.labels import keep_best, scale_columns
from labelsense.metrics import inverse_propensities, precision_at_k, propensity_scored_precision_at_k
from labelsense.reconstruct import hierarchy_groups

DATA = Path(os.environ.get("LABELSENSE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SEEDS = range(3)
KS = (1, 3, 5)
MEASUREMENTS = {"bibtex": (50, 100), "delicious": (50, 200), "debian_debtags": (50, 200), "eurlex4k": (100, 400)}


def load(name, scale=True):
    parts = [
        sp.csr_array(sp.load_npz(DATA / name / f"{part}.npz")) for part in ("X_train", "Y_train", "X_test", "Y_test")
    ]
    X, Y, X_test, Y_test = (part.astype(np.float32) for part in parts)
    if not scale:
        return X, Y, X_test, Y_test
    scaler = LogTfidfTransformer().fit(X)
    return scaler.transform(X), Y, scaler.transform(X_test), Y_test


def decoded(X, X_test, plan):
    """Return the scores of each (operator, decoder, Y) of a plan, with one factorisation for all regressions."""
    targets = [operator.compress(Y) for operator, _, Y in plan]
    H = RidgeLearner(1.0).fit(X, np.hstack(targets)).predict(X_test)
    ends = np.cumsum([Z.shape[1] for Z in targets])
    scores = []
    for (operator, decoder, Y), stop in zip(plan, ends, strict=True):
        decoder = decoder.fit_labels(Y)
        h = np.ascontiguousarray(H[:, stop - operator.n_measurements : stop])
        state = decoder.prepare(operator)
        blocks = [decoder.decode(state, h[i : i + 1024]) for i in range(0, len(h), 1024)]
        scores.append(sp.vstack(blocks, format="csr"))
    return scores


def one_against_all(X, Y, X_test):
    learner = RidgeLearner(1.0).fit(X, Y)
    return sp.vstack([keep_best(learner.predict(X_test[i : i + 512]), 10) for i in range(0, X_test.shape[0], 512)])


def report(name, Y, scores, weights=None):
    """Print the means over a list of scores."""
    figures = [[precision_at_k(Y, each, k) for k in KS] for each in scores]
    if weights is not None:
        hits = [[propensity_scored_precision_at_k(Y, each, weights, k) for k in KS] for each in scores]
        figures = np.hstack([figures, hits])
    print(f"  {name:<46}" + " ".join(f"{100 * value:5.1f}" for value in np.mean(figures, axis=0)), flush=True)


def space():
    """Compare principal label space with random rows."""
    for name, ms in MEASUREMENTS.items():
        X, Y, X_test, Y_test = load(name)
        weights = inverse_propensities(Y)
        print(f"{name}, {Y.shape[1]} labels" + " " * 20 + "P@1 P@3 P@5, PSP@1 PSP@3 PSP@5")
        for m in ms:
            greedy = OMPDecoder(10, penalty=0.1)
            plans = {
                "Hadamard, OMP": (HadamardCompressor, {}, OMPDecoder(10)),
                "whitened, OMP (0.1)": (WhitenedCompressor, {}, greedy),
                "PLST, projection": (PLSTCompressor, {}, ProjectionDecoder(10)),
                "CPLST, projection": (CPLSTCompressor, {}, ProjectionDecoder(10)),
                "PLST, OMP (0.1)": (PLSTCompressor, {}, greedy),
                "1/4 PLST on 3/4 random rows, OMP (0.1)": (PLSTCompressor, {"random_share": 0.75}, greedy),
            }
            plan, names = [], []
            for title, (kind, options, decoder) in plans.items():
                for seed in SEEDS if kind not in (PLSTCompressor, CPLSTCompressor) or options else SEEDS[:1]:
                    operator = kind(m, random_state=seed, **options).fit_rows(X, Y).operator_
                    plan.append((operator, decoder, Y))
                    names.append(title)
            found = decoded(X, X_test, plan)
            for title in plans:
                scores = [each for other, each in zip(names, found, strict=True) if other == title]
                report(f"m = {m}: {title}", Y_test, scores, weights)
        report("one-against-all", Y_test, [one_against_all(X, Y, X_test)], weights)


def propensity():
    """Put inverse propensities on the labels, or on the scores, for propensity-scored precision."""
    for name, m in (("bibtex", 100), ("delicious", 200), ("eurlex4k", 400), ("yso_finna_en_min5", 1000)):
        X, Y, X_test, Y_test = load(name)
        weights = inverse_propensities(Y)
        print(f"{name}, {Y.shape[1]} labels, m = {m}" + " " * 20 + "P@1 P@3 P@5, PSP@1 PSP@3 PSP@5")
        operators = [WhitenedCompressor(m, random_state=seed).fit(Y).operator_ for seed in SEEDS]
        decoder = OMPDecoder(10, penalty=0.1)
        plan = [(A, decoder, labels) for labels in (Y, scale_columns(Y, weights)) for A in operators]
        found = decoded(X, X_test, plan)
        plain, before = found[: len(SEEDS)], found[len(SEEDS) :]
        report("precision", Y_test, plain, weights)
        report("weights on the labels, before compression", Y_test, before, weights)
        report("weights on the scores, after decoding", Y_test, [scale_columns(s, weights) for s in plain], weights)
        model = CompressedLabelClassifier(WhitenedCompressor(m), RidgeLearner(1.0), decoder, random_state=0)
        refined = model.fit(X, Y).predict_scores(X_test)
        report("precision, refined", Y_test, [refined], weights)
        report("weights on refined probabilities", Y_test, [scale_columns(refined, weights)], weights)


def groups():
    """Compare groups from a hierarchy, which the names of the labels tell, and from co-occurrence."""
    X, Y, X_test, Y_test = load("debian_debtags")
    labels = (DATA / "debian_debtags" / "labels.txt").read_text().split("\n")[: Y.shape[1]]
    broader = {label: label.rpartition(":")[0] for label in labels if ":" in label.partition("::")[2]}
    above = hierarchy_groups(broader, labels)
    print(f"debian_debtags, {Y.shape[1]} labels, {len(above)} of them have broader ones")
    decoders = {
        "OMP": OMPDecoder(10),
        "groups of a label and those above it": GroupOMPDecoder(above, 10),
        "groups from co-occurrence": GroupOMPDecoder(n_nonzero=10),
    }
    for m in (50, 100, 200):
        operators = [HadamardCompressor(m, random_state=seed).fit(Y).operator_ for seed in SEEDS]
        found = decoded(X, X_test, [(A, decoder, Y) for decoder in decoders.values() for A in operators])
        for i, title in enumerate(decoders):
            report(f"m = {m}: {title}", Y_test, found[i * len(SEEDS) : (i + 1) * len(SEEDS)])


def ensembles():
    """Compare means over several matrices A with one of as many rows."""
    for name, m in (("bibtex", 100), ("delicious", 200), ("eurlex4k", 400)):
        X, Y, X_test, Y_test = load(name)
        print(f"{name}, {Y.shape[1]} labels")
        decoder = OMPDecoder(10, penalty=0.1)
        whole = [WhitenedCompressor(m, random_state=seed).fit(Y).operator_ for seed in SEEDS]
        parts = [WhitenedCompressor(m // 4, random_state=seed).fit(Y).operator_ for seed in range(4)]
        again = [WhitenedCompressor(m, random_state=seed).fit(Y).operator_ for seed in range(4)]
        found = decoded(X, X_test, [(A, decoder, Y) for A in chain(whole, parts, again)])
        n = len(SEEDS)
        report(f"one A of {m} rows", Y_test, found[:n])
        report(f"mean of four of {m // 4}", Y_test, [sum(found[n : n + 4]) / 4])
        report(f"mean of four of {m}: four times the regressions", Y_test, [sum(found[n + 4 :]) / 4])
        rows = min(4 * m, 1 << (Y.shape[1] - 1).bit_length())
        more = WhitenedCompressor(rows, random_state=0).fit(Y).operator_
        report(f"one A of {rows} rows", Y_test, decoded(X, X_test, [(more, decoder, Y)]))


def characters():
    """Compare words with runs of characters, on titles."""
    name = "yso_finna_en_min5"
    _, Y, _, Y_test = load(name, scale=False)
    texts = [gzip.decompress((DATA / name / f"text_{part}.txt.gz").read_bytes()) for part in ("train", "test")]
    train, test = (text.decode().rstrip("\n").split("\n") for text in texts)
    print(f"{name}, {Y.shape[1]} labels, m = 1000")
    operator = WhitenedCompressor(1000, random_state=0).fit(Y).operator_
    for title, features in (("words", text_words()), ("characters", text_characters(20_000))):
        X = features.fit_transform(train)
        plan = [(operator, OMPDecoder(10, penalty=0.1), Y)]
        report(f"{title}, {X.shape[1]:,} features", Y_test, decoded(X, features.transform(test), plan))


SECTIONS = {part.__name__: part for part in (space, propensity, groups, ensembles, characters)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    for section in parser.parse_args().sections or SECTIONS:
        SECTIONS[section]()
