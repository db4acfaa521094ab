"""The command line, as a person at a terminal and as a program in a pipe would use it."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from labelsense import CompressedLabelClassifier, OneVsAllClassifier, cli, load_model
from labelsense.data import Examples, load_debtags, make_tagged_documents, write_examples

X, Y = make_tagged_documents(400, 100, n_labels=40, random_state=0)
TEXTS = [" ".join(f"word{j}" for j in X.indices[a:b]) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
LISTS = [[f"tag {j}" for j in Y.indices[a:b]] for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]


def run(*words, stdin=None, code=0):
    """Run a command in this process; return what it wrote to standard output, or to standard error if it fails."""
    result = CliRunner().invoke(cli.app, [str(word) for word in words], input=stdin)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result.stdout if code == 0 else result.stderr


def run_json(*words, **options):
    return json.loads(run(*words, "--json", **options))


@pytest.fixture
def docs(tmp_path):
    path = tmp_path / "docs.jsonl"
    write_examples(path, Examples(TEXTS, LISTS))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    write_examples(folder / "docs.jsonl", Examples(TEXTS, LISTS))
    run("train", folder / "docs.jsonl", "-o", folder / "tags.model", "--budget", "fast")
    return folder / "tags.model"


class TestTrain:
    def test_needs_no_option_but_the_output_and_prints_its_choices(self, docs, tmp_path):
        out = run("train", docs, "-o", tmp_path / "tags.model")
        for word in (
            "400 rows",
            "40 labels",
            "microseconds",
            "WhitenedCompressor",
            "alpha",
            "tried",
            "P@1",
            "expected",
        ):
            assert word in out
        assert max(map(len, out.splitlines())) <= 80 + len(str(tmp_path))
        assert load_model(tmp_path / "tags.model").predict_topk(TEXTS[:1]).labels[0, 0].startswith("tag ")

    def test_what_it_measures_is_out_of_sample(self, docs, tmp_path):
        for option, rows in (("--refine", 400), ("--no-refine", 40)):
            report = run_json("train", docs, "-o", tmp_path / "tags.model", "--budget", "fast", option)
            assert report["expected"]["rows"] == rows
            assert 0.5 < report["expected"]["P@1"] < run_json("evaluate", tmp_path / "tags.model", docs)["P@1"]

    def test_is_the_classifier_without_settings(self, docs, tmp_path):
        run("train", docs, "-o", tmp_path / "a")
        model = CompressedLabelClassifier(features="words", random_state=0, n_jobs=-1).fit(TEXTS, LISTS)
        model.save(tmp_path / "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    def test_the_papers_method_can_be_had(self, docs, tmp_path):
        options = ["--compressor", "hadamard", "--learner", "ridge", "--decoder", "omp", "--no-refine", "--no-hold-out"]
        report = run_json("train", docs, "-o", tmp_path / "m", *options)
        assert report["chosen"]["refiner"] == "none"
        assert report["tried"] == []
        assert "expected on new rows" not in run("train", docs, "-o", tmp_path / "m", *options)

    def test_the_same_seed_writes_the_same_bytes(self, docs, tmp_path):
        for name in ("a", "b"):
            run("train", docs, "-o", tmp_path / name, "--seed", 3, "--budget", "fast")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    @pytest.mark.parametrize("suffix", [".xc.txt.gz", ".svm", ".arff", ""])
    def test_learns_from_features_in_any_format(self, suffix, tmp_path):
        names = [f"tag {j}" for j in range(40)] if suffix == ".arff" else None
        write_examples(tmp_path / f"data{suffix}", Examples(X, Y, labels=names))
        options = ["--learner", "ridge", "--no-refine"]
        report = run_json("train", tmp_path / f"data{suffix}", "-o", tmp_path / "tags.model", *options)
        assert report["features"] == "counts"
        assert report["expected"]["P@1"] > 0.5

    def test_evaluates_on_a_file(self, docs, tmp_path):
        report = run_json("train", docs, "-o", tmp_path / "tags.model", "--test", docs, "--no-refine")
        assert report["evaluated_on"] == str(docs)
        assert report["P@1"] == run_json("evaluate", tmp_path / "tags.model", docs)["P@1"]

    def test_takes_all_choices(self, docs, tmp_path):
        choices = "--features hashing -m 30 --compressor gaussian --learner kernel_ridge --alpha 0.5 --decoder foba"
        choices += " --budget fast --held-out rows"
        report = run_json("train", docs, "-o", tmp_path / "tags.model", *choices.split())
        assert report["measurements"] == 30
        assert (report["learner"], report["alpha"], report["decoder"]) == ("KernelRidgeLearner", 0.5, "FoBaDecoder")

    def test_a_whitened_matrix_comes_with_a_penalty(self, docs, tmp_path):
        model = tmp_path / "tags.model"
        report = run_json("train", docs, "-o", model, "--compressor", "whitened", "-m", 30, "--no-refine")
        assert report["expected"]["P@1"] > 0.5
        assert load_model(model).decoder_.penalty == 0.1
        assert "by 30 measurements" in run("inspect", model)

    def test_reads_standard_input(self, docs, tmp_path):
        assert run_json("train", "-", "-o", tmp_path / "m", stdin=docs.read_bytes())["rows"] == 400

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                ["--features", "counts"],
                "--features must be words, hashing or characters: the rows are texts",
            ),
            (["--features", "nonsense"], "--features must be one of 'auto', 'words'"),
            (["--budget", "magic"], "--budget must be one of 'fast', 'balanced', 'accurate'. Got 'magic'"),
            (["--held-out", "magic"], "--held-out must be one of 'auto', 'rows', 'last'. Got 'magic'"),
            (["-m", "many"], "--measurements must be a number or auto. Got many"),
            (["-m", "5000"], "--measurements must be between 1 and 64. Got 5000"),
            (["--measurements", "0"], "--measurements must be between 1 and 64. Got 0"),
            (["--alpha", "-1"], "--alpha must be finite and at least 0. Got -1"),
            (
                ["--decoder", "magic"],
                "--decoder must be one of 'omp', 'foba', 'cosamp', 'lasso', 'correlation', 'multistage_lasso'",
            ),
            (["--compressor", "magic"], "--compressor must be one of 'hadamard'"),
            (["--learner", "magic"], "--learner must be one of 'ridge', 'kernel_ridge', 'auto'. Got 'magic'"),
            (
                ["--learner", "kernel_ridge", "--updatable"],
                "--learner must be ridge with --updatable: others cannot be updated",
            ),
            (["--text-fields", "title"], "docs.jsonl, line 1: expected a text under 'title', got ['text', 'labels']"),
            (["--format", "xc"], "docs.jsonl, line 1: expected"),
            (["--test", "nowhere.jsonl"], "nowhere.jsonl: No such file"),
        ],
    )
    def test_wrong_options_fail_in_one_line_and_write_nothing(self, options, message, docs, tmp_path):
        error = run("train", docs, "-o", tmp_path / "tags.model", *options, code=1)
        assert message in error
        assert error.count("\n") == 1
        assert not (tmp_path / "tags.model").exists()

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "the file is empty"),
            (b"just some text\n", "line 1: expected a JSON object"),
            (b'{"text": "a"}\n', "No field is called 'labels', 'tags', 'subjects' or 'subject_uris'"),
            (b'{"text": "a", "labels": ["x"]}\n{"text": 3}\n', "line 2: expected"),
            (b'{"text": "a b", "labels": []}\n{"text": "b", "labels": []}\n', "label"),
        ],
    )
    def test_files_that_cannot_be_learned_from(self, content, message, tmp_path):
        (tmp_path / "bad.jsonl").write_bytes(content)
        assert message in run("train", tmp_path / "bad.jsonl", "-o", tmp_path / "m", code=1)

    def test_missing_input_and_output(self, docs, tmp_path):
        assert "nowhere: No such file" in run("train", "nowhere", "-o", tmp_path / "m", code=1)
        assert "none/m: No such file or directory" in run("train", docs, "-o", tmp_path / "none" / "m", code=1)
        assert "Missing option '-o'" in run("train", docs, code=2)


class TestUpdate:
    def test_an_updated_model_equals_one_trained_on_all_rows(self, tmp_path):
        first, rest = slice(0, 300), slice(300, 400)
        for name, rows in (("first", first), ("rest", rest), ("all", slice(0, 400))):
            write_examples(tmp_path / f"{name}.jsonl", Examples(TEXTS[rows], LISTS[rows]))
        options = ["--updatable", "--alpha", "0.5", "-m", "40", "--no-hold-out", "--features", "hashing", "--no-refine"]
        options += ["--n-features", "256", "--compressor", "hadamard"]
        run("train", tmp_path / "all.jsonl", "-o", tmp_path / "all.model", *options)
        run("train", tmp_path / "first.jsonl", "-o", tmp_path / "tags.model", *options)
        assert run_json("update", tmp_path / "tags.model", tmp_path / "rest.jsonl")["rows"] == 100
        updated, whole = load_model(tmp_path / "tags.model"), load_model(tmp_path / "all.model")
        assert updated.labels_ == whole.labels_
        np.testing.assert_allclose(updated.measure(TEXTS), whole.measure(TEXTS), atol=1e-5)
        assert np.array_equal(updated.predict_topk(TEXTS).labels, whole.predict_topk(TEXTS).labels)

    def test_new_labels_are_counted(self, tmp_path):
        write_examples(tmp_path / "a.jsonl", Examples(TEXTS[:50], [["x", "y"], ["z"]] * 25))
        write_examples(tmp_path / "b.jsonl", Examples(TEXTS[50:52], [["x"], ["new"]]))
        options = ["--updatable", "--no-refine", "--no-hold-out", "-m", "2", "--n-features", "64"]
        run("train", tmp_path / "a.jsonl", "-o", tmp_path / "m", *options)
        assert run_json("update", tmp_path / "m", tmp_path / "b.jsonl", "-o", tmp_path / "n")["new_labels"] == 1
        assert load_model(tmp_path / "m").labels_ == ["x", "y", "z"]
        assert load_model(tmp_path / "n").labels_ == ["x", "y", "z", "new"]

    def test_a_model_that_kept_nothing_is_refused(self, model, docs):
        before = model.read_bytes()
        assert "without --updatable and has kept nothing to go on from. Train it again with --updatable" in run(
            "update", model, docs, code=1
        )
        assert model.read_bytes() == before

    def test_an_empty_file_is_refused(self, model, tmp_path):
        (tmp_path / "empty.jsonl").write_bytes(b"")
        assert "the file is empty" in run("update", model, tmp_path / "empty.jsonl", code=1)


class TestPredict:
    def test_one_json_object_a_row(self, model, docs):
        answers = [json.loads(line) for line in run("predict", model, docs).splitlines()]
        top = load_model(model).predict_topk(TEXTS)
        assert [answer["labels"] for answer in answers] == top.labels.tolist()

    def test_plain_text_from_a_pipe(self, model):
        answer = json.loads(run("predict", model, "-k", 2, stdin=TEXTS[0] + "\n"))
        assert len(answer["labels"]) == len(answer["scores"]) == 2

    def test_threshold_and_output_file(self, model, docs, tmp_path):
        run("predict", model, docs, "--threshold", 0.5, "-o", tmp_path / "out.jsonl")
        answers = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        assert len(answers) == 400
        assert all(score >= 0.5 for answer in answers for score in answer["scores"])

    def test_a_table_for_people(self, model, docs, monkeypatch):
        screen = cli.console.Console(force_terminal=True, color_system=None, width=60, file=io.StringIO())
        for module in (cli.predict, cli.console):
            monkeypatch.setattr(module, "console", screen)
        run("predict", model, docs)
        lines = screen.file.getvalue().splitlines()
        assert "labels" in lines[0]
        assert all(len(line) <= 60 for line in lines)

    @pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n", b""])
    def test_a_file_that_is_no_model(self, content, docs, tmp_path):
        (tmp_path / "bad.model").write_bytes(content)
        assert "is not a labelsense model" in run("predict", tmp_path / "bad.model", docs, code=1)

    def test_a_model_that_was_saved_in_python(self, docs, tmp_path):
        write_examples(tmp_path / "data.svm", Examples(X, Y))
        OneVsAllClassifier().fit(X, Y).save(tmp_path / "m")
        assert len(run("predict", tmp_path / "m", tmp_path / "data.svm").splitlines()) == 400
        assert "OneVsAllClassifier, which cannot be updated" in run(
            "update", tmp_path / "m", tmp_path / "data.svm", code=1
        )

    def test_a_missing_model(self, docs):
        assert "There is no model file nowhere" in run("predict", "nowhere", docs, code=1)

    def test_features_for_a_model_of_texts(self, model, tmp_path):
        write_examples(tmp_path / "data.svm", Examples(X, Y))
        assert "data.svm holds features, and the model has learned from texts" in run(
            "predict", model, tmp_path / "data.svm", code=1
        )

    def test_texts_for_a_model_of_features(self, docs, tmp_path):
        write_examples(tmp_path / "data.svm", Examples(X, Y))
        run("train", tmp_path / "data.svm", "-o", tmp_path / "m", "--no-refine", "--no-hold-out")
        assert "docs.jsonl holds texts, and the model has learned from features" in run(
            "predict", tmp_path / "m", docs, code=1
        )

    def test_rows_narrower_than_the_model_are_filled_up(self, tmp_path):
        write_examples(tmp_path / "data.svm", Examples(X, Y))
        run("train", tmp_path / "data.svm", "-o", tmp_path / "m", "--no-refine", "--no-hold-out")
        assert len(run("predict", tmp_path / "m", stdin="3 1:1\n").splitlines()) == 1


class TestEvaluate:
    def test_figures(self, model, docs):
        out = run("evaluate", model, docs, "-k", 1, "-k", 10)
        assert out.split()[:5] == ["400", "rows,", "percent", "@1", "@10"]
        assert 50 < float(out.split()[6]) <= 100

    def test_tells_of_rankings_and_of_sets(self, model, docs):
        out = run("evaluate", model, docs)
        for word in ("nDCG", "propensity-scored", "labels covered", "F1", "micro", "labels a row"):
            assert word in out
        assert run_json("evaluate", model, docs)["F1"] == load_model(model).evaluate(TEXTS, LISTS)["F1"]

    def test_writes_the_figures_of_labels_and_draws(self, model, docs, tmp_path):
        run("evaluate", model, docs, "--per-label", tmp_path / "labels.tsv", "--plot", tmp_path / "a.png")
        lines = (tmp_path / "labels.tsv").read_text().splitlines()
        assert lines[0].split("\t") == ["label", "count", "predicted", "precision", "recall", "f1"]
        assert len(lines) == 41
        assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")

    def test_outputs_are_checked_before_the_work(self, docs, tmp_path):
        assert "ends in .tsv or .csv" in run("evaluate", "nowhere", docs, "--per-label", tmp_path / "a.txt", code=1)
        assert "none/a.png: No such" in run("evaluate", "nowhere", docs, "--plot", tmp_path / "none" / "a.png", code=1)

    def test_rows_without_labels_cannot_be_compared(self, model):
        assert "has no labels" in run("evaluate", model, "-", stdin="some text\n", code=1)


class TestInspectConvertDatasets:
    def test_inspect_shows_settings_and_arrays(self, model):
        out = run("inspect", model)
        assert "CompressedLabelClassifier" in out
        assert "words" in out
        assert "40 labels, by 40 measurements" in out
        assert "model.learner_._solution.0" in out
        assert run_json("inspect", model)["format"] == 1

    def test_inspect_refuses_other_files(self, docs):
        assert "is not a labelsense model" in run("inspect", docs, code=1)

    def test_convert_there_and_back(self, docs, tmp_path):
        run("convert", docs, tmp_path / "docs.tsv.gz")
        assert gzip.decompress((tmp_path / "docs.tsv.gz").read_bytes()).startswith(b'"text"\t"labels"\n')
        run("convert", tmp_path / "docs.tsv.gz", tmp_path / "again.jsonl")
        assert (tmp_path / "again.jsonl").read_bytes() == docs.read_bytes()

    @pytest.mark.parametrize(
        ("target", "message"), [("docs.xc", "these examples are texts"), ("docs.doc", "does not tell the format")]
    )
    def test_convert_to_what_cannot_be(self, target, message, docs, tmp_path):
        assert message in run("convert", docs, tmp_path / target, code=1)
        assert sorted(file.name for file in tmp_path.iterdir()) == ["docs.jsonl"]

    def test_datasets_are_listed_with_where_they_are(self):
        entries = {entry["name"]: entry for entry in run_json("datasets")}
        assert entries["debtags"]["where"] == "bundled"
        assert all({"licence", "rows", "bytes", "home"} <= set(entry) for entry in entries.values())
        assert "delicious" in run("datasets")
        assert "8,760 rows" in run("datasets", "debtags")

    def test_an_unknown_dataset_names_the_known_ones(self):
        assert "name must be one of debtags, delicious" in run("datasets", "imagenet", code=1)


class TestAdvise:
    def test_advice_on_a_file(self, docs, tmp_path):
        out = run("advise", docs, "--plot", tmp_path / "advice.png")
        assert "measurements" in out
        assert max(map(len, out.splitlines())) <= 80
        assert (tmp_path / "advice.png").read_bytes().startswith(b"\x89PNG")

    def test_advice_for_programs(self, docs):
        advice = run_json("advise", docs, "-k", 3, "--sample", 200, "--budget", "fast")
        assert advice["k"] == 3

    @pytest.mark.parametrize("options", [["--budget", "balanced"], ["--learner", "ridge", "--no-refine", "--seed", 4]])
    def test_advice_is_what_train_does(self, options, docs, tmp_path):
        advice = run_json("advise", docs, *options)
        report = run_json("train", docs, "-o", tmp_path / "m", "--no-hold-out", *options)
        assert advice["chosen"] == report["chosen"]
        assert advice["tried"] == report["tried"]
        if report["expected"]:
            assert advice["expected"] == pytest.approx(report["expected"])

    def test_rows_without_labels(self, tmp_path):
        assert "has no labels" in run("advise", "-", stdin="some text\n", code=1)

    def test_too_few_rows(self, tmp_path):
        write_examples(tmp_path / "few.jsonl", Examples(TEXTS[:1], LISTS[:1]))
        assert "rows" in run("advise", tmp_path / "few.jsonl", code=1)


class TestImages:
    @pytest.fixture
    def folder(self, tmp_path):
        """Draw striped images: across or upright, wide or narrow."""
        (tmp_path / "drawn").mkdir()
        rng, lines = np.random.default_rng(0), []
        for i in range(60):
            upright, wide = rng.integers(2, size=2)
            stripes = (np.arange(40) // (6 if wide else 3) % 2 * 200 + rng.integers(40, size=(40, 40))).astype(np.uint8)
            Image.fromarray(stripes if upright else np.ascontiguousarray(stripes.T)).save(tmp_path / f"drawn/{i}.png")
            lines.append(f"{i}.png\t{'upright' if upright else 'across'}\t{'wide' if wide else 'narrow'}\n")
        (tmp_path / "drawn/tags.tsv").write_text("".join(lines))
        return tmp_path / "drawn"

    def test_a_folder_of_images_with_tags(self, folder, tmp_path):
        report = run_json("train", folder, "-o", tmp_path / "m")
        assert report["features"] == "images"
        assert run_json("evaluate", tmp_path / "m", folder, "-k", 2)["P@2"] > 0.8
        answer = json.loads(run("predict", tmp_path / "m", folder / "0.png", "-k", 2))
        assert set(answer["labels"]) <= {"upright", "across", "wide", "narrow"}

    def test_texts_for_a_model_of_images(self, folder, docs, tmp_path):
        run("train", folder, "-o", tmp_path / "m", "--no-hold-out")
        assert "holds texts, and the model has learned from images" in run("predict", tmp_path / "m", docs, code=1)

    def test_a_file_that_is_no_image(self, folder, tmp_path):
        (folder / "0.png").write_text("not an image")
        assert "0.png" in run("train", folder, "-o", tmp_path / "m", code=1)


class TestDemo:
    @pytest.fixture(autouse=True)
    def little(self, monkeypatch):
        data, rows = load_debtags(), slice(0, 500)
        part = replace(data, **{name: getattr(data, name)[rows] for name in ("X_train", "Y_train", "X_test", "Y_test")})
        monkeypatch.setattr(cli.demo, "load_debtags", lambda: part)
        monkeypatch.setattr(cli.demo, "PACKAGE", 100)

    def test_compares_models_and_what_they_cost(self):
        results = {result["model"]: result for result in run_json("demo")}
        assert len(results) == 4
        paper, ours = results["the paper's method"], results["refined, the default"]
        assert 0.5 < paper["P@1"] <= ours["P@1"]
        assert ours["megabytes"] > paper["megabytes"] > 0

    def test_shows_a_package_and_why_and_what_next(self):
        out = run("demo")
        for word in ("P@5", "fit s", "row us", "true tags", "probability 0.", "because of", "labelsense train"):
            assert word in out
        table = out[: out.index("A test package")]
        assert max(map(len, table.splitlines())) <= 80


def test_a_wrong_command_exits_with_2():
    assert "No such command 'trian'" in run("trian", code=2)


@pytest.mark.parametrize(
    "command",
    ["train", "update", "predict", "evaluate", "inspect", "convert", "datasets", "advise", "reproduce", "demo"],
)
def test_every_command_has_help(command):
    assert "Usage" in run(command, "--help")


# Ctrl-C may be turned off where the tests run, as in the background of a shell: turn it on.
PROGRAM = """
import signal
from labelsense.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
print("ready", flush=True)
main()
"""


class TestProcess:
    """What only shows in a process of its own."""

    @staticmethod
    def start(*words, **options):
        words = [sys.executable, "-c", PROGRAM, *map(os.fspath, words)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def test_debug_shows_the_traceback(self, model, tmp_path):
        process = self.start("inspect", tmp_path / "nowhere", "--debug")
        assert "Traceback" in process.communicate()[1]
        assert process.returncode == 1

    def test_ctrl_c_ends_with_130_and_leaves_nothing(self, tmp_path):
        options = ["-o", "tags.model", "--format", "jsonl"]
        process = self.start("train", "-", *options, stdin=subprocess.PIPE, cwd=tmp_path)
        assert process.stdout.readline() == "ready\n"
        process.stdin.write('{"text": "a", "labels": ["b"]}\n' * 10_000)
        process.stdin.flush()  # more than a pipe holds: it reads, and now waits for the rest of its input
        process.send_signal(signal.SIGINT)
        _, error = process.communicate()
        assert (process.returncode, error.strip()) == (130, "labelsense: interrupted")
        assert not list(tmp_path.iterdir())

    def test_a_reader_that_leaves_is_no_error(self, model, docs):
        process = self.start("predict", model, docs)
        assert [process.stdout.readline()[:5] for _ in range(2)] == ["ready", '{"lab']
        process.stdout.close()
        with process.stderr:
            assert process.stderr.read() == ""
        assert process.wait() == 0
