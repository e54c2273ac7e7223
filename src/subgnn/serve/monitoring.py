"""Metrics for Prometheus, and logs as JSON lines on stderr.

Requests are logged without their bodies and queries: names of nodes may identify a person. Labels of metrics come from
the code and from names of runs, never from requests, so that their number is bounded.
"""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

import prometheus_client as prometheus

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LOGGER = logging.getLogger("subgnn.serve")
prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """The metrics of one application, including memory and start time of the process."""

    def __init__(self) -> None:
        self.registry = prometheus.CollectorRegistry()
        ours: dict[str, Any] = {"registry": self.registry, "namespace": "subgnn"}
        timed = ours | {"buckets": _BUCKETS}
        prometheus.ProcessCollector(registry=self.registry)
        what = "Requests answered, by route, method and status."
        self.requests = prometheus.Counter("requests_total", what, ("route", "method", "status"), **ours)
        what = "Seconds from a request's first byte to its answer, by route."
        self.request_seconds = prometheus.Histogram("request_seconds", what, ("route",), **timed)
        what = "Seconds that work waited for a thread, by lane."
        self.waited_seconds = prometheus.Histogram("waited_seconds", what, ("lane",), **timed)
        self.inside = prometheus.Gauge("inside", "Work waiting or in progress, by lane.", ("lane",), **ours)
        what = "Work refused because the queue was full, by lane."
        self.refused = prometheus.Counter("refused_total", what, ("lane",), **ours)
        what = "Subgraphs in answers, by run and question."
        self.subgraphs = prometheus.Counter("subgraphs_total", what, ("run", "question"), **ours)
        what = "P-value of the latest predictions against training, by run and quantity; low where they differ."
        self.drift = prometheus.Gauge("drift_p_value", what, ("run", "quantity"), **ours)
        self.run_info = prometheus.Gauge("run_info", "1 for each run that is served.", ("run", "method"), **ours)

    def text(self) -> bytes:
        return prometheus.generate_latest(self.registry)


class _JsonLines(logging.Formatter):
    """Formats a record, with its extra ``fields``, as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        found = {"time": stamp.replace("+00:00", "Z"), "level": record.levelname.lower(), "event": record.getMessage()}
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
        logger.handlers, logger.propagate = [] if name == "uvicorn.error" else [handler], name == "uvicorn.error"
        logger.setLevel(logging.INFO)
    logging.getLogger("uvicorn.access").disabled = True


def log(event: str, level: int = logging.INFO, *, error: BaseException | None = None, **fields: Any) -> None:
    """Log one event with its fields."""
    _LOGGER.log(level, event, extra={"fields": fields}, exc_info=error)
