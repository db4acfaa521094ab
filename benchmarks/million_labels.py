"""One million labels, 1,000 measurements, 20,000 rows: time and peak memory of the whole process.

make bench
"""

import resource
import time

from labelsense import CompressedLabelClassifier, HadamardCompressor, OMPDecoder
from labelsense.data import make_tagged_documents
from labelsense.metrics import precision_at_k


def peak_gb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main():
    X, Y = make_tagged_documents(21_000, 4000, 1_000_000, random_state=0)
    print(f"data: X {X.shape}, Y {Y.shape} with {Y.nnz} labels; peak memory so far {peak_gb():.2f} GB", flush=True)
    clf = CompressedLabelClassifier(
        HadamardCompressor(1000), "ridge", OMPDecoder(10), refiner=None, random_state=0, n_jobs=2
    )
    start = time.perf_counter()
    clf.fit(X[:20_000], Y[:20_000])
    fitted = time.perf_counter()
    top = clf.predict_topk(X[20_000:], k=5)
    done = time.perf_counter()
    print(f"fit on 20,000 rows: {fitted - start:.1f} s; decoding 1,000 rows: {done - fitted:.1f} s on 2 threads")
    print(f"P@1 {100 * precision_at_k(Y[20_000:], top, 1):.1f}, P@5 {100 * precision_at_k(Y[20_000:], top, 5):.1f}")
    print(f"peak memory of the process: {peak_gb():.2f} GB ({'within' if peak_gb() < 2 else 'OVER'} the limit of 2 GB)")


if __name__ == "__main__":
    main()
