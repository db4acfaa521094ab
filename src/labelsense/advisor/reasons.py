"""Why the advisor recommends what it does, in words."""

from __future__ import annotations

from labelsense.advisor.advice import Advice, Option
from labelsense.reconstruct.base import AUTO_NONZERO
from labelsense.regress import RidgeLearner

ALIKE = 1.5  # times the cosine of rows at random: then neighbours are related
FEW = 20  # measurements per label of a row: below, decoders that may choose correlated columns often win


def explain(advice: Advice, alphas: dict[float, float]) -> tuple[str, ...]:
    """Return the reasons for a recommendation; ``alphas`` are the penalties that were tried, if any."""
    best, goal, sparsity = advice.recommended, f"P@{advice.k}", advice.sparsity
    reasons = [_measurements(advice, best, goal), _decoder(best, sparsity.mean, goal)]
    if best.n_nonzero > max(AUTO_NONZERO, advice.k):
        reasons.append(
            f"n_nonzero = {best.n_nonzero}: rows have up to {sparsity.most:g} labels, and {goal} is as good as with "
            f"{max(AUTO_NONZERO, advice.k)}."
        )
    if alphas and isinstance(advice.learner, RidgeLearner):
        tried = ", ".join(f"{alpha:g}" for alpha in sorted(alphas))
        reasons.append(
            f"alpha = {advice.learner.alpha:g}: the best {goal} of held-out rows, of {tried} (on half of the sample)."
        )
    reasons.append(_where_it_is_lost(best, advice.best_possible[goal], goal))
    covered = int(0.1 / best.coherence) if best.coherence > 0 else sparsity.n_labels
    rely = ", fewer labels than rows have: rely on what was measured" if covered < sparsity.mean else ""
    reasons.append(f"The paper's guarantee for OMP, coherence <= 0.1 / k, covers k up to {covered}{rely}.")
    if sparsity.n_rows > 2 * advice.n_learned:
        reasons.append(f"The step from {advice.n_learned:,} to {sparsity.n_rows:,} rows is extrapolated.")
    near, far = advice.likeness
    if advice.held_out == "rows" and near > ALIKE * far + 0.01:
        reasons.append(
            f"Rows next to each other are alike (cosine {near:.2f}, of rows at random {far:.2f}). If new rows come "
            'from elsewhere, less is to be expected: ask again with held_out="runs".'
        )
    return tuple(reasons)


def _measurements(advice: Advice, best: Option, goal: str) -> str:
    if best is advice.options[-1]:
        return f"m = {best.n_measurements}: the most that were tried; fewer lose more than a point of {goal}."
    top = max(advice.options, key=lambda option: option.expected[goal])
    return (
        f"m = {best.n_measurements}: the fewest within one point of the best {goal} expected, "
        f"{100 * top.expected[goal]:.1f} at m = {top.n_measurements}."
    )


def _decoder(best: Option, labels_per_row: float, goal: str) -> str:
    if best.decoder == "omp":
        rivals = {word: value - best.decoders["omp"] for word, value in best.decoders.items() if word != "omp"}
        second = max(rivals, key=lambda word: rivals[word])
        return f"omp: no other decoder gains half a point of {goal} ({second}: {100 * rivals[second]:+.1f})."
    gain = 100 * (best.decoders[best.decoder] - best.decoders["omp"])
    few = best.n_measurements < FEW * max(labels_per_row, 1)
    why = ", as is common where m is small for the number of labels of a row" if few else ""
    return f"{best.decoder}: {gain:.1f} points of {goal} above OMP{why}."


def _where_it_is_lost(best: Option, possible: float, goal: str) -> str:
    recovery, learning = possible - best.perfect[goal], best.perfect[goal] - best.expected[goal]
    where = "the regressions" if learning > recovery else "the recovery, where more measurements would help"
    return (
        f"Perfect regressions would give {goal} {100 * best.perfect[goal]:.1f} of {100 * possible:.1f} possible; "
        f"most of the loss is in {where}."
    )
