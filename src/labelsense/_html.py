"""Small tables and pictures for notebooks: HTML and inline SVG, without scripts or anything from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

WIDTH, HEIGHT, MARGIN, TOP = 380, 230, 42, 24  # pixels
RIGHT = ' style="text-align:right"'
# Okabe and Ito's colours, which people with any kind of colour vision can tell apart.
BLUE, ORANGE = "#0072B2", "#E69F00"


class Html(str):
    """Text that is HTML already."""


class Curve(NamedTuple):
    """A line of a chart.

    Attributes
    ----------
    name : str
        What the legend says.
    x, y : sequence of float
        Its points.
    colour : str
        Of the line.
    dashes : str
        As ``stroke-dasharray`` of SVG; by default none.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    dashes: str = "none"


def html_table(head: Sequence[str], rows: Sequence[Sequence[Any]], *, strong: int | None = None) -> str:
    """Return a table whose first column is text and whose other columns are at the right; one row may be bold.

    Examples
    --------
    >>> html_table(["k", "P"], [["a<b", 0.5]])
    '<table><tr><th>k</th><th>P</th></tr><tr><td>a&lt;b</td><td style="text-align:right">0.5</td></tr></table>'
    """
    lines = ["<tr>" + "".join(f"<th>{escape(word)}</th>" for word in head) + "</tr>"]
    for i, row in enumerate(rows):
        cells = [cell if isinstance(cell, Html) else escape(str(cell)) for cell in row]
        if i == strong:
            cells = [f"<b>{cell}</b>" for cell in cells]
        lines.append("<tr>" + "".join(f"<td{RIGHT if j else ''}>{cell}</td>" for j, cell in enumerate(cells)) + "</tr>")
    return f"<table>{''.join(lines)}</table>"


def html_bar(share: float, colour: str, start: float = 0.0) -> Html:
    """Return a bar as long as a share of 160 pixels, beginning at another share."""
    left, width = (round(160 * min(max(value, 0.0), 1.0), 1) for value in (start, share))
    bar = f'<rect x="{left}" width="{width}" height="12" fill="{escape(colour)}"/>'
    return Html(f'<svg width="160" height="12" role="img" aria-label="{share:.3f}">{bar}</svg>')


def svg_chart(
    curves: Sequence[Curve], x_label: str, y_label: str, *, y_range: tuple[float, float], log_x: bool = False
) -> str:
    """Return a chart of a few curves; what is beyond the range of y is drawn at its edge."""
    across = [_at(x, log_x) for curve in curves for x in curve.x]
    low, high = min(across, default=0.0), max(across, default=1.0)
    (bottom, top), right = y_range, WIDTH - 12

    def place(x: float, y: float) -> tuple[float, float]:
        share = (_at(x, log_x) - low) / (high - low) if high > low else 0.5
        level = (min(max(y, bottom), top) - bottom) / (top - bottom)
        return MARGIN + share * (right - MARGIN), HEIGHT - MARGIN - level * (HEIGHT - MARGIN - TOP)

    parts = [_ticks(curves, y_range, place), _text(WIDTH / 2, HEIGHT - 6, x_label), _text(12, 10, y_label, "start")]
    for i, curve in enumerate(curves):
        points = [place(x, y) for x, y in zip(curve.x, curve.y, strict=True)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        colour = escape(curve.colour)
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{escape(curve.dashes)}"/>'
        )
        if curve.dashes == "none":
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        parts.append(_text(right, HEIGHT - MARGIN - 8 - 14 * i, curve.name, "end", colour))
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="sans-serif" font-size="11" fill="currentColor">{"".join(parts)}</svg>'
    )


def _at(x: float, log: bool) -> float:
    return math.log(x) if log else float(x)


def _ticks(curves: Sequence[Curve], y_range: tuple[float, float], place: Any) -> str:
    xs = sorted({x for curve in curves for x in curve.x})
    shown = xs if len(xs) <= 6 else [xs[0], xs[len(xs) // 2], xs[-1]]
    bottom, top = y_range
    parts = []
    for x in shown:
        left, base = place(x, bottom)
        parts.append(_text(left, base + 15, f"{x:.3g}" if x < 1000 else f"{x:.0f}"))
    for y in (bottom, (bottom + top) / 2, top):
        level = place(xs[0] if xs else 1.0, y)[1]
        parts.append(
            f'<line x1="{MARGIN}" x2="{WIDTH - 12}" y1="{level:.1f}" y2="{level:.1f}" '
            'stroke="currentColor" stroke-opacity="0.2"/>'
        )
        parts.append(_text(MARGIN - 5, level + 4, f"{y:.3g}", "end"))
    return "".join(parts)


def _text(x: float, y: float, text: str, anchor: str = "middle", colour: str = "currentColor") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
