"""How the command line behaves: what it prints where, whose words it uses, and what it refuses before any work."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import LISTS, TEXTS, run, run_json
from commands import docs as docs
from PIL import Image
from typer.testing import CliRunner

import labelsense
from labelsense import cli, load_model
from labelsense.cli.options import in_options
from labelsense.data import Examples, read_examples, write_examples
from labelsense.training import Choices, train

COMMANDS = ["train", "update", "predict", "evaluate", "inspect", "convert", "datasets", "advise", "reproduce", "demo"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "tags.model"
    train(Examples(TEXTS, LISTS), Choices(refiner=None, hold_out=False, alpha=1.0)).model.save(path)
    return path


def start(*words, program="from labelsense_command import main; main()", **options):
    """Start the command in a process of its own."""
    words = [sys.executable, "-c", program, *map(os.fspath, words)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def both(*words, stdin=None):
    """Run a command in this process; return what it wrote to standard output and to standard error."""
    result = CliRunner().invoke(cli.app, [str(word) for word in words], input=stdin)
    return result.stdout, result.stderr


class TestHelp:
    def test_version(self):
        assert run("--version") == f"labelsense {labelsense.__version__}\n"

    def test_summaries_are_whole(self):
        out = " ".join(run("-h").split())
        assert "..." not in out.partition("Commands:")[2]
        for command in COMMANDS:
            assert f" {command} " in out

    @pytest.mark.parametrize("command", COMMANDS)
    def test_short_and_long(self, command):
        assert run(command, "-h") == run(command, "--help")

    @pytest.mark.parametrize("command", ["train", "update", "predict", "evaluate", "advise", "convert"])
    def test_tells_the_schema(self, command):
        out = " ".join(run(command, "--help").split())
        for words in ("title, body and description", "subject_uris", "document_id", "--text-fields", "| between them"):
            assert words in out

    def test_is_as_wide_as_the_screen(self):
        out, _ = start("train", "--help", env={**os.environ, "COLUMNS": "50"}).communicate()
        assert 40 < max(map(len, out.splitlines())) <= 50


class TestPrinting:
    def test_nothing_is_padded_or_folded_in_a_pipe(self, model, docs, monkeypatch):
        monkeypatch.delenv("COLUMNS", raising=False)
        for words in (["inspect", model], ["datasets"], ["datasets", "debtags"]):
            lines = run(*words).splitlines()
            assert lines == [line.rstrip() for line in lines]
        long = docs.with_name("a" * 100 + ".jsonl")
        assert str(long) in run("convert", docs, long)

    def test_a_narrow_screen_hides_nothing(self, model, monkeypatch):
        monkeypatch.setenv("COLUMNS", "40")
        for words in (["inspect", model], ["datasets"]):
            out = run(*words)
            assert max(map(len, out.splitlines()[:-1])) <= 40
            assert "…" not in out

    def test_labels_are_not_markup(self, tmp_path, monkeypatch):
        write_examples(tmp_path / "a.jsonl", Examples(TEXTS[:40], [["[red]x[/red]", "b"], ["c"]] * 20))
        run("train", tmp_path / "a.jsonl", "-o", tmp_path / "m", "--no-hold-out")
        monkeypatch.setattr(cli.console.console, "_force_terminal", True)
        assert "[red]x[/red]" in run("predict", tmp_path / "m", tmp_path / "a.jsonl")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
    @pytest.mark.parametrize("command", ["predict", "inspect"])
    def test_a_full_disk_behind_a_pipe(self, model, docs, command):
        words = [sys.executable, "-c", "from labelsense_command import main; main()", command, model]
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [*words, docs] if command == "predict" else words, stdout=full, stderr=subprocess.PIPE
            )
        assert (done.returncode, done.stderr) == (1, b"labelsense: standard output: No space left on device\n")


class TestNotes:
    def test_a_guess_is_printed_on_standard_error(self, model):
        out, error = both("predict", model, "-k", 1, stdin="Title, a story of a fox\n")
        assert out.count("\n") == 1
        assert error == (
            "labelsense: standard input is read as txt, going by its content; pass --format if it is not\n"
        )

    @pytest.mark.parametrize("text", ["Title, a story of a fox\n", "Text\n", "body, red, fox\n"])
    def test_a_first_line_is_a_text(self, model, text):
        assert len(run("predict", model, stdin=text).splitlines()) == 1

    def test_nothing_is_guessed_of_a_name_that_tells(self, model, docs):
        assert both("predict", model, docs)[1] == ""
        assert both("predict", model, "--format", "txt", stdin="a\n")[1] == ""


class TestFields:
    @pytest.fixture
    def table(self, tmp_path):
        rows = (
            f"d{i},{t[:9]},{t[9:]},{'|'.join(tags)}\n" for i, (t, tags) in enumerate(zip(TEXTS, LISTS, strict=True))
        )
        path = tmp_path / "docs.csv"
        path.write_text("document_id,heading,abstract,tags\n" + "".join(rows))
        return path

    def test_text_fields_and_ids_from_file_to_prediction(self, table, tmp_path):
        fields = ["--text-fields", "heading, abstract"]
        run("train", table, "-o", tmp_path / "m", "--no-hold-out", *fields)
        answers = [json.loads(line) for line in run("predict", tmp_path / "m", table, *fields).splitlines()]
        assert [answer["document_id"] for answer in answers] == [f"d{i}" for i in range(400)]
        joined = [f"{text[:9]} {text[9:]}" for text in TEXTS]
        assert [a["labels"] for a in answers] == load_model(tmp_path / "m").predict_topk(joined).labels.tolist()
        assert run_json("evaluate", tmp_path / "m", table, *fields)["P@1"] > 0.5
        assert "expected a header with a column 'text', 'title', 'body' or 'description'" in run(
            "predict", tmp_path / "m", table, code=1
        )

    def test_ids_are_converted(self, table, tmp_path):
        run("convert", table, tmp_path / "docs.jsonl", "--text-fields", "abstract")
        examples = read_examples(tmp_path / "docs.jsonl")
        assert (examples.ids[7], examples.X[7], examples.Y[7]) == ("d7", TEXTS[7][9:], LISTS[7])

    def test_images_are_known_by_their_names(self, tmp_path, model):
        Image.new("L", (40, 40)).save(tmp_path / "night.png")
        assert "night.png holds images, and the model has learned from texts" in run(
            "predict", model, tmp_path / "night.png", code=1
        )


class TestOptions:
    @pytest.mark.parametrize(
        ("message", "translated"),
        [
            ("n_measurements must be at least 1. Got 0.", "--measurements must be at least 1. Got 0."),
            ("decoder must be one of 'omp', or an object of that kind.", "--decoder must be one of 'omp'."),
            ("Pass format= one of xc, arff.", "Pass --format and one of xc, arff."),
            ("n_features.jsonl has no labels", "n_features.jsonl has no labels"),
            ("data/n_features: No such file", "data/n_features: No such file"),
            ("alpha.txt: No such file", "alpha.txt: No such file"),
        ],
    )
    def test_messages_name_options(self, message, translated):
        assert in_options(message) == translated

    def test_every_translated_option_exists(self):
        known = set(re.findall(r"--[a-z-]+", run("train", "--help")))
        for option in ("--measurements", "--n-features", "--text-fields", "--seed", "--format", "--updatable"):
            assert option in known


class TestOutput:
    """An output that cannot be written, or that would destroy the input, is refused before any work."""

    def refuse(self, *words, message):
        error = run(*words, code=1)
        assert message in error
        assert error.count("\n") == 1

    def test_that_is_the_input(self, docs, model, tmp_path):
        before, link = docs.read_bytes(), tmp_path / "link.jsonl"
        link.symlink_to(docs)
        for words in (
            ["train", docs, "-o", docs],
            ["train", docs, "-o", link],
            ["train", docs, "--test", link, "-o", link],
            ["predict", model, docs, "-o", docs],
            ["predict", model, docs, "-o", model],
            ["update", model, docs, "-o", docs],
            ["convert", docs, docs],
            ["advise", docs, "--plot", docs],
        ):
            self.refuse(*words, message="is read, and writing to it would destroy it. Name another file")
        assert docs.read_bytes() == before
        load_model(model)

    @pytest.mark.parametrize(
        "words", [["train", "nowhere"], ["predict", "nowhere", "nowhere"], ["update", "nowhere", "nowhere"]]
    )
    def test_is_looked_at_first(self, words, tmp_path):
        self.refuse(*words, "-o", tmp_path, message=f"{tmp_path}: Is a directory")
        self.refuse(*words, "-o", tmp_path / "a/b", message="a/b: No such file or directory")

    def test_in_a_folder_that_may_not_be_written(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "access", lambda *_, **__: False)  # root may write anywhere
        self.refuse("train", "nowhere", "-o", tmp_path / "m", message="m: Permission denied")

    def test_any_error_of_the_system_is_one_line(self, docs, tmp_path, monkeypatch):
        def fail(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / "m"))

        monkeypatch.setattr(labelsense.CompressedLabelClassifier, "save", fail)
        self.refuse("train", docs, "-o", tmp_path / "m", "--no-hold-out", message="m: No space left on device")


class TestExtras:
    """What is not installed is named before the work."""

    def test_matplotlib(self, monkeypatch, tmp_path):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        assert "Plots need matplotlib" in run("advise", "nowhere", "--plot", tmp_path / "a.png", code=1)

    def test_pyarrow(self, monkeypatch, docs, tmp_path):
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        assert "Parquet files need pyarrow" in run("convert", docs, tmp_path / "a.parquet", code=1)
        (tmp_path / "a.parquet").write_bytes(b"PAR1")
        assert "Parquet files need pyarrow" in run("train", tmp_path / "a.parquet", "-o", tmp_path / "m", code=1)

    @pytest.mark.parametrize("module", ["PIL.Image", "mahotas.features.surf"])
    def test_images(self, monkeypatch, tmp_path, module):
        Image.new("L", (40, 40)).save(tmp_path / "a.png")
        monkeypatch.setitem(sys.modules, module, None)
        (tmp_path / "a.png").write_bytes(b"damaged, which nobody comes to see")
        assert "Reading images needs the extra" in run("train", tmp_path, "-o", tmp_path / "m", code=1)


# Loading takes a while: an import that does not end stands for it.
SLOW = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
class Slow:
    def find_spec(self, name, *_):
        if name == "scipy":
            print("loading", flush=True)
            try:
                time.sleep(60)
            except BaseException as error:  # as half-loaded modules do
                print("caught", error)
sys.meta_path.insert(0, Slow())
from labelsense_command import main
main()
"""


class TestProcess:
    def test_ctrl_c_while_loading_is_quiet(self):
        process = start("demo", program=SLOW)
        assert process.stdout.readline() == "loading\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate() == ("", "labelsense: interrupted\n")
        assert process.returncode == 130

    def test_a_reader_that_leaves_at_once(self):
        process = start("datasets")
        process.stdout.close()
        with process.stderr:
            assert process.stderr.read() == ""
        assert process.wait() == 0

    def test_warnings_are_lines_of_ours(self):
        program = "import sys, warnings; from labelsense import cli\n"
        program += "cli.demo.load_debtags = lambda: sys.exit(warnings.warn('n_features is large'))\ncli.main()"
        assert start("demo", program=program).communicate() == ("", "labelsense: warning: --n-features is large\n")
