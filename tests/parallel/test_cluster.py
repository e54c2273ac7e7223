"""Opening Ray: what is refused, in one line and in bounded time; and a Ray of one's own, which keeps to loopback."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from subgnn.data.formats.folder import write_folder
from subgnn.errors import MissingExtra, UserError
from subgnn.parallel.cluster import RayEngine, open_engine
from subgnn.parallel.engine import LocalEngine
from subgnn.parallel.memory import memory_limit, share
from tests.cli.command import call
from tests.training.examples import dataset


@pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray")
@pytest.mark.parametrize("address", ["here", "ray://127.0.0.1:1", "127.0.0.1:", ":6379", "127.0.0.1:x"])
def test_what_is_no_address(address):
    message = r"--address: '.*' is not an address; accepted: HOST:PORT of the cluster's head, or auto"
    with pytest.raises(UserError, match=message):
        RayEngine(address)


@pytest.fixture
def files(monkeypatch, tmp_path):
    """Work in a folder that has a dataset DIR, since what is not there is refused first."""
    monkeypatch.chdir(tmp_path)
    write_folder(dataset(), tmp_path / "DIR")


@pytest.mark.usefixtures("files")
def test_nobody_answers(monkeypatch):
    ray = pytest.importorskip("ray")

    def refused(**_):
        raise ConnectionError("Failed to connect\n to the cluster")

    monkeypatch.setattr(ray, "init", refused)
    called = call("train", "DIR", "--out", "RUN", "--engine", "ray", "--address", "127.0.0.1:1")
    assert called.code == 2
    assert called.error.startswith("--address: cannot connect to '127.0.0.1:1' (Failed to connect to the cluster)")
    assert len(called.error.splitlines()) == 1


@pytest.mark.usefixtures("files")
def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra):
        RayEngine()
    called = call("train", "DIR", "--out", "RUN", "--engine", "ray")
    assert called.code == 2
    assert called.error == "--engine ray needs the package ray; install it with: pip install 'subgnn[scale]'"


def test_an_address_is_for_ray():
    assert isinstance(open_engine("local", processes=2), LocalEngine)
    with pytest.raises(UserError, match=r"--address: .* needs Ray; add --engine ray"):
        open_engine("local", address="127.0.0.1:9")


def listeners(ports):
    """The addresses, as the kernel writes them, at which somebody listens on these ports."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            address, _, port = line.split()[1].partition(":")
            if line.split()[3] == "0A" and int(port, 16) in ports:
                found.add(address)
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="looks into /proc")
def test_a_ray_of_ones_own(monkeypatch):
    ray = pytest.importorskip("ray")
    with memory_limit("2GB"), RayEngine(processes=1) as engine:
        assert (engine.slots, dict(engine.map(abs, [-1, 2]))) == (1, {-1: 1, 2: 2})
        assert dict(engine.map(share, [1.0])) == {1.0: 2 * 10**9}
        ports = {int(ray.get_runtime_context().gcs_address.rpartition(":")[2])}
        ports |= {ray.nodes()[0][name] for name in ("NodeManagerPort", "ObjectManagerPort", "RuntimeEnvAgentPort")}
        loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
        assert listeners(ports) <= loopback
        assert listeners(ports)
        monkeypatch.setattr("subgnn.parallel.cluster.LEAST", 10**15)
        with pytest.raises(UserError, match=r"--engine ray: the cluster has no .* GB of memory for a job; start Ray"):
            RayEngine()
        assert ray.nodes()[0]["Resources"]["object_store_memory"] == 2e8
    assert not ray.is_initialized()
