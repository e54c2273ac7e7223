"""Counters, gauges and histograms in Prometheus' text format."""

from __future__ import annotations

import resource
import threading
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

ABOUT = {
    "subgnn_requests_total": ("counter", "Requests answered, by route, method and status."),
    "subgnn_request_seconds": ("histogram", "From a request's first byte to its answer, by route."),
    "subgnn_waited_seconds": ("histogram", "How long work waited for a thread, by lane."),
    "subgnn_inside": ("gauge", "Work that waits or is done, by lane."),
    "subgnn_refused_total": ("counter", "Work refused because too much was waiting, by lane."),
    "subgnn_subgraphs_total": ("counter", "Subgraphs answered about, by run and question."),
    "subgnn_run_info": ("gauge", "1 for each run that is served."),
    "process_resident_memory_bytes": ("gauge", "Memory in use."),
    "process_start_time_seconds": ("gauge", "When the server started, seconds since 1970."),
}

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """All numbers of a server; safe to use from any thread.

    Names are those of :data:`ABOUT`. Labels come from the code and from names of runs, never from requests, so that
    their number is bounded.

    Example:
        >>> metrics = Metrics()
        >>> metrics.count("subgnn_refused_total", lane="quick")
        >>> print(metrics.text().splitlines()[-1])
        subgnn_refused_total{lane="quick"} 1
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, dict[Labels, float]] = {}
        self._histograms: dict[str, dict[Labels, list[float]]] = {}

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        with self._lock:
            values = self._values.setdefault(name, {})
            key = tuple(labels.items())
            values[key] = values.get(key, 0) + amount

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        with self._lock:
            self._values.setdefault(name, {})[tuple(labels.items())] = value

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Add to a histogram."""
        with self._lock:
            # Counts of the buckets, the last without an upper bound; then the sum.
            numbers = self._histograms.setdefault(name, {}).setdefault(
                tuple(labels.items()), [0.0] * (len(_BUCKETS) + 2)
            )
            numbers[bisect_left(_BUCKETS, seconds)] += 1
            numbers[-1] += seconds

    def text(self) -> str:
        """All of them, as Prometheus reads them."""
        with self._lock:
            return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        for name, (kind, about) in ABOUT.items():
            if name in self._values or name in self._histograms:
                yield f"# HELP {name} {about}"
                yield f"# TYPE {name} {kind}"
            for labels, value in self._values.get(name, {}).items():
                yield f"{name}{_braces(labels)} {value:.15g}"
            for labels, numbers in self._histograms.get(name, {}).items():
                total = 0.0
                for bound, number in zip((*_BUCKETS, "+Inf"), numbers, strict=False):
                    total += number
                    yield f"{name}_bucket{_braces((*labels, ('le', str(bound))))} {total:.15g}"
                yield f"{name}_sum{_braces(labels)} {numbers[-1]:.9g}"
                yield f"{name}_count{_braces(labels)} {total:.15g}"


def _braces(labels: Labels) -> str:
    escaped = (f'{name}="{_escaped(value)}"' for name, value in labels)
    return "{" + ",".join(escaped) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resident_bytes() -> int:
    """Memory in use by this process; 0 where that cannot be told."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * resource.getpagesize()
