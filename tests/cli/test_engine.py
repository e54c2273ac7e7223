"""What is printed while Ray's workers are at work is no result."""

from __future__ import annotations

import sys
from contextlib import contextmanager

import pytest

from subgnn.cli.options import EngineOptions
from subgnn.parallel import cluster as ray_cluster


@pytest.mark.parametrize("kind", ["local", "ray"])
def test_stdout_is_for_results(monkeypatch, capsys, kind):
    asked = []

    @contextmanager
    def opening(name, **options):
        asked.append((name, options))
        yield "workers"

    monkeypatch.setattr(ray_cluster, "open_engine", opening)
    with EngineOptions(kind, "there").open(processes=3, device="cuda") as workers:
        print("a machine is lost")
    print("result", file=sys.stdout)
    out, err = capsys.readouterr()
    assert asked == [(kind, {"address": "there", "processes": 3, "gpus": 0.25})]
    if kind == "ray":
        assert (workers, out, err) == ("workers", "result\n", "a machine is lost\n")
    else:
        assert (workers, out, err) == (None, "a machine is lost\nresult\n", "")
