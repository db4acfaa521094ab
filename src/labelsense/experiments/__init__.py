"""The paper's experiments: settings as data, runs as JSON lines, a report that only reads the lines.

``labelsense reproduce`` on the command line.
"""

from labelsense.experiments.paper import reproduce
from labelsense.experiments.report import write_report

__all__ = ["reproduce", "write_report"]
