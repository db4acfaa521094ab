"""Why the advisor recommends what it does, in words."""

from __future__ import annotations

from labelsense.advisor.advice import Advice
from labelsense.refine.refiner import ALL


def explain(advice: Advice, judges: dict[str, dict[str, float]], given: bool) -> list[str]:
    """Return the reasons for a recommendation, given what judged in the rehearsal, and whether A was given."""
    goal, best, fewest = f"P@{advice.k}", advice.recommended, advice.fewest
    top = max(advice.options, key=lambda option: option.measured[goal])
    rule = "as given" if given else "in proportion to the square root of the number of labels"
    reasons = [
        f"m = {best.n_measurements}: {rule}. Without refinement, m = {fewest.n_measurements} is the fewest within one "
        f"percent of the best {goal}, {100 * top.measured[goal]:.1f} at m = {top.n_measurements}."
    ]
    if advice.tried:
        reasons.append(
            f"{advice.chosen['learner']}, features {advice.chosen['features']}: by the precision of rows left out, of "
            f"{len(advice.tried)} settings."
        )
    if ALL in judges:
        name = "P@5"
        reasons.append(
            f"Refinement: {name} {100 * judges[ALL][name]:.1f}, the decoder alone {100 * judges['decoder'][name]:.1f}, "
            f"of {advice.n_learned:,} rows."
        )
    reasons.append(_where_it_is_lost(advice, goal))
    if advice.sparsity.n_rows > advice.n_learned:
        reasons.append(f"The step from {advice.n_learned:,} to {advice.sparsity.n_rows:,} rows is extrapolated.")
    if advice.order is not None:
        reasons.append(
            f"Order matters: {advice.order}. If new rows come from elsewhere, or later, expect what the last rows get."
        )
    return reasons


def _where_it_is_lost(advice: Advice, goal: str) -> str:
    best, possible = advice.recommended, advice.best_possible[goal]
    recovery, learning = possible - best.perfect[goal], best.perfect[goal] - best.measured[goal]
    where = "the regressions" if learning > recovery else "the recovery, where more measurements would help"
    return (
        f"Not refined, perfect regressions would give {goal} {100 * best.perfect[goal]:.1f} of {100 * possible:.1f} "
        f"possible; most of the loss is in {where}."
    )
