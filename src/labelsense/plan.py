"""From the settings of a classifier to the parts that a fit will learn: those that were given, and those chosen."""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.utils import check_random_state

from labelsense._typing import CSR, RandomState
from labelsense._validation import check_choice, check_real
from labelsense.chooser import BUDGETS, Choice, choose, choose_compressor, choose_decoder, choose_refiner
from labelsense.compress import COMPRESSORS, Compressor, WhitenedCompressor
from labelsense.errors import InputError
from labelsense.ordering import HELD_OUT, come_in_runs
from labelsense.predictor import LabelPredictor
from labelsense.reconstruct import DECODERS, Decoder, OMPDecoder
from labelsense.refine import Refiner
from labelsense.refine.refiner import LEAST_ROWS
from labelsense.regress import LEARNERS, Learner, RidgeLearner

OBJECTIVES = {"precision": None, "propensity": None}


class Plan(NamedTuple):
    """What a fit will learn: parts that were given, and parts that were chosen for the rows."""

    compressor: Compressor
    learner: Learner
    decoder: Decoder
    refiner: Refiner | None
    scaling: str | None  # of features, in a word
    choice: Choice | None


class PlannedPredictor(LabelPredictor):
    """A model that has settings, and makes its parts of them."""

    compressor: Compressor | str
    decoder: Decoder | str
    refiner: Refiner | str | None
    budget: str
    objective: str
    updatable: bool
    held_out: str
    threshold: float | str
    random_state: RandomState

    # "auto" has the parameters of what it most often is.
    _words = LabelPredictor._words | {
        "compressor": {**COMPRESSORS, "auto": WhitenedCompressor},
        "learner": {**LEARNERS, "auto": RidgeLearner},
        "decoder": {**DECODERS, "auto": lambda: OMPDecoder(penalty=0.1)},
    }

    def _check_settings(self, weighted: bool) -> float | None:
        """Refuse settings that do not fit before any work; return the threshold, if it is a number."""
        check_choice(self.budget, "budget", BUDGETS)
        check_choice(self.objective, "objective", OBJECTIVES)
        check_choice(self.held_out, "held_out", HELD_OUT)
        if (refiner := self._make_refiner()) is not None:
            refiner.check_settings()
        if self.learner != "auto":
            learner = self._make_learner()
            if weighted:
                check_takes_weights(learner)
        return self._check_threshold()

    def _plan(self, X: Any, Y: CSR, weighted: bool) -> Plan:
        """Return what to learn from rows. The same settings, rows and seed give the same plan."""
        seed = check_random_state(self.random_state).randint(2**31)
        compressor = self._make_compressor(Y.shape[1], seed)
        # Of rows in runs, each has neighbours that tell much of it; new ones have not.
        in_runs = self.held_out != "rows" and (self.held_out == "last" or come_in_runs(X, random_state=0))
        refiner = self._make_refiner(not in_runs) if Y.shape[0] >= LEAST_ROWS else None
        decoder = self._make_decoder(compressor, Y.shape[1], refiner is not None)
        if self.learner != "auto":
            return Plan(compressor, self._make_learner(), decoder, refiner, None, None)
        kernels = not weighted and not self.updatable
        budget, scale = BUDGETS[self.budget], self.features is None
        choice = choose(
            X,
            Y,
            budget,
            scale=scale,
            kernels=kernels,
            refined=refiner is not None,
            random_state=seed,
            in_runs=in_runs and budget.thorough,
        )
        learner = choice.learner.set_params(random_state=seed)
        if self.updatable:
            learner.set_params(updatable=True)
        return Plan(compressor, learner, decoder, refiner, choice.features, choice)

    def _make_learner(self) -> Learner:
        learner = super()._make_learner()
        if not self.updatable:
            return learner
        if not learner.takes_updates:
            raise InputError(
                f"learner must be ridge to be updatable: others cannot be updated. Got {type(learner).__name__}."
            )
        return learner.set_params(updatable=True)

    def _make_compressor(self, n_labels: int, seed: int) -> Compressor:
        words = {**COMPRESSORS, "auto": lambda: choose_compressor(n_labels, BUDGETS[self.budget])}
        given = self.compressor
        compressor = clone(given) if isinstance(given, Compressor) else check_choice(given, "compressor", words)()
        if compressor.random_state is None:
            compressor.random_state = seed
        return compressor

    def _make_decoder(self, compressor: Compressor, n_labels: int, refined: bool) -> Decoder:
        words = {**DECODERS, "auto": lambda: choose_decoder(compressor, n_labels, refined)}
        given = self.decoder
        return clone(given) if isinstance(given, Decoder) else check_choice(given, "decoder", words)()

    def _make_refiner(self, neighbours: bool = True) -> Refiner | None:
        """Return what refines, and if that is chosen, whether it may hear neighbours, which cannot be updated."""
        if self.refiner is None or isinstance(self.refiner, Refiner):
            return clone(self.refiner) if self.refiner is not None else None
        words = {"auto": lambda: choose_refiner(BUDGETS[self.budget], neighbours and not self.updatable)}
        return check_choice(self.refiner, "refiner", words)()

    def _check_threshold(self) -> float | None:
        """Return the threshold, if it is a number."""
        if self.threshold == "f1":
            return None
        return check_real(self.threshold, "threshold", low=0, high=1, remedy="'f1' chooses.")


def check_takes_weights(learner: Learner) -> None:
    """Refuse a learner for which all rows count the same."""
    if not learner.takes_weights:
        raise TypeError(f"{type(learner).__name__} does not take sample_weight. Use RidgeLearner, which does.")
