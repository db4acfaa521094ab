"""labelsense predict and labelsense evaluate, with models of texts, features and images."""

import io
import json

import numpy as np
import pytest
from commands import LISTS, TEXTS, X, Y, run, run_json
from commands import docs as docs
from commands import model as model
from PIL import Image

from labelsense import OneVsAllClassifier, cli, load_model
from labelsense.data import Examples, write_examples


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
