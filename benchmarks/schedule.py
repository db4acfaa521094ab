"""What training takes on machines that we do not have: a model of the schedule, checked against runs on this one.

python benchmarks/scale.py --only costs workers    # measure first
python benchmarks/schedule.py                      # then predict
python benchmarks/schedule.py --write              # and put both into docs/scale.md

The model has the steps of labelsense.dask: load and count words, make features, X'Z, and conjugate gradients, whose
every step sends weights P (p, m) to the workers and adds up products (p, m) of all pieces in a tree of eights.
"""

import argparse
import heapq
import json
import math
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scale import PIECES, TEXTS

from labelsense._chunks import FAN_IN

HERE = Path(__file__).parent
FITS = 5  # of all regressions if there is refinement: all rows, those but a few, and three folds of these
CANDIDATES = 50
ADD = 1e9  # numbers that are added in a second


@dataclass(frozen=True)
class Costs:
    """What one core takes, as benchmarks/scale.py --only costs measures it: seconds."""

    tabulate: float  # a row
    count: float
    finish: float
    step: float  # an entry and a measurement, for X'(X P)
    candidates: float  # a row, beyond 10^5 labels
    ranker: float  # an entry of a pair of a row and a candidate
    bytes_per_row: float
    entries_per_row: float
    crowded: float  # how much longer a step takes where all cores of a machine take one: they share its memory

    @classmethod
    def measured(cls, results):
        found = [line for line in results if line["part"] == "costs"][-1]
        return cls(
            1e-6 * found["tabulate_us_per_row"],
            1e-6 * found["count_us_per_row"],
            1e-6 * found["finish_us_per_row"],
            1e-9 * found["step_ns_per_entry_and_measurement"],
            1e-6 * found["candidates_us_per_row"],
            1e-9 * found["ranker_ns_per_entry_of_a_pair"],
            found["bytes_per_row"],
            found["entries_per_row"],
            found["step_slower_on_all_cores"],
        )


@dataclass(frozen=True)
class Problem:
    """Rows, features and measurements, in how many pieces the rows are, and steps of conjugate gradients."""

    rows: int
    features: int
    measurements: int
    pieces: int
    steps: int = 30
    refined: bool = True


@dataclass(frozen=True)
class Cluster:
    """Workers of one core, what a second moves between two of them, what a task costs, and what goes wrong."""

    workers: int
    bandwidth: float = 1.25e9  # bytes a second: 10 Gbit/s
    task: float = 2e-3  # seconds of the scheduler for a task, one after the other
    straggling: float = 0.2  # deviation of the logarithm of a task's time
    failures: float = 0.0  # of a worker in an hour


def spread(times, workers, rng, cluster):
    """Return when all tasks are done, if each goes to the worker that is free first."""
    free = [0.0] * workers
    for seconds in times * rng.lognormal(0, cluster.straggling, len(times)):
        heapq.heappush(free, heapq.heappop(free) + seconds)
    return max(free)


def add_up(pieces, size, cluster, rng):
    """Return the seconds and the bytes moved to add up products of a size, in bytes, of all pieces."""
    seconds, moved = 0.0, 0.0
    while pieces > 1:
        groups = -(-pieces // FAN_IN)
        remote = (pieces - groups) * (1 - 1 / cluster.workers)  # a group is added where one of its products is
        one = FAN_IN * (size * (1 - 1 / cluster.workers) / cluster.bandwidth + size / 4 / ADD)
        seconds += groups * cluster.task + spread(np.full(groups, one), min(cluster.workers, groups), rng, cluster)
        moved += remote * size
        pieces = groups
    return seconds + size / cluster.bandwidth, moved + size  # and to the client


def simulate(problem, cluster, costs, seed=0):
    """Return the seconds of computing and of moving, and the bytes moved, of each step."""
    rng = np.random.default_rng(seed)
    share = problem.rows / problem.pieces
    size = 4.0 * problem.features * problem.measurements

    def each(seconds_per_row):
        times = np.full(problem.pieces, share * seconds_per_row)
        return problem.pieces * cluster.task + spread(times, cluster.workers, rng, cluster)

    product = costs.step * costs.entries_per_row * problem.measurements
    words = 40.0 * problem.features * FAN_IN
    found = {
        "load and count": (each(costs.tabulate + costs.count), *add_up(problem.pieces, words, cluster, rng)),
        "features": (
            each(costs.finish),
            words * math.log2(cluster.workers + 1) / cluster.bandwidth,
            words * cluster.workers,
        ),
        "X'Z": (each(product / 2), *add_up(problem.pieces, 2 * size, cluster, rng)),
    }
    seconds, moving, moved = 0.0, 0.0, 0.0
    for _ in range(problem.steps * (FITS if problem.refined else 1)):
        seconds += each(product)
        adding, bytes_added = add_up(problem.pieces, size, cluster, rng)
        sending = (1 + math.log2(cluster.workers)) * size / cluster.bandwidth
        moving, moved = moving + adding + sending, moved + bytes_added + size * cluster.workers
    found["conjugate gradients"] = (seconds, moving, moved)
    if problem.refined:
        pairs = CANDIDATES * costs.entries_per_row
        shuffled = 8.0 * problem.rows * pairs * (1 - 1 / cluster.workers)
        found["candidates"] = (each(costs.candidates), 0.0, 0.0)
        passed = shuffled / cluster.workers / cluster.bandwidth
        found["classifiers of labels"] = (each(costs.ranker * pairs), passed, shuffled)
    if cluster.failures:
        hours = sum(a + b for a, b, _ in found.values()) / 3600
        lost = rng.poisson(cluster.failures * cluster.workers * hours)
        per_row = costs.tabulate + costs.finish + product / 2  # its rows, and half of the step that was going on
        again = lost * problem.rows / cluster.workers * per_row / max(1, cluster.workers - 1)
        found["again after failures"] = (again, 0.0, 0.0)
    return found


def table(found):
    """Return the steps as a table, with what each waits for."""
    lines = ["| step | computing, s | moving, s | GB moved | waits for |", "|---|---|---|---|---|"]
    for step, (seconds, moving, moved) in found.items():
        waits = "network" if moving > seconds else "cores"
        lines.append(f"| {step} | {seconds:,.0f} | {moving:,.0f} | {moved / 1e9:,.1f} | {waits} |")
    total = [sum(values[i] for values in found.values()) for i in range(3)]
    return [*lines, f"| all | {total[0]:,.0f} | {total[1]:,.0f} | {total[2] / 1e9:,.1f} | |"]


def check(results, costs):
    """Return predicted and measured seconds of 1, 2 and 4 local workers; a task's cost is fitted to the first.

    Without loading and counting, which wait for the disk, and for dictionaries that are put together.
    """
    runs = [line for line in results if line["part"] == "workers" and line["workers"] and line["how"] == "plain"][-3:]
    if not runs:
        return ["Not measured yet: `python benchmarks/scale.py --only workers`."]
    steps = [line for line in results if line["part"] == "workers, steps" and line["how"] == "plain"]
    taken = {
        run["workers"]: sum(
            step["seconds"]
            for step in steps
            if step["workers"] == run["workers"] and step["step"] in ("making features", "ridge")
        )
        for run in runs
    }
    sizes = runs[0]["rows"], TEXTS["n_features"], TEXTS["n_measurements"], PIECES
    problem = Problem(*sizes, runs[0]["gradient_steps"], refined=False)

    def seconds(workers, task):
        cores = min(workers, len(os.sched_getaffinity(0)))
        cluster = Cluster(cores, bandwidth=1e9, task=task, straggling=0.0)
        slower = costs.crowded if cores == len(os.sched_getaffinity(0)) else 1.0
        found = simulate(problem, cluster, replace(costs, step=slower * costs.step))
        return sum(a + b for step, (a, b, _) in found.items() if step != "load and count")

    grid = np.geomspace(1e-4, 10, 100)
    task = min(grid, key=lambda task: abs(seconds(1, task) - taken[1]))
    lines = [
        f"A task costs the scheduler {1e3 * task:.1f} ms, fitted to the run with one worker.",
        "",
        "| workers | measured, s | predicted, s |",
        "|---|---|---|",
    ]
    return lines + [f"| {workers} | {found:.1f} | {seconds(workers, task):.1f} |" for workers, found in taken.items()]


def measured(results):
    """Return what was measured, as tables."""
    lines = []
    for command in dict.fromkeys(line["command"] for line in results):
        lines += ["", f"`python benchmarks/scale.py {command}`"]
        rows = [line for line in results if line["command"] == command]
        for part, *names in dict.fromkeys((row["part"], *list(row)[2:]) for row in rows):
            same = [row for row in rows if [row["part"], *list(row)[2:]] == [part, *names]]
            lines += ["", f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
            lines += [f"| {' | '.join(_shown(row[name]) for name in names)} |" for row in same]
    return lines[1:]


def _shown(value):
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.2g}" if abs(value) < 1e-3 else f"{value:,.4g}"


def extrapolated(costs):
    """Return what the model says of 10^8 rows and 10^6 labels on 100 workers."""
    hashed = Problem(10**8, 2**18, 1000, 400)
    words = replace(hashed, features=3_000_000)
    lines = []
    for name, problem, cluster in (
        ("10^8 rows, 10^6 labels, 2^18 features, m = 1000, 100 workers of one core, 10 Gbit/s", hashed, Cluster(100)),
        ("the same without refinement", replace(hashed, refined=False), Cluster(100)),
        ("the same with 3 million features", words, Cluster(100)),
        (
            "the same, a worker fails every 10 hours, times vary twice as much",
            words,
            Cluster(100, straggling=0.4, failures=0.1),
        ),
    ):
        lines += ["", f"**{name}**, pieces: {problem.pieces}", "", *table(simulate(problem, cluster, costs))]
    return lines[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the tables into docs/scale.md")
    options = parser.parse_args()
    results = [json.loads(line) for line in (HERE / "scale.jsonl").read_text().splitlines()]
    costs = Costs.measured(results)
    parts = {"measured": measured(results), "checked": check(results, costs), "extrapolated": extrapolated(costs)}
    path = HERE.parent / "docs" / "scale.md"
    for name, lines in parts.items():
        print(f"{name}:", *lines, "", sep="\n")
        if options.write:
            marks = rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)"
            text = "\n".join(lines).replace("\\", r"\\")
            path.write_text(re.sub(marks, rf"\g<1>{text}\n\g<2>", path.read_text(), flags=re.DOTALL))


if __name__ == "__main__":
    main()
