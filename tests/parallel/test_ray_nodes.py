"""A cluster of several Ray nodes on this machine: equal results, byte for byte, also where a node is killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numba
import numpy as np
import pytest
import torch

from subgnn.data.formats.folder import write_folder
from subgnn.errors import UserError
from subgnn.inference import predictor as pieces
from subgnn.parallel import cluster as ray_cluster
from subgnn.parallel.cluster import RayEngine
from subgnn.parallel.engine import Failure
from tests.cli.command import call
from tests.pages import ROOT
from tests.training.examples import dataset

pytestmark = pytest.mark.slow

ray = pytest.importorskip("ray")
NODE = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 100 * 2**20, "include_dashboard": False}


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        # What the nodes inherit: where the tests are, so that jobs can be of them.
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        started = Cluster(initialize_head=True, head_node_args=NODE)
        try:
            started.add_node(**NODE)
            with RayEngine(started.address) as engine:
                yield started, engine
        finally:
            started.shutdown()


@pytest.fixture
def engine(cluster):
    return cluster[1]


def work(job):
    """What a job says."""
    what, value = job
    if what == "square":
        return value * value
    if what == "shared":  # not fetched by the job: Ray had it there
        return type(value).__name__, bool(value.get().flags.writeable), int(value.get().sum())
    if what == "resources":
        return ray.get_runtime_context().get_assigned_resources()
    if what == "threads":
        return torch.get_num_threads(), numba.get_num_threads()
    if what == "linger":
        with Path(value).open("a") as file:
            file.write("x")
        time.sleep(60)
    if what == "lock":
        return threading.Lock()
    if what == "mistake":
        raise UserError("no", where="here", hint="say yes")
    with Path(value).open("a") as file:
        file.write("x")
    os.kill(os.getpid(), signal.SIGKILL)
    return None


def test_jobs(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_cluster, "RETRIES", 1)
    shared = engine.share(np.arange(10**6))
    jobs = [("square", 3), ("mistake", 0), ("die", str(tmp_path / "died")), ("shared", shared), ("lock", 0)]
    jobs += [("resources", 0), ("threads", 0)]
    found = dict(engine.map(work, jobs))
    assert found[jobs[0]] == 9
    assert (found[jobs[1]].message, isinstance(found[jobs[1]].error, UserError)) == ("here: no; say yes", True)
    assert isinstance(found[jobs[2]], Failure)
    assert found[jobs[2]].message.startswith("the job was lost on the cluster 2 times: ")
    assert (tmp_path / "died").read_text() == "xx"
    assert found[jobs[3]] == ("Held", False, sum(range(10**6)))
    assert found[jobs[4]].message.startswith("a worker failed: ")
    assert "pickle" in found[jobs[4]].message
    assert found[jobs[5]] == {"CPU": 1.0, "memory": float(engine.memory)}
    assert found[jobs[6]] == (1, 1)
    assert engine.slots == 2


def test_a_process_that_is_connected_stays_so(cluster):
    started, engine = cluster
    RayEngine(started.address).close()
    assert dict(engine.map(abs, [-1])) == {-1: 1}
    with pytest.raises(UserError, match="connected to a different cluster"):
        RayEngine("127.0.0.1:9")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    write_folder(dataset(), folder / "folder")
    assert call("data", "convert", folder / "folder", "--out", folder / "data.subgnn").code == 0
    return folder


def test_predict(cluster, run, monkeypatch, tmp_path):
    monkeypatch.setattr(pieces, "BATCH", 8)
    assert call("train", run / "folder", "--recipe", "bag", "--out", tmp_path / "bag").code == 0
    for name, where in (("local", ()), ("ray", ("--address", cluster[0].address))):
        words = ("--subgraphs", run / "folder" / "subgraphs.tsv", "--out", tmp_path / f"{name}.tsv")
        called = call("predict", tmp_path / "bag", *words, "--engine", name, *where)
        assert called.code == 0, called.err
    assert (tmp_path / "local.tsv").read_bytes() == (tmp_path / "ray.tsv").read_bytes()


def test_auto(cluster, run, tmp_path):
    for name, where in (("local", ("--processes", "1")), ("ray", ("--engine", "ray", "--address", cluster[0].address))):
        words = ("--set", "auto.only=['bag','topology']", "--out", tmp_path / name)
        called = call("train", run / "folder", *words, *where)
        assert called.code == 0, called.err
        assert "warning" not in called.err
    local, ray = (tmp_path / name / "checkpoint.safetensors" for name in ("local", "ray"))
    assert local.read_bytes() == ray.read_bytes()


OUT_OF_MEMORY = """
import sys
from subgnn.parallel.cluster import RayEngine
from tests.parallel.test_ray_nodes import work
with RayEngine(processes=1) as engine:
    print(dict(engine.map(work, [("linger", sys.argv[1])]))["linger", sys.argv[1]].message)
"""


def test_a_job_that_runs_out_of_memory_is_not_retried_without_limit(tmp_path):
    # Ray's monitor takes any use of memory for too much, and ends the job each time.
    given = {"RAY_memory_usage_threshold": "0.001", "RAY_memory_monitor_refresh_ms": "100"}
    given |= {"RAY_task_oom_retry_delay_base_ms": "10", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, "-c", OUT_OF_MEMORY, str(tmp_path / "ran")]
    env = {**os.environ, **given}
    found = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=True)
    assert "the job's machine ran out of memory 4 times; start Ray with fewer cores" in found.stdout
    assert not (tmp_path / "ran").exists() or len((tmp_path / "ran").read_text()) <= 4
