"""The service under load, and Annif serving omikuji on the same data, in one run: `make bench-service`.

Needs wrk. Prints requests per second, the median and the 99th percentile of the latency, errors, the server's CPU time
for a request, which others on the machine hardly change, and memory: with gathering and without, for 64 connections
that send one short text each time, to a refined model. `--seconds 60` is how long each is measured, `--requests` how
many requests the last measurement sends while it watches memory; 0 leaves either out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from labelsense import CompressedLabelClassifier, HadamardCompressor, RidgeLearner
from labelsense.data import load_debtags

CONNECTIONS = 64
TEXTS = 200  # that are sent in turn
ROWS = 10_000  # that are learned from
BASE = "http://example.org/debtags/"
LUA = """
local bodies, i = {{}}, 0
for line in io.lines("{bodies}") do bodies[#bodies + 1] = line end
request = function()
  i = i % #bodies + 1
  local headers = {{["Content-Type"] = "application/x-www-form-urlencoded"}}
  return wrk.format("POST", "/v1/projects/debtags/suggest", headers, bodies[i])
end
"""
ALONE = "import labelsense.serve.batching as batching; batching.MOST = 1; "
PROJECT = """[debtags]
name=debtags
language=en
backend=omikuji
analyzer=simple
vocab=debtags
limit=100
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("annif", type=Path, nargs="?", help="an environment that has Annif and omikuji")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--requests", type=int, default=1_000_000)
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is missing: apt-get install wrk")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        if options.seconds:
            compare(folder, options.annif, options.seconds)
        if options.requests:
            watch_memory(folder, options.requests)


def compare(folder: Path, environment: Path | None, seconds: int) -> None:
    print(f"{CONNECTIONS} connections, {seconds} s each\n")
    print("server                        requests/s   p50 ms   p99 ms   errors   CPU ms/request   memory MB")
    for title, start in (("labelsense, gathering", ""), ("labelsense, one at a time", ALONE)):
        with labelsense(folder, start) as (address, process):
            show(title, measure(folder, address, process, seconds), process)
    if environment is not None:
        with annif(folder, environment.resolve()) as (address, process):
            show("Annif, omikuji", measure(folder, address, process, seconds), process)


def prepare(folder: Path) -> None:
    """Write a model, what wrk sends, and what Annif learns from."""
    data = load_debtags()
    words, uris = np.array(data.features), np.array([BASE + label for label in data.labels])

    def texts(X, n):
        return [" ".join(np.repeat(words[X[[i]].indices], X[[i]].data.astype(int))) for i in range(n)]

    train = texts(data.X_train, ROWS)
    rows = [uris[data.Y_train[[i]].indices].tolist() for i in range(ROWS)]
    model = CompressedLabelClassifier(
        HadamardCompressor(200), RidgeLearner(alpha=1.0), features="words", random_state=0
    )
    model.fit(train, rows).save(folder / "debtags.model")
    sent = texts(data.X_test, TEXTS)
    (folder / "bodies").write_text("".join(f"limit=10&text={text.replace(' ', '+')}\n" for text in sent))
    (folder / "load.lua").write_text(LUA.format(bodies=folder / "bodies"))
    lines = (f"{text}\t{' '.join(f'<{uri}>' for uri in labels)}\n" for text, labels in zip(train, rows, strict=True))
    (folder / "train.tsv").write_text("".join(lines))
    (folder / "vocabulary.tsv").write_text("".join(f"<{uri}>\t{uri}\n" for uri in uris))


@contextmanager
def labelsense(folder: Path, start: str) -> Iterator[tuple[str, int]]:
    code = f"{start}from labelsense_command import main; main()"
    log = folder / "log"
    with log.open("wb") as file:
        command = [sys.executable, "-c", code, "serve", folder / "debtags.model", "--port", "0"]
        server = subprocess.Popen(command, stderr=file)
    try:
        while " at http" not in log.read_text():
            assert server.poll() is None, log.read_text()
            time.sleep(0.1)
        yield log.read_text().split(" at ")[1].split()[0], server.pid
    finally:
        server.terminate()
        server.wait(60)


@contextmanager
def annif(folder: Path, environment: Path) -> Iterator[tuple[str, int]]:
    """Train and serve omikuji with Annif. Its tokeniser wants data of sentences, which do not matter: empty will do."""
    nltk = folder / "nltk" / "tokenizers" / "punkt_tab" / "english"
    nltk.mkdir(parents=True)
    for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
        (nltk / name).touch()
    (folder / "projects.cfg").write_text(PROJECT)
    settings = {"cwd": folder, "env": {**os.environ, "NLTK_DATA": str(folder / "nltk")}}
    command, port = environment / "bin" / "annif", "23456"
    for words in (["load-vocab", "debtags", "vocabulary.tsv", "--language", "en"], ["train", "debtags", "train.tsv"]):
        subprocess.run([command, *words], check=True, capture_output=True, **settings)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([command, "run", "--port", port], **settings, **quiet)
    address = f"http://127.0.0.1:{port}/"
    try:
        for _ in range(300):
            try:
                send(address)
                break
            except OSError:
                time.sleep(0.2)
        yield address, server.pid
    finally:
        server.terminate()
        server.wait(60)


def send(address: str) -> dict[str, object]:
    request = urllib.request.Request(f"{address}v1/projects/debtags/suggest", b"text=chess")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def measure(folder: Path, address: str, process: int, seconds: int) -> dict[str, float]:
    command = ["wrk", "-t2", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "30s", "--latency", "-s"]
    before = cpu_seconds(process)
    said = subprocess.run([*command, folder / "load.lua", address], check=True, capture_output=True, text=True).stdout
    used = cpu_seconds(process) - before
    errors = re.findall(r"Non-2xx or 3xx responses: (\d+)", said) + re.findall(
        r"(?:connect|read|write|timeout) (\d+)", said
    )
    requests = float(re.search(r"(\d+) requests in", said)[1])
    return {
        "rate": float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1]),
        "p50": milliseconds(re.search(r"50%\s+([\d.]+\w+)", said)[1]),
        "p99": milliseconds(re.search(r"99%\s+([\d.]+\w+)", said)[1]),
        "errors": sum(map(int, errors)),
        "requests": requests,
        "cpu": 1000 * used / max(1.0, requests),
    }


def milliseconds(text: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text).groups()
    return float(number) * {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000}[unit]


def show(title: str, found: dict[str, float], process: int) -> None:
    print(
        f"{title:<28} {found['rate']:>11.0f} {found['p50']:>8.1f} {found['p99']:>8.1f} {found['errors']:>8.0f} "
        f"{found['cpu']:>16.2f} {memory(process):>11.0f}",
        flush=True,
    )


def memory(process: int) -> float:
    """Return the memory of a process and those it has started, in MB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1000 + sum(map(memory, children(process)))


def cpu_seconds(process: int) -> float:
    """Return the CPU time that a process and those it has started have used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + sum(map(cpu_seconds, children(process)))


def children(process: int) -> list[int]:
    return list(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))


def watch_memory(folder: Path, requests: int) -> None:
    print(f"\nMemory over {requests:,} requests\n   requests   memory MB   errors")
    done = errors = 0.0
    with labelsense(folder, "") as (address, process):
        while done < requests:
            found = measure(folder, address, process, 10)
            done, errors = done + found["requests"], errors + found["errors"]
            print(f"{done:>11,.0f} {memory(process):>11.1f} {errors:>8.0f}", flush=True)


if __name__ == "__main__":
    main()
