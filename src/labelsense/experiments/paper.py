"""The paper's experiments, from the data to the page."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from labelsense._progress import report_progress
from labelsense._validation import check_count
from labelsense.experiments.figures import load_matplotlib
from labelsense.experiments.lines import append_line, read_lines
from labelsense.experiments.problems import Halves, fit_least_squares, load_halves
from labelsense.experiments.report import LEFT_OUT, write_report
from labelsense.experiments.runs import run_compressed, run_one_against_all
from labelsense.experiments.settings import (
    DEFAULT_DATASETS,
    FALLBACK,
    PROBLEMS,
    SEEDS,
    Problem,
    Run,
    compressed_runs,
    one_against_all,
    quickly,
)

Progress = Callable[[str, float], None]


def reproduce(
    output_folder: str | os.PathLike[str],
    *,
    datasets: Sequence[str] | None = None,
    seeds: Sequence[int] = SEEDS,
    quick: bool = False,
    esp: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Path:
    """Run what is missing of the paper's experiments, write the report and return the path of its page.

    Each run is a line of ``runs.jsonl`` in the folder, written when it is done: after an interruption the same call
    goes on where it was. A data set that is not on this machine and cannot be fetched is left out, and the report says
    so.

    Parameters
    ----------
    output_folder : path
        Where runs, figures and the page are written.
    datasets : sequence of str, optional
        Names from :data:`~labelsense.experiments.settings.PROBLEMS`. By default delicious, tabler_icons and corel5k,
        the latter two also with a penalty, and esp if its folder is given; the bundled debtags where none of them can
        be had.
    seeds : sequence of int
        Seeds of the matrices A. The figures show the mean, and the range as a band.
    quick : bool
        A first look: few rows, the first seed, m = 100 and 200.
    esp : path, optional
        The folder of the ESP game's images, laid out as :func:`~labelsense.data.read_esp_folder` wants it.
    progress : callable, optional
        Called with what comes next and how much is done, from 0 to 1. By default this is logged.
    """
    folder = Path(output_folder)
    problems = _choose(datasets, esp)
    seeds = [check_count(seed, "a seed", low=0) for seed in seeds][: 1 if quick else None]
    if not seeds:
        raise ValueError("seeds must name at least one seed. Got none.")
    folder.mkdir(parents=True, exist_ok=True)
    work = _Work(folder, seeds, quick, esp, progress or report_progress)
    load_matplotlib()  # or fail now, not after the runs
    left_out = {}
    for problem in problems:
        try:
            work.run(problem)
        except _NotHere as error:
            left_out[problem.name] = str(error)
    if len(left_out) == len(problems) and datasets is None:
        work.run(PROBLEMS[FALLBACK])
    (folder / LEFT_OUT).write_text(json.dumps(left_out, indent=1) + "\n", encoding="utf-8")
    return write_report(folder)


class _NotHere(Exception):
    """A data set cannot be had."""


class _Work:
    """What the runs of all data sets share."""

    def __init__(
        self,
        folder: Path,
        seeds: Sequence[int],
        quick: bool,
        esp: str | os.PathLike[str] | None,
        progress: Progress,
    ) -> None:
        self.folder, self.seeds, self.quick = folder, seeds, quick
        self.esp, self.progress = esp, progress

    def run(self, problem: Problem) -> None:
        """Do the runs of a problem that have no line yet."""
        problem = quickly(problem) if self.quick else problem
        baseline = one_against_all(problem)
        done = read_lines(self.folder)
        if baseline in done and not self._missing(problem, done[baseline]["labels"]):
            return
        self.progress(f"{problem.title}: features and least squares", 0)
        halves = self._halves(problem)
        learner = fit_least_squares(halves, problem.alpha)
        B = learner.coef_
        if baseline not in done:
            append_line(self.folder, baseline, {**run_one_against_all(halves, B), "alpha": learner.alpha_})
        missing = self._missing(problem, B.shape[1])
        for number, run in enumerate(missing):
            what = f"{run.compressor}, m = {run.n_measurements}, {run.decoder}"
            self.progress(f"{problem.title}: {what}; {len(missing) - number} runs to go", number / len(missing))
            append_line(self.folder, run, run_compressed(run, halves, B))

    def _missing(self, problem: Problem, n_labels: int) -> list[Run]:
        done = read_lines(self.folder)
        return [run for run in compressed_runs(problem, n_labels, self.seeds, self.quick) if run not in done]

    def _halves(self, problem: Problem) -> Halves:
        try:
            return load_halves(problem, self.folder, self.esp)
        except (OSError, ImportError) as error:
            raise _NotHere(str(error)) from error


def _choose(datasets: Sequence[str] | None, esp: str | os.PathLike[str] | None) -> list[Problem]:
    if datasets is None:
        datasets = [*DEFAULT_DATASETS, *(["esp"] if esp is not None else [])]
    for name in datasets:
        if name not in PROBLEMS:
            raise ValueError(f"datasets must be among {', '.join(PROBLEMS)}. Got {name!r}.")
    return [PROBLEMS[name] for name in dict.fromkeys(datasets)]
