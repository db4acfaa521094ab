"""Matplotlib, where it is installed."""

from __future__ import annotations

from typing import Any


def load_matplotlib() -> Any:
    """Return matplotlib's Figure, or say what to install: call it before work that ends in a picture."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('Plots need matplotlib. Add it with: pip install "labelsense[plots]"') from error
    return Figure
