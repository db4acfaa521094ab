"""What every request passes through: a bound on their number, headers, the access log, and the last word on errors."""

from __future__ import annotations

import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from labelsense.serve.problems import Problem, busy, respond
from labelsense.serve.telemetry import Telemetry

logger = logging.getLogger("labelsense.serve")
access = logging.getLogger("labelsense.serve.access")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
HEALTH = "/v2/health/"


class Boundary:
    """Bounds, counts and logs requests. The log has no texts: not of bodies, not of queries, not of unknown addresses.

    Parameters
    ----------
    app : ASGI application
    concurrent : int
        How many requests at a time; more are refused, but for those that ask for health.
    telemetry : Telemetry
    """

    def __init__(self, app: ASGIApp, concurrent: int, telemetry: Telemetry) -> None:
        self._app, self._concurrent, self._telemetry = app, concurrent, telemetry
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name.lower() for name, _ in message["headers"]}
                cache = (b"cache-control", b"no-store" if scope["path"].startswith(("/v1", "/ui")) else b"no-cache")
                message["headers"] += [(name, value) for name, value in (*HEADERS, cache) if name not in given]
            await send(message)

        self._running += 1
        try:
            if self._running > self._concurrent and not scope["path"].startswith(HEALTH):
                await respond(busy("Too many requests at a time. Try again."))(scope, receive, send_with_headers)
            else:
                await self._app(scope, receive, send_with_headers)
        except Exception:
            logger.exception("a request to %s failed", _endpoint(scope))
            if not status:
                detail = "The server has failed, and its log says how."
                await respond(Problem(500, detail))(scope, receive, send_with_headers)
        finally:
            self._running -= 1
            seconds = time.perf_counter() - started
            self._telemetry.count(_endpoint(scope), status, seconds)
            client = scope["client"][0] if scope.get("client") else "-"
            path = scope["path"] if status < 400 else _endpoint(scope)
            access.info("%s %s %s %d %.1f ms", client, scope["method"], path, status, 1000 * seconds)


def _endpoint(scope: Scope) -> str:
    """Return the name of the function that answers; files of the page, and what nobody answers, have one name."""
    return getattr(scope.get("endpoint"), "__name__", "page")
