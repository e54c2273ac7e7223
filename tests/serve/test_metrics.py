"""Prometheus' text format."""

from __future__ import annotations

import re
import threading

from subgnn.serve.metrics import ABOUT, Metrics, resident_bytes


def numbers(text: str) -> dict[str, float]:
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line[0] != "#"}


def test_counters_gauges_and_histograms():
    metrics = Metrics()
    metrics.count("subgnn_requests_total", route="/a", status="200")
    metrics.count("subgnn_requests_total", 2, route="/a", status="200")
    metrics.gauge("subgnn_inside", 3, lane="quick")
    metrics.gauge("subgnn_inside", 1, lane="quick")
    for seconds in (0.001, 0.0011, 0.3, 99):
        metrics.observe("subgnn_request_seconds", seconds, route="/a")
    found = numbers(metrics.text())
    assert found['subgnn_requests_total{route="/a",status="200"}'] == 3
    assert found['subgnn_inside{lane="quick"}'] == 1
    buckets = [value for name, value in found.items() if name.startswith("subgnn_request_seconds_bucket")]
    assert buckets == sorted(buckets)
    assert found['subgnn_request_seconds_bucket{route="/a",le="0.001"}'] == 1
    assert found['subgnn_request_seconds_bucket{route="/a",le="0.0025"}'] == 2
    assert found['subgnn_request_seconds_bucket{route="/a",le="30.0"}'] == 3
    assert found['subgnn_request_seconds_bucket{route="/a",le="+Inf"}'] == 4
    assert found['subgnn_request_seconds_count{route="/a"}'] == 4
    assert abs(found['subgnn_request_seconds_sum{route="/a"}'] - 99.3021) < 1e-6


def test_every_line_is_of_the_format_and_strange_labels_are_escaped():
    metrics = Metrics()
    for name, (kind, _) in ABOUT.items():
        if kind == "histogram":
            metrics.observe(name, 1, label='a "quoted"\\ \n text')
        else:
            metrics.gauge(name, 1.5, label='a "quoted"\\ \n text')
    line = re.compile(
        r'(# (HELP|TYPE) [a-z_]+ .+)|([a-z_]+(\{[a-z]+="([^"\\\n]|\\.)*"(,[a-z]+="[^"]*")*\})? [0-9.e+]+)'
    )
    lines = metrics.text().splitlines()
    assert all(line.fullmatch(each) for each in lines)
    assert sum(each.startswith("# TYPE") for each in lines) == len(ABOUT)


def test_threads_lose_no_count():
    metrics = Metrics()
    threads = [
        threading.Thread(target=lambda: [metrics.count("subgnn_refused_total", lane="x") for _ in range(2000)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numbers(metrics.text())['subgnn_refused_total{lane="x"}'] == 8000


def test_memory_is_told():
    assert resident_bytes() > 10_000_000
