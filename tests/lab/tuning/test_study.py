"""Studies in a database: several workers share one, and a database that cannot be used is told."""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter
from dataclasses import replace

import optuna
import pytest

from subgnn.errors import DataError, DataWarning, MissingExtra, UserError
from subgnn.lab.tuning import study as studies
from subgnn.lab.tuning import tune as searches
from subgnn.lab.tuning.search_space import recipe_parameters
from subgnn.lab.tuning.study import (
    SearchTask,
    check_storage,
    counted,
    open_storage,
    run_trials_here,
    storage_url,
    without_password,
)
from subgnn.lab.tuning.trial import without_test
from subgnn.parallel.engine import Failure, LocalEngine
from tests.lab.tuning.postgres import NoServer, postgres
from tests.lab.tuning.searches import SPACE, made_up, run_together
from tests.training.examples import dataset, recipe


def task(storage: str, **options) -> SearchTask:
    given = recipe(1)
    return SearchTask(
        without_test(dataset()),
        given,
        SPACE,
        storage,
        "shared",
        {"what": "a test"},
        recipe_parameters(SPACE, given),
        **{"trials": 3, "device": "cpu"} | options,
    )


@pytest.fixture
def lite(tmp_path):
    return f"sqlite:///{tmp_path / 'study.db'}"


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setattr(studies, "run_trial", made_up)


@pytest.fixture(scope="module")
def server():
    try:
        with postgres() as url:
            yield url
    except NoServer as reason:
        pytest.skip(f"no PostgreSQL server: {reason}")


@pytest.mark.slow
def test_two_processes_share_a_study_on_postgresql(server, tmp_path, monkeypatch):
    monkeypatch.setattr(studies, "_run_trial", run_together)
    # Which trials are pruned would depend on which worker is faster.
    options = {"space": SPACE, "storage": server, "device": "cpu", "pruner": "none"}
    found = searches.tune(dataset(), recipe(1), tmp_path / "out", trials=7, processes=2, **options)
    assert found["trials"] == {"complete": 7, "pruned": 0, "failed": 0, "running": 0}
    assert found["storage"].startswith("postgresql+psycopg://")
    study = optuna.load_study(study_name=found["study"], storage=open_storage(storage_url(server, tmp_path)))
    kept = counted(study.get_trials())
    assert len(kept) == 7
    workers = Counter(trial.user_attrs["worker"] for trial in kept)
    assert len(workers) == 2
    assert len({trial.params["training.lr"] for trial in kept}) == 7  # no two drew the same
    with pytest.raises(DataError, match="'cliques/small/few' belongs to a different search"):
        replace(task(storage_url(server, tmp_path)), study=found["study"]).open()
    # Another machine, with a folder of its own, goes on with the study.
    monkeypatch.setattr(studies, "run_trial", made_up)
    again = searches.tune(dataset(), recipe(1), tmp_path / "elsewhere", trials=8, **options)
    assert again["trials"]["complete"] == 8


def test_a_total_is_exact_though_all_begin_at_once(lite, fast):
    """What races: a trial is begun by another between looking and beginning; here by the same process."""
    given = task(lite, trials=2)
    study = given.open()
    with pytest.warns(UserWarning, match="Heartbeat"):
        held = [study.ask() for _ in range(3)]
    with pytest.raises(studies._Surplus):
        studies._objective(given, study, held.pop())
    assert run_trials_here(given) == 0
    for trial in held:
        study.tell(trial, 0.5)
    assert [t.state.name for t in counted(study.get_trials())] == ["COMPLETE", "COMPLETE", "RUNNING"]


def test_a_worker_that_is_gone_is_made_up_for(lite, fast, monkeypatch):
    monkeypatch.setattr(studies, "HEARTBEAT", 1)
    monkeypatch.setattr(studies, "GRACE", 1)
    given = task(lite)
    with pytest.warns(UserWarning, match="Heartbeat"):
        given.open().ask()
    path = lite.removeprefix("sqlite:///")
    with sqlite3.connect(path) as database:
        database.execute("insert into trial_heartbeats (trial_id, heartbeat) values (1, '2020-01-01 00:00:00')")
    assert run_trials_here(given) == 3
    assert Counter(t.state.name for t in given.open().get_trials()) == {"FAIL": 1, "COMPLETE": 3}
    assert len(counted(given.open().get_trials())) == 3


def test_urls(tmp_path):
    assert storage_url("mine.db", tmp_path) == "sqlite:///mine.db"
    assert storage_url("postgresql+psycopg2://u@h/d", tmp_path) == "postgresql+psycopg2://u@h/d"
    assert without_password("postgresql+psycopg://u:secret@h/d") == "postgresql+psycopg://u:***@h/d"


@pytest.mark.parametrize("url", ["postgre://host/db", "://", "nothing://x"])
def test_what_is_no_database(url):
    with pytest.raises(UserError, match=r"--storage: .* is not a database; accepted: the path of a SQLite file, or a"):
        open_storage(url)


def test_a_database_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match=r"the study cannot be stored there \(.*unable to open.*\); is it running"):
        open_storage(f"sqlite:///{tmp_path / 'nowhere' / 'study.db'}")
    with pytest.raises(DataError, match=r"^postgresql\+psycopg://u:\*\*\*@/d\?host=.*cannot be stored there") as caught:
        open_storage(f"postgresql+psycopg://u:secret@/d?host={tmp_path}")
    assert "secret" not in str(caught.value)


def test_a_driver_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"needs the package psycopg; .*subgnn\[postgres\]"):
        open_storage("postgresql+psycopg://u@h/d")
    with pytest.raises(UserError, match="the driver of mysql\\+pymysql is not installed"):
        open_storage("mysql+pymysql://u@h/d")


def search(out, engine, **options):
    return searches.tune(dataset(), recipe(2), out, space=SPACE, device="cpu", engine=engine, **options)


class Counting(LocalEngine):
    def __init__(self):
        super().__init__()
        self.results = []

    def map(self, function, jobs):
        for job, result in super().map(function, jobs):
            self.results.append(result)
            yield job, result


def test_a_job_is_a_trial_and_the_search_goes_on(tmp_path, fast):
    engine, told = Counting(), []
    found = search(tmp_path / "out", engine, trials=2, on_progress=lambda *a: told.append(a))
    assert (found["trials"]["complete"], engine.results) == (2, [1, 1])
    assert told == [("trials", 0, 2), ("trials", 1, 2), ("trials", 2, 2)]
    found = search(tmp_path / "out", engine, trials=3)
    assert (found["trials"]["complete"], engine.results) == (3, [1, 1, 1])
    alone = searches.tune(dataset(), recipe(2), tmp_path / "alone", space=SPACE, device="cpu", trials=3)
    assert found["best"]["parameters"] == alone["best"]["parameters"]


def test_a_lost_trial_is_told_and_a_mistake_ends_the_search(tmp_path, fast):
    class Losing(LocalEngine):
        def map(self, function, jobs):
            yield jobs[0], Failure("lost")
            yield from super().map(function, jobs[1:])

    with pytest.warns(DataWarning, match="a trial was lost: lost; the others continue"):
        assert search(tmp_path / "out", Losing(), trials=2)["trials"]["complete"] == 1

    class Failing(LocalEngine):
        def map(self, function, jobs):
            yield jobs[0], Failure("no database", error=UserError("no database"))

    with pytest.raises(UserError, match="no database"):
        search(tmp_path / "out", Failing(), trials=3)


def test_sqlite_is_for_one_machine(tmp_path, fast):
    engine = LocalEngine()
    check_storage(engine, "sqlite:///study.db")
    engine.machines = {"a", "b"}
    check_storage(engine, "postgresql+psycopg://me@host/db")
    with pytest.raises(UserError, match=r"--storage: a SQLite file cannot be shared by 2 machines \(a, b\); give a"):
        search(tmp_path / "out", engine, trials=1)
    assert not (tmp_path / "out").exists()
