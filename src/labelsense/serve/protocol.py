"""HTTP on a connection, with patience that ends."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from labelsense.serve.limits import Limits
from labelsense.serve.problems import Problem, respond


class PatientProtocol(H11Protocol):
    """uvicorn's protocol, but for clients that are slow, leave half-way, or do not speak HTTP.

    What is asked must be said within ``seconds``. A client that has asked and closes its half of the connection gets
    its answer. Refusals are those of the rest of the service.
    """

    seconds = Limits().seconds
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._timer is None:
            self._wait()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Answer a client that has said all it has to say, and refuse one that has not."""
        if self.cycle is None or self.cycle.response_complete:
            return None
        if self.cycle.more_body:
            self.send_400_response("The request was cut off.")
            return None
        self.cycle.keep_alive = False
        return True

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP in the words of all other refusals."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = bytes(respond(Problem(400, msg)).body)
            head = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\nConnection: close\r\n"
            self.transport.write(b"%sContent-Length: %d\r\n\r\n%s" % (head, len(body), body))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._timer = self.loop.call_later(self.seconds, self._look)

    def _look(self) -> None:
        """Leave, if there still is no request; else look again when more data have come."""
        self._timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
