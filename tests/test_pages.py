"""The pages of the site: their Python runs, their commands exist, and nothing public is missing from the references.

What the pages show below commands, and the tutorials, are run when the site is built (`make docs`).
"""

import contextlib
import doctest
import importlib
import io
import re
import shlex
import sys
from pathlib import Path

import pytest
import typer

import labelsense
from labelsense import cli

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.joinpath("docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
MODULES = [
    "labelsense",
    *(f"labelsense.{name}" for name in ("compress", "dask", "data", "experiments", "features", "metrics")),
    *(f"labelsense.{name}" for name in ("reconstruct", "refine", "regress", "theory")),
]
NOT_OBJECTS = {"COMPRESSORS", "LEARNERS", "DECODERS", "FEATURES", "FORMATS", "__version__", "data", "metrics", "theory"}
GROUP = typer.main.get_command(cli.app)

sys.path.insert(0, str(ROOT / "docs" / "extensions"))  # what writes pages from the code
sys.path.insert(0, str(ROOT / "scripts"))


def blocks(page, *languages):
    """Return the content of the fenced blocks of a page that are in one of the languages."""
    found = re.findall(r"^ *(`{3,})(\{?\w+\}?)[^\n]*\n(.*?)^ *\1", page.read_text(), re.DOTALL | re.MULTILINE)
    return [text for _, language, text in found if language in languages]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda page: page.stem)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in blocks(page, "python"):
            if ">>>" in block:
                test = doctest.DocTestParser().get_doctest(block, names, page.name, str(page), 0)
                assert doctest.DocTestRunner(verbose=False).run(test, clear_globs=False).failed == 0
                names.update(test.globs)
            else:
                exec(compile(block, str(page), "exec"), names)


def command_lines():
    """Return the (page, words) of every call of labelsense in a block, or in a line of its own."""
    found = []
    for page in PAGES:
        text = page.read_text()
        code = [*blocks(page, "console", "text", "{session}"), *re.findall(r"^    (.*)$", text, re.MULTILINE)]
        lines = [line.strip() for block in code for line in block.splitlines()]
        calls = [re.search(r"(?:^|[$|&] )(labelsense (?!--)\w.*)", line.partition("  #")[0]) for line in lines]
        for line in (call.group(1) for call in calls if call):
            for part in re.split(r" (?:&&|\|) ", line):
                if part.startswith("labelsense "):
                    found.append((page.stem, part))
    return sorted(set(found))


@pytest.mark.parametrize(("page", "line"), command_lines())
def test_a_command_of_a_page_exists_with_its_options(page, line):
    _, name, *words = shlex.split(line.replace("...", ""))
    known = {option for param in GROUP.commands[name].params for option in (*param.opts, *param.secondary_opts)}
    assert {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)} <= known | {"--help"}


def test_there_are_commands_to_check():
    assert len(command_lines()) > 20


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_in_the_api_reference(name):
    page = (ROOT / "docs" / "api.md").read_text()
    listed = set(re.findall(r"^   (\w+)$", page, re.MULTILINE))
    assert set(importlib.import_module(name).__all__) - NOT_OBJECTS <= listed


def test_the_api_reference_lists_what_exists():
    page = (ROOT / "docs" / "api.md").read_text()
    for module, names in re.findall(r"currentmodule:: (\S+)\n(.*?)```", page, re.DOTALL):
        for name in re.findall(r"^   (\w+)$", names, re.MULTILINE):
            assert hasattr(importlib.import_module(module), name), (module, name)
    assert all(word in page for word in NOT_OBJECTS - {"data", "metrics", "theory"})


@pytest.mark.parametrize("name", GROUP.commands)
def test_every_option_is_in_the_reference_of_the_command_line(name):
    section = importlib.import_module("cli_reference").section(name, GROUP.commands[name])
    for param in GROUP.commands[name].params:
        is_option = param.param_type_name == "option"
        names = [*param.opts, *param.secondary_opts] if is_option else [param.name.upper()]
        assert all(f"`{word}`" in section for word in names)


def test_the_drawing_of_the_layers_has_every_module():
    drawing = importlib.import_module("layers").drawing()
    top = {path.stem for path in Path(labelsense.__file__).parent.glob("*.py")} - {"__init__"}
    assert all(f">{name}<" in drawing for name in top)


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ('<a href="b.html#there">x</a>', None),
        ('<a href="https://example.org/">x</a> <img src="data:image/png;base64,AA">', None),
        ('<a href="c.html">x</a>', "which is not there"),
        ('<a href="b.html#nowhere">x</a>', "no such place"),
        ('<script src="https://example.org/x.js"></script>', "loads https://example.org/x.js"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "loads //example.org/x.css"),
        ('<link rel="next" href="b.html">', None),
    ],
)
def test_the_check_of_the_site_sees_what_is_wrong(html, problem, tmp_path):
    (tmp_path / "a.html").write_text(html)
    (tmp_path / "b.html").write_text('<p id="there"></p>')
    found = importlib.import_module("check_site").check(tmp_path)
    assert [problem in text for text in found] == ([] if problem is None else [True])
