"""Write which packages each extra brings, with versions and licences, as CycloneDX.

python scripts/sbom.py dist

Run it in an environment that has all extras, such as the one that `make sbom` uses.
"""

from __future__ import annotations

import json
import sys
import uuid
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

SKIPPED = {"dev", "docs", "browser"}  # what users do not install


def walk(requirement: Requirement, found: dict[str, Distribution]) -> None:
    """Add what a requirement brings, and what that brings."""
    name = canonicalize_name(requirement.name)
    try:
        package = distribution(name)
    except PackageNotFoundError:  # for another system
        return
    if name not in found:
        found[name] = package
        for text in package.requires or []:
            needed = Requirement(text)
            extras = requirement.extras or {""}
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                walk(needed, found)


def brought_by(extra: str) -> dict[str, Distribution]:
    """Return the packages that an extra of labelsense brings, by name; of "", those that everybody has."""
    found: dict[str, Distribution] = {}
    for text in distribution("labelsense").requires or []:
        needed = Requirement(text)
        if needed.marker is None or needed.marker.evaluate({"extra": extra}):
            walk(needed, found)
    return found


def component(name: str, package: Distribution, extras: list[str]) -> dict[str, Any]:
    about = package.metadata
    licence = about.get("License-Expression") or next(
        (line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or [] if line.startswith("License ::")),
        (about.get("License") or "unknown").partition("\n")[0],
    )
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}@{package.version}",
        "name": name,
        "version": package.version,
        "purl": f"pkg:pypi/{name}@{package.version}",
        "licenses": [{"license": {"name": licence}}],
        "properties": [{"name": "labelsense:extra", "value": extra or "required"} for extra in extras],
    }


def main(folder: Path) -> None:
    ours = distribution("labelsense")
    extras = ["", *(e for e in ours.metadata.get_all("Provides-Extra") or [] if e not in SKIPPED)]
    by_extra = {extra: brought_by(extra) for extra in extras}
    packages = {name: package for found in by_extra.values() for name, package in found.items()}
    required = by_extra[""]
    used = {name: [""] if name in required else [e for e in extras if name in by_extra[e]] for name in packages}
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'labelsense {ours.version} {sorted(used)}')}",
        "version": 1,
        "metadata": {"component": {"type": "library", "name": "labelsense", "version": ours.version}},
        "components": [component(name, packages[name], used[name]) for name in sorted(packages)],
    }
    folder.mkdir(exist_ok=True)
    target = folder / f"labelsense-{ours.version}.cdx.json"
    target.write_text(json.dumps(bom, indent=1) + "\n")
    print(f"saved {target}: {len(packages)} packages, {len(required)} of them required")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
