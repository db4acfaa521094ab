"""labelsense train and labelsense update: what they print, write and refuse."""

import numpy as np
import pytest
from commands import LISTS, TEXTS, X, Y, run, run_json
from commands import docs as docs
from commands import model as model

from labelsense import CompressedLabelClassifier, load_model
from labelsense.data import Examples, write_examples


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
