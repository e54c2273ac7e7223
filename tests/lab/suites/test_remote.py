"""Jobs whose workers see no folder of this machine: what goes out, what comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from subgnn.lab.suites import run as runs
from subgnn.lab.suites.run import RemoteEngine
from subgnn.parallel.engine import Failure, LocalEngine
from subgnn.result import read_result
from tests.lab.suites.examples import folder
from tests.results import result


def write(job, dataset):
    """A run, in short."""
    assert dataset.name == "cliques"
    if job["seed"] == 1:
        return None
    out = Path(job["out"])
    out.mkdir()
    result(run=str(out), seed=job["seed"]).save(out)
    (out / "outcome.json").write_text("{}")
    if job["seed"] == 2:
        raise ValueError("no")
    return str(out)


@pytest.fixture
def jobs(tmp_path):
    source = str(folder(tmp_path))
    return [
        {"source": source, "id_base": None, "seed": seed, "out": str(tmp_path / "runs" / str(seed))}
        for seed in range(3)
    ]


def test_files_come_back(jobs, tmp_path, monkeypatch):
    read, written = [], []
    reading, writing = runs.read_dataset, runs.atomic_write
    monkeypatch.setattr(runs, "read_dataset", lambda path, **o: read.append(path) or reading(path, **o))
    monkeypatch.setattr(runs, "atomic_write", lambda path, **o: written.append(path.name) or writing(path, **o))
    left = tmp_path / "runs" / "0" / "last.safetensors"
    left.parent.mkdir(parents=True)
    left.touch()
    found = [(job["seed"], result) for job, result in RemoteEngine(LocalEngine()).map(write, jobs)]
    (_, there), (_, nothing), (_, failure) = found
    assert (nothing, failure.message) == (None, "ValueError: no")
    assert isinstance(failure, Failure)
    assert not Path(there).exists()
    assert {path.name for path in (tmp_path / "runs" / "0").iterdir()} == {"run.json", "outcome.json"}
    assert read_result(tmp_path / "runs/0") == result(run=jobs[0]["out"])
    assert not (tmp_path / "runs" / "1").exists()
    assert not (tmp_path / "runs" / "2").exists()
    assert read == [tmp_path / "cliques"]
    assert written == ["run.json", "outcome.json"]
