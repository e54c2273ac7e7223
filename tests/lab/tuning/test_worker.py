"""Trials as jobs of an engine."""

from __future__ import annotations

import pytest

from subgnn.errors import DataWarning, UserError
from subgnn.lab.tuning import worker
from subgnn.lab.tuning.tune import tune
from subgnn.lab.tuning.worker import check_storage
from subgnn.parallel.engine import Failure, LocalEngine
from tests.lab.tuning.searches import SPACE, made_up
from tests.training.examples import dataset, recipe


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    monkeypatch.setattr(worker, "run_trial", made_up)


def search(out, engine, **options):
    return tune(dataset(), recipe(2), out, space=SPACE, device="cpu", engine=engine, **options)


class Counting(LocalEngine):
    def __init__(self):
        super().__init__()
        self.results = []

    def map(self, function, jobs):
        for job, result in super().map(function, jobs):
            self.results.append(result)
            yield job, result


def test_a_job_is_a_trial_and_the_search_goes_on(tmp_path):
    engine, told = Counting(), []
    found = search(tmp_path / "out", engine, trials=2, on_progress=lambda *a: told.append(a))
    assert (found["trials"]["complete"], engine.results) == (2, [1, 1])
    assert told == [("trials", 0, 2), ("trials", 1, 2), ("trials", 2, 2)]
    found = search(tmp_path / "out", engine, trials=3)
    assert (found["trials"]["complete"], engine.results) == (3, [1, 1, 1])
    alone = tune(dataset(), recipe(2), tmp_path / "alone", space=SPACE, device="cpu", trials=3)
    assert found["best"]["parameters"] == alone["best"]["parameters"]


def test_a_lost_trial_is_told_and_a_mistake_ends_the_search(tmp_path):
    class Losing(LocalEngine):
        def map(self, function, jobs):
            yield jobs[0], Failure("lost")
            yield from super().map(function, jobs[1:])

    with pytest.warns(DataWarning, match="a trial is lost: lost; the others continue"):
        assert search(tmp_path / "out", Losing(), trials=2)["trials"]["complete"] == 1

    class Failing(LocalEngine):
        def map(self, function, jobs):
            yield jobs[0], Failure("no database", error=UserError("no database"))

    with pytest.raises(UserError, match="no database"):
        search(tmp_path / "out", Failing(), trials=3)


def test_sqlite_is_for_one_machine(tmp_path):
    engine = LocalEngine()
    check_storage(engine, "sqlite:///study.db")
    engine.machines = {"a", "b"}
    check_storage(engine, "postgresql+psycopg://me@host/db")
    with pytest.raises(UserError, match=r"--storage: a SQLite file cannot be shared by 2 machines \(a, b\); give a"):
        search(tmp_path / "out", engine, trials=1)
    assert not (tmp_path / "out").exists()
