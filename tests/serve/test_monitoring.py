"""Metrics in Prometheus' text format."""

from __future__ import annotations

import threading

from prometheus_client.parser import text_string_to_metric_families

from subgnn.serve.monitoring import Metrics

NAMES = {
    "subgnn_requests",
    "subgnn_request_seconds",
    "subgnn_waited_seconds",
    "subgnn_inside",
    "subgnn_refused",
    "subgnn_subgraphs",
    "subgnn_run_info",
}


def samples(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    families = text_string_to_metric_families(metrics.text().decode())
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def test_documented_names_are_there_and_nothing_else_of_ours():
    families = {family.name for family in text_string_to_metric_families(Metrics().text().decode())}
    assert {name for name in families if name.startswith("subgnn_")} == NAMES
    assert {"process_resident_memory_bytes", "process_start_time_seconds"} <= families


def test_buckets_and_strange_labels():
    metrics = Metrics()
    for seconds in (0.001, 0.0011, 0.3, 99):
        metrics.request_seconds.labels(route='a "quoted"\\ \n text').observe(seconds)
    label = ("route", 'a "quoted"\\ \n text')
    found = samples(metrics)
    for bound, count in (("0.001", 1), ("0.0025", 2), ("30.0", 3), ("+Inf", 4)):
        assert found["subgnn_request_seconds_bucket", frozenset({label, ("le", bound)})] == count
    assert ("subgnn_request_seconds_created", frozenset({label})) not in found


def test_applications_do_not_share_counts_and_threads_lose_none():
    metrics, other = Metrics(), Metrics()
    counter = metrics.refused.labels(lane="x")
    threads = [threading.Thread(target=lambda: [counter.inc() for _ in range(2000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    key = ("subgnn_refused_total", frozenset({("lane", "x")}))
    assert samples(metrics)[key] == 8000
    assert key not in samples(other)
