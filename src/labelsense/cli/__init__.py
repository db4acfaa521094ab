"""The command line: parse, call a public function, print."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

import typer

from labelsense.cli import advise, demo, files, predict, reproduce, train
from labelsense.cli.console import errors

app = typer.Typer(
    name="labelsense",
    help="Tag anything with very many labels: train a few hundred regressions instead of one per label.",
    epilog="Every command has --help, and --json for programs. --debug shows where an error comes from.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

# What went wrong is the user's to mend: the message is enough. Anything else is ours, and says where.
USER_ERRORS = (ValueError, TypeError, OSError, MemoryError, ImportError)
DEBUG = "--debug"


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that ends in one line and an exit code: 1 after an error, 130 after Ctrl-C."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except KeyboardInterrupt:
            errors.print("labelsense: interrupted", style="red")
            raise typer.Exit(130) from None
        except BrokenPipeError:  # the reader of our output has left
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except USER_ERRORS as error:
            if DEBUG in sys.argv:
                raise
            errors.print(f"labelsense: {_one_line(error)}", style="red", markup=False, soft_wrap=True)
            raise typer.Exit(1) from None

    return run


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


for command in (
    train.train,
    train.update,
    predict.predict,
    predict.evaluate,
    files.inspect,
    files.convert,
    files.datasets,
    advise.advise,
    reproduce.reproduce,
    demo.demo,
):
    app.command()(guarded(command))


def main() -> None:
    """Run the command line; a command that is not understood exits with 2."""
    app(args=[word for word in sys.argv[1:] if word != DEBUG])
