"""labelsense train and labelsense update."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from labelsense import CompressedLabelClassifier, OMPDecoder, load_model
from labelsense._validation import check_choice
from labelsense.cli.console import (
    Data,
    Format,
    ImageFiles,
    Json,
    Model,
    features_for,
    labels_of,
    percent,
    print_json,
    print_pairs,
    read_rows,
    stream_rows,
    truth_for,
    working,
)
from labelsense.compress import COMPRESSORS
from labelsense.data import Examples
from labelsense.features import FEATURES
from labelsense.features.text import HASHED
from labelsense.reconstruct import DECODERS
from labelsense.regress import KernelRidgeLearner, RidgeLearner

HELD_OUT, MOST_HELD_OUT = 0.1, 5000
FITTING = {"images": ["images"], "texts": ["words", "hashing"], "features": ["counts", "none"]}
ABOUT = {
    "words": "the most frequent words, log counts * idf, unit rows",
    "hashing": "hashed words, log counts, unit rows",
    "counts": "log counts * idf, unit rows",
    "images": "histograms of SURF patches",
    "none": "as they are",
}


def train(
    data: Data,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to write the model.")],
    test: Annotated[Path | None, typer.Option(help="Rows to evaluate on, instead of holding some out.")] = None,
    format: Format = None,
    features: Annotated[str, typer.Option(help="auto; words, hashing (texts); counts, none; images.")] = "auto",
    n_features: Annotated[int | None, typer.Option(min=2, help="How many words, or hashed words, at most.")] = None,
    measurements: Annotated[str, typer.Option("-m", help="Number of regressions, or auto.")] = "auto",
    compressor: Annotated[str, typer.Option(help=", ".join(COMPRESSORS) + " (often better).")] = "hadamard",
    learner: Annotated[str, typer.Option(help="ridge, or kernel_ridge (slower, often better).")] = "ridge",
    alpha: Annotated[str, typer.Option(help="Penalty, or loo: the one with the least out-of-sample error.")] = "loo",
    decoder: Annotated[str, typer.Option(help=", ".join(DECODERS) + ".")] = "omp",
    updatable: Annotated[bool, typer.Option(help="Keep what `labelsense update` needs.")] = False,
    hold_out: Annotated[bool, typer.Option(help="Evaluate on a tenth of the rows before training on all.")] = True,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    json: Json = False,
) -> None:
    """Learn from a file of texts or features with labels, evaluate, and write a model.

    labelsense train docs.jsonl -o model
    """
    if not output.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {output.parent} to write the model to.")
    with working(f"reading {data}"):
        examples = read_rows(data, format)
    labels = labels_of(examples, data)
    chosen = choose_features(features, examples, updatable)
    model = CompressedLabelClassifier(
        check_choice(compressor, "compressor", COMPRESSORS)(_number(measurements, "auto", "measurements", int)),
        _make_learner(learner, _number(alpha, "loo", "alpha", float), updatable, seed),
        OMPDecoder(penalty=0.1) if (compressor, decoder) == ("whitened", "omp") else decoder,
        features=_make_features(chosen, n_features or (HASHED if updatable and chosen == "words" else None)),
        random_state=seed,
        n_jobs=-1,
    )
    others = None if test is None else read_rows(test, format)
    report: dict[str, Any] = {"rows": len(examples), "features": chosen}
    if others is None and hold_out and len(examples) >= 10:
        report |= _try_on_held_out(model, examples.X, labels, seed)
    start = time.perf_counter()
    with working("training on all rows"):
        model.fit(examples.X, labels)
    report["seconds"] = time.perf_counter() - start
    if others is not None and test is not None:
        with working("evaluating"):
            figures = model.evaluate(features_for(model, others), truth_for(model, others, test))
        report |= {"evaluated_on": str(test), **figures}
    with working(f"writing {output}"):
        model.save(output)
    report |= _describe(model, output)
    if json:
        return print_json(report)
    _print_report(report, model, data, output)


def update(
    model: Model,
    data: Data,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Where to write it, if not in place.")] = None,
    format: Format = None,
    json: Json = False,
) -> None:
    """Learn from more rows, exactly: the model equals one trained on all rows. New labels may appear.

    The model must have been trained with --updatable. What was learned of words stays as it was.
    """
    loaded = load_model(model)
    if not isinstance(loaded, CompressedLabelClassifier):
        raise TypeError(
            f"{model} holds a {type(loaded).__name__}, which cannot be updated. Train it again on all rows."
        )
    before, rows = loaded.vocabulary_.n_labels, 0
    with working(f"learning from {data}"):
        for batch in stream_rows(data, format):
            if len(batch):
                loaded.partial_fit(features_for(loaded, batch), truth_for(loaded, batch, data))
                rows += len(batch)
    if not rows:
        raise ValueError(f"{data} has no rows.")
    target = output or model
    with working(f"writing {target}"):
        loaded.save(target)
    new = loaded.vocabulary_.n_labels - before
    if json:
        return print_json({"rows": rows, "new_labels": new, "model": str(target)})
    print_pairs([("learned", f"{rows:,} rows, {new:,} new labels"), ("saved", str(target))])


def choose_features(wanted: str, examples: Examples, updatable: bool) -> str:
    """Return what to make of X: words of texts, scaled counts, or nothing."""
    X: Any = examples.X
    given = "images" if isinstance(examples, ImageFiles) else "texts" if isinstance(X, list) else "features"
    fitting = FITTING[given]
    check_choice(wanted, "--features", dict.fromkeys(["auto", *FEATURES, "none"]))
    if wanted != "auto":
        if wanted not in fitting:
            raise ValueError(f"--features must be {' or '.join(fitting)}: the data are {given}. Got {wanted}.")
        return wanted
    if given != "features":
        return "hashing" if updatable and given == "texts" else fitting[0]
    counts = not updatable and bool(np.all(X.data >= 0) and np.all(X.data == np.round(X.data)))
    return "counts" if counts else "none"


def _make_features(word: str, n_features: int | None) -> Any:
    if n_features is None:
        return None if word == "none" else word
    if word not in ("words", "hashing"):
        raise ValueError("--n-features is for texts.")
    return FEATURES[word](n_features)


def _make_learner(word: str, alpha: Any, updatable: bool, seed: int) -> Any:
    kind = check_choice(word, "learner", {"ridge": RidgeLearner, "kernel_ridge": KernelRidgeLearner})
    if updatable and kind is KernelRidgeLearner:
        raise ValueError("--updatable needs --learner ridge: kernel ridge cannot be updated.")
    return kind(alpha=alpha, random_state=seed, **({"updatable": True, "solver": "primal"} if updatable else {}))


def _number(text: str, word: str, name: str, kind: Any) -> Any:
    if text == word:
        return word
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"--{name} must be a number or {word}. Got {text}.") from None


def _try_on_held_out(model: Any, X: Any, labels: Any, seed: int) -> dict[str, Any]:
    """Fit on nine tenths of the rows, evaluate on the others, and keep the penalty that was chosen."""
    order = np.random.default_rng(seed).permutation(len(labels) if isinstance(labels, list) else labels.shape[0])
    held = min(MOST_HELD_OUT, int(HELD_OUT * len(order)))
    rest, out = np.sort(order[held:]), np.sort(order[:held])
    with working("training on nine tenths"):
        model.fit(_rows(X, rest), _rows(labels, rest))
        figures = model.evaluate(_rows(X, out), _rows(labels, out))
    fitted = model.learner_
    kernel = {"kernel": fitted.kernel_} if isinstance(fitted, KernelRidgeLearner) else {}
    model.learner.set_params(alpha=fitted.alpha_, **kernel)
    return {"evaluated_on": f"{held} rows held out", **figures}


def _rows(values: Any, rows: Any) -> Any:
    return [values[i] for i in rows] if isinstance(values, list) else values[rows]


def _describe(model: Any, output: Path) -> dict[str, Any]:
    operator = model.compressor_.operator_
    return {
        "n_features": int(model.n_features_in_),
        "labels": operator.n_labels,
        "measurements": operator.n_measurements,
        "learner": type(model.learner_).__name__,
        "alpha": model.learner_.alpha_,
        "decoder": type(model.decoder_).__name__,
        "model": str(output),
        "bytes": output.stat().st_size,
    }


def _print_report(report: dict[str, Any], model: Any, data: Path, output: Path) -> None:
    auto = model.compressor.n_measurements == "auto"
    lines = [
        ("read", f"{report['rows']:,} rows of {data}, {report['labels']:,} labels"),
        ("features", f"{report['n_features']:,}: {ABOUT[report['features']]}"),
        ("compress", f"to {report['measurements']:,} measurements" + (", chosen by 6 k log2(2 d / k)" if auto else "")),
        ("learn", f"{report['learner']}, alpha {report['alpha']:.3g}, in {report['seconds']:.1f} s"),
        ("decode", report["decoder"]),
    ]
    if "evaluated_on" in report:
        lines.append(("evaluate", f"{report['evaluated_on']}: {percent(report, ('P@1', 'P@3', 'P@5', 'nDCG@5'))}"))
    lines.append(("saved", f"{output}, {report['bytes'] / 1e6:.1f} MB"))
    print_pairs(lines)
