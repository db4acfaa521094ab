"""What pyproject.toml promises about other packages."""

import re
from pathlib import Path

from labelsense import __version__

ROOT = Path(__file__).resolve().parents[1]
TOOLS = {"coverage", "hypothesis", "mypy", "pytest", "pytest-xdist", "ruff"}
TOOLS |= {"myst-parser", "numpydoc", "pydata-sphinx-theme", "sphinx", "sphinx-gallery"}


def test_the_oldest_versions_that_are_tested_are_the_lower_bounds():
    bounds = dict(re.findall(r'"([\w-]+)>=([\d.]+)"', (ROOT / "pyproject.toml").read_text()))
    tested = dict(re.findall(r"^([\w-]+)==([\d.]+)", (ROOT / "constraints-oldest.txt").read_text(), re.MULTILINE))
    assert {"numpy", "scipy", "scikit-learn", "nanobind"} <= bounds.keys() - TOOLS
    for name in bounds.keys() - TOOLS:
        assert tested[name] == ".".join([*bounds[name].split("."), "0", "0"][:3]), name


def test_what_the_project_is_tested_with_is_named_for_every_dependency():
    bounds = dict(re.findall(r'"([\w-]+)>=([\d.]+)"', (ROOT / "pyproject.toml").read_text()))
    tested = set(re.findall(r"^([\w-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    assert bounds.keys() <= tested


def test_the_version_has_a_section_of_the_changelog():
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] in (__version__, "Unreleased")
    assert __version__ in headings
