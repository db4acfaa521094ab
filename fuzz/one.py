"""Run one target under atheris: `python -m fuzz.one TARGET FOLDER [libFuzzer's options]`."""

from __future__ import annotations

import importlib
import logging
import os
import resource
import sys
import warnings
from importlib.machinery import PathFinder
from pathlib import Path

LAST = "last input"
MEMORY = 2 * 2**30  # bytes that may be asked for on top of what there is before the first input


def main() -> None:
    import atheris  # which is installed for `make fuzz` only

    # An editable installation has a loader of its own, which atheris cannot instrument: it only gets the kernels.
    sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
    sys.meta_path.insert(0, PathFinder)
    with atheris.instrument_imports(include=["labelsense", "rdflib", "python_multipart"]):
        from fuzz.mutate import mutate
        from fuzz.targets import TARGETS

        target = TARGETS[sys.argv[1]]
        for name in target.modules:
            importlib.import_module(name)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")  # a model of huge numbers overflows; what comes of it is looked at
    context = target.prepare(Path(sys.argv[2]))  # which lives as long as somebody holds it
    run = context.__enter__()  # the process ends with the fuzzer
    run(next(iter(target.seeds())))
    _bound_memory()

    last = Path(sys.argv[2]) / LAST

    def remember(data: bytes) -> None:
        last.write_bytes(data)  # where memory was damaged, the fuzzer cannot say what by
        run(data)

    def change(data: bytes, size: int, seed: int) -> bytes:
        changed = mutate(data, seed, data[:1].isalpha()) if seed % 4 else None
        return changed if changed is not None and len(changed) <= size else atheris.Mutate(data, size)

    atheris.Setup([sys.argv[0], *sys.argv[3:]], remember, custom_mutator=change)
    atheris.Fuzz()


def _bound_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + MEMORY, hard))


if __name__ == "__main__":
    main()
