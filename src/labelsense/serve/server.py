"""The process: models are loaded, a port is opened, signals are heard."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import uvicorn

from labelsense.data.subjects import Subjects
from labelsense.errors import InputError
from labelsense.serve.app import make_app
from labelsense.serve.batching import LONGEST_WINDOW
from labelsense.serve.keys import Keys, read_keys
from labelsense.serve.limits import Limits
from labelsense.serve.project import Project
from labelsense.serve.protocol import PatientProtocol
from labelsense.serve.telemetry import Telemetry

__all__ = ["Limits", "read_keys", "serve"]

logger = logging.getLogger("labelsense.serve")

DRAIN = 30  # seconds that requests have to end when the server is told to stop


def serve(
    models: Mapping[str, Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    subjects: Mapping[str, Subjects] | None = None,
    examples: Mapping[str, Sequence[Mapping[str, str]]] | None = None,
    keys: Sequence[str] = (),
    origins: Sequence[str] = (),
    learning: bool = False,
    limits: Limits | None = None,
    window: float = LONGEST_WINDOW,
    announce: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve models until the process is told to stop.

    SIGTERM and Ctrl-C stop it when all requests are answered; SIGHUP loads the models again.

    Parameters
    ----------
    models : dict
        The model files by the names they are served under.
    host, port : str, int
        Where to listen; port 0 is any that is free. Beyond this machine, every request needs one of ``keys``.
    subjects : dict, optional
        Vocabularies, by the names of the models.
    examples : dict, optional
        Texts to try on the page, by the names of the models.
    keys : list of str
        API keys.
    origins : list of str
        Web sites whose scripts may use the service.
    learning : bool
        Whether models may be updated; each request to do so needs one of ``keys``.
    limits : Limits, optional
    window : float
        Seconds that a request may wait for others to be predicted with.
    announce : function
        Called with the address when requests are answered.
    """
    limits, known, telemetry = limits or Limits(), subjects or {}, Telemetry()
    accepted = Keys(list(keys), everything=not is_loopback(host))
    if not keys and (learning or accepted.everything):
        why = "learning" if learning else f"listening on {host}"
        raise InputError(f"api_key_file is needed for {why}. Name a file that has a key on a line of its own.")
    with contextlib.closing(_bind(host, port)) as listener:
        projects = {
            name: Project(
                name,
                path,
                known.get(name),
                limits=limits,
                window=window,
                observe=telemetry.batches(name),
                learning=learning,
            )
            for name, path in models.items()
        }
        for project in projects.values():
            if learning and project.learning is None:
                logger.warning("%s does not learn: it was trained without --updatable", project.id)
            unknown = project.snapshot.catalogue.unknown_uris()
            if unknown:
                some = ", ".join(unknown[:5])
                logger.warning("%d labels of %s are not in the vocabulary: %s, ...", len(unknown), project.id, some)
        app = make_app(projects, limits=limits, keys=accepted, origins=origins, examples=examples, telemetry=telemetry)
        server = _Server(_configure(app, limits), lambda: announce(_address(listener)))
        with _signals(projects):
            server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """Says when it is ready."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce()


def _configure(app: Any, limits: Limits) -> uvicorn.Config:
    protocol = type("Protocol", (PatientProtocol,), {"seconds": limits.seconds})
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=DRAIN,
    )


def is_loopback(host: str) -> bool:
    """Tell whether a name or address is of this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bind(host: str, port: int) -> socket.socket:
    """Take the port, before models are loaded; nobody is answered yet."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except socket.gaierror:
        raise InputError(f"host must be an interface of this machine. Got {host!r}.") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise InputError(f"port {port} of {host} cannot be listened on: {error.strerror}. Choose another.") from None
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


@contextlib.contextmanager
def _signals(projects: Mapping[str, Project]) -> Iterator[None]:
    """Load models again on SIGHUP; let a stop that was asked for end well."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reloading = threading.Lock()

    def reload() -> None:
        with reloading:
            for project in projects.values():
                try:
                    project.reload()
                    logger.info("%s was loaded again", project.id)
                except Exception as error:
                    logger.error("%s cannot be loaded: %s. The model of before goes on.", project.id, error)

    def hear(number: int, frame: Any) -> None:
        if number == signal.SIGHUP:
            threading.Thread(target=reload, name="labelsense-reload", daemon=True).start()

    before = {number: signal.signal(number, hear) for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
