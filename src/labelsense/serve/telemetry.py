"""What is counted, in the words of Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = tuple(2**i for i in range(9))


class Telemetry:
    """Counts requests and predictions; each application has its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        registry = self._registry
        self._requests = Counter("labelsense_requests", "Requests answered.", ["endpoint", "status"], registry=registry)
        self._seconds = Histogram(
            "labelsense_request_seconds", "From request to answer.", ["endpoint"], buckets=SECONDS, registry=registry
        )
        self._batches = Histogram(
            "labelsense_batch_documents", "Documents predicted together.", ["project"], buckets=SIZES, registry=registry
        )
        self._gauges: dict[str, Gauge] = {}

    def count(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(endpoint, str(status)).inc()
        self._seconds.labels(endpoint).observe(seconds)

    def batches(self, project: str) -> Callable[[int], None]:
        """Return what counts the documents that a project predicts together."""
        observe: Callable[[int], None] = self._batches.labels(project).observe
        return observe

    def watch(self, gauges: Mapping[str, tuple[str, Callable[[], float]]], project: str) -> None:
        """Show numbers of a project whenever somebody looks."""
        for name, (about, value) in gauges.items():
            if name not in self._gauges:
                self._gauges[name] = Gauge(name, about, ["project"], registry=self._registry)
            self._gauges[name].labels(project).set_function(value)

    def render(self) -> tuple[bytes, str]:
        """Return all numbers, and their content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST
