"""The report: one page that needs nothing else, and its figures as files."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from labelsense._files import replacing
from labelsense.experiments.claims import CLAIMS, Verdict
from labelsense.experiments.figures import draw_all
from labelsense.experiments.results import Results, read_results

LEFT_OUT = "left_out.json"
PAGE = "report.html"
WORDS = {True: "holds", False: "does not hold", None: "not tested"}
MARKS = {True: "yes", False: "no", None: "not"}
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1rem; color: #222; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; } p { overflow-wrap: anywhere; }
img { width: 100%; max-width: 58rem; height: auto; }
figure { margin: 1.5rem 0; } figcaption { color: #444; font-size: 0.9rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.6rem; border-bottom: 1px solid #ddd; }
.claim td:first-child { width: 8rem; } .claim td:nth-child(2) { width: 7rem; white-space: nowrap; }
.yes { color: #005f46; font-weight: 600; } .no { color: #a63c00; font-weight: 600; } .not { color: #666; }
h3 { font-size: 1rem; margin: 1.4rem 0 0.2rem; }
@media (max-width: 40rem) { .claim, .claim tbody, .claim tr, .claim td { display: block; border: 0; padding: 0.1rem 0; }
  .claim tr { border-bottom: 1px solid #ddd; padding: 0.3rem 0; } }
"""


def write_report(output_folder: str | os.PathLike[str]) -> Path:
    """Write the page and the figures from the runs in a folder, and return the path of the page. Nothing is run."""
    folder = Path(output_folder)
    every = read_results(folder)
    if not every:
        raise ValueError(f"There are no runs in {folder}. Run `labelsense reproduce` first.")
    captions = draw_all(every, folder)
    page = folder / PAGE
    with replacing(page) as temporary:
        temporary.write_text(_page(every, captions, folder), encoding="utf-8")
    return page


def _page(every: Sequence[Results], captions: dict[str, str], folder: Path) -> str:
    body = "\n".join(
        [
            "<h1>Multi-label prediction via compressed sensing: the paper's experiments, run again</h1>",
            "<p>Every claim of the experimental section of Hsu, Kakade, Langford and Zhang (2009), against what "
            "labelsense measures. The data are split in random halves; least squares without intercept; A has m "
            "random rows of the Hadamard matrix whose order is the least power of two that is not below the number of "
            "labels (1,024 in the paper), or Gaussian entries.</p>",
            "<h2>Data</h2>",
            _data_table(every),
            *_left_out(folder),
            "<h2>Claims at a glance</h2>",
            _overview(every),
            "<h2>Claims and numbers</h2>",
            *_claims(every),
            "<h2>Figures</h2>",
            *(_figure(folder / name, caption) for name, caption in captions.items()),
            "<h2>How it was run</h2>",
            _how(every),
        ]
    )
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    title = "The paper's experiments, run again"
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<title>{title}</title><style>{STYLE}</style></head>'
        f"<body>{body}</body></html>\n"
    )


def _table(head: Iterable[str], rows: Iterable[Iterable[str]], kind: str = "") -> str:
    """Return a table of cells that are HTML already."""
    top = "".join(f"<th>{cell}</th>" for cell in head)
    lines = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table class="{kind}">{f"<tr>{top}</tr>" if top else ""}{lines}</table></div>'


def _data_table(every: Sequence[Results]) -> str:
    head = ("data set", "kind", "rows", "features", "labels", "labels a row", "penalty", "error", "of nothing")
    rows = []
    for r in every:
        line = r.baseline
        numbers = [f"{sum(line['rows']):,}", f"{line['features']:,}", f"{line['labels']:,}"]
        numbers += [f"{line['labels_per_row']:.1f}", f"{line['alpha']:.3g}"]
        numbers += [f"{line['dense_error']:.2f}", f"{line['error_of_nothing']:.2f}"]
        rows.append([escape(r.problem.title), r.problem.kind, *numbers])
    note = "<p>Error: the squared error of one-against-all's predictions of all labels, and of predicting nothing.</p>"
    return _table(head, rows) + note


def _left_out(folder: Path) -> list[str]:
    path = folder / LEFT_OUT
    left_out = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return [f"<p>Left out: <b>{escape(name)}</b>. {escape(reason)}</p>" for name, reason in left_out.items()]


def _overview(every: Sequence[Results]) -> str:
    rows = [[escape(claim.text), *(_word(claim.verdict(r)) for r in every)] for claim in CLAIMS]
    return _table(["claim", *(escape(r.problem.title) for r in every)], rows)


def _claims(every: Sequence[Results]) -> list[str]:
    parts = []
    for claim in CLAIMS:
        found = [(escape(r.problem.title), claim.verdict(r)) for r in every]
        rows = [(title, _word(verdict), escape(verdict.measured)) for title, verdict in found]
        parts += [f"<h3>{escape(claim.text)}</h3>", _table([], rows, "claim")]
    return parts


def _word(verdict: Verdict) -> str:
    return f'<span class="{MARKS[verdict.holds]}">{WORDS[verdict.holds]}</span>'


def _figure(path: Path, caption: str) -> str:
    image = base64.b64encode(path.read_bytes()).decode()
    text = escape(caption)
    return f'<figure><img alt="{text}" src="data:image/png;base64,{image}"><figcaption>{text}</figcaption></figure>'


def _how(every: Sequence[Results]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in every[0].baseline["versions"].items())
    seeds = max(len(r.seeds) for r in every)
    minutes = sum(r.seconds for r in every) / 60
    return (
        f"<p>{seeds} draws of each A; {minutes:.1f} minutes for all runs, features of images apart; {versions}. "
        "Each run is a line of runs.jsonl.</p>"
    )
