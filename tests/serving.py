"""Models and servers for the tests of the service."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import warnings
from contextlib import contextmanager

from labelsense import CompressedLabelClassifier, HadamardCompressor, RidgeLearner
from labelsense.serve.app import make_app
from labelsense.serve.keys import Keys
from labelsense.serve.limits import Limits
from labelsense.serve.project import Project

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer versions would like another client
    from starlette.testclient import TestClient

TEXTS = ["a red fox jumps", "two hens and a fox", "a chess game", "chess for two players and a hen"] * 10
LABELS = [["fox", "red"], ["hen", "fox"], ["chess", "game"], ["chess", "hen"]] * 10
KEY = "a-key-for-the-tests"
WITH_KEY = {"Authorization": f"Bearer {KEY}"}
TAGS = "/v1/projects/tags"


def make_model(path, reserve=0, m=8):
    """Write a model of a few texts to a file, and return it."""
    compressor = HadamardCompressor(m, reserve=reserve, random_state=0)
    learner = RidgeLearner(alpha=0.1, updatable=True)
    model = CompressedLabelClassifier(compressor, learner, "omp", refiner=None, features="words").fit(TEXTS, LABELS)
    model.save(path)
    return model


@contextmanager
def serving(path, *, learning=False, keys=(KEY,), everything=False, limits=None, subjects=None, **settings):
    """Yield a client of a service of one model, in this process."""
    limits = limits or Limits()
    project = Project("tags", path, subjects, limits=limits, learning=learning)
    app = make_app({"tags": project}, limits=limits, keys=Keys(list(keys), everything), **settings)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


class Process:
    """A server as a process of its own, started by the command line."""

    def __init__(self, *arguments):
        code = "from labelsense_command import main; main()"
        command = [sys.executable, "-c", code, "serve", "--port", "0", *map(str, arguments)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        self.lines = []
        while " at http" not in (line := self.process.stderr.readline()):
            self.lines.append(line)
            assert line, f"the server did not start: {self.lines}"
        self.address = line.split(" at ")[1].strip()
        self._reader = threading.Thread(target=self._read)  # a pipe that nobody reads would stop the server
        self._reader.start()

    def _read(self):
        with self.process.stderr as log:
            self.lines += log

    @property
    def port(self):
        return int(self.address.rstrip("/").rpartition(":")[2])

    def stop(self, number=signal.SIGTERM):
        """Return the exit code and what was logged."""
        self.process.send_signal(number)
        code = self.process.wait(30)
        self._reader.join()
        return code, "".join(self.lines)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()


def send(address, path, content=None, headers=()):
    """Return the status and the JSON of an answer."""
    body = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(address + path, body, {"Content-Type": "application/json", **dict(headers)})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def wait_for(condition, seconds=20.0):
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
