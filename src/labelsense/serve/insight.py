"""The routes under /ui, for the page: how a prediction came about, the labels, and what is known of the model."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from labelsense import __version__
from labelsense.predictor import THRESHOLD
from labelsense.serve import answers
from labelsense.serve.annif import describe, find_project
from labelsense.serve.catalogue import SORTS
from labelsense.serve.learning import Learning
from labelsense.serve.problems import Problem
from labelsense.serve.reading import as_integer, as_string, read_document, read_fields, read_language, read_query
from labelsense.serve.snapshot import Snapshot


async def show_service(request: Request) -> Response:
    """Say what this service allows."""
    state = request.app.state
    return JSONResponse(
        {
            "version": __version__,
            "projects": list(state.projects),
            "learning": [name for name, project in state.projects.items() if project.learning is not None],
            "key_needed": state.keys.everything,
            "limits": {"body": state.limits.body, "text": state.limits.text, "batch": state.limits.batch},
        }
    )


async def show_how(request: Request) -> Response:
    """Show the measurements of a document, and the decoder's way from them to labels."""
    project, limits = find_project(request), request.app.state.limits
    snapshot = project.snapshot
    fields = await read_fields(request, limits)
    document = read_document(fields, snapshot.model, limits)
    course = await project.ask(answers.follow, snapshot.model, document)
    if course is None:
        raise Problem(409, "This model does not reconstruct labels from measurements.")

    def entry(column: int) -> dict[str, Any]:
        return snapshot.catalogue.entry(snapshot.catalogue.uris[column])

    steps = [
        {
            "taken": [entry(j) for j in step.taken],
            "dropped": [entry(j) for j in step.dropped],
            "coefficients": [entry(j) | {"value": value} for j, value in step.coefficients],
            "residual": step.residual,
            "left": step.left,
        }
        for step in course.steps
    ]
    decoder = type(snapshot.model.decoder_).__name__
    refinement = None
    if course.refinement is not None:
        changes = [
            entry(change.label) | {"before": change.before, "after": change.after, "places": change.places}
            for change in course.refinement.changes
        ]
        refinement = {"candidates": course.refinement.n_candidates, "labels": changes}
    return JSONResponse(
        {"measurements": course.measurements, "decoder": decoder, "steps": steps, "refinement": refinement}
    )


async def list_labels(request: Request) -> Response:
    """List labels, sorted and filtered, a page at a time."""
    project, limits, query = find_project(request), request.app.state.limits, read_query(request)
    snapshot = project.snapshot
    sought = as_string(query.get("query", ""), "query")
    sort, order = query.get("sort", "label"), query.get("order", "ascending")
    if sort not in SORTS or order not in ("ascending", "descending"):
        raise Problem(400, f"sort must be one of {', '.join(SORTS)}, and order ascending or descending.")
    offset = as_integer(query.get("offset", 0), "offset", 0, 2**53)
    limit = as_integer(query.get("limit", min(50, limits.labels)), "limit", 1, limits.labels)
    language = snapshot.catalogue.check_language(read_language(query))
    chosen = await project.ask(snapshot.catalogue.select, sought, sort, order == "descending", snapshot.counts)
    page = [
        snapshot.catalogue.full_entry(snapshot.catalogue.uris[j], snapshot.counts, language)
        for j in chosen[offset : offset + limit].tolist()
    ]
    return JSONResponse({"total": len(chosen), "labels": page})


async def complete(request: Request) -> Response:
    """Complete what has been typed of a label."""
    project, limits, query = find_project(request), request.app.state.limits, read_query(request)
    snapshot = project.snapshot
    limit = as_integer(query.get("limit", min(10, limits.labels)), "limit", 1, limits.labels)
    sought = as_string(query.get("query", ""), "query")
    found = await project.ask(snapshot.catalogue.complete, sought, limit, snapshot.counts)
    language = snapshot.catalogue.check_language(read_language(query))
    entries = [snapshot.catalogue.full_entry(snapshot.catalogue.uris[j], snapshot.counts, language) for j in found]
    return JSONResponse({"labels": entries})


async def show_model(request: Request) -> Response:
    """Tell what a model is, and what to expect of it."""
    project = find_project(request)
    about = await project.ask(_describe_model, project.snapshot)
    return JSONResponse(describe(project) | about | {"updates": _updates(project.learning)})


def _describe_model(snapshot: Snapshot) -> dict[str, Any]:
    model = snapshot.model
    operator = getattr(getattr(model, "compressor_", None), "operator_", None)
    report = getattr(model, "report_", None)
    refiner = getattr(model, "refiner_", None)
    counts = snapshot.counts
    return {
        "kind": type(model).__name__,
        "takes": "text" if model.takes_text else "features",
        "n_features": int(model.n_features_in_),
        "n_labels": snapshot.catalogue.n_labels,
        "n_measurements": None if operator is None else operator.n_measurements,
        "compressor": _class_name(model, "compressor_"),
        "learner": _class_name(model, "learner_"),
        "decoder": _class_name(model, "decoder_"),
        "refiner": _class_name(model, "refiner_"),
        "probabilities": refiner is not None,
        "threshold": float(getattr(model, "threshold_", THRESHOLD)),
        "assignments": None if counts is None else int(counts.sum()),
        "report": None if report is None else vars(report),
    }


def _updates(learning: Learning | None) -> dict[str, int] | None:
    if learning is None:
        return None
    return {"acknowledged": learning.acknowledged, "applied": learning.applied, "saved": learning.saved}


def _class_name(model: Any, part: str) -> str | None:
    value = getattr(model, part, None)
    return None if value is None else type(value).__name__


async def list_examples(request: Request) -> Response:
    """List texts to try."""
    project = find_project(request)
    return JSONResponse({"examples": request.app.state.examples.get(project.id, [])})


PROJECT = "/ui/projects/{project_id}"
ROUTES = [
    Route("/ui/service", show_service),
    Route(f"{PROJECT}/how", show_how, methods=["POST"]),
    Route(f"{PROJECT}/labels", list_labels),
    Route(f"{PROJECT}/complete", complete),
    Route(f"{PROJECT}/model", show_model),
    Route(f"{PROJECT}/examples", list_examples),
]
