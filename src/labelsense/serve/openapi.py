"""The description of the service, as OpenAPI 3.1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from labelsense import __version__
from labelsense.serve.catalogue import SORTS
from labelsense.serve.limits import Limits
from labelsense.serve.reading import FORM, JSON, MULTIPART

Schema = dict[str, Any]

REFUSALS = {
    400: "What was asked breaks a rule, which the answer names.",
    401: "An API key is needed.",
    403: "The model does not learn.",
    404: "There is no such project, or no such label.",
    408: "The request did not arrive in time.",
    409: "The model cannot do this.",
    413: "The request is too large.",
    415: "The body is of a type that is not read here.",
    503: "There is too much to do now; Retry-After says when to try again.",
}
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
TRUTH: Schema = {"type": "boolean"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
MAYBE_WHOLE: Schema = {"type": ["integer", "null"]}
MAYBE_NUMBER: Schema = {"type": ["number", "null"]}


def _list(items: Schema, most: int | None = None) -> Schema:
    return {"type": "array", "items": items} | ({} if most is None else {"maxItems": most})


def _object(properties: Schema, required: Sequence[str] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties if required is None else required),
    }


def _document(properties: Schema, required: Sequence[str] = ()) -> Schema:
    """Return an object that has a text or features."""
    return _object(properties, required) | {"oneOf": [{"required": ["text"]}, {"required": ["features"]}]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _schemas(limits: Limits) -> Schema:
    """Return the objects that are sent and answered."""
    label = {"uri": TEXT, "label": TEXT, "notation": MAYBE_TEXT}
    vocabulary = {"vocab_id": TEXT, "languages": _list(TEXT), "size": WHOLE, "loaded": TRUTH}
    features: Schema = {
        "description": "For a model that takes features instead of texts: all of them, or some by column or name.",
        "oneOf": [_list(NUMBER), {"type": "object", "additionalProperties": NUMBER}],
    }
    text = {"type": "string", "maxLength": limits.text}
    some_labels = _list({"type": "string", "maxLength": 1000}, limits.labels) | {"type": ["array", "null"]}
    wanted = {
        "limit": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1, "default": 10},
        "threshold": {"type": "number", "minimum": 0, "maximum": 1, "default": 0},
        "language": {"type": ["string", "null"], "description": "Of the labels.", "maxLength": 35},
        "allow": some_labels | {"description": "The only labels to choose from."},
        "block": some_labels | {"description": "Labels to leave out."},
    }
    related = {"broader": _list(_ref("Label")), "narrower": _list(_ref("Label"))}
    known = {**label, "count": MAYBE_WHOLE}
    step = {
        "taken": _list(_ref("Label")),
        "dropped": _list(_ref("Label")),
        "coefficients": _list(_object({**label, "value": NUMBER})),
        "residual": NUMBER,
        "left": _list(NUMBER),
    }
    places = {"type": "object", "additionalProperties": WHOLE}
    change = _object({**label, "before": NUMBER, "after": NUMBER, "places": places})
    refinement = _object({"candidates": WHOLE, "labels": _list(change)})
    project = {
        "project_id": TEXT,
        "name": TEXT,
        "language": TEXT,
        "backend": _object({"backend_id": TEXT}),
        "vocab": _ref("Vocabulary"),
        "vocab_language": TEXT,
        "is_trained": TRUTH,
        "modification_time": {"type": "string", "format": "date-time"},
    }
    model = {
        **project,
        "kind": TEXT,
        "takes": {"enum": ["text", "features"]},
        "n_features": WHOLE,
        "n_labels": WHOLE,
        "n_measurements": MAYBE_WHOLE,
        **{part: MAYBE_TEXT for part in ("compressor", "learner", "decoder", "refiner")},
        "probabilities": TRUTH,
        "threshold": NUMBER,
        "assignments": MAYBE_WHOLE,
        "report": {"type": ["object", "null"]},
        "updates": {
            "oneOf": [{"type": "null"}, _object({"acknowledged": WHOLE, "applied": WHOLE, "saved": WHOLE})],
        },
    }
    bounds = {"body": WHOLE, "text": WHOLE, "batch": WHOLE}
    service = {"version": TEXT, "projects": _list(TEXT), "learning": _list(TEXT), "key_needed": TRUTH}
    uri = {"type": "string", "maxLength": 1000}
    parts = _list(_object({"feature": TEXT, "value": NUMBER}))
    reasons = {"score": NUMBER, "constant": NUMBER, "parts": parts, "rest": NUMBER}
    answer = {
        **known,
        **reasons,
        "probability": MAYBE_NUMBER,
        "exact": TRUTH,
        "ranker": {"oneOf": [{"type": "null"}, _object(reasons)]},
        "marks": _list(_object({"start": WHOLE, "end": WHOLE, "value": NUMBER})),
    }
    why = {
        "uri": uri,
        "limit": {"type": "integer", "minimum": 1, "maximum": limits.labels, "default": 100},
        "language": wanted["language"],
    }
    return {
        "Problem": _object({"type": TEXT, "title": TEXT, "status": WHOLE, "detail": TEXT}),
        "Title": _object({"title": TEXT, "version": TEXT}),
        "Label": _object(label),
        "LabelEntry": _object({**known, **related}, list(known)),
        "Labels": _object({"labels": _list(_ref("LabelEntry"))}),
        "LabelPage": _object({"total": WHOLE, "labels": _list(_ref("LabelEntry"))}),
        "Vocabulary": _object(vocabulary),
        "Vocabularies": _object({"vocabs": _list(_ref("Vocabulary"))}),
        "Project": _object(project),
        "Projects": _object({"projects": _list(_ref("Project"))}),
        "Model": _object(model),
        "Service": _object({**service, "limits": _object(bounds)}),
        "Suggestion": _object({**label, "score": {"type": "number", "minimum": 0, "maximum": 1}}),
        "Suggestions": _object({"results": _list(_ref("Suggestion"))}),
        "BatchSuggestions": _list(_object({"results": _list(_ref("Suggestion")), "document_id": MAYBE_TEXT})),
        "Question": _document({"text": text, "features": features, **wanted}),
        "QuestionForm": _object({"text": text, **wanted}, ["text"]),
        "Batch": _object({"documents": _list(_ref("Document"), limits.batch), **wanted}, ["documents"]),
        "Document": _document(
            {"text": text, "features": features, "document_id": {"type": ["string", "null"], "maxLength": 1000}}
        ),
        "IndexedDocument": _document(
            {"text": text, "features": features, "subjects": _list(_object({"uri": uri}), limits.labels)}, ["subjects"]
        ),
        "WhyQuestion": _document({"text": text, "features": features, **why}, ["uri"]),
        "WhyForm": _object({"text": text, **why}, ["text", "uri"]),
        "Why": _object({**answer, **related}, list(answer)),
        "HowQuestion": _document({"text": text, "features": features}),
        "HowForm": _object({"text": text}),
        "How": _object(
            {
                "measurements": _list(NUMBER),
                "decoder": TEXT,
                "steps": _list(_object(step)),
                "refinement": {"oneOf": [{"type": "null"}, refinement]},
            }
        ),
        "Examples": _object({"examples": _list(_object({"title": TEXT, "text": TEXT}))}),
        "Live": _object({"live": TRUTH}),
        "Ready": _object({"ready": TRUTH}),
    }


def _operation(
    summary: str,
    answer: str | None,
    refusals: Sequence[int] = (),
    *,
    body: Schema | None = None,
    form: Schema | None = None,
    query: Sequence[Schema] = (),
) -> Schema:
    """Return what is said of a route: the answer is the name of a schema, or None for an empty one."""
    responses: Schema = {"204": {"description": "It is on disk."}}
    if answer is not None:
        responses = {"200": {"description": "The answer.", "content": {JSON: {"schema": _ref(answer)}}}}
    for status in refusals:
        content = {"application/problem+json": {"schema": _ref("Problem")}}
        responses[str(status)] = {"description": REFUSALS[status], "content": content}
    operation: Schema = {"summary": summary, "responses": responses}
    if query:
        operation["parameters"] = list(query)
    if body is not None:
        kinds = {JSON: body} if form is None else {FORM: form, MULTIPART: form, JSON: body}
        content = {kind: {"schema": schema} for kind, schema in kinds.items()}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _query(name: str, schema: Schema, about: str) -> Schema:
    return {"name": name, "in": "query", "schema": schema, "description": about}


def describe(limits: Limits) -> Schema:
    """Return the service as OpenAPI 3.1."""
    asked, sent = (400, 401, 404, 503), (400, 401, 404, 408, 409, 413, 415, 503)
    language = _query("language", {"type": "string", "maxLength": 35}, "Of the labels.")
    some = {"type": "integer", "minimum": 1, "maximum": limits.labels}
    sought = _query("query", {"type": "string", "maxLength": 1000}, "A part of a name or URI.")
    limit = _query(
        "limit", {"type": "integer", "minimum": 0, "maximum": 2**31 - 1, "default": 10}, "How many, at most."
    )
    threshold = _query("threshold", {"type": "number", "minimum": 0, "maximum": 1, "default": 0}, "The least score.")
    labels = [
        sought,
        _query("sort", {"enum": list(SORTS), "default": "label"}, "By what."),
        _query("order", {"enum": ["ascending", "descending"], "default": "ascending"}, "How."),
        _query("offset", {"type": "integer", "minimum": 0, "maximum": 2**53, "default": 0}, "How many to leave out."),
        _query("limit", some | {"default": 50}, "How many, at most."),
        language,
    ]
    complete = [sought, _query("limit", some | {"default": 10}, "How many, at most."), language]
    v1, ui = "/v1/projects/{project_id}", "/ui/projects/{project_id}"
    learned: Schema = _list(_ref("IndexedDocument"), limits.batch)
    changes = (*sent, 403)
    routes: dict[str, tuple[str, Schema]] = {
        "/v1/": ("get", _operation("Say what this is.", "Title", (401,))),
        "/v1/projects": ("get", _operation("List the models.", "Projects", (401,))),
        "/v1/vocabs": ("get", _operation("List the vocabularies.", "Vocabularies", (401,))),
        v1: ("get", _operation("Describe a model.", "Project", (401, 404))),
        f"{v1}/suggest": (
            "post",
            _operation(
                "Suggest labels for a document.", "Suggestions", sent, body=_ref("Question"), form=_ref("QuestionForm")
            ),
        ),
        f"{v1}/suggest-batch": (
            "post",
            _operation(
                "Suggest labels for several documents.",
                "BatchSuggestions",
                sent,
                body=_ref("Batch"),
                query=[limit, threshold, language],
            ),
        ),
        f"{v1}/explain": (
            "post",
            _operation(
                "Say what speaks for and against a label: constant, parts and rest add up to the score.",
                "Why",
                sent,
                body=_ref("WhyQuestion"),
                form=_ref("WhyForm"),
            ),
        ),
        f"{v1}/learn": ("post", _operation("Learn from documents with their labels.", None, changes, body=learned)),
        f"{v1}/forget": ("post", _operation("Take back what was learned.", None, changes, body=learned)),
        "/ui/service": ("get", _operation("Say what this service allows.", "Service", (401,))),
        f"{ui}/how": (
            "post",
            _operation(
                "Show the measurements of a document, and the decoder's way from them to labels.",
                "How",
                sent,
                body=_ref("HowQuestion"),
                form=_ref("HowForm"),
            ),
        ),
        f"{ui}/labels": ("get", _operation("List labels, a page at a time.", "LabelPage", asked, query=labels)),
        f"{ui}/complete": ("get", _operation("Complete the name of a label.", "Labels", asked, query=complete)),
        f"{ui}/model": ("get", _operation("Tell what a model is.", "Model", (401, 404, 503))),
        f"{ui}/examples": ("get", _operation("List texts to try.", "Examples", (401, 404))),
        "/v2/health/live": ("get", _operation("Say that the process lives.", "Live")),
        "/v2/health/ready": ("get", _operation("Say whether requests are answered.", "Ready", (503,))),
    }
    project: Schema = {"name": "project_id", "in": "path", "required": True, "schema": TEXT}
    paths = {
        path: {method: operation} | ({"parameters": [project]} if "{project_id}" in path else {})
        for path, (method, operation) in routes.items()
    }
    schemes = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "labelsense",
            "version": __version__,
            "description": "Suggests labels for texts. What is under /v1 is Annif's interface, and a little more.",
        },
        "paths": paths,
        "components": {"schemas": _schemas(limits), "securitySchemes": schemes},
        "security": [{}, {"bearer": []}, {"key": []}],
    }


async def show_description(request: Request) -> Response:
    """Answer the description for programs."""
    return JSONResponse(describe(request.app.state.limits))


ROUTES = [Route("/openapi.json", show_description)]
