"""The routes under /v1: Annif's interface, which its clients speak, and a little more."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from labelsense import __version__
from labelsense.explain import Explanation
from labelsense.serve import answers
from labelsense.serve.limits import Limits
from labelsense.serve.problems import Problem
from labelsense.serve.project import Project
from labelsense.serve.reading import (
    as_integer,
    as_list,
    as_object,
    as_string,
    read_document,
    read_fields,
    read_json,
    read_language,
    read_query,
    read_wanted,
)

PARTS = 100  # of an explanation, where nobody says


def find_project(request: Request) -> Project:
    """Return the project that the address names."""
    name = request.path_params["project_id"]
    projects: dict[str, Project] = request.app.state.projects
    if name not in projects:
        raise Problem(404, f"There is no project {name[:100]!r}. /v1/projects lists those that there are.")
    return projects[name]


async def show_title(request: Request) -> Response:
    """Say what this is."""
    return JSONResponse({"title": "labelsense", "version": __version__})


async def list_projects(request: Request) -> Response:
    """List the models."""
    return JSONResponse({"projects": [describe(project) for project in request.app.state.projects.values()]})


async def list_vocabularies(request: Request) -> Response:
    """List the vocabularies: each model has its own."""
    return JSONResponse({"vocabs": [describe(project)["vocab"] for project in request.app.state.projects.values()]})


async def show_project(request: Request) -> Response:
    """Describe a model."""
    return JSONResponse(describe(find_project(request)))


def describe(project: Project) -> dict[str, Any]:
    """Return what Annif says of a project."""
    snapshot = project.snapshot
    catalogue = snapshot.catalogue
    size = catalogue.n_labels if catalogue.subjects is None else len(catalogue.subjects)
    return {
        "project_id": project.id,
        "name": project.id,
        "language": catalogue.languages[0],
        "backend": {"backend_id": "labelsense"},
        "vocab": {"vocab_id": project.id, "languages": catalogue.languages, "size": size, "loaded": True},
        "vocab_language": catalogue.languages[0],
        "is_trained": True,
        "modification_time": snapshot.modified.isoformat(),
    }


async def suggest(request: Request) -> Response:
    """Suggest labels for a document."""
    project, limits = find_project(request), request.app.state.limits
    snapshot = project.snapshot
    fields = await read_fields(request, limits)
    wanted = read_wanted(fields, limits)
    document = read_document(fields, snapshot.model, limits)
    return JSONResponse({"results": (await project.suggest(snapshot, [document], wanted))[0]})


async def suggest_batch(request: Request) -> Response:
    """Suggest labels for several documents; limit, threshold and the lists are in the query, or in the body."""
    project, limits = find_project(request), request.app.state.limits
    snapshot = project.snapshot
    body = as_object(await read_json(request, limits), "The body")
    read_wanted(body, limits)  # what the query overrules has to be right too
    wanted = read_wanted(body | read_query(request), limits)
    entries = [as_object(entry, "Each of documents") for entry in as_list(body.get("documents"), "documents")]
    check_batch(entries, "documents", limits.batch)
    ids = [_document_id(entry) for entry in entries]
    documents = [read_document(entry, snapshot.model, limits) for entry in entries]
    found = await project.suggest(snapshot, documents, wanted)
    return JSONResponse([{"results": results, "document_id": name} for results, name in zip(found, ids, strict=True)])


def check_batch(documents: list[Any], name: str, most: int) -> None:
    """Refuse more entries than a request may have."""
    if len(documents) > most:
        raise Problem(400, f"{name} must have at most {most} entries. Got {len(documents)}.")


def _document_id(entry: dict[str, Any]) -> str | None:
    name = entry.get("document_id")
    return None if name is None else as_string(name, "document_id")


async def explain(request: Request) -> Response:
    """Say what speaks for and against a label."""
    project, limits = find_project(request), request.app.state.limits
    snapshot = project.snapshot
    fields = await read_fields(request, limits)
    most = as_integer(fields.get("limit", min(PARTS, limits.labels)), "limit", 1, limits.labels)
    language = snapshot.catalogue.check_language(read_language(fields))
    uri = as_string(fields.get("uri"), "uri")
    label = snapshot.catalogue.label(uri)
    document = read_document(fields, snapshot.model, limits)
    answer = await project.ask(_explain, snapshot.model, document, label, most)
    if answer is None:
        raise Problem(409, "This model cannot tell why: only models of compressed labels can.")
    return JSONResponse(snapshot.catalogue.full_entry(uri, snapshot.counts, language) | answer)


def _explain(model: Any, document: Any, label: Any, most: int) -> dict[str, Any] | None:
    found = answers.explain(model, document, label)
    if found is None:
        return None
    value = dict(found.parts)
    marks = answers.mark_words(model, document) if model.takes_text else []
    return {
        **_reasons(found, most),
        "probability": found.probability,
        "exact": found.exact,
        "ranker": None if found.ranker is None else _reasons(found.ranker, most),
        "marks": [
            {"start": mark.start, "end": mark.end, "value": value[mark.feature]}
            for mark in marks
            if mark.feature in value
        ],
    }


def _reasons(found: Explanation, most: int) -> dict[str, Any]:
    """Return a score and what it is made of, the largest parts one by one."""
    return {
        "score": found.score,
        "constant": found.constant,
        "parts": [{"feature": str(name), "value": value} for name, value in found.parts[:most]],
        "rest": sum(value for _, value in found.parts[most:]),
    }


async def learn(request: Request) -> Response:
    """Learn from documents with their labels; the answer says that they are safe."""
    return await _update(request, "learn")


async def forget(request: Request) -> Response:
    """Take back what was learned from documents."""
    return await _update(request, "forget")


async def _update(request: Request, step: str) -> Response:
    project, limits = find_project(request), request.app.state.limits
    learning = project.learning
    if learning is None:
        raise Problem(403, f"{project.id} does not learn. The server needs --allow-learning, the model --updatable.")
    request.app.state.keys.require(request)
    entries = [as_object(entry, "Each document") for entry in as_list(await read_json(request, limits), "The body")]
    check_batch(entries, "The body", limits.batch)
    if not entries:
        return Response(status_code=204)
    documents = [_indexed(entry, project.snapshot.model, limits) for entry in entries]
    number = await project.within_time(learning.update(step, documents))
    return Response(status_code=204, headers={"Labelsense-Update": str(number)})


def _indexed(entry: dict[str, Any], model: Any, limits: Limits) -> dict[str, Any]:
    """Return a document with labels as the journal keeps it."""
    read_document(entry, model, limits)  # or refuse it
    subjects = [as_object(subject, "Each of subjects") for subject in as_list(entry.get("subjects"), "subjects")]
    check_batch(subjects, "subjects", limits.labels)
    uris = sorted({as_string(subject.get("uri"), "uri") for subject in subjects})
    name = "text" if model.takes_text else "features"
    return {name: entry[name], "subjects": uris}


PROJECT = "/v1/projects/{project_id}"
ROUTES = [
    Route("/v1", show_title),
    Route("/v1/", show_title),
    Route("/v1/projects", list_projects),
    Route("/v1/vocabs", list_vocabularies),
    Route(PROJECT, show_project),
    Route(f"{PROJECT}/suggest", suggest, methods=["POST"]),
    Route(f"{PROJECT}/suggest-batch", suggest_batch, methods=["POST"]),
    Route(f"{PROJECT}/explain", explain, methods=["POST"]),
    Route(f"{PROJECT}/learn", learn, methods=["POST"]),
    Route(f"{PROJECT}/forget", forget, methods=["POST"]),
]
