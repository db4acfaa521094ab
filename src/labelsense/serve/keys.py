"""API keys: who may ask, and who may teach."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from labelsense.errors import InputError
from labelsense.serve.problems import Problem, respond

SHORTEST = 16  # characters
GUARDED = ("/v1", "/ui", "/metrics")  # the page itself, the description and the health of the service are no secret


class Keys:
    """The keys that are accepted. They are kept as hashes, and compared in a time that does not depend on them.

    Parameters
    ----------
    keys : iterable of str
        At least 16 characters each.
    everything : bool
        Whether every request needs one, or only those that change a model.
    """

    def __init__(self, keys: list[str], everything: bool = False) -> None:
        if any(len(key) < SHORTEST or not key.isascii() or not key.isprintable() for key in keys):
            raise InputError(f"An API key must have at least {SHORTEST} characters, all of them printable ASCII.")
        self._hashes = [_hash(key) for key in keys]
        self.everything = everything

    def require(self, request: HTTPConnection) -> None:
        """Refuse a request that does not have one of the keys."""
        header = request.headers.get("authorization", "")
        scheme, _, given = header.partition(" ")
        if scheme.lower() != "bearer":
            given = request.headers.get("x-api-key", "")
        hashed = _hash(given.strip())
        if not sum([hmac.compare_digest(hashed, known) for known in self._hashes]):
            detail = "This needs an API key, in the header `Authorization: Bearer KEY` or `X-API-Key: KEY`."
            raise Problem(401, detail, {"WWW-Authenticate": "Bearer"})


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def read_keys(path: Path) -> list[str]:
    """Return the keys of a file: one a line, and lines that begin with # say whose they are."""
    lines = [line.strip() for line in path.read_text().splitlines()]
    keys = [line for line in lines if line and not line.startswith("#")]
    if not keys:
        raise InputError(f"{path} has no API key. Write one of {SHORTEST} characters or more on a line of its own.")
    return keys


class KeyGuard:
    """Lets requests pass that have a key, where every request needs one."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self._app, self._keys = app, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http" and scope["path"].startswith(GUARDED):
            try:
                self._keys.require(HTTPConnection(scope))
            except Problem as problem:
                await respond(problem)(scope, receive, send)
                return
        await self._app(scope, receive, send)
