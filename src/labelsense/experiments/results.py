"""The lines of one data set, as arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsense.experiments.lines import read_lines
from labelsense.experiments.settings import DECODERS, PROBLEMS, Problem, Run, one_against_all


class NotRunError(LookupError):
    """A claim asks for runs that are not there."""


class Results:
    """What was measured on one problem.

    Attributes
    ----------
    baseline : dict
        The line of one-against-all.
    seeds : list of int
        The seeds of A that every kind of run has, so that means compare like with like.
    measurements : list of int
        The numbers m for which all of the paper's decoders have run on Hadamard rows.
    """

    def __init__(self, problem: Problem, lines: dict[Run, dict[str, Any]]) -> None:
        self.problem = problem
        own = {run: line for run, line in lines.items() if run.problem == problem}
        self.baseline = own.pop(one_against_all(problem))
        self.seeds = _complete_seeds(own)
        self.lines = {run: line for run, line in own.items() if run.seed in self.seeds}
        counts = sorted({run.n_measurements for run in self.lines})
        self.measurements = [m for m in counts if all(self.has(m, decoder) for decoder in DECODERS)]

    def has(self, m: int, decoder: str, compressor: str = "hadamard") -> bool:
        """Return whether there is a run of this kind."""
        return bool(self._of(m, decoder, compressor))

    def values(self, what: str, m: int, decoder: str, compressor: str = "hadamard") -> NDArray[np.float64]:
        """Return "errors" or "precisions", (seeds, k); "coherence", (seeds,)."""
        found = self._of(m, decoder, compressor)
        if not found:
            raise NotRunError(f"needs runs of {compressor}, m = {m}, {decoder}")
        return np.array([found[seed][what] for seed in sorted(found)])

    def mean(self, what: str, m: int, decoder: str, compressor: str = "hadamard") -> NDArray[np.float64]:
        """Return the mean over the seeds."""
        return np.asarray(self.values(what, m, decoder, compressor).mean(axis=0))

    @property
    def seconds(self) -> float:
        """How long all runs took."""
        return float(sum(line["seconds"] for line in (self.baseline, *self.lines.values())))

    def _of(self, m: int, decoder: str, compressor: str) -> dict[int, dict[str, Any]]:
        kind = (compressor, m, decoder)
        return {
            run.seed: line
            for run, line in self.lines.items()
            if (run.compressor, run.n_measurements, run.decoder) == kind
        }


def _complete_seeds(runs: Iterable[Run]) -> list[int]:
    """Return the seeds that every kind of run has; the lowest one if there is none."""
    kinds: dict[Run, set[int]] = {}
    for run in runs:
        kinds.setdefault(replace(run, seed=0), set()).add(run.seed)
    seeds = list(kinds.values())
    return sorted(set.intersection(*seeds) or {min(set.union(*seeds))}) if seeds else []


def read_results(folder: Path) -> list[Results]:
    """Return the results of each problem that has some, in the order of the settings."""
    lines = read_lines(folder)
    problems = dict.fromkeys(run.problem for run in lines if one_against_all(run.problem) in lines)
    order = list(PROBLEMS)
    return [Results(problem, lines) for problem in sorted(problems, key=lambda p: order.index(p.name))]
