"""Learn to tag Debian packages by their descriptions: the bundled data set, a few regressions, several decoders.

make demo
"""

import time

from labelsense import (
    CompressedLabelClassifier,
    HadamardCompressor,
    LogTfidfTransformer,
    OneVsAllClassifier,
    RidgeLearner,
)
from labelsense.data import load_debtags
from labelsense.metrics import precision_at_k


def main():
    data = load_debtags()
    scaler = LogTfidfTransformer().fit(data.X_train)
    X, X_test = scaler.transform(data.X_train), scaler.transform(data.X_test)
    n, d = data.Y_train.shape
    print(f"{n} Debian packages to learn from, {X_test.shape[0]} to test on: {X.shape[1]} words, {d} tags,")
    print(f"{data.Y_train.nnz / n:.1f} tags a package. P@k: how many of the k best tags are true, in percent.\n")
    print(f"{'regressions':>11}  {'decoder':<15} {'P@1':>6} {'P@3':>6} {'P@5':>6} {'fit s':>7} {'predict s':>10}")
    learner = RidgeLearner(alpha="loo", random_state=0)
    models = [
        (m, decoder, CompressedLabelClassifier(HadamardCompressor(m), learner, decoder, random_state=0, n_jobs=-1))
        for m in (50, 100, 200)
        for decoder in ("omp", "correlation")
    ]
    for m, name, model in [*models, (d, "one-against-all", OneVsAllClassifier(learner))]:
        start = time.perf_counter()
        model.fit(X, data.Y_train)
        fitted = time.perf_counter()
        top = model.predict_topk(X_test, k=5)
        done = time.perf_counter()
        precision = " ".join(f"{100 * precision_at_k(data.Y_test, top, k):6.1f}" for k in (1, 3, 5))
        print(f"{m:>11}  {name:<15} {precision} {fitted - start:7.2f} {done - fitted:10.2f}", flush=True)
    row = [1000]  # any will do
    words = [data.features[j] for j in data.X_test[row].indices]
    top = models[-2][2].predict_topk(X_test[row], k=5)
    print(f"\nA test package with the words: {', '.join(words[:12])}, ...")
    print("  true tags:      ", ", ".join(data.labels[j] for j in data.Y_test[row].indices))
    guesses = zip(top.labels[0], top.scores[0], strict=True)
    print("  predicted (200):", ", ".join(f"{data.labels[j]} {score:.2f}" for j, score in guesses))


if __name__ == "__main__":
    main()
