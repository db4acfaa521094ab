"""The other commands: files, data sets, advice and the demo; help for all, and what shows in a process of its own."""

import gzip
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from commands import LISTS, TEXTS, run, run_json
from commands import docs as docs
from commands import model as model

from labelsense import cli
from labelsense.data import Examples, load_debtags, write_examples


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
