"""What a process that is killed leaves behind, and what forks can do. docs/trust.md lists all faults."""

import ast
import json
import os
import re
import resource
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from reference import paper
from scipy.sparse import random_array, vstack

from labelsense import HadamardCompressor, RidgeLearner, load_model
from labelsense.data import Examples, make_tagged_documents, read_examples, write_examples
from labelsense.experiments.lines import read_lines

X, Y = make_tagged_documents(120, 40, 20, random_state=0)

# Everything is loaded once. Then each line of the input is a job for a process of its own, which is killed when it
# comes to some step: 1 is the first. The steps are those after which something is on disk that was not before.
PROGRAM = """
    import json, os, signal, sys
    from pathlib import Path
    from labelsense import cli, training
    from labelsense.data import stream_examples
    from labelsense.experiments import lines, paper

    paper.load_matplotlib = paper.write_report = lambda *folder: None
    runs, append = paper.compressed_runs, lines.append_line
    paper.compressed_runs = lambda *settings: runs(*settings)[:2]

    def count_down(function, first):
        def call(*arguments):
            global left
            left -= 1
            if left == 0:
                first(*arguments)
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments)
        return call

    def half(folder, run, results):
        with open(folder / lines.NAME, "ab") as file:
            file.write(b'{"run": {"probl')

    os.fsync, os.replace = count_down(os.fsync, lambda *_: 0), count_down(os.replace, lambda *_: 0)
    paper.append_line = count_down(append, half)
    work = {
        "update": lambda folder: training.update(f"{folder}/model", stream_examples(f"{folder}/more.svm")),
        "convert": lambda folder: cli.files.convert(Path(folder, "more.svm"), Path(folder, "new.arff")),
        "reproduce": lambda folder: paper.reproduce(f"{folder}/runs", datasets=["debtags"], quick=True),
    }
    for line in sys.stdin:
        job, folder, left = json.loads(line)
        child = os.fork()
        if not child:
            sys.stdout = sys.stderr
            work[job](folder)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Killer:
    """Runs jobs that are killed."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, job, folder, step):
        """Return whether a job was killed at this step; else it has ended well before."""
        self.process.stdin.write(json.dumps([job, str(folder), step]) + "\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        assert code in (0, -signal.SIGKILL)
        return code != 0


@pytest.fixture(scope="module")
def killer():
    killer = Killer()
    yield killer
    killer.process.stdin.close()
    assert killer.process.wait(30) == 0
    killer.process.stdout.close()


@pytest.mark.xdist_group("killed")
class TestKilled:
    """After a kill -9 at any step there is the old file or the new one, whole, and the same once more does the work."""

    def test_in_an_update(self, killer, tmp_path):
        write_examples(tmp_path / "more.svm", Examples(X[60:], Y[60:]))
        model = paper(HadamardCompressor(8), RidgeLearner(0.1, updatable=True), random_state=0).fit(X[:60], Y[:60])
        model.save(tmp_path / "model")
        before, steps = (tmp_path / "model").read_bytes(), 0
        while killer.run("update", tmp_path, steps + 1):
            steps += 1
            assert load_model(tmp_path / "model").label_counts_.sum() in (Y[:60].sum(), Y.sum())
            (tmp_path / "model").write_bytes(before)
        assert steps >= 2
        assert load_model(tmp_path / "model").label_counts_.sum() == Y.sum()

    def test_in_a_conversion(self, killer, tmp_path):
        write_examples(tmp_path / "more.svm", Examples(X, Y))
        steps = 0
        while killer.run("convert", tmp_path, steps + 1):
            steps += 1
            if (tmp_path / "new.arff").exists():  # whole, with its labels in the other file
                assert (read_examples(tmp_path / "new.arff").Y != Y).nnz == 0
        assert steps >= 4
        assert (read_examples(tmp_path / "new.arff").Y != Y).nnz == 0

    def test_in_a_reproduction(self, killer, tmp_path):
        assert not killer.run("reproduce", tmp_path / "undisturbed", 0)
        expected = read_lines(tmp_path / "undisturbed" / "runs")
        kills = 0
        while killer.run("reproduce", tmp_path, 2):  # one run is done, and half a line of the next is there
            kills += 1
            assert len(read_lines(tmp_path / "runs")) == kills
        assert kills == len(expected) - 1
        found = read_lines(tmp_path / "runs")
        assert list(found) == list(expected)
        assert all(found[run]["errors"] == line["errors"] for run, line in expected.items())


@pytest.mark.parametrize("name", ["a.xc", "a.svm.gz", "a.arff", "a"])
def test_a_full_disk_leaves_nothing_of_a_data_file(name, tmp_path):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    noise = random_array((200, 50), density=0.5, random_state=0, dtype="float32", format="csr")
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limit[1]))  # stands for the disk
    try:
        with pytest.raises(OSError, match=f"{tmp_path}/a"):
            write_examples(tmp_path / name, Examples(noise, None))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert list(tmp_path.iterdir()) == []


FORK = """
    import os, signal, sys
    import numpy as np
    from labelsense import load_model
    from labelsense.data import read_examples
    model, X = load_model(sys.argv[1]).set_params(n_jobs=2), read_examples(sys.argv[2]).X
    before = model.predict_scores(X)  # now there are threads, of ours and of the linear algebra
    child = os.fork()
    if not child:
        signal.alarm(60)  # whoever waits for threads that are not there waits for ever
        os._exit((model.predict_scores(X) != before).nnz > 0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_predicts_as_its_parent(tmp_path, monkeypatch):
    rows = vstack([X] * 30, format="csr")  # more than a block
    write_examples(tmp_path / "rows.svm", Examples(rows, None))
    paper(random_state=0).fit(X, Y).save(tmp_path / "model")
    words = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(FORK), tmp_path / "model", tmp_path / "rows.svm"]
    assert subprocess.run(words, env={**os.environ, "OPENBLAS_NUM_THREADS": "2"}).returncode == 0


class TestTable:
    """Every row of the page about faults names tests that are there."""

    PAGE = Path(__file__).parents[1] / "docs" / "trust.md"
    NAME = re.compile(r"`(test_\w+\.py)((?:::\w+)+)`")

    def test_every_row_has_a_test(self):
        rows = re.findall(r"^\| .*\|$", self.PAGE.read_text().partition("\n## The same")[0], re.MULTILINE)
        assert len(rows) > 30
        for row in rows[1:]:
            assert self.NAME.search(row), row

    def test_every_test_is_there(self):
        for file, names in self.NAME.findall(self.PAGE.read_text()):
            tree = ast.parse((Path(__file__).parent / file).read_text())
            for name in names.split("::")[1:]:
                found = [node for node in tree.body if getattr(node, "name", None) == name]
                assert found, f"{file}{names} is not there"
                tree = found[0]
