"""The command line: parse, call a public function, print."""

from __future__ import annotations

import errno
import functools
import inspect
import os
import shutil
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer

from labelsense import __version__
from labelsense.cli import advise, demo, files, predict, reproduce, serve, train
from labelsense.cli.console import SCHEMA, noting, print_note

app = typer.Typer(
    name="labelsense",
    epilog="Every command has --help, and --json for programs. --debug shows where an error comes from.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)

# What went wrong is the user's to mend: the message is enough. Anything else is ours, and says where.
USER_ERRORS = (ValueError, TypeError, OSError, MemoryError, ImportError)
DEBUG = "--debug"
WIDEST = 100  # columns of help


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that ends in one line and an exit code: 1 after an error, 130 after Ctrl-C."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            with noting():
                command(*args, **options)
            sys.stdout.flush()
        except KeyboardInterrupt:
            print_note("interrupted", "red")
            raise typer.Exit(130) from None
        except BrokenPipeError:  # the reader of our output has left
            _leave_stdout()
        except USER_ERRORS as error:
            if DEBUG in sys.argv:
                raise
            _leave_stdout()
            print_note(_message(error), "red")
            raise typer.Exit(1) from None

    return run


def _leave_stdout() -> None:
    """Send what is still to be written nowhere, so that the end of the process does not fail on it."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        name = error.filename or ("standard output" if error.errno == errno.ENOSPC else None)
        return error.strerror if name is None else f"{name}: {error.strerror}"
    return str(error) or type(error).__name__


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"labelsense {__version__}\n")
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Tag anything with very many labels: train a few hundred regressions instead of one per label."""


for command in (
    train.train,
    train.update,
    predict.predict,
    predict.evaluate,
    files.inspect,
    files.convert,
    files.datasets,
    advise.advise,
    serve.serve,
    reproduce.reproduce,
    demo.demo,
):
    summary = (inspect.getdoc(command) or "").partition("\n\n")[0]
    schema = SCHEMA if "text_fields" in inspect.signature(command).parameters else None
    app.command(short_help=" ".join(summary.split()), epilog=schema)(guarded(command))


def main() -> None:
    """Run the command line; a command that is not understood exits with 2."""
    warnings.showwarning = lambda message, *_, **__: print_note(f"warning: {message}")
    width = min(shutil.get_terminal_size().columns, WIDEST) - 2
    app(args=[word for word in sys.argv[1:] if word != DEBUG], terminal_width=width)
