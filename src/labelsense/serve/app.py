"""The application: routes, what is around them, and what they share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from labelsense.serve import annif, docs, insight, openapi
from labelsense.serve.boundary import Boundary
from labelsense.serve.keys import KeyGuard, Keys
from labelsense.serve.limits import Limits
from labelsense.serve.problems import Problem, on_http_error, on_problem
from labelsense.serve.project import Project
from labelsense.serve.telemetry import Telemetry

PAGE = Path(__file__).parent / "page"


def make_app(
    projects: Mapping[str, Project],
    *,
    limits: Limits | None = None,
    keys: Keys | None = None,
    origins: Sequence[str] = (),
    examples: Mapping[str, Sequence[Mapping[str, str]]] | None = None,
    telemetry: Telemetry | None = None,
) -> Starlette:
    """Return the application that serves some models.

    Parameters
    ----------
    projects : dict
        By name.
    limits : Limits, optional
    keys : Keys, optional
        Without any, nobody may change a model.
    origins : list of str
        The web sites whose scripts may use the service, such as ``https://example.org``.
    examples : dict, optional
        Texts to try, by the name of the project: each with "title" and "text".
    telemetry : Telemetry, optional
        Where requests are counted.
    """
    limits, keys, telemetry = limits or Limits(), keys or Keys([]), telemetry or Telemetry()
    middleware = [Middleware(Boundary, concurrent=limits.concurrent, telemetry=telemetry)]
    if origins:
        allowed = ["authorization", "content-type", "x-api-key"]
        middleware.append(
            Middleware(CORSMiddleware, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=allowed)
        )
    if keys.everything:
        middleware.append(Middleware(KeyGuard, keys=keys))
    routes = [
        *annif.ROUTES,
        *insight.ROUTES,
        *openapi.ROUTES,
        *docs.ROUTES,
        Route("/v2/health/live", show_live),
        Route("/v2/health/ready", show_ready),
        Route("/metrics", show_metrics),
    ]
    if PAGE.is_dir():
        files = StaticFiles(directory=PAGE, html=True)
        names = sorted(path.name for path in PAGE.iterdir() if path.is_file())  # of now: nothing else is served
        routes += [Route("/", files), *(Route(f"/{name}", files) for name in names)]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.ready = True
        yield
        app.state.ready = False
        await asyncio.gather(*(project.close() for project in projects.values()))

    handlers = {Problem: on_problem, HTTPException: on_http_error}
    app = Starlette(routes=routes, middleware=middleware, lifespan=lifespan, exception_handlers=handlers)
    app.state.projects, app.state.examples = dict(projects), dict(examples or {})
    app.state.limits, app.state.keys, app.state.telemetry = limits, keys, telemetry
    app.state.ready = False
    for name, project in projects.items():
        telemetry.watch(project.gauges(), name)
    return app


async def show_live(request: Request) -> Response:
    """Say that the process lives."""
    return JSONResponse({"live": True})


async def show_ready(request: Request) -> Response:
    """Say whether requests are answered."""
    if not request.app.state.ready:
        raise Problem(503, "The service is starting or stopping.", {"Retry-After": "1"})
    return JSONResponse({"ready": True})


async def show_metrics(request: Request) -> Response:
    """Show what was counted, for Prometheus."""
    content, media_type = request.app.state.telemetry.render()
    return Response(content, media_type=media_type)
