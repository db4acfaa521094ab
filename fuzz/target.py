"""What a target of the fuzzer is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from zipfile import ZipFile

CORPUS = Path(__file__).parent / "corpus"
SPLIT = b"\n====\n"  # between the files that one input stands for

Run: TypeAlias = Callable[[bytes], None]


@dataclass(frozen=True)
class Target:
    """Something that reads bytes from anywhere.

    Attributes
    ----------
    name : str
    prepare : function
        Given a folder for files, returns a context of the function that is given bytes. That ends quietly or raises
        what is a finding: documented exceptions do not leave it.
    seeds : function
        Returns inputs to begin with.
    words : sequence of str
        What inputs are likely to have in them.
    modules : sequence of str
        Whose branches are counted too, beside our own.
    """

    name: str
    prepare: Callable[[Path], AbstractContextManager[Run]]
    seeds: Callable[[], Sequence[bytes]]
    words: Sequence[str] = ()
    modules: Sequence[str] = ()

    def corpus(self) -> dict[str, bytes]:
        """Return the inputs that are kept, by name: each reaches a branch that the others do not."""
        path = CORPUS / f"{self.name}.zip"
        if not path.exists():
            return {}
        with ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
