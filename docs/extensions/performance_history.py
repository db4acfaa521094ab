"""What each version took, drawn from the files in benchmarks/history: a table with a line per step."""

import math
from html import escape
from pathlib import Path

import history

WIDTH, HEIGHT, MARGIN = 150, 34, 5  # pixels of a line
SHOWN = 4  # versions that have a column; the lines have all


def page(entries):
    """Return the history as HTML: a row per step with its multiples, a line over all versions, and the last change."""
    shown = entries[-SHOWN:]
    steps = list(dict.fromkeys(step for entry in reversed(entries) for step in entry["ratios"]))
    head = ["step", *(entry["version"] for entry in shown), "over versions", "change"]
    rows = [f"<tr>{''.join(f'<th>{escape(word)}</th>' for word in head)}</tr>"]
    for step in steps:
        cells = [_figure(entry["ratios"].get(step)) for entry in shown]
        values = [entry["ratios"].get(step) for entry in entries]
        rows.append(f"<tr><td>{escape(step)}</td>{''.join(cells)}<td>{line(values)}</td>{change(values)}</tr>")
    table = f'<div class="wide"><table class="table history">{"".join(rows)}</table></div>'
    return table + "".join(f"<p>{_machine(entry)}</p>" for entry in shown)


def line(values):
    """Return a curve of what is known of some values, on a scale on which halves and doubles are as far."""
    points = [(i, math.log(value)) for i, value in enumerate(values) if value]
    low, high = min(y for _, y in points), max(y for _, y in points)
    middle, spread = (low + high) / 2, max(high - low, math.log(1.5))
    step = (WIDTH - 2 * MARGIN) / max(1, len(values) - 1)
    places = [(MARGIN + i * step, HEIGHT / 2 - (y - middle) / spread * (HEIGHT - 2 * MARGIN)) for i, y in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in places)
    return f'<svg class="trend" width="{WIDTH}" height="{HEIGHT}"><polyline points="{path}"/>{dots}</svg>'


def change(values):
    """Return a cell with the last change; one for the worse by more than a tenth is marked, and says so in words."""
    old, new = values[-2] if len(values) > 1 else None, values[-1]
    if not old or not new:
        return "<td>new</td>" if new else "<td>gone</td>"
    percent = f"{100 * (new / old - 1):+.0f} %".replace("-", "\N{MINUS SIGN}")
    return f'<td class="worse">{percent}, slower</td>' if new / old > history.WORSE else f"<td>{percent}</td>"


def _figure(ratio):
    return "<td></td>" if ratio is None else f"<td>{ratio:.3g}</td>"


def _machine(entry):
    machine = entry["machine"]
    text = "{version} (commit {commit}), measured on {date}: ".format(**entry)
    return escape(text + "{processor}, {cores} cores, {system}, Python {python}, NumPy {numpy}.".format(**machine))


def write(app):
    target = Path(app.srcdir) / "generated" / "history.html"
    target.parent.mkdir(exist_ok=True)
    target.write_text(page(history.read()))


def setup(app):
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
