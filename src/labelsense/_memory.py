"""How much memory there is: of the machine, of its container, and of the process."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

CGROUPS = Path("sys/fs/cgroup")
# Of version 2 and 1 of control groups: the limit, what is used, and the part of it that the kernel gives back first.
FILES = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def available_memory(root: Path = Path("/")) -> float:
    """Return how many bytes can be allocated without swapping or being stopped; infinity where nothing tells.

    The least of what the machine has left, what each control group that the process is in has left (containers, batch
    systems), and what the process has left of its address space (``ulimit -v``).
    """
    return max(0.0, min([_of_machine(root), _of_process(root), *_of_groups(root)]))


def _of_machine(root: Path) -> float:
    return 1024 * _named(root / "proc/meminfo", "MemAvailable:")


def _of_process(root: Path) -> float:
    try:
        import resource  # not on Windows
    except ImportError:
        return math.inf
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return math.inf
    pages = _text(root / "proc/self/statm").split()
    return float(limit) - (int(pages[0]) * os.sysconf("SC_PAGE_SIZE") if pages else 0)


def _of_groups(root: Path) -> Iterator[float]:
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, controllers, place = line.split(":", 2)
        if number == "0":
            mounts, version = [CGROUPS, CGROUPS / "unified"], 2
        elif "memory" in controllers.split(","):
            mounts, version = [CGROUPS / "memory"], 1
        else:
            continue
        # A container may be told its place on the host and see itself at the top: folders that it does not see have
        # no limit.
        inside = PurePosixPath(*[part for part in place.split("/") if part not in ("", "..")])
        for mount in mounts:
            for folder in (inside, *inside.parents):
                yield _left(root / mount / folder, *FILES[version])


def _left(folder: Path, limit: str, used: str, reclaimable: str) -> float:
    most = _text(folder / limit).strip()
    if not most.isdigit():  # no such group, or no limit
        return math.inf
    taken = _text(folder / used).strip()
    back = _named(folder / "memory.stat", reclaimable)
    return float(most) - (float(taken) if taken.isdigit() else 0) + (back if math.isfinite(back) else 0)


def _named(path: Path, name: str) -> float:
    """Return the number after a name at the start of a line."""
    lines = (line.split() for line in _text(path).splitlines())
    return next((float(words[1]) for words in lines if words[:1] == [name]), math.inf)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
