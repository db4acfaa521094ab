"""The picture of an advice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labelsense._plots import load_matplotlib

if TYPE_CHECKING:
    from labelsense.advisor.advice import Advice

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart; markers differ as well.
EXPECTED, PERFECT, CHOSEN = "#0072B2", "#E69F00", "#000000"


def draw(advice: Advice, target: Any) -> Any:
    """Draw on axes, or into the file of that name; return the axes."""
    Figure = load_matplotlib()
    given = hasattr(target, "get_xlabel")  # axes, not a file name
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = target if given else figure.add_subplot()
    goal = f"P@{advice.k}"
    ms = [option.n_measurements for option in advice.options]
    for values, label, colour, marker in (
        ([option.perfect[goal] for option in advice.options], "perfect regressions", PERFECT, "s"),
        ([option.measured[goal] for option in advice.options], "measured, not refined", EXPECTED, "o"),
    ):
        axes.plot(ms, [100 * value for value in values], color=colour, marker=marker, label=label)
    axes.axhline(100 * advice.best_possible[goal], color="0.5", linestyle=":", label="best possible")
    if goal in advice.expected:
        label = "expected of the recommended model"
        axes.plot(advice.n_measurements, 100 * advice.expected[goal], "*", color=CHOSEN, markersize=14, label=label)
    axes.axvline(advice.n_measurements, color=CHOSEN, linestyle="--", label=f"recommended: m = {advice.n_measurements}")
    axes.set_xscale("log")
    axes.set_xticks(ms, [str(m) for m in ms])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("measurements (regressions to learn)")
    axes.set_ylabel(f"{goal} (%)")
    axes.set_title(f"{advice.sparsity.n_labels:,} labels, {advice.sparsity.mean:.1f} per row")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", framealpha=1)
    if not given:
        figure.savefig(target, dpi=150)
    return axes
