"""What one request may ask for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds that keep one client from taking the server from the others.

    Attributes
    ----------
    body : int
        Bytes of a request.
    text : int
        Characters of a text.
    batch : int
        Documents of a request.
    seconds : float
        For a request to arrive, and again for it to be answered.
    concurrent : int
        Requests at a time.
    waiting : int
        Documents that wait for a model.
    labels : int
        Labels of an answer, and of the lists of allowed and of blocked ones.
    """

    body: int = 10_000_000
    text: int = 1_000_000
    batch: int = 32
    seconds: float = 30.0
    concurrent: int = 512
    waiting: int = 2048
    labels: int = 1000
