"""Training in bounded memory: the same model as in memory, also after it was killed, and nothing left behind."""

import gzip
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from commands import LISTS, TEXTS, X, Y, run, run_json

from labelsense import RidgeLearner, _checkpoint, load_model, out_of_core
from labelsense.chooser import BUDGETS, choose_refiner
from labelsense.data import Examples, read_examples, store, write_examples
from labelsense.data.formats import detect_format
from labelsense.out_of_core import needs_memory, scratch_folder, train_file, train_stream
from labelsense.refine import Refiner, trees
from labelsense.scale import Choices, evaluate_stream
from labelsense.training import train

PLAIN = {"n_measurements": 30, "compressor": "hadamard", "learner": "ridge", "refiner": None, "random_state": 1}
REFINED = {"refiner": Refiner(10, n_calibration=50, neighbour_rows=0), "hold_out": False}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Files that are larger than memory, in chunks that are smaller."""
    monkeypatch.setattr(out_of_core, "EXPANSION", 1e6)
    monkeypatch.setattr(store, "CHUNK_ROWS", 70)
    monkeypatch.setattr(out_of_core, "CHUNK_ROWS", 70)
    monkeypatch.setattr(trees, "ROUNDS", 10)


def batches(X, Y, size=35):
    return [Examples(X[a : a + size], Y[a : a + size]) for a in range(0, 400, size)]


def split_file(tmp_path, name, examples, parts=3):
    """Write examples to a file, and to a folder in parts."""
    write_examples(tmp_path / name, examples)
    (tmp_path / "parts").mkdir()
    cuts = np.linspace(0, len(examples), parts + 1).astype(int)
    for i, (a, b) in enumerate(pairwise(cuts)):
        part = Examples(examples.X[a:b], examples.Y[a:b])
        write_examples(tmp_path / "parts" / f"part-{i}.{name.partition('.')[2]}", part)
    return tmp_path / name, tmp_path / "parts"


class TestEqualsTrainingInMemory:
    @pytest.mark.parametrize(
        ("X", "Y", "options"),
        [
            (TEXTS, LISTS, {}),
            (TEXTS, LISTS, {"features": "hashing", "n_features": 256, "compressor": "whitened"}),
            (TEXTS, LISTS, {"n_features": 50, "hold_out": False, "alpha": 0.5, "updatable": True}),
            (X, Y, {}),
            (0.5 * X, Y, {"hold_out": False}),
        ],
        ids=["words", "hashing", "updatable", "counts", "features"],
    )
    def test_model_and_report(self, X, Y, options, tmp_path):
        options = PLAIN | options
        expected, report = train(Examples(X, Y), Choices(**options))
        model, found = train_stream(batches(X, Y), tmp_path, Choices(**options), memory=1e9)
        assert found.pop("out_of_core")
        for name in ("rows", "features", "n_features", "labels", "measurements", "learner", "alpha", "decoder"):
            assert found[name] == (report[name] if isinstance(report[name], str) else pytest.approx(report[name]))
        for name in report["expected"].keys() - {"rows", "F1"}:
            assert found[name] == pytest.approx(report["expected"][name])
        np.testing.assert_allclose(model.measure(X), expected.measure(X), atol=1e-4)
        labels = [each.predict_topk(X).labels for each in (model, expected)]
        assert (labels[0] == labels[1]).mean() > 0.999
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(load_model(tmp_path / "model").predict_topk(X).labels, labels[0])
        if options.get("updatable"):
            for each in (model, expected):
                each.partial_fit(X[:50], Y[:50])
            np.testing.assert_allclose(model.measure(X), expected.measure(X), atol=1e-4)

    def test_refined(self, tmp_path):
        choices = Choices(**PLAIN | {"hold_out": False, "alpha": 0.5, "refiner": "auto"})
        model = train_stream(batches(TEXTS, LISTS), tmp_path, choices, memory=1e9).model
        alone = choose_refiner(BUDGETS["balanced"], neighbours=False)
        expected = choices.make("words")[0].set_params(refiner=alone).fit(TEXTS, LISTS)
        assert str(model.report_) == str(expected.report_)
        assert model.threshold_ == pytest.approx(expected.threshold_, abs=1e-3)
        P, Q = (each.predict_proba(TEXTS) for each in (model, expected))
        differences = abs(P - Q).data  # of the last digit, and now and then on the other side of a tree's threshold
        assert (np.mean(differences) < 1e-4, np.mean(differences > 1e-3) < 0.01) == (True, True)
        labels = [each.predict_topk(TEXTS).labels for each in (model, expected)]
        assert (labels[0] == labels[1]).all(axis=1).mean() > 0.99
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(load_model(tmp_path / "model").predict_topk(TEXTS).labels, labels[0])

    @pytest.mark.parametrize("rare", [1.0, 1e9], ids=["random rows", "some labels"])
    def test_chooses_the_penalty_and_holds_out_the_last_rows(self, rare, tmp_path, monkeypatch):
        monkeypatch.setattr("labelsense.chooser.RARE", rare)
        monkeypatch.setitem(BUDGETS, "balanced", replace(BUDGETS["balanced"], sample=150, kernel_seconds=0))
        order = np.argsort([row[0] for row in LISTS], kind="stable")  # in runs
        texts, lists = [TEXTS[i] for i in order], [LISTS[i] for i in order]
        choices = Choices(**REFINED, n_measurements=30, compressor="hadamard")
        model = train_stream(batches(texts, lists), tmp_path, choices, memory=1e9).model
        expected = choices.make("words")[0].fit(texts, lists)
        assert isinstance(model.learner_, RidgeLearner)
        assert model.learner_.alpha_ == expected.learner_.alpha_
        assert len(model.report_.tried) > 2
        assert "rows next to each other have labels in common" in model.report_.notes[0]
        assert model.report_.expected_last
        assert str(model.report_) == str(expected.report_)

    def test_labels_with_names(self, tmp_path):
        parts = [Examples(part.X, part.Y, labels=[f"tag {j}" for j in range(40)]) for part in batches(X, Y)]
        model = train_stream(parts, tmp_path, Choices(**PLAIN), memory=1e9).model
        expected = train(Examples(X, Y, labels=parts[0].labels), Choices(**PLAIN)).model
        assert model.labels_ == expected.labels_
        np.testing.assert_allclose(model.measure(X), expected.measure(X), atol=1e-4)

    def test_conjugate_gradients(self, tmp_path):
        rng = np.random.default_rng(0)
        X = sp.random_array((400, 3000), density=0.01, rng=rng, dtype=np.float32).tocsr()
        expected = train(Examples(X, Y), Choices(**PLAIN, alpha=1.0, hold_out=False)).model
        model = train_stream(batches(X, Y), tmp_path, Choices(**PLAIN, alpha=1.0, hold_out=False), memory=1e8).model
        assert model.learner_.solver_ == "cg"  # X'X takes more than there is
        np.testing.assert_allclose(model.measure(X), expected.measure(X), atol=0.02)  # to tol

    @pytest.mark.parametrize("name", ["d.jsonl", "d.jsonl.gz", "d.tsv", "d.parquet", "d.xc", "d.libsvm"])
    def test_every_format_and_folders_of_parts(self, name, tmp_path):
        examples = Examples(X, Y) if name in ("d.xc", "d.libsvm") else Examples(TEXTS, LISTS)
        file, folder = split_file(tmp_path, name, examples)
        expected = train_file(file, tmp_path / "m0", PLAIN, memory=1e15).model
        for i, path in enumerate((file, folder)):
            training = train_file(path, tmp_path / f"m{i + 1}", PLAIN, memory=1e9)
            assert training.report["out_of_core"]
            np.testing.assert_allclose(training.model.measure(examples.X), expected.measure(examples.X), atol=1e-4)
        assert not list(tmp_path.glob(".*"))

    def test_the_measure_of_a_stream_is_that_of_all_rows(self):
        model = train(Examples(TEXTS, LISTS), Choices(**PLAIN)).model
        found = evaluate_stream(model, batches(TEXTS, LISTS))
        assert found.pop("evaluated_on") == "examples"
        expected = model.evaluate(TEXTS, LISTS)
        assert found == pytest.approx({name: expected[name] for name in found})
        assert {"P@1", "recall@3", "nDCG@5"} <= found.keys()
        with pytest.raises(ValueError, match="examples has no rows"):
            evaluate_stream(model, [Examples([], [])])


class TestRefusals:
    def test_refinement_that_does_not_fit(self, tmp_path):
        with pytest.raises(MemoryError, match=r"Refinement takes about 0.00 GB, and 0.00 GB are allowed"):
            train_stream(batches(TEXTS, LISTS), tmp_path, Choices(**PLAIN | REFINED), memory=1e5)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"learner": "kernel_ridge"}, "learner must be ridge for rows that are not all in memory. Got KernelRidge"),
            ({"decoder": "group_omp"}, "decoder must learn nothing for rows that are not all in memory. Got GroupOMP"),
            ({"features": "counts"}, "features must be words, hashing or characters: the rows are texts. Got counts"),
        ],
    )
    def test_what_needs_all_rows(self, options, message, tmp_path):
        with pytest.raises(ValueError, match=message):
            train_stream(batches(TEXTS, LISTS), tmp_path, Choices(**PLAIN | options), memory=1e9)

    @pytest.mark.parametrize(
        ("labels", "message"), [([], "y has no labels: every row is empty"), (["a"], "y has only one label")]
    )
    def test_labels_that_teach_nothing(self, labels, message, tmp_path):
        with pytest.raises(ValueError, match=message):
            train_stream([Examples(TEXTS, [labels] * 400)], tmp_path, Choices(**PLAIN), memory=1e9)

    def test_images(self, tmp_path):
        with pytest.raises(ValueError, match="features must not be images"):
            train_stream([Examples(["a.png"], [["a"]], images=True)], tmp_path, Choices(), memory=1e9)

    def test_parts_of_several_formats(self, tmp_path):
        for name in ("a.jsonl", "b.tsv"):
            write_examples(tmp_path / name, Examples(TEXTS, LISTS))
        assert detect_format(tmp_path) == "parts"
        with pytest.raises(ValueError, match="expected files of one format, got jsonl, tsv"):
            read_examples(tmp_path)
        (tmp_path / "b.tsv").rename(tmp_path / "b.dat")
        with pytest.raises(ValueError, match=r"b.dat: expected a name that ends in .*\.jsonl"):
            read_examples(tmp_path)


def test_parts_of_libsvm_are_numbered_alike(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:2\n")
    (tmp_path / "b.svm").write_text("0 0:1 3:1\n")
    np.testing.assert_array_equal(read_examples(tmp_path).X.toarray(), [[0, 2, 0, 0], [1, 0, 0, 1]])


class Killed(BaseException):
    """Stands for the end of a process: whoever catches it would be wrong to."""


def kill_at(monkeypatch, number, after=False):
    """Stop at the write of a file of this number, before it or after it; return what counts the writes."""
    written = 0
    write = _checkpoint.write_checked

    def stop(*args):
        nonlocal written
        written += 1
        if written == number and not after:
            raise Killed
        write(*args)
        if written == number:
            raise Killed

    monkeypatch.setattr(_checkpoint, "write_checked", stop)
    monkeypatch.setattr(store, "write_checked", stop)
    return lambda: written


class TestKilled:
    @pytest.mark.parametrize(
        ("solver_memory", "options", "kills", "many_rows"),
        [
            (1e9, {}, 6, 1e4),
            (9e5, {}, 6, 1e4),
            (1e9, REFINED, 4, 1e4),
            (1e9, REFINED, 4, 100),
            (9e5, REFINED | {"alpha": 1.0}, 3, 100),
        ],
        ids=["primal", "cg", "primal refined", "primal refined, many rows", "cg refined, many rows"],
    )
    def test_goes_on_and_ends_in_the_same_bytes(self, solver_memory, options, kills, many_rows, tmp_path, monkeypatch):
        monkeypatch.setattr(_checkpoint, "EVERY", 0)
        monkeypatch.setattr(_checkpoint, "SHARE", 0)
        monkeypatch.setattr(out_of_core, "OVERHEAD", 0)
        monkeypatch.setattr("labelsense.refine.refiner.MANY_ROWS", many_rows)
        rng = np.random.default_rng(0)
        rows = sp.random_array((400, 200), density=0.05, rng=rng, dtype=np.float32).tocsr()
        monkeypatch.setattr("labelsense.regress.iterative.HELD_OUT_TOL", 0.3)  # fewer steps

        def learn(name):
            choices = Choices(**PLAIN | options)
            model, report = train_stream(batches(rows, Y), tmp_path / name, choices, memory=solver_memory)
            model.save(tmp_path / "model")
            return (tmp_path / "model").read_bytes(), report | {"seconds": 0}

        with monkeypatch.context() as patch:
            count = kill_at(patch, 10**6)
            expected = learn("undisturbed")
        for number in np.unique(np.linspace(1, count(), kills).astype(int)):
            with monkeypatch.context() as patch:
                kill_at(patch, number, after=number % 2 == 0)
                with pytest.raises(Killed):
                    learn(f"killed {number}")
            assert learn(f"killed {number}") == expected, number

    @pytest.mark.parametrize(
        ("place", "number", "left"),
        [
            ("store.write_checked", 4, "rows/000002.safetensors"),
            ("chunked.Shortlist.__call__", 2, "all/chunks-0000/complete.json"),
            ("label_blocks._Learn.__call__", 3, "all/fold-0001/ranker-0001.safetensors"),
        ],
        ids=["rows", "candidates", "ranker"],
    )
    def test_by_the_system(self, place, number, left, tmp_path):
        """A real kill -9, in the middle of a call of a function; then the same command."""
        write_examples(tmp_path / "d.jsonl", Examples(TEXTS, LISTS))
        words = ["train", tmp_path / "d.jsonl", "-m", "30", "--alpha", "1", "--memory", "1G", "-o"]
        run(*words, tmp_path / "expected")
        script = (
            "import os, sys; from labelsense import cli, out_of_core as o; from labelsense.data import store\n"
            "from labelsense.refine import chunked, label_blocks, trees\n"
            "store.CHUNK_ROWS = o.CHUNK_ROWS = 70; o.EXPANSION = 1e6; trees.ROUNDS = 10\n"
            f"original, calls = {place}, 0\n"
            "def kill(*args):\n"
            "    global calls; calls += 1\n"
            f"    if calls == {number}: os.kill(os.getpid(), 9)\n"
            "    return original(*args)\n"
            f"{place} = kill; sys.argv[0] = 'labelsense'; cli.main()"
        )
        command = [sys.executable, "-c", script, *map(str, words), str(tmp_path / "m")]
        assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == -signal.SIGKILL
        scratch = tmp_path / ".m.scratch"
        assert (scratch / left).exists()
        assert not (tmp_path / "m").exists()
        run(*words, tmp_path / "m")
        assert (tmp_path / "m").read_bytes() == (tmp_path / "expected").read_bytes()
        assert not scratch.exists()


class TestScratch:
    def settings(self, folder, memory=None, seed=0, default=100):
        with scratch_folder(folder, {"seed": seed}, {"memory": memory}, {"memory": default}) as known:
            kept = (folder / "work").exists()
            (folder / "work").mkdir(exist_ok=True)
            saved = (folder / "settings.json").read_text()
        assert not folder.exists()
        folder.mkdir()  # as a process that was killed leaves it
        (folder / "work").mkdir()
        (folder / "settings.json").write_text(saved)
        return known["memory"], kept

    def test_is_gone_on_with_if_the_settings_are_the_same(self, tmp_path):
        folder = tmp_path / "s"
        assert self.settings(folder) == (100, False)
        assert self.settings(folder, default=200) == (100, True)  # what is free has changed
        assert self.settings(folder, memory=100) == (100, True)
        assert self.settings(folder, memory=300) == (300, False)
        assert self.settings(folder, seed=1) == (100, False)

    def test_of_another_version_is_not_used(self, tmp_path, monkeypatch):
        self.settings(tmp_path / "s")
        monkeypatch.setattr(out_of_core, "__version__", "0.0.9")
        assert self.settings(tmp_path / "s") == (100, False)

    def test_a_second_process_is_refused(self, tmp_path):
        with scratch_folder(tmp_path / "s", {}, {}, {}):
            with pytest.raises(ValueError, match="is in use: another process trains the same model"):
                scratch_folder(tmp_path / "s", {}, {}, {}).__enter__()
            assert (tmp_path / "s").exists()

    @pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, MemoryError, OSError])
    def test_is_removed_after_an_error(self, error, tmp_path, monkeypatch):
        write_examples(tmp_path / "d.jsonl", Examples(TEXTS, LISTS))

        def fail(*_, **__):
            assert (tmp_path / ".m.scratch" / "rows").exists()
            raise error

        monkeypatch.setattr("labelsense.scale.fit_chunks", fail)
        with pytest.raises(error):
            train_file(tmp_path / "d.jsonl", tmp_path / "m", PLAIN, memory=1e9)
        assert [path.name for path in tmp_path.iterdir()] == ["d.jsonl"]

    def test_is_removed_after_ctrl_c(self, tmp_path):
        """A real signal, while candidates are looked for."""
        write_examples(tmp_path / "d.jsonl", Examples(TEXTS, LISTS))
        script = (
            "import signal, time; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "from pathlib import Path; from labelsense import out_of_core as o; from labelsense.refine import chunked\n"
            "from labelsense.refine import Refiner; o.EXPANSION = 1e6\n"
            "class Slow(chunked.Shortlist):\n"
            "    def __call__(self, chunk):\n        print('working', flush=True); time.sleep(60)\n"
            "chunked.Shortlist = Slow\n"
            "choices = {'n_measurements': 30, 'alpha': 1.0, 'hold_out': False, 'refiner': 'auto'}\n"
            "o.train_file(Path('d.jsonl'), Path('m'), choices, memory=1e9)\n"
        )
        command = [sys.executable, "-c", script]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path) as process:
            assert process.stdout.readline() == b"working\n"
            assert (tmp_path / ".m.scratch").exists()
            process.send_signal(signal.SIGINT)
            assert process.wait(30) != 0
        assert [path.name for path in tmp_path.iterdir()] == ["d.jsonl"]

    def test_of_other_data_is_emptied(self, tmp_path, monkeypatch):
        write_examples(tmp_path / "d.jsonl", Examples(TEXTS, LISTS))
        with monkeypatch.context() as patch:
            kill_at(patch, 3, after=True)
            patch.setattr("shutil.rmtree", lambda folder: None)  # as if it had been killed
            with pytest.raises(Killed):
                train_file(tmp_path / "d.jsonl", tmp_path / "m", PLAIN, memory=1e9)
        assert (tmp_path / ".m.scratch").exists()
        write_examples(tmp_path / "d.jsonl", Examples(TEXTS[::-1], LISTS[::-1]))
        train_file(tmp_path / "d.jsonl", tmp_path / "m", PLAIN, memory=1e9)
        train_file(tmp_path / "d.jsonl", tmp_path / "n", PLAIN, memory=1e9)
        assert (tmp_path / "m").read_bytes() == (tmp_path / "n").read_bytes()


class TestCommand:
    def test_memory_decides(self, tmp_path):
        write_examples(tmp_path / "d.jsonl", Examples(TEXTS, LISTS))
        command = ["train", tmp_path / "d.jsonl", "-o", tmp_path / "m", "--learner", "ridge", "--budget", "fast"]
        reports = [run_json(*command, "--memory", m) for m in ("999T", "1G")]
        assert [report.get("out_of_core", False) for report in reports] == [False, True]
        assert reports[0]["expected"]["P@1"] == pytest.approx(reports[1]["expected"]["P@1"], abs=0.02)
        assert "in chunks" in run("train", tmp_path / "d.jsonl", "-o", tmp_path / "m", "--memory", "0.5g")
        others = run_json(
            "train", tmp_path / "d.jsonl", "-o", tmp_path / "m", "--memory", "1G", "--test", tmp_path / "d.jsonl"
        )
        assert others["evaluated_on"].endswith("d.jsonl")

    @pytest.mark.parametrize("memory", ["much", "0", "-3G", "2X"])
    def test_memory_is_a_number(self, memory, docs, tmp_path):
        error = run("train", docs, "-o", tmp_path / "m", f"--memory={memory}", code=1)
        assert f"--memory must be a number of bytes, such as 500M or 2G. Got {memory}." in error

    def test_dask_is_optional(self, docs, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "dask", None)
        monkeypatch.delitem(sys.modules, "labelsense.dask", raising=False)
        error = run("train", docs, "-o", tmp_path / "m", "--workers", 2, code=1)
        assert 'labelsense.dask needs dask and distributed: pip install "labelsense[dask]".' in error

    def test_what_a_file_needs(self, tmp_path):
        (tmp_path / "a.jsonl").write_bytes(b"x" * 100)
        with gzip.open(tmp_path / "b.jsonl.gz", "wb") as file:
            file.write(os.urandom(100))
        packed = (tmp_path / "b.jsonl.gz").stat().st_size
        assert needs_memory(tmp_path / "a.jsonl") == 700e6
        assert needs_memory(tmp_path) == 700e6 + 4e6 * packed
        assert needs_memory(Path("-")) == 0


@pytest.fixture
def docs(tmp_path):
    write_examples(tmp_path / "docs.jsonl", Examples(TEXTS, LISTS))
    return tmp_path / "docs.jsonl"


def test_progress_is_reported(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("labelsense._progress.EVERY", 0)
    write_examples(tmp_path / "d.jsonl", Examples(TEXTS, LISTS))
    with caplog.at_level("INFO", "labelsense"):
        run("train", tmp_path / "d.jsonl", "-o", tmp_path / "m", "--memory", "1G")
    for step in (f"reading {tmp_path / 'd.jsonl'}", "features: 0 %", "training on all rows"):
        assert step in caplog.text
    assert json.loads(run("inspect", tmp_path / "m", "--json"))
