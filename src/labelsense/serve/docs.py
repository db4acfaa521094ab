"""The description of the service as a page to read, which needs no script and nothing from elsewhere."""

from __future__ import annotations

import html
import json

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from labelsense.serve.openapi import Schema, describe
from labelsense.serve.reading import JSON


async def show_docs(request: Request) -> Response:
    """Answer the description for people."""
    return HTMLResponse(render(describe(request.app.state.limits)))


def render(description: Schema) -> str:
    """Return the description as a page of HTML, without scripts, styles or anything from elsewhere."""
    info = description["info"]
    lines = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{info['title']} {info['version']}</title></head><body>",
        f"<h1>{info['title']} {info['version']}</h1><p>{html.escape(info['description'])}</p>",
        '<p>For programs: <a href="openapi.json">openapi.json</a>.</p>',
    ]
    for path, item in description["paths"].items():
        for method in ("get", "post"):
            if method in item:
                lines += _render_operation(method, path, item[method])
    lines.append("<h2>Objects</h2>")
    for name, schema in description["components"]["schemas"].items():
        lines.append(f'<h3 id="{name}">{name}</h3><pre>{_render_schema(schema)}</pre>')
    return "\n".join([*lines, "</body></html>"])


def _render_operation(method: str, path: str, operation: Schema) -> list[str]:
    lines = [f"<h2><code>{method.upper()} {html.escape(path)}</code></h2><p>{html.escape(operation['summary'])}</p>"]
    for parameter in operation.get("parameters", []):
        lines.append(f"<p><code>{parameter['name']}</code>: {html.escape(parameter['description'])}</p>")
    if "requestBody" in operation:
        for kind, item in operation["requestBody"]["content"].items():
            lines.append(f"<p>Send {kind}: <code>{_render_schema(item['schema'])}</code></p>")
    answers = []
    for status, answer in operation["responses"].items():
        schema = answer.get("content", {}).get(JSON, {}).get("schema")
        kind = "" if schema is None else f" <code>{_render_schema(schema)}</code>"
        answers.append(f"<li>{status}: {html.escape(answer['description'])}{kind}</li>")
    return [*lines, "<ul>", *answers, "</ul>"]


def _render_schema(schema: Schema) -> str:
    """Return a schema in a few words, with links to others."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#{name}">{name}</a>'
    if "enum" in schema:
        return " or ".join(html.escape(json.dumps(word)) for word in schema["enum"])
    if "oneOf" in schema and "properties" not in schema:
        return " or ".join(map(_render_schema, schema["oneOf"]))
    kind = schema.get("type")
    if "items" in schema:
        return f"[{_render_schema(schema['items'])}, ...]"
    if kind == "object" and "properties" in schema:
        fields = (
            f"{name}{'' if name in schema['required'] else '?'}: {_render_schema(item)}"
            for name, item in schema["properties"].items()
        )
        return "{" + ",\n ".join(fields) + "}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


ROUTES = [Route("/docs", show_docs)]
