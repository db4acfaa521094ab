"""The drawing of the layers, made of the rows and imports that tests/test_layers.py reads from the source."""

import math
from collections import Counter
from html import escape
from pathlib import Path

from test_layers import MODULES, ROWS, inside, row_of

WIDTH, CHIPS = 720, 560  # of the drawing, and of the part with the modules
CHIP, GAP, LINE = 7.4, 8, 30  # of a letter, between chips, of a line of chips


def drawing():
    """Return the layers as SVG: a band per row with its modules, and curves for the imports between bands."""
    rows = [row.split() for row in ROWS.strip().splitlines()]
    first = next(i for i, row in enumerate(ROWS.splitlines()) if row)
    imports = Counter(
        (row_of(module) - first, row_of(name) - first) for module in MODULES for name in inside(module, "top", "types")
    )
    parts, middles, y = [], [], 10
    for names in rows:
        chips, height = place_chips(names, y)
        parts += [f'<rect class="band" x="0" y="{y}" width="{CHIPS + 16}" height="{height}" rx="6"/>', *chips]
        middles.append(y + height / 2)
        y += height + 14
    curves = [curve(middles[a], middles[b], count) for (a, b), count in sorted(imports.items()) if b > a]
    label = "Layers of the source: a module imports from its own row and those below"
    head = f'<div class="wide"><svg class="layers" viewBox="0 0 {WIDTH} {y}" role="img" aria-label="{label}">'
    return "\n".join([head, *curves, *parts, "</svg></div>"])


def place_chips(names, top):
    """Return the chips of a band and its height; chips that do not fit go to the next line."""
    x, y, parts = 8, top + 6, []
    for name in names:
        width = CHIP * len(name) + 16
        if x + width > CHIPS:
            x, y = 8, y + LINE
        parts.append(
            f'<rect class="chip" x="{x}" y="{y}" width="{width:.0f}" height="24" rx="4"/>'
            f'<text x="{x + width / 2:.0f}" y="{y + 16.5}">{escape(name)}</text>'
        )
        x += width + GAP
    return parts, y + LINE - top


def curve(start, end, count):
    """Return an arc from a band down to another, thicker the more imports it stands for."""
    x, bulge = CHIPS + 16, min(120, 26 + (end - start) / 4)
    return (
        f'<path class="imports" stroke-width="{0.8 + math.log2(count) / 1.5:.1f}" '
        f'd="M{x} {start:.0f} C{x + bulge:.0f} {start:.0f} {x + bulge:.0f} {end:.0f} {x} {end:.0f}">'
        f"<title>{count} imports</title></path>"
    )


def write(app):
    target = Path(app.srcdir) / "generated" / "layers.svg"
    target.parent.mkdir(exist_ok=True)
    target.write_text(drawing())


def setup(app):
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
