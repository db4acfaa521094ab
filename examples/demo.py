"""Train on 5,000 made-up tagged documents with 2,000 labels, and compare decoders with one-against-all.

make demo
"""

import time

from labelsense import CompressedLabelClassifier, HadamardCompressor, OneVsAllClassifier
from labelsense.data import make_tagged_documents
from labelsense.metrics import precision_at_k


def main():
    n_labels = 2000
    X, Y = make_tagged_documents(6000, 2000, n_labels, random_state=0)
    X_train, Y_train, X_test, Y_test = X[:5000], Y[:5000], X[5000:], Y[5000:]
    print(f"{len(Y_train.indptr) - 1} documents, {n_labels} labels, {Y_train.nnz / 5000:.1f} labels a document\n")
    print(f"{'regressions':>11}  {'decoder':<15} {'P@1':>6} {'P@3':>6} {'P@5':>6} {'fit s':>7} {'predict s':>10}")
    models = [
        (f"{m:>11}  {decoder:<15}", CompressedLabelClassifier(HadamardCompressor(m), decoder=decoder, random_state=0))
        for m in (100, 200, 400)
        for decoder in ("omp", "cosamp", "correlation")
    ]
    models.append((f"{n_labels:>11}  {'one-against-all':<15}", OneVsAllClassifier()))
    for name, model in models:
        start = time.perf_counter()
        model.fit(X_train, Y_train)
        fitted = time.perf_counter()
        top = model.predict_topk(X_test, k=5)
        done = time.perf_counter()
        precision = " ".join(f"{100 * precision_at_k(Y_test, top, k):6.1f}" for k in (1, 3, 5))
        print(f"{name} {precision} {fitted - start:7.2f} {done - fitted:10.2f}", flush=True)
    print("\nP@k: how many of the k best labels are true, in percent. See README.md for what to do next.")


if __name__ == "__main__":
    main()
