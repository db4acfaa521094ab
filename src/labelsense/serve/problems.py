"""Refusals, as ``application/problem+json`` (RFC 9457): what is wrong, in words, and never where in the program."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response


class Problem(Exception):
    """A request that cannot be answered: a status, what is wrong, and what to do.

    Parameters
    ----------
    status : int
        Of HTTP.
    detail : str
        For the user to read.
    headers : dict, optional
        Such as Retry-After.
    members : dict, optional
        More members of the answer, for programs.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers, self.members = status, detail, headers, members or {}


def busy(detail: str, seconds: int = 1) -> Problem:
    """Return the refusal of a server that has too much to do now."""
    return Problem(503, detail, {"Retry-After": str(seconds)})


def respond(problem: Problem) -> Response:
    """Return a refusal as the answer to a request."""
    title = HTTPStatus(problem.status).phrase
    content = {"type": "about:blank", "title": title, "status": problem.status, "detail": problem.detail}
    return JSONResponse(
        content | dict(problem.members), problem.status, problem.headers, media_type="application/problem+json"
    )


def on_problem(request: Request, error: Exception) -> Response:
    """Answer a refusal of ours."""
    assert isinstance(error, Problem)
    return respond(error)


def on_http_error(request: Request, error: Exception) -> Response:
    """Answer a refusal of Starlette: no such route, no such method, a form that is none."""
    assert isinstance(error, HTTPException)
    detail = {404: "There is nothing here. /openapi.json lists what there is."}.get(error.status_code, error.detail)
    return respond(Problem(error.status_code, detail, error.headers))
