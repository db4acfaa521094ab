"""The process: models are loaded, a port is opened, signals are heard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import uvicorn

from labelsense.data.subjects import Subjects
from labelsense.serve.app import make_app
from labelsense.serve.limits import Limits
from labelsense.serve.project import Project


def serve(
    models: Mapping[str, Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    subjects: Mapping[str, Subjects] | None = None,
    examples: Mapping[str, Sequence[Mapping[str, str]]] | None = None,
    limits: Limits | None = None,
) -> None:
    """Serve models until the process is told to stop.

    Parameters
    ----------
    models : dict
        The model files by the names they are served under.
    host, port : str, int
        Where to listen.
    subjects : dict, optional
        Vocabularies, by the names of the models.
    examples : dict, optional
        Texts to try on the page, by the names of the models.
    limits : Limits, optional
    """
    known = subjects or {}
    projects = {name: Project(name, path, known.get(name), limits=limits) for name, path in models.items()}
    app = make_app(projects, limits=limits, examples=examples)
    config = uvicorn.Config(app, host, port, access_log=False, server_header=False, lifespan="on")
    uvicorn.Server(config).run()
