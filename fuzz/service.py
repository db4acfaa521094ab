"""The service, without a socket: every request gets an answer that is no failure, and journals are read or refused."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fuzz.target import Run, Target
from labelsense import CompressedLabelClassifier, HadamardCompressor, RidgeLearner
from labelsense.data import FormatError
from labelsense.serve.app import make_app
from labelsense.serve.journal import Journal
from labelsense.serve.keys import Keys
from labelsense.serve.limits import Limits
from labelsense.serve.project import Project

KEY = "a-key-for-the-fuzzer"
JSON, FORM = b"application/json", b"application/x-www-form-urlencoded"
MULTIPART = b"multipart/form-data; boundary=cut"
# The first letter of an input says which of these it is for; those without a body get the rest as query.
ROUTES = [
    ("POST", "/v1/projects/texts/suggest", JSON),
    ("POST", "/v1/projects/texts/suggest", FORM),
    ("POST", "/v1/projects/texts/suggest", MULTIPART),
    ("POST", "/v1/projects/texts/suggest-batch", JSON),
    ("POST", "/v1/projects/texts/explain", JSON),
    ("POST", "/v1/projects/texts/learn", JSON),
    ("POST", "/v1/projects/texts/forget", JSON),
    ("POST", "/ui/projects/texts/how", JSON),
    ("POST", "/v1/projects/rows/suggest", JSON),
    ("POST", "/v1/projects/rows/explain", JSON),
    ("POST", "/v1/projects/rows/learn", JSON),
    ("GET", "/ui/projects/texts/labels", b""),
    ("GET", "/ui/projects/texts/complete", b""),
]
TEXTS = ["a red fox", "two hens and a fox", "a chess game", "chess and a hen"] * 4
LABELS = [["fox", "red"], ["hen", "fox"], ["chess"], ["chess", "hen"]] * 4


class Failures(logging.Handler):
    """Keeps what the service says went wrong inside it."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(logging.Formatter().format(record))


@contextmanager
def ask(folder: Path) -> Iterator[Run]:
    """Yield a function that sends a request."""
    loop, failures = asyncio.new_event_loop(), Failures()
    logging.getLogger("labelsense.serve").addHandler(failures)
    limits = Limits(text=10_000, batch=4, labels=20)
    projects = {}

    async def start() -> Any:
        for name, settings, rows in (
            ("texts", {"features": "words"}, TEXTS),
            ("rows", {}, [[1.0, 2, 0], [0, 1, 3]] * 8),
        ):
            compressor = HadamardCompressor(8, reserve=50, random_state=0)
            learner = RidgeLearner(alpha=0.1, updatable=True)
            model = CompressedLabelClassifier(compressor, learner, "omp", refiner=None, **settings).fit(rows, LABELS)
            model.save(folder / f"{name}.model")
            projects[name] = Project(name, folder / f"{name}.model", limits=limits, learning=True)
        app = make_app(projects, limits=limits, keys=Keys([KEY]))
        lifespan = app.router.lifespan_context(app)
        await lifespan.__aenter__()
        return app, lifespan

    app, lifespan = loop.run_until_complete(start())

    def run(data: bytes) -> None:
        number = data[0] - ord("a") if data else -1
        if 0 <= number < len(ROUTES):
            status, body = loop.run_until_complete(send(app, *ROUTES[number], data[1:]))
            for project in projects.values():
                wait_for_learning(project.learning)
            assert not failures.seen, failures.seen
            assert status < 500, (status, body)
            json.loads(body or b"null", parse_constant=refuse)

    try:
        yield run
    finally:
        loop.run_until_complete(lifespan.__aexit__(None, None, None))
        loop.close()
        logging.getLogger("labelsense.serve").removeHandler(failures)


async def send(app: Any, method: str, path: str, kind: bytes, content: bytes) -> tuple[int, bytes]:
    """Return the status and the body of the answer to a request."""
    headers = [(b"content-type", kind), (b"x-api-key", KEY.encode())]
    scope = {"type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode()}
    scope |= {"headers": headers, "query_string": b"" if kind else content, "root_path": "", "client": None}
    messages = iter([{"type": "http.request", "body": content if kind else b""}])
    got: list[Any] = []

    async def receive() -> Any:
        return next(messages, {"type": "http.disconnect"})

    async def answer(message: Any) -> None:
        got.append(message)

    await app(scope, receive, answer)
    return got[0]["status"], b"".join(message.get("body", b"") for message in got[1:])


def wait_for_learning(learning: Any) -> None:
    """Wait until what was sent is learned, so that an input does the same again."""
    while learning.broken is None and learning.applied < learning.acknowledged:
        time.sleep(0.001)
    assert learning.broken is None, learning.broken


def refuse(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


@contextmanager
def read_journal(folder: Path) -> Iterator[Run]:
    """Yield a function that opens a journal of these lines, put under the checksums that they need."""
    path = folder / "model.journal"

    def run(data: bytes) -> None:
        lines = (b"%08x %s" % (zlib.crc32(line), line) if line[:1] == b"{" else line for line in data.split(b"\n"))
        path.write_bytes(b"\n".join(lines))
        try:
            journal = Journal(path)
        except FormatError:
            return
        numbers = journal.append([{"step": "learn", "documents": []}])
        assert numbers == [journal.last]
        entries, name = journal.after(0), journal.id
        journal.close()
        journal = Journal(path)
        assert (journal.after(0), journal.id) == (entries, name)
        journal.close()

    yield run


def _seeds() -> Iterator[bytes]:
    part = b'--cut\r\nContent-Disposition: form-data; name="text"\r\n\r\na red fox\r\n--cut--\r\n'
    learn = b'[{"text": "a red fox", "subjects": [{"uri": "fox"}, {"uri": "new"}]}]'
    wanted = b'"limit": 3, "threshold": 0.1, "language": "en", "allow": ["fox"], "block": ["hen"]'
    contents = [
        b'{"text": "a red fox", %s}' % wanted,
        b"text=a+red+fox&limit=2&allow=fox&allow=hen&threshold=0.2",
        part,
        b'{"documents": [{"text": "a red fox", "document_id": "1"}], %s}' % wanted,
        b'{"text": "a red fox", "uri": "fox", "limit": 2}',
        learn,
        b'[{"text": "a red fox", "subjects": [{"uri": "fox"}, {"uri": "red"}]}]',
        b'{"text": "a red fox"}',
        b'{"features": [1, 2.5, 0]}',
        b'{"features": {"0": 1, "2": -1e30}, "uri": "fox"}',
        b'[{"features": {"1": 2}, "subjects": [{"uri": "hen"}]}]',
        b"query=f&sort=count&order=descending&offset=1&limit=3",
        b"query=f&limit=3&language=en",
    ]
    for number, content in enumerate(contents):
        yield bytes([ord("a") + number]) + content


def _seeds_of_journals() -> list[bytes]:
    first, second = b'{"journal":"ab","start":3}\n', b'{"n":4,"step":"learn","documents":[]}\n'
    return [first + second, first + second + b"00000000 half", first, b""]


WORDS = (
    '"text"',
    '"features"',
    '"limit"',
    '"threshold"',
    '"allow"',
    '"documents"',
    '"subjects"',
    '"uri"',
    "\\ud800",
    "%ff",
)
TARGETS = [
    Target("service", ask, lambda: list(_seeds()), WORDS, ("python_multipart.multipart",)),
    Target("journal", read_journal, _seeds_of_journals, ('"n":', '"journal":', '"start":')),
]
