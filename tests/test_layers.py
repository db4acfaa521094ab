"""The import graph: modules import from their own row and those below, at the top of the file, never in a circle."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import labelsense

HOME = Path(labelsense.__file__).parent
# From the top down. A package stands for all of its modules, and "labelsense" for the names that it offers.
ROWS = """
cli serve
labelsense
advisor experiments theory dask
training scale out_of_core
model_file estimator fitted plan report explain chooser trials ordering baselines predictor evaluation diagnose
compress regress reconstruct refine
features data metrics
labels _label_input _tree _tensors _skops _files _checkpoint
_storage _validation errors _memory _blocks _chunks _gram _progress _plots _html _typing _version _kernels
"""
OPTIONAL = {"matplotlib", "pyarrow", "skops", "mahotas", "PIL", "rdflib", "resource", "fcntl"}  # not on every system
NEEDS_EXTRA = {"labelsense.serve.server"}  # whole, so the command line imports it when it is asked for


def module_name(path):
    parts = path.relative_to(HOME).with_suffix("").parts
    return ".".join(("labelsense", *(parts[:-1] if parts[-1] == "__init__" else parts)))


MODULES = {module_name(path): path for path in sorted(HOME.rglob("*.py"))}


def row_of(module):
    name = module.split(".")[1] if "." in module else module
    return next(i for i, row in enumerate(ROWS.splitlines()) if name in row.split())


def targets(node):
    """The modules that an import statement names: of ``from package import module``, the module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    assert node.level == 0, "imports are written in full"
    inner = [f"{node.module}.{alias.name}" for alias in node.names]
    return sorted({name if name in MODULES else node.module for name in inner})


@cache
def imports(module):
    """The (name, place) of everything that a module imports: at its top, in a function, or for types only."""
    found = []

    def walk(node, place):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.extend((name, place) for name in targets(node))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            place = "function"
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            place = "types"
        for child in ast.iter_child_nodes(node):
            walk(child, place)

    walk(ast.parse(MODULES[module].read_text()), "top")
    return found


def inside(module, *places):
    names = (name for name, place in imports(module) if place in places)
    return [name for name in names if name == "labelsense" or name.startswith("labelsense.")]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_from_its_row_and_below(module):
    upwards = [name for name in inside(module, "top", "types") if row_of(name) < row_of(module)]
    assert not upwards


def test_there_is_no_circle():
    graph = {module: set(inside(module, "top")) - {module} for module in MODULES}
    while leaves := {module for module, needs in graph.items() if not needs}:
        graph = {module: needs - leaves for module, needs in graph.items() if module not in leaves}
    assert not graph  # what is left is a circle, or needs one


def test_the_modules_of_the_page_import_each_other_without_a_circle():
    scripts = {path.name: path.read_text() for path in (HOME / "serve" / "page").glob("*.js")}
    graph = {name: set(re.findall(r'^(?:import|\}) .*from "\./(.+)";$', text, re.M)) for name, text in scripts.items()}
    assert len(graph["page.js"]) > 5  # the imports are found
    while leaves := {name for name, needs in graph.items() if not needs}:
        graph = {name: needs - leaves for name, needs in graph.items() if name not in leaves}
    assert not graph


def test_only_optional_dependencies_are_imported_in_functions():
    late = {
        (str(MODULES[module].relative_to(HOME)), name)
        for module in MODULES
        for name, place in imports(module)
        if place == "function" and name.split(".")[0] not in OPTIONAL and name not in NEEDS_EXTRA
    }
    assert not late
