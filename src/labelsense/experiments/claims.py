"""Every claim of the paper's experimental text, each a function of the runs of one data set.

A claim that fails says by how much, and what in the runs explains it. Words such as "nearly" and "match" are given
numbers here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from labelsense.experiments.results import NotRunError, Results
from labelsense.experiments.settings import DECODERS, KS, MEASUREMENTS, REFITTED
from labelsense.experiments.sparsity import FIT_AROUND_TEN, exponent

NAMES = {
    "omp": "OMP",
    "foba": "FoBa",
    "cosamp": "CoSaMP",
    "lasso": "Lasso",
    "correlation": "CD",
    REFITTED: "Lasso, refitted",
}
SEARCHING = DECODERS[:4]  # all but the baseline
PAPER_EXPONENTS = {"image": 0.50, "text": 0.55}
EXPONENT_MARGIN = 0.1  # estimates "around" ten
GROWING = 1.2  # an exponent that is so many times the last one is no estimate of the same
NEARLY = 0.9  # of one-against-all's precision, mean over k
MATCH_ERROR = 0.005  # of the error of predicting nothing
MATCH_PRECISION = 0.005
SMALL, LARGER = MEASUREMENTS[0], MEASUREMENTS[1:]


class Verdict(NamedTuple):
    """Whether a claim holds (None where it does not apply), and the numbers."""

    holds: bool | None
    measured: str


@dataclass(frozen=True)
class Claim:
    """What the paper says, and how to check it."""

    name: str
    text: str
    check: Callable[[Results], Verdict]

    def verdict(self, results: Results) -> Verdict:
        """Return the outcome on one data set."""
        try:
            holds, measured = self.check(results)
            return Verdict(None if holds is None else bool(holds), measured)
        except NotRunError as error:
            return Verdict(None, str(error))


CLAIMS: list[Claim] = []  # in the order of the paper


def _claim(text: str) -> Callable[[Callable[[Results], Verdict]], Callable[[Results], Verdict]]:
    def register(check: Callable[[Results], Verdict]) -> Callable[[Results], Verdict]:
        CLAIMS.append(Claim(check.__name__.strip("_"), text, check))
        return check

    return register


@_claim("The text data: about 16,000 pages, 983 labels on 21 to almost 6,500 pages, 19 a page")
def _data_are_the_papers(r: Results) -> Verdict:
    if r.problem.dataset != "delicious" or r.problem.rows:
        return Verdict(None, "another data set")
    line = r.baseline
    low, high = line["label_frequencies"]
    measured = f"{sum(line['rows']):,} pages, {line['labels']} labels, {line['labels_per_row']:.1f} a page, each on "
    holds = line["labels"] == 983 and low == 21 and 6300 < high < 6500 and round(line["labels_per_row"]) == 19
    return Verdict(holds, measured + f"{low} to {high:,} pages")


@_claim("The sparsity error of the targets falls like k^-r around k = 10, r = 0.50 (images), 0.55 (text)")
def _decay_around_ten(r: Results) -> Verdict:
    found, paper = exponent(r.baseline["sparsity_errors"], *FIT_AROUND_TEN), PAPER_EXPONENTS[r.problem.kind]
    near = exponent(r.baseline["sparsity_errors"], 8, 12)
    measured = f"{found:.2f} for k = 5 to 20 ({near:.2f} for 8 to 12); the paper: {paper:.2f}"
    holds = abs(found - paper) <= EXPONENT_MARGIN
    if not holds and r.problem.kind == "image" and r.problem.dataset != "esp":
        measured += f" on other images with {_noise(r)}"
    return Verdict(holds, measured)


@_claim("In the end it falls faster than any power of k")
def _decay_ends_super_polynomial(r: Results) -> Verdict:
    curve = r.baseline["sparsity_errors"]
    around = [exponent(curve, low, 4 * low) for low in (5, 50, len(curve) // 5)]
    measured = f"exponents {around[0]:.2f} around k = 10, {around[1]:.2f} around 100, {around[2]:.2f} near the end"
    return Verdict(bool((np.diff(np.log(around)) > np.log(GROWING)).all()), measured)


@_claim("That is less than what counts as sparse, k^-1")
def _less_than_sparse(r: Results) -> Verdict:
    found = exponent(r.baseline["sparsity_errors"], *FIT_AROUND_TEN)
    return Verdict(found < 1, f"exponent {found:.2f}")


@_claim("With any decoder, performance improves with m")
def _improves_with_m(r: Results) -> Verdict:
    steps, worse = 0, []
    for decoder in DECODERS:
        for m, more in zip(MEASUREMENTS, LARGER, strict=False):
            if more not in r.measurements:
                continue
            steps += 1
            error = r.mean("errors", more, decoder).mean() - r.mean("errors", m, decoder).mean()
            precision = r.mean("precisions", more, decoder).mean() - r.mean("precisions", m, decoder).mean()
            if error > 0 or precision < 0:
                worse.append(f"{NAMES[decoder]} {m} to {more}: error {error:+.3f}, precision {precision:+.3f}")
    if not steps:
        raise NotRunError("needs runs of two numbers of measurements")
    measured = f"{steps - len(worse)} of {steps} steps of m improve error and precision (means over k)"
    return Verdict(not worse, "; not ".join([measured, *worse]))


@_claim("The lines of m = 100 and m = 200 are two separate sets; one-against-all is above both")
def _figures_show_separate_sets(r: Results) -> Verdict:
    few, more = SMALL, LARGER[0]
    gaps = np.min([r.mean("errors", few, d) for d in DECODERS], axis=0)
    gaps = gaps - np.max([r.mean("errors", more, d) for d in DECODERS], axis=0)
    steps = np.min([r.mean("precisions", more, d) for d in DECODERS], axis=0)
    steps = steps - np.max([r.mean("precisions", few, d) for d in DECODERS], axis=0)
    below = np.array(r.baseline["precisions"]) - np.max([r.mean("precisions", more, d) for d in DECODERS], axis=0)
    measured = f"separate in error at {_at(gaps > 0)}; in precision at {_at(steps > 0)}; one-against-all on top at "
    why = ""
    if not (gaps > 0).all():
        others = [d for d in DECODERS if d != "lasso"]
        same = np.min([r.mean("errors", few, d) for d in others], axis=0)
        same = same > np.max([r.mean("errors", more, d) for d in others], axis=0)
        why = f". Without the Lasso, which shrinks what it finds, in error at {_at(same)}"
    return Verdict(bool((gaps > 0).all() and (steps > 0).all() and (below > 0).all()), measured + _at(below > 0) + why)


@_claim("At m = 300 and 400 precision is nearly that of one-against-all")
def _nearly_one_against_all(r: Results) -> Verdict:
    top = np.array(r.baseline["precisions"])
    shares = {(m, d): (r.mean("precisions", m, d) / top).mean() for m in _present(r, (300, 400)) for d in DECODERS}
    parts = []
    for m in _present(r, (300, 400)):
        least, most = (f(shares[m, d] for d in SEARCHING) for f in (min, max))
        parts.append(f"m = {m}: {100 * least:.0f} to {100 * most:.0f} % of its precision, CD {_share(shares, m)}")
    low = min(share for (_, d), share in shares.items() if d in SEARCHING)
    return Verdict(low >= NEARLY, "; ".join(parts) + f" (nearly: {100 * NEARLY:.0f} %, mean over k)")


@_claim("When m is small, choosing more labels overfits")
def _overfits_at_small_m(r: Results) -> Verdict:
    best = {d: KS[int(np.argmin(r.mean("errors", SMALL, d)))] for d in DECODERS}
    rises = [r.mean("errors", SMALL, d)[-1] - r.mean("errors", SMALL, d).min() for d in ("omp", "foba")]
    listed = ", ".join(f"{NAMES[d]} {k}" for d, k in best.items())
    measured = f"least error at k = {listed}; OMP is {rises[0]:.2f} above its least at k = 10, FoBa {rises[1]:.2f}"
    return _explained(r, best["omp"] < KS[-1] and best["foba"] < KS[-1], measured)


@_claim("When A is good enough, the error falls as k grows")
def _error_falls_with_k(r: Results) -> Verdict:
    m = max(_present(r, LARGER))
    least = {d: KS[int(np.argmin(r.mean("errors", m, d)))] for d in DECODERS}
    holds = all((np.diff(r.mean("errors", m, d)) < 0).all() for d in DECODERS)
    measured = f"m = {m}: least error at k = " + ", ".join(f"{NAMES[d]} {k}" for d, k in least.items())
    if not holds:
        own = KS[int(np.argmin(r.baseline["errors"]))]
        measured += f". One-against-all's own k largest predictions are best at k = {own}: {_noise(r)}"
    return Verdict(holds, measured)


@_claim("Precision falls as k grows")
def _precision_falls_with_k(r: Results) -> Verdict:
    curves = [np.array(r.baseline["precisions"])]
    curves += [r.mean("precisions", m, d) for m in r.measurements for d in DECODERS]
    falling = sum(bool((np.diff(curve) <= 0).all()) for curve in curves)
    first, last = curves[0][0], curves[0][-1]
    measured = f"{falling} of {len(curves)} curves; one-against-all from {first:.3f} to {last:.3f}"
    return Verdict(falling == len(curves), measured)


@_claim("All decoders match or beat CD in squared error when m > 100")
def _matches_baseline_in_error(r: Results) -> Verdict:
    margin = MATCH_ERROR * r.baseline["error_of_nothing"]
    counts = _present(r, LARGER)
    excess = {
        (d, m): r.mean("errors", m, d) - r.mean("errors", m, "correlation")
        for d in (*SEARCHING, *([REFITTED] if r.has(counts[0], REFITTED) else []))
        for m in counts
    }
    parts, holds = [], True
    for d in SEARCHING:
        m, k = max(((m, k) for m in counts for k in KS), key=lambda place: excess[d, place[0]][place[1] - 1])
        worst = excess[d, m][k - 1]
        holds &= bool(worst <= margin)
        matching = [m for m in counts if excess[d, m].max() <= margin]
        where = "at every m" if len(matching) == len(counts) else f"at m = {_list(matching)}" if matching else "nowhere"
        parts.append(f"{NAMES[d]} matches {where}, at worst {worst:+.3f} (m = {m}, k = {k})")
    measured = "; ".join(parts) + f". Margin {margin:.3f}"
    if (
        ("lasso", counts[0]) in excess
        and (REFITTED, counts[0]) in excess
        and max(excess["lasso", m].max() for m in counts) > margin
    ):
        refitted = max(excess[REFITTED, m].max() for m in counts)
        measured += f". The Lasso shrinks: least squares on the labels it finds is at worst {refitted:+.3f}"
    if max(excess["omp", m].max() for m in counts) > margin:
        listed = ", ".join(f"{excess['omp', m][-1]:+.3f} at m = {m}" for m in counts)
        measured += f". OMP fits the noise of h: {_noise(r)}; at k = 10 it is {listed}"
    return Verdict(holds, measured)


@_claim("... but not when m = 100: OMP and FoBa do not fare well there")
def _greedy_fail_at_small_m(r: Results) -> Verdict:
    baseline = r.mean("errors", SMALL, "correlation")[-1]
    excess = {d: r.mean("errors", SMALL, d)[-1] - baseline for d in SEARCHING}
    measured = "over CD at k = 10: " + ", ".join(f"{NAMES[d]} {value:+.2f}" for d, value in excess.items())
    return _explained(r, excess["omp"] > 0 and excess["foba"] > 0, measured)


@_claim("At m = 100 CoSaMP, Lasso and CD have less error than OMP and FoBa")
def _correlated_columns_help_error(r: Results) -> Verdict:
    errors = {d: float(r.mean("errors", SMALL, d)[-1]) for d in DECODERS}
    greedy = min(errors["omp"], errors["foba"])
    measured = ", ".join(f"{NAMES[d]} {error:.2f}" for d, error in errors.items())
    holds = all(errors[d] < greedy for d in ("cosamp", "lasso", "correlation"))
    return _explained(r, holds, f"errors at k = 10: {measured}")


@_claim("When A has few rows, many of its columns are correlated")
def _few_rows_correlate(r: Results) -> Verdict:
    found = {m: float(r.mean("coherence", m, "omp")) for m in r.measurements}
    if len(found) < 2:
        raise NotRunError("needs runs of two numbers of measurements")
    listed = ", ".join(f"{value:.2f} at m = {m}" for m, value in found.items())
    return Verdict(bool((np.diff(list(found.values())) < 0).all()), f"coherence {listed}")


@_claim("For precision the results are similar: when m > 100, all decoders match or beat CD")
def _matches_baseline_in_precision(r: Results) -> Verdict:
    counts = _present(r, LARGER)
    loss = {
        d: max(float((r.mean("precisions", m, "correlation") - r.mean("precisions", m, d)).max()) for m in counts)
        for d in SEARCHING
    }
    gain = {
        d: float(np.mean([r.mean("precisions", m, d) - r.mean("precisions", m, "correlation") for m in counts]))
        for d in SEARCHING
    }
    measured = "against CD at m >= 200, mean and worst: "
    measured += ", ".join(f"{NAMES[d]} {gain[d]:+.3f} and {-loss[d]:+.3f}" for d in SEARCHING)
    return Verdict(all(value <= MATCH_PRECISION for value in loss.values()), f"{measured}. Margin {MATCH_PRECISION}")


@_claim("At m = 100 choosing correlated columns need not help precision")
def _correlated_columns_and_precision(r: Results) -> Verdict:
    found = {d: float(r.mean("precisions", SMALL, d).mean()) for d in DECODERS}
    helped = [d for d in ("cosamp", "lasso", "correlation") if found[d] > max(found["omp"], found["foba"])]
    measured = "mean precision at m = 100: " + ", ".join(f"{NAMES[d]} {value:.3f}" for d, value in found.items())
    return Verdict(len(helped) < 3, measured + f". Better than OMP and FoBa: {_list([NAMES[d] for d in helped])}")


@_claim("Gaussian matrices are similar but uniformly worse")
def _gaussian_uniformly_worse(r: Results) -> Verdict:
    pairs = [(m, d) for m in _present(r, MEASUREMENTS) for d in DECODERS]
    e = np.array([r.mean("errors", m, d, "gaussian") - r.mean("errors", m, d) for m, d in pairs])
    p = np.array([r.mean("precisions", m, d) - r.mean("precisions", m, d, "gaussian") for m, d in pairs])
    means = (e.mean(axis=1) > 0) & (p.mean(axis=1) > 0)
    measured = (
        f"worse in error at {_percent(e > 0)} of all m, decoders and k (mean {e.mean():+.3f}), in precision at "
        f"{_percent(p > 0)} (mean {-p.mean():+.3f}); worse in both on the mean over k for {means.sum()} of "
        f"{means.size} pairs of m and decoder"
    )
    for i in np.flatnonzero(~means):
        m, d = pairs[i]
        measured += f"; not {NAMES[d]} at m = {m}: error {e[i].mean():+.3f}, precision {-p[i].mean():+.3f}"
    return Verdict(bool(means.all()), measured)


@_claim("Relatively few compressed labels suffice")
def _few_measurements_suffice(r: Results) -> Verdict:
    top, d = np.array(r.baseline["precisions"]), r.baseline["labels"]
    shares = {m: max((r.mean("precisions", m, x) / top).mean() for x in SEARCHING) for m in _present(r, MEASUREMENTS)}
    enough = [m for m, share in shares.items() if share >= NEARLY]
    listed = ", ".join(f"{100 * share:.0f} % at m = {m}" for m, share in shares.items())
    measured = f"the best decoder has {listed} of one-against-all's precision, which takes {d} regressions"
    if enough:
        measured += f"; {100 * NEARLY:.0f} % takes {min(enough)}, {100 * min(enough) / d:.0f} % of them (few: half)"
    return Verdict(bool(enough) and min(enough) <= d / 2, measured)


@_claim("The robustness of the decoder is a key factor (most where m is small)")
def _robustness_matters(r: Results) -> Verdict:
    spread = {}
    for m in _present(r, MEASUREMENTS):
        errors = [r.mean("errors", m, d)[-1] for d in DECODERS if d != "lasso"]
        spread[m] = float(max(errors) - min(errors))
    if len(spread) < 2:
        raise NotRunError("needs runs of two numbers of measurements")
    measured = ", ".join(f"{value:.2f} at m = {m}" for m, value in spread.items())
    few, many = spread[min(spread)], spread[max(spread)]
    return Verdict(few > many, f"worst less best error at k = 10, the shrinking Lasso apart: {measured}")


def _present(r: Results, wanted: tuple[int, ...]) -> list[int]:
    found = [m for m in wanted if m in r.measurements]
    if not found:
        raise NotRunError(f"needs runs of m = {_list(wanted)}")
    return found


def _explained(r: Results, holds: bool, measured: str) -> Verdict:
    """Return a verdict about overfitting, with how much there is to overfit to where the claim fails."""
    return Verdict(holds, measured if holds else f"{measured}. How noisy h is: {_noise(r)}")


def _noise(r: Results) -> str:
    """Return how good least squares itself is."""
    line = r.baseline
    return f"error {line['dense_error']:.2f} of one-against-all, {line['error_of_nothing']:.2f} of predicting nothing"


def _list(items: Iterable[object]) -> str:
    return ", ".join(str(item) for item in items) or "none"


def _at(where: object) -> str:
    places = np.asarray(where)
    return "all 10 k" if places.all() else f"{int(places.sum())} of {len(places)} k"


def _percent(where: object) -> str:
    return f"{100 * np.asarray(where).mean():.0f} %"


def _share(shares: dict[tuple[int, str], float], m: int) -> str:
    return f"{100 * shares[m, 'correlation']:.0f} %"
