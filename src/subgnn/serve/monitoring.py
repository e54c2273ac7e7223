"""Metrics for Prometheus, and logs as JSON lines on stderr.

Requests are logged without their bodies and queries: names of nodes may identify a person. Labels of metrics come from
the code and from names of runs, never from requests, so that their number is bounded.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LOGGER = logging.getLogger("subgnn.serve")
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """The metrics of one application; memory and start time of the process are among them.

    Example:
        >>> metrics = Metrics()
        >>> metrics.refused.labels(lane="quick").inc()
        >>> 'subgnn_refused_total{lane="quick"} 1.0' in metrics.text().decode()
        True
    """

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.requests = Counter(
            "subgnn_requests_total",
            "Requests answered, by route, method and status.",
            ("route", "method", "status"),
            registry=registry,
        )
        self.request_seconds = Histogram(
            "subgnn_request_seconds",
            "Seconds from a request's first byte to its answer, by route.",
            ("route",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self.waited_seconds = Histogram(
            "subgnn_waited_seconds",
            "Seconds that work waited for a thread, by lane.",
            ("lane",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self.inside = Gauge("subgnn_inside", "Work waiting or under way, by lane.", ("lane",), registry=registry)
        self.refused = Counter(
            "subgnn_refused_total", "Work refused because the queue was full, by lane.", ("lane",), registry=registry
        )
        self.subgraphs = Counter(
            "subgnn_subgraphs_total",
            "Subgraphs in answers, by run and question.",
            ("run", "question"),
            registry=registry,
        )
        self.run_info = Gauge("subgnn_run_info", "1 for each run that is served.", ("run", "method"), registry=registry)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class _JsonLines(logging.Formatter):
    """Formats a record as one line of JSON; the extra ``fields`` stand beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        seconds, milliseconds = divmod(int(record.created * 1000), 1000)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        found: dict[str, Any] = {
            "time": f"{stamp}.{milliseconds:03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        found |= getattr(record, "fields", {})
        if record.exc_info:
            found["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(found)


def log_to_stderr() -> None:
    """Send the records of this package and of uvicorn to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    for name in ("subgnn.serve", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], False
        logger.setLevel(logging.INFO)
    for name in ("subgnn.serve", "uvicorn"):
        logging.getLogger(name).addHandler(handler)
    logging.getLogger("uvicorn.error").propagate = True
    logging.getLogger("uvicorn.access").disabled = True
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # warns of each malformed form


def log(event: str, level: int = logging.INFO, *, error: BaseException | None = None, **fields: Any) -> None:
    """Log one event with its fields."""
    _LOGGER.log(level, event, extra={"fields": fields}, exc_info=error)
