"""Ctrl-C in the middle of long work: it is heard soon, wherever it comes."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp

from labelsense import (
    CompressedLabelClassifier,
    GaussianCompressor,
    HadamardCompressor,
    KernelRidgeLearner,
    OMPDecoder,
    RidgeLearner,
)
from labelsense.data import Examples, make_tagged_documents, read_examples, write_examples
from labelsense.regress.in_memory import as_design
from labelsense.regress.moments import Moments

# Ctrl-C may come in the middle of a callback of Python's own, which can only print it.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
SOON = 1.0  # seconds of work of all threads between Ctrl-C and its effect


def heard_after(work, begin):
    """Interrupt work after so many seconds; return how much longer it went on, or -1 if it had ended before.

    Seconds are those that the process has worked, whatever else the machine does. The signal of the clock that counts
    them stands for that of Ctrl-C: Python looks at both at the same places.
    """
    working = True

    def interrupt(number, frame):
        if working:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGPROF, interrupt)
    start = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_PROF, begin)
        work()
        working, late = False, -1
    except KeyboardInterrupt:
        working, late = False, time.process_time() - start - begin
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return late


def dense(n, p):
    return np.random.default_rng(0).standard_normal((n, p), dtype=np.float32)


def sparse(n, p):
    return sp.random_array((n, p), density=0.002, rng=np.random.default_rng(0), dtype=np.float32).tocsr()


def decoding(compressor, n, rows):
    A = compressor.fit(n).operator_
    decoder = OMPDecoder(10)
    state, H = decoder.prepare(A), dense(rows, A.n_measurements)
    return lambda: decoder.decode(state, H)


def classifier():
    X, Y = make_tagged_documents(3000, 1000, 2000, random_state=0)
    clf = CompressedLabelClassifier("hadamard", "ridge", "omp", refiner=None, random_state=0).fit(X[:1000], Y[:1000])
    return clf, sp.vstack([X] * 10, format="csr"), sp.vstack([Y] * 10, format="csr")


def fitting(*parts):
    X, Y = make_tagged_documents(3000, 1500, 400, random_state=0)
    return lambda: CompressedLabelClassifier(*parts, random_state=0).fit(X, Y)


def ridge(solver, form, n, p, m=200, step="fit"):
    X, Z = form(n, p), dense(n, m)
    return lambda: getattr(RidgeLearner(10.0, solver=solver), step)(X, Z)


def kernel_ridge():
    X, Z = dense(4000, 2000), dense(4000, 100)
    return lambda: KernelRidgeLearner().fit(X, Z)


def predicting():
    learner, X = RidgeLearner(1.0, solver="dual").fit(dense(300, 3000), dense(300, 1500)), dense(8000, 3000)
    return lambda: learner.predict(X)


def updates():
    X, Z = as_design(sparse(30_000, 4000)), dense(30_000, 600)
    return lambda: Moments.of(X, Z)


def compressing():
    A = HadamardCompressor(900, random_state=0).fit(9000).operator_
    Y = sp.random_array((300_000, 9000), density=0.001, rng=np.random.default_rng(0), dtype=np.float32).tocsr()
    return lambda: A.compress(Y)


def evaluating():
    clf, X, Y = classifier()
    return lambda: clf.evaluate(X, Y)


def diagnosing():
    clf, X, Y = classifier()
    return lambda: clf.diagnose(X, Y)


WORK = {
    "primal": lambda: ridge("primal", dense, 4000, 4000),
    "primal, sparse": lambda: ridge("primal", sparse, 20_000, 4000),
    "primal, out of sample": lambda: ridge("primal", dense, 4000, 4000, step="fit_out_of_sample"),
    "dual": lambda: ridge("dual", dense, 4000, 4000),
    "conjugate gradients": lambda: ridge("cg", sparse, 20_000, 20_000, 500),
    "kernel ridge": kernel_ridge,
    "updates": updates,
    "predict": predicting,
    "evaluate": evaluating,
    "diagnose": diagnosing,
    "decode": lambda: decoding(HadamardCompressor(400, random_state=0), 20_000, 20_000),
    "decode with a stored matrix": lambda: decoding(GaussianCompressor(400, random_state=0), 20_000, 200),
    "compress": compressing,
    "fit, everything chosen": fitting,
    "fit, refined": lambda: fitting("hadamard", "ridge", "omp"),
}
BEGIN = {"fit, refined": 1.2}  # seconds of work before Ctrl-C, where they are more than half a second


@pytest.mark.parametrize("name", WORK)
def test_work_ends_soon(name):
    assert heard_after(WORK[name](), BEGIN.get(name, 0.5)) < SOON


class TestFiles:
    @pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv.gz", "a.parquet"])
    def test_writing_and_reading_end_soon(self, name, tmp_path):
        words, path = " ".join(f"word{i}" for i in range(200)), tmp_path / name
        examples = Examples([f"{i} {words[i % 97 :]}" for i in range(20_000)], [["a", "b"]] * 20_000)
        late = heard_after(lambda: write_examples(path, examples), 0.1)
        assert late < SOON
        assert late == -1 or not list(tmp_path.iterdir())
        write_examples(path, examples)
        assert heard_after(lambda: read_examples(path), 0.1) < SOON

    def test_saving_and_loading_end_soon(self, tmp_path):
        X, Y = make_tagged_documents(200, 40_000, 1000, random_state=0)
        parts = HadamardCompressor(700), "ridge", "omp"
        clf = CompressedLabelClassifier(*parts, refiner=None, random_state=0).fit(X, Y)  # a hundred megabytes
        clf.save(tmp_path / "m")
        old = (tmp_path / "m").read_bytes()
        late = heard_after(lambda: clf.save(tmp_path / "m"), 0.02)
        assert late < SOON
        assert (tmp_path / "m").read_bytes() == old  # the one or the other, whole
        assert [path.name for path in tmp_path.iterdir()] == ["m"]


# Learning goes on for ever, so that Ctrl-C comes in the middle of it.
PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from labelsense import RidgeLearner
from labelsense_command import main
fit = RidgeLearner.fit_path
def again_and_again(*arguments, **options):
    print("learning", flush=True)
    while True:
        fit(*arguments, **options)
RidgeLearner.fit_path = again_and_again
main()
"""


def test_a_command_ends_with_130_and_leaves_nothing(tmp_path):
    X, Y = make_tagged_documents(1000, 500, 200, random_state=0)
    write_examples(tmp_path / "a.svm", Examples(X, Y))
    words = [sys.executable, "-c", PROGRAM, "train", "a.svm", "-o", "m"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path, env=dict(os.environ))
    assert "learning\n" in iter(process.stdout.readline, "")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error.strip()) == (130, "labelsense: interrupted")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svm"]
