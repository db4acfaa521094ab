"""Run the fuzzer on every target in turn, or on those that are named; `make fuzz` runs this.

What it finds is in build/fuzz/TARGET/findings, and how long it ran and what it did in build/fuzz/history.jsonl. Inputs
that reach something new are in build/fuzz/TARGET/inputs; ``--keep`` puts the few that are needed for it into
fuzz/corpus.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fuzz.keep import keep
from fuzz.one import LAST
from fuzz.target import Target
from fuzz.targets import TARGETS

ROOT = Path(__file__).parent.parent
WORK = ROOT / "build" / "fuzz"
HISTORY = WORK / "history.jsonl"
LONGEST = 65_536  # bytes of an input
LIMITS = ["-timeout=20", "-rss_limit_mb=2000", f"-max_len={LONGEST}"]  # seconds of one input; memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; by default all")
    parser.add_argument("--seconds", type=int, default=15, help="for each target")
    parser.add_argument(
        "--keep", action="store_true", help="do not fuzz: put what was found worth keeping into fuzz/corpus"
    )
    parser.add_argument("--report", action="store_true", help="do not fuzz: print what was done so far")
    options = parser.parse_args()
    chosen = [TARGETS[name] for name in options.targets or TARGETS]
    if options.report:
        report()
    elif options.keep:
        for target in chosen:
            keep(target, gather(target))
    else:
        sys.exit(any([not fuzz(target, options.seconds) for target in chosen]))


def fuzz(target: Target, seconds: int) -> bool:
    """Run a target for some time; return whether nothing was found."""
    inputs, findings = gather(target), WORK / target.name / "findings"
    findings.mkdir(exist_ok=True)
    words = WORK / target.name / "words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words))
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:  # files that are never synced
        command = [sys.executable, "-m", "fuzz.one", target.name, folder, str(inputs), f"-max_total_time={seconds}"]
        command += [*LIMITS, f"-dict={words}", f"-artifact_prefix={findings}/"]
        started, worked = time.monotonic(), _worked()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
        last = Path(folder) / LAST
        if done.returncode < 0 and last.exists():
            shutil.copy(last, findings / f"signal-{-done.returncode}")
    counts = re.findall(r"^#(\d+)\t", done.stderr, re.MULTILINE)
    found = re.search(r"Test unit written to (\S+)", done.stderr)
    entry = {
        "target": target.name,
        "seconds": round(time.monotonic() - started, 1),
        "cpu": round(_worked() - worked, 1),
        "executions": int(counts[-1]) if counts else 0,
        "inputs": len(list(inputs.iterdir())),
        "finding": found[1] if found else None,
        "exit": done.returncode,
    }
    with HISTORY.open("a") as file:
        file.write(json.dumps(entry) + "\n")
    print(json.dumps(entry))
    if done.returncode:
        print(done.stdout[-5000:], done.stderr[-1000:])
    return done.returncode == 0


def gather(target: Target) -> Path:
    """Return the folder of a target's inputs, with those that are kept and those to begin with."""
    folder = WORK / target.name / "inputs"
    folder.mkdir(parents=True, exist_ok=True)
    for content in (*target.corpus().values(), *target.seeds()):
        (folder / hashlib.sha1(content).hexdigest()).write_bytes(content)
    return folder


def _worked() -> float:
    """Return the seconds that the processes before this have worked, which is less on a machine that has more to do."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _escaped(word: str) -> str:
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in word.encode())


def report() -> None:
    """Print a table of all runs."""
    runs = [json.loads(line) for line in HISTORY.read_text().splitlines()]
    print("| target | minutes | of CPU | executions | inputs kept |\n|---|---|---|---|---|")
    for name, target in TARGETS.items():
        own: list[dict[str, Any]] = [run for run in runs if run["target"] == name]
        print(_row(name, own, len(target.corpus())))
    print(_row("all", runs, sum(len(target.corpus()) for target in TARGETS.values())))


def _row(name: str, runs: list[dict[str, Any]], kept: int) -> str:
    minutes, cpu, executions = (sum(run[key] for run in runs) for key in ("seconds", "cpu", "executions"))
    return f"| {name} | {minutes / 60:.0f} | {cpu / 60:.1f} | {executions:,} | {kept} |"


if __name__ == "__main__":
    main()
