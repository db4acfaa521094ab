"""What versions take, as multiples of what the first one takes in the same run: files in benchmarks/history.

    make bench

writes the file of this version (``compare.py`` does), and the page of the site that draws them reads it.
"""

import json
import os
import platform
import re
import subprocess
from datetime import date
from pathlib import Path

FOLDER = Path(__file__).parent / "history"
REFERENCE = "ac88acc"  # version 0.1.0
WORSE = 1.1  # times the ratio of the version before: more is a regression


def write(ratios):
    """Write the file of this version, and return its name."""
    import numpy as np

    from labelsense import __version__

    describe = ["git", "describe", "--always", "--dirty"]
    entry = {
        "version": __version__,
        "commit": subprocess.run(describe, capture_output=True, text=True, check=False).stdout.strip(),
        "date": date.today().isoformat(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": platform.platform(aliased=True, terse=True),
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "ratios": {name: float(f"{ratio:.4g}") for name, ratio in ratios.items()},
    }
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{__version__}.json"
    path.write_text(json.dumps(entry, indent=2) + "\n")
    return path.name


def read(folder=FOLDER):
    """Return the entries of all versions, the oldest first."""
    entries = [json.loads(path.read_text()) for path in Path(folder).glob("*.json")]
    return sorted(entries, key=lambda entry: [int(number) for number in re.findall(r"\d+", entry["version"])])


def regressions(entries):
    """Return the (step, ratio to the version before) of what got more than a tenth worse in the last version."""
    if len(entries) < 2:
        return []
    old, new = (entry["ratios"] for entry in entries[-2:])
    found = [(name, new[name] / old[name]) for name in new if name in old]
    return [(name, times) for name, times in found if times > WORSE]


def _processor():
    """Return the name of the processor, as far as the system tells it."""
    try:
        return re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text()).group(1)
    except (OSError, AttributeError):
        return platform.processor() or platform.machine()
