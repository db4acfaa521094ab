"""The reference of the command line, written from the commands themselves before the site is built."""

import inspect
from pathlib import Path
from typing import get_type_hints

import typer

from labelsense.cli import app as commands

HEAD = """# Command line

`pip install .` installs the command `labelsense`. Every command has `--help`. `--json` prints one JSON document for
programs; `--debug` shows where an error comes from; `labelsense --install-completion` teaches your shell. Exit codes:
0, 1 after an error, 2 for a command line that is not understood, 130 after Ctrl-C. This page is made from the commands.

"""
TAKES = {"int": "number", "float": "number", "Path": "file", "str": "text", "bool": ""}


def reference():
    """Return the page, in Markdown."""
    group = typer.main.get_command(commands)
    sections = [section(name, command) for name, command in group.commands.items()]
    return HEAD + "\n".join(sections)


def section(name, command):
    """Return what there is to say of one command."""
    text, *paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    arguments = [p.name.upper() for p in command.params if p.param_type_name == "argument"]
    call = " ".join(["labelsense", name, *arguments, "[OPTIONS]"])
    lines = [f"## labelsense {name}\n", _joined(text), "", *_code(call)]
    for paragraph in paragraphs:
        is_code = paragraph.startswith(("labelsense ", "echo "))
        lines += _code(f"$ {paragraph}") if is_code else [_joined(paragraph), ""]
    kinds = get_type_hints(inspect.unwrap(command.callback))
    lines += ["| | takes | |", "|---|---|---|", *(row(param, kinds[param.name]) for param in command.params), ""]
    return "\n".join(lines)


def row(param, kind):
    """Return the line of a table for an argument or option."""
    option = param.param_type_name == "option"
    names = [*param.opts, *param.secondary_opts] if option else [param.name.upper()]
    takes = next(word for name, word in TAKES.items() if name in str(kind))
    default = param.default
    notes = [
        getattr(param, "help", None) or "",
        "Required." if param.required else "",
        "" if default is None or default is False else "Default: on." if default is True else f"Default: {default}.",
        "May be repeated." if "list" in str(kind) else "",
    ]
    about = " ".join(note for note in notes if note).replace("|", "\\|")
    return f"| {', '.join(f'`{name}`' for name in names)} | {takes} | {about} |"


def _joined(paragraph):
    return " ".join(paragraph.split())


def _code(line):
    return ["```text", line, "```", ""]


def write(app):
    target = Path(app.srcdir) / "generated" / "cli.md"
    target.parent.mkdir(exist_ok=True)
    target.write_text(reference())


def setup(app):
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
