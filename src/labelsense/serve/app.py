"""The application: routes, what is around them, and what they share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from labelsense.serve import annif, insight
from labelsense.serve.limits import Limits
from labelsense.serve.problems import Problem, on_http_error, on_problem
from labelsense.serve.project import Project

PAGE = Path(__file__).parent / "page"


def make_app(
    projects: Mapping[str, Project],
    *,
    limits: Limits | None = None,
    examples: Mapping[str, Sequence[Mapping[str, str]]] | None = None,
) -> Starlette:
    """Return the application that serves some models.

    Parameters
    ----------
    projects : dict
        By name.
    limits : Limits, optional
    examples : dict, optional
        Texts to try, by the name of the project: each with "title" and "text".
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.ready = True
        yield
        app.state.ready = False
        await asyncio.gather(*(project.close() for project in projects.values()))

    routes: list[BaseRoute] = [
        *annif.ROUTES,
        *insight.ROUTES,
        Route("/v2/health/live", show_live),
        Route("/v2/health/ready", show_ready),
        Mount("/", StaticFiles(directory=PAGE, html=True, check_dir=False)),
    ]
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={Problem: on_problem, HTTPException: on_http_error},
    )
    app.state.projects = dict(projects)
    app.state.limits = limits or Limits()
    app.state.examples = dict(examples or {})
    app.state.ready = False
    return app


async def show_live(request: Request) -> Response:
    """Say that the process lives."""
    return JSONResponse({"live": True})


async def show_ready(request: Request) -> Response:
    """Say whether requests are answered."""
    if not request.app.state.ready:
        raise Problem(503, "The service is starting or stopping.", {"Retry-After": "1"})
    return JSONResponse({"ready": True})
