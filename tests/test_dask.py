"""Rows on the workers of a Dask cluster: the model of one process, whatever happens to the workers."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from commands import LISTS, TEXTS, X, Y, run
from sklearn.svm import SVR

from labelsense import CompressedLabelClassifier, HadamardCompressor, RidgeLearner, load_model
from labelsense._chunks import ListChunks
from labelsense.data import Examples, write_examples
from labelsense.data.splits import split_files
from labelsense.refine import Refiner, trees

da = pytest.importorskip("dask.array")
import dask.bag as db  # noqa: E402
from dask.delayed import delayed  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

from labelsense.dask import DaskChunks, DaskCompressedLabelClassifier, read  # noqa: E402

pytestmark = [
    pytest.mark.dask,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"),
]
SIZE = 45
PARTS = {
    "compressor": "hadamard",
    "learner": RidgeLearner(0.5),
    "decoder": "omp",
    "refiner": None,
    "held_out": "rows",
    "random_state": 0,
}


def blocks(values, size=SIZE):
    n = values.shape[0] if hasattr(values, "shape") else len(values)
    return [delayed(values[a : a + size]) for a in range(0, n, size)]


@pytest.fixture(scope="module")
def client():
    """Two workers in one process: fast, and with all that Dask does but processes."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def dask_array(M, dense=False):
    """Return rows as a dask array with dense or CSR blocks."""
    if dense:
        return da.from_array(M.toarray(), chunks=(SIZE, 30))
    meta = sp.csr_array((0, M.shape[1]), dtype=M.dtype)
    parts = [
        da.from_delayed(block, (min(SIZE, M.shape[0] - a), M.shape[1]), meta=meta)
        for a, block in zip(range(0, M.shape[0], SIZE), blocks(M), strict=True)
    ]
    return da.concatenate(parts)


FORMS = {
    "csr array": lambda: (dask_array(X), dask_array(Y), X, Y, None),
    "dense array": lambda: (dask_array(X, dense=True), dask_array(Y, dense=True), X, Y, None),
    "counts": lambda: (dask_array(X), dask_array(Y), X, Y, "counts"),
    "delayed": lambda: (blocks(X), blocks(LISTS), X, LISTS, None),
    "bag": lambda: (
        db.from_delayed(blocks(TEXTS)),
        db.from_delayed(blocks(LISTS)),
        TEXTS,
        LISTS,
        "words",
    ),
    "texts": lambda: (blocks(TEXTS), blocks(LISTS), TEXTS, LISTS, "hashing"),
}


class TestEqualsOneProcess:
    @pytest.mark.parametrize("form", FORMS)
    def test_fit_and_predict(self, form, client, tmp_path):
        rows, labels, X, y, features = FORMS[form]()
        expected = CompressedLabelClassifier(**PARTS, features=features).fit(X, y)
        model = DaskCompressedLabelClassifier(**PARTS, features=features, client=client).fit(rows, labels)
        np.testing.assert_allclose(model.measure(X), expected.measure(X), atol=1e-4)
        top, wanted = model.predict_topk(rows, 3), expected.predict_topk(X, 3)
        assert da.compute(top.labels)[0].tolist() == wanted.labels.tolist()
        np.testing.assert_allclose(top.scores.compute(), wanted.scores, atol=1e-4)
        scores = [block.compute() for block in model.predict_scores(rows).blocks]
        assert abs(sp.vstack(scores) - expected.predict_scores(X)).max() < 1e-3
        np.testing.assert_array_equal(model.predict_topk(X, 3).labels, wanted.labels)  # rows in memory
        local = model.to_local()
        assert type(local) is CompressedLabelClassifier
        model.save(tmp_path / "m")
        np.testing.assert_array_equal(load_model(tmp_path / "m").predict_topk(X, 3).labels, wanted.labels)

    @pytest.mark.parametrize("solver", ["primal", "cg"])
    def test_refined(self, solver, client, tmp_path, monkeypatch):
        monkeypatch.setattr("labelsense.refine.trees.ROUNDS", 10)
        learner = RidgeLearner(20.0, solver=solver, tol=1e-5, random_state=0)
        n, n_calibration = (400, 50) if solver == "primal" else (130, 26)  # many steps of few pieces
        parts = PARTS | {"learner": learner, "refiner": Refiner(10, n_calibration=n_calibration, neighbour_rows=0)}
        expected = CompressedLabelClassifier(**parts).fit(X[:n], Y[:n])
        model = DaskCompressedLabelClassifier(**parts, client=client).fit(dask_array(X[:n]), dask_array(Y[:n]))
        lazy = model.predict_proba(dask_array(X[:n]))
        P, Q = sp.vstack([block.compute() for block in lazy.blocks]), expected.predict_proba(X[:n])
        assert abs(P - Q).sum() < 1e-4 * P.nnz
        top, wanted = model.predict_topk(dask_array(X[:n]), 3).labels.compute(), expected.predict_topk(X[:n], 3).labels
        assert (top == wanted).all(axis=1).mean() > 0.99
        model.save(tmp_path / "m")
        loaded = load_model(tmp_path / "m")
        assert (loaded.predict_proba(X) != model.to_local().predict_proba(X)).nnz == 0
        assert str(loaded.report_) == str(expected.report_)

    def test_data_frames(self, client):
        dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
        labels = ["|".join(row) for row in LISTS]
        frame = dd.from_pandas(pd.DataFrame({"text": TEXTS, "labels": labels}), npartitions=5)
        y = frame["labels"].str.split("|")
        model = DaskCompressedLabelClassifier(**PARTS, features="words", client=client).fit(frame["text"], y)
        lists = [text.split("|") for text in labels]
        expected = CompressedLabelClassifier(**PARTS, features="words").fit(TEXTS, lists)
        np.testing.assert_allclose(model.measure(TEXTS), expected.measure(TEXTS), atol=1e-4)
        with pytest.raises(ValueError, match="X must be a column of a dask data frame, or an array"):
            model.fit(frame, y)

    @pytest.mark.parametrize("name", ["d.jsonl", "part-*.jsonl.gz", "parts"])
    def test_files(self, name, client, tmp_path):
        if name == "d.jsonl":
            write_examples(tmp_path / name, Examples(TEXTS, LISTS))
        else:
            folder = tmp_path / "parts" if name == "parts" else tmp_path
            folder.mkdir(exist_ok=True)
            for i, rows in enumerate((slice(0, 150), slice(150, 400))):
                write_examples(folder / f"part-{i}.jsonl.gz", Examples(TEXTS[rows], LISTS[rows]))
        model = DaskCompressedLabelClassifier(**PARTS, features="words", client=client).fit(read(tmp_path / name))
        expected = CompressedLabelClassifier(**PARTS, features="words").fit(TEXTS, LISTS)
        np.testing.assert_allclose(model.measure(TEXTS), expected.measure(TEXTS), atol=1e-4)
        top = model.predict_topk(read(tmp_path / name), 2)
        assert top.labels.compute().tolist() == expected.predict_topk(TEXTS, 2).labels.tolist()

    def test_regressors_of_scikit_learn(self, client):
        """Rows in memory; the workers fit the regressors."""
        parts = PARTS | {"compressor": HadamardCompressor(8), "learner": SVR()}
        model = DaskCompressedLabelClassifier(**parts, client=client).fit(X[:100], Y[:100])
        expected = CompressedLabelClassifier(**parts).fit(X[:100], Y[:100])
        np.testing.assert_array_equal(model.measure(X), expected.measure(X))
        fitted = client.run_on_scheduler(lambda dask_scheduler: [str(key) for key in dask_scheduler.task_prefixes])
        assert any("fit_one" in name for name in fitted)

    def test_updates(self, client):
        model = DaskCompressedLabelClassifier(**PARTS, client=client)
        expected = CompressedLabelClassifier(**PARTS)
        for rows in (slice(0, 200), slice(200, 400)):
            model.partial_fit(blocks(X[rows]), blocks(LISTS[rows]))
            expected.partial_fit(X[rows], LISTS[rows])
        assert model.labels_ == expected.labels_
        assert not hasattr(model, "predict_proba")
        np.testing.assert_array_equal(model.label_counts_, expected.label_counts_)
        np.testing.assert_allclose(model.measure(X), expected.measure(X), atol=1e-4)

    @pytest.mark.parametrize("pieces", [True, False], ids=["in pieces", "in memory"])
    def test_weights(self, pieces, client, monkeypatch):
        monkeypatch.setattr(trees, "ROUNDS", 10)
        weights = np.random.default_rng(0).integers(0, 3, 400).astype(float)
        given = da.from_array(weights, chunks=SIZE) if pieces else weights
        parts = PARTS | {
            "compressor": "whitened",
            "refiner": Refiner(10, n_calibration=50, neighbour_rows=0) if pieces else None,
        }
        expected = CompressedLabelClassifier(**parts).fit(X, Y, weights)
        model = DaskCompressedLabelClassifier(**parts, client=client).fit(dask_array(X), dask_array(Y), given)
        np.testing.assert_allclose(model.measure(X), expected.measure(X), atol=1e-4)
        top, wanted = model.predict_topk(X, 3).labels, expected.predict_topk(X, 3).labels
        assert (top == wanted).all(axis=1).mean() > 0.99

    def test_the_last_rows_and_what_can_be_updated(self, client, monkeypatch):
        monkeypatch.setattr(trees, "ROUNDS", 10)
        parts = PARTS | {
            "learner": "auto",
            "refiner": Refiner(10, n_calibration=50, neighbour_rows=0),
            "budget": "fast",
        }
        parts |= {"held_out": "last", "updatable": True, "features": "none"}
        expected = CompressedLabelClassifier(**parts).fit(X, Y)
        model = DaskCompressedLabelClassifier(**parts, client=client).fit(dask_array(X), dask_array(Y))
        assert str(model.report_) == str(expected.report_)
        assert model.report_.expected_last
        for each, *rows in ((model, blocks(X[:90]), blocks(Y[:90])), (expected, X[:90], Y[:90])):
            each.partial_fit(*rows)
        np.testing.assert_allclose(model.measure(X), expected.measure(X), atol=1e-4)

    def test_updates_with_weights(self, client):
        weights = np.random.default_rng(0).integers(0, 3, 400).astype(float)
        model, expected = DaskCompressedLabelClassifier(**PARTS, client=client), CompressedLabelClassifier(**PARTS)
        for rows in (slice(0, 200), slice(200, 400)):
            model.partial_fit(blocks(X[rows]), blocks(Y[rows]), weights[rows])
            expected.partial_fit(X[rows], Y[rows], weights[rows])
        np.testing.assert_allclose(model.measure(X), expected.measure(X), atol=1e-4)

    def test_updates_of_a_refined_model(self, client, monkeypatch):
        monkeypatch.setattr("labelsense.refine.trees.ROUNDS", 10)
        parts = PARTS | {
            "learner": RidgeLearner(0.5, updatable=True),
            "refiner": Refiner(10, n_calibration=50, neighbour_rows=0),
        }
        model = DaskCompressedLabelClassifier(**parts, client=client).fit(blocks(X[:200]), blocks(Y[:200]))
        local = model.to_local()
        model.partial_fit(blocks(X[200:]), blocks(Y[200:]))
        local.partial_fit(X[200:], Y[200:])
        assert abs(model.predict_proba(X) - local.predict_proba(X)).max() < 1e-3

    def test_sums_have_the_bytes_of_one_process(self, client):
        numbers = np.random.default_rng(0).normal(size=(300, 50)).astype(np.float32)
        local = ListChunks([row.copy() for row in numbers], np.ones(300, np.int64))
        spread = DaskChunks(blocks(numbers, 1), np.ones(300, np.int64), client)
        np.testing.assert_array_equal(spread.total(first_row), local.total(np.copy))


def first_row(block):
    return block[0]


class TestCommands:
    def test_train_and_predict(self, client, tmp_path):
        write_examples(tmp_path / "d.jsonl", Examples(TEXTS, LISTS, ids=[f"id {i}" for i in range(400)]))
        address = client.scheduler.address
        words = ["train", tmp_path / "d.jsonl", "--alpha", "0.5", "--json"]
        reports = [
            json.loads(run(*words, "-o", tmp_path / f"m{i}", *options))
            for i, options in enumerate(([], ["--scheduler", address]))
        ]
        for name in ("rows", "labels", "n_features", "measurements"):
            assert reports[0][name] == reports[1][name]
        for name in ("P@1", "P@5"):
            assert reports[0]["expected"][name] == pytest.approx(reports[1]["expected"][name], abs=0.01)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("labelsense.data.splits.SPLIT_BYTES", 5000)
            patch.setattr(split_files, "__defaults__", (None, None, 5000))
            lines = [
                run("predict", tmp_path / "m0", tmp_path / "d.jsonl", "-o", tmp_path / f"p{i}", *options)
                or (tmp_path / f"p{i}").read_text()
                for i, options in enumerate(([], ["--scheduler", address]))
            ]
        assert lines[0] == lines[1]

    def test_a_vocabulary(self, client, tmp_path):
        write_examples(tmp_path / "d.jsonl", Examples(TEXTS, LISTS))
        (tmp_path / "v.tsv").write_text("".join(f"<http://x/{j}>\ttag {j}\n" for j in range(1, 40)))
        words = ["train", tmp_path / "d.jsonl", "-o", tmp_path / "m", "--alpha", "0.5", "--no-hold-out", "--json"]
        words += ["--vocabulary", tmp_path / "v.tsv", "--test", tmp_path / "d.jsonl"]
        reports = [json.loads(run(*words, *options)) for options in ([], ["--scheduler", client.scheduler.address])]
        assert reports[1]["unknown_labels"] == reports[0]["unknown_labels"] == ["tag 0"]
        assert reports[1]["P@1"] == pytest.approx(reports[0]["P@1"], abs=0.01)
        model = load_model(tmp_path / "m")
        assert model.subjects_.label("http://x/3") == "tag 3"

    def test_own_workers_and_refusals(self, tmp_path):
        write_examples(tmp_path / "d.jsonl", Examples(TEXTS, LISTS))
        words = ["train", tmp_path / "d.jsonl", "-o", tmp_path / "m", "--alpha", "0.5", "--no-hold-out"]
        assert "in chunks" in run(*words, "--workers", 1)
        assert load_model(tmp_path / "m").predict_topk(TEXTS).labels.shape == (400, 5)
        error = run(*words, "--workers", 1, "--scheduler", "tcp://x:1", code=1)
        assert "--scheduler and --workers exclude each other" in error


class TestRefusals:
    @pytest.mark.parametrize(
        ("rows", "labels", "message"),
        [
            (blocks(X), Y, "y must be a dask array, series or bag.*Got csr_array. For rows in memory use"),
            (blocks(X), blocks(Y)[1:], "X and y must have the same pieces. Got 9 of X and 8 of y"),
            (blocks(X), blocks(Y, 44)[:9], "X and y must have the same number of rows"),
            (
                [*blocks(X)[:-1], delayed(X[360:].toarray())],
                blocks(Y),
                "X must be dense in all blocks, or sparse in all",
            ),
            (blocks(X * np.nan), blocks(Y), "Input X contains NaN"),
        ],
    )
    def test_rows_that_do_not_fit(self, rows, labels, message, client):
        with pytest.raises(ValueError, match=message):
            DaskCompressedLabelClassifier(**PARTS, client=client).fit(rows, labels)

    def test_settings(self, client, tmp_path):
        for weights, message in ((np.ones(399), "sample_weight.shape == .399"), (np.zeros(400), "non-zero|positive")):
            with pytest.raises(ValueError, match=message):
                DaskCompressedLabelClassifier(**PARTS, client=client).fit(blocks(X), blocks(Y), weights)
        with pytest.raises(ValueError, match="learner must be ridge for rows that are not all in memory"):
            DaskCompressedLabelClassifier(learner="kernel_ridge", client=client).fit(blocks(X), blocks(Y))
        write_examples(tmp_path / "d.jsonl", Examples(TEXTS, LISTS))
        with pytest.raises(ValueError, match="y must be left out"):
            DaskCompressedLabelClassifier(**PARTS, client=client).fit(read(tmp_path / "d.jsonl"), blocks(Y))

    def test_more_than_the_workers_have_room_for(self, client, monkeypatch):
        monkeypatch.setattr("labelsense.dask.pieces.ROW_SHARE", 1e-9)
        with pytest.raises(MemoryError, match="The rows take .* GB, and the 2 workers have room for 0.0 GB. Use more"):
            DaskCompressedLabelClassifier(**PARTS, client=client).fit(blocks(X), blocks(Y))


@pytest.fixture(scope="module")
def processes():
    """Two workers that are processes."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


def prepare(mark, place, number):
    """In a worker: let this call of a function kill it, if none was killed before."""
    if place is None:
        return
    module, *names, name = place.split("/")
    owner, calls = import_module(module), 0
    for inner in names:
        owner = getattr(owner, inner)
    original = getattr(owner, name)

    def call(*args):
        nonlocal calls
        calls += 1
        if calls == number:
            with contextlib.suppress(FileExistsError):  # two may come here at the same time: one of them is killed
                mark.touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        return original(*args)

    setattr(owner, name, call)


KILLS = {
    "conjugate gradients": ("labelsense.regress.chunked/_normal_times", 5),
    "ranker": ("labelsense.refine.label_blocks/_Learn/__call__", 2),
}


@pytest.fixture(scope="module")
def undisturbed(client, tmp_path_factory):
    """The bytes of a refined model by two threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "ROUNDS", 10)
        return refined_bytes(client, tmp_path_factory.mktemp("model"))


def refined_bytes(client, folder):
    """Train by conjugate gradients, with refinement; return the model file."""
    rng = np.random.default_rng(0)
    X = sp.random_array((600, 200), density=0.05, rng=rng, dtype=np.float32).tocsr()
    Y = (sp.random_array((600, 40), density=0.05, rng=rng).tocsr() > 0).astype(np.float32)
    learner, refiner = (
        RidgeLearner(0.5, solver="cg", tol=0.1, random_state=0),
        Refiner(10, n_calibration=50, neighbour_rows=0),
    )
    model = DaskCompressedLabelClassifier(**PARTS | {"learner": learner, "refiner": refiner}, client=client)
    model.fit(blocks(X, 100), blocks(Y, 100)).save(folder / "m")
    return (folder / "m").read_bytes()


class TestTheSameBytes:
    def test_by_one_worker_or_two(self, undisturbed, tmp_path, monkeypatch):
        monkeypatch.setattr(trees, "ROUNDS", 10)
        with (
            LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            assert refined_bytes(client, tmp_path) == undisturbed

    @pytest.mark.parametrize("during", [None, *KILLS])
    def test_by_processes_also_if_one_is_killed(self, during, processes, undisturbed, tmp_path, monkeypatch):
        monkeypatch.setattr(trees, "ROUNDS", 10)
        before = set(processes.run(os.getpid).values())
        processes.run(prepare, tmp_path / "killed", *KILLS.get(during, (None, 0)))
        assert refined_bytes(processes, tmp_path) == undisturbed
        wait_until(lambda: len(processes.scheduler_info()["workers"]) == 2)
        after = set(processes.run(os.getpid).values())
        assert (tmp_path / "killed").exists() == (during is not None)
        assert len(before - after) == (during is not None)


def children(pid):
    """The processes that a process has started, and theirs."""
    found = [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return found + [inner for child in found for inner in children(child)]


def gone(pid):
    """Tell whether a process has ended, or is about to be forgotten."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_until(condition, seconds=120):
    """Wait for what happens soon."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("end", ["Ctrl-C", "an error", "success"])
def test_no_process_is_left(end, tmp_path):
    write_examples(tmp_path / "d.jsonl", Examples(TEXTS, LISTS))
    work = {
        "Ctrl-C": "print('working', flush=True); time.sleep(60)",
        "an error": "print('working', flush=True); time.sleep(1); raise ValueError('no')",
        "success": "print('working', flush=True); time.sleep(1); return train(*args, **options)",
    }
    script = (
        "import signal, sys, time; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from labelsense import cli, dask; train = dask.train_files\n"
        f"def train_files(*args, **options):\n    {work[end]}\n"
        "if __name__ == '__main__':\n    dask.train_files = train_files; cli.main()\n"
    )
    (tmp_path / "program.py").write_text(script)
    options = ["--alpha", "0.5", "--no-hold-out", "--workers", "2"]
    command = [sys.executable, "program.py", "train", "d.jsonl", "-o", "m", *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=subprocess.DEVNULL, cwd=tmp_path) as process:
        assert process.stdout.readline() == b"working\n"
        workers = children(process.pid)
        assert len(workers) >= 2
        if end == "Ctrl-C":
            process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(60) == {"Ctrl-C": 130, "an error": 1, "success": 0}[end]
    wait_until(lambda: all(map(gone, workers)))
    assert {path.name for path in tmp_path.iterdir()} - {"m"} == {"d.jsonl", "program.py"}
