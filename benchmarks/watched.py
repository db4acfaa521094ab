"""Training in a process of its own, with what each of its steps took: benchmarks/scale.py runs it.

python benchmarks/watched.py docs.jsonl model '{"memory": 1e9, "choices": {"alpha": 1.0}}'

The settings are "choices", "solver" of ridge, and "memory" for training in chunks (1e18: in memory), or "workers" for
as many processes. With "kill", such as {"labelsense.regress.chunked._normal_times": 7}, the first worker kills itself
that comes to this call of a function; the file "killed in ..." beside the model tells. Prints JSON.
"""

import contextlib
import json
import logging
import os
import re
import signal
import sys
import time
from importlib import import_module
from pathlib import Path

from labelsense import RidgeLearner, out_of_core
from labelsense._progress import PROGRESS, logger, verbosity
from labelsense.scale import Choices

sent = []  # when this process sent how many bytes


class Steps(logging.Handler):
    """When steps began, and the peak memory of this process before."""

    def __init__(self):
        super().__init__()
        self.begun = [("reading", time.time())]
        self.peaks = []

    def emit(self, record):
        if record.msg != PROGRESS:
            self.peaks.append(take_peak())
            self.begun.append((re.split(r"[%,]", record.msg)[0].strip(" :"), time.time()))

    def table(self, client=(), workers=()):
        """Return for each kind of step its seconds, peak memory in MB, and the MB that were sent."""
        rows, ends = {}, [start for _, start in self.begun[1:]] + [time.time()]
        for (name, start), end, peak in zip(self.begun, ends, [*self.peaks, take_peak()], strict=True):
            row = rows.setdefault(name, {"seconds": 0.0, "peak_MB": 0, "client_sent_MB": 0.0, "workers_sent_MB": 0.0})
            row["seconds"] += end - start
            row["peak_MB"] = max(row["peak_MB"], peak)
            row["client_sent_MB"] += 1e-6 * sum(size for when, size in client if start <= when < end)
            row["workers_sent_MB"] += 1e-6 * sum(size for when, size in workers if start <= when < end)
        return {name: {key: round(value, 1) for key, value in row.items()} for name, row in rows.items()}


def take_peak():
    """Return the peak memory of this process since the last time, in MB."""
    peak = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) >> 10
    Path("/proc/self/clear_refs").write_text("5")
    return peak


def count_sent():
    """Keep the sizes of all messages that this process sends."""
    from distributed.comm.tcp import TCP

    write = TCP.write

    async def counted(*args, **options):
        size = await write(*args, **options)
        sent.append((time.time(), size))
        return size

    TCP.write = counted


def kill_once(name, number, mark):
    """Let a call of a function in this process kill it, unless there is the mark that one was killed before."""
    module, _, attribute = name.removesuffix(".__call__").rpartition(".")
    owner, calls = import_module(module), 0
    if name.endswith(".__call__"):
        owner, attribute = getattr(owner, attribute), "__call__"
    original = getattr(owner, attribute)

    def call(*args):
        nonlocal calls
        calls += 1
        if calls == number:
            with contextlib.suppress(FileExistsError):  # two may come here at the same time: one of them is killed
                mark.touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        return original(*args)

    setattr(owner, attribute, call)


class Preparing:
    """What each worker does first, also one that is started anew."""

    def __init__(self, kills, folder):
        self.kills, self.folder, self.here = kills, folder, str(Path(__file__).resolve().parent)

    def __call__(self):
        sys.path.insert(0, self.here)
        watched = import_module("watched")
        watched.count_sent()
        for name, number in self.kills.items():
            watched.kill_once(name, number, Path(self.folder) / f"killed in {name}")


def read_worker():
    watched = import_module("watched")
    return watched.sent, watched.take_peak()


def train_in_chunks(path, output, settings):
    """Train as `labelsense train --memory` does."""
    out_of_core.EXPANSION = 1e6  # in chunks, whatever the size
    training = out_of_core.train_file(path, output, settings["choices"], memory=settings["memory"])
    return training, [], []


def train_with_workers(path, output, settings):
    """Train as `labelsense train --workers` does."""
    from labelsense.dask import connect, train_files

    count_sent()
    with connect(workers=settings["workers"]) as client:
        client.register_worker_callbacks(Preparing(settings.get("kill", {}), str(output.parent)))
        training = train_files(path, Choices(**settings["choices"]), client)
        found = list(client.run(read_worker).values())
    training.model.save(output)
    return training, [each for moved, _ in found for each in moved], [peak for _, peak in found]


def main():
    path, output, settings = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
    if "solver" in settings:
        settings["choices"]["learner"] = RidgeLearner(solver=settings["solver"])
    steps = Steps()
    logger.addHandler(steps)
    logger.setLevel(logging.INFO)
    start = time.time()
    with verbosity(1):
        train = train_with_workers if "workers" in settings else train_in_chunks
        training, moved, peaks = train(path, output, settings)
    found = {
        "seconds": round(time.time() - start, 1),
        "training_seconds": round(training.report["seconds"], 1),
        "expected": training.report["expected"],
        "gradient_steps": training.model.learner_.n_iter_,
        "steps": steps.table(sent, moved),
    }
    found["peak_MB"] = max(row["peak_MB"] for row in found["steps"].values())
    print(json.dumps(found | {"worker_peaks_MB": peaks}))


if __name__ == "__main__":
    main()
