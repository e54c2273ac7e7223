"""One writer for a folder, and what killed writers left behind."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from subgnn.data.formats.folder import write_folder
from subgnn.errors import DataError, DataWarning
from subgnn.parallel.locks import LOCK, close_lock, host_name, locked_folder, open_lock
from subgnn.storage.files import atomic_write, remove_leftovers, scratch_folder
from subgnn.training.options import RunOptions
from subgnn.training.run_dir import claim_run
from tests.cli.command import call
from tests.training.examples import dataset, recipe

HOLD = """
import sys, time
from pathlib import Path
from subgnn.parallel.locks import *
from subgnn.storage.files import *
with eval(sys.argv[1]) as held:
    if isinstance(held, Path) and held.suffix == ".part":
        held.write_text("half")
    print("held", flush=True)
    time.sleep(300)
"""


class Holder:
    """A process that is within a block until it is killed."""

    def __init__(self, block: str) -> None:
        self._process = subprocess.Popen([sys.executable, "-c", HOLD, block], stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid

    def __enter__(self) -> Holder:
        assert self._process.stdout.readline() == "held\n"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_lock_whose_file_was_removed_meanwhile_is_taken_anew(tmp_path, monkeypatch):
    lock = tmp_path / "x.lock"
    real, tries = fcntl.flock, []

    def late(file, how):
        if not tries:
            lock.unlink()
        tries.append(1)
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    file = open_lock(lock)
    assert lock.exists()
    assert open_lock(lock) is None
    close_lock(file, lock)
    assert (len(tries), lock.exists()) == (3, False)


def test_a_folder_has_one_writer(tmp_path):
    out = tmp_path / "a" / "run"
    with Holder(f"locked_folder(Path({str(out)!r}))") as other:
        message = rf"run: another process \(pid {other.pid} on host {host_name()}\) is writing this run; wait until"
        with pytest.raises(DataError, match=message), locked_folder(out):
            pass
        assert names(out) == [LOCK]
    with locked_folder(out):
        assert names(out) == [LOCK]
        with locked_folder(out) as inner:  # a block within the block
            assert inner is None
        assert names(out) == [LOCK]
        (out / "file").write_text("x")
    assert names(out) == ["file"]


def test_a_folder_that_another_process_makes_just_now_is_being_written(tmp_path, monkeypatch):
    out, held = tmp_path / "run", []

    def then_made(look):
        def looked(path, *args, **options):
            try:
                return look(path, *args, **options)
            finally:
                if Path(path) == out and not held:
                    held.append(None)  # only the first look is followed by another process
                    out.mkdir()
                    held[0] = open_lock(out / LOCK)

        return looked

    monkeypatch.setattr(Path, "stat", then_made(Path.stat))
    monkeypatch.setattr(os, "scandir", then_made(os.scandir))
    options = RunOptions(recipe(), out, resume=True)
    with pytest.raises(DataError, match="is writing this run"), claim_run(options):
        pass
    close_lock(held[0], out / LOCK)


def test_a_file_has_one_maker(tmp_path):
    out = tmp_path / "x.safetensors"
    write_folder(dataset(), tmp_path / "data")
    with Holder(f"locked_file(Path({str(out)!r}), doing='')") as other:
        called = call("pretrain", tmp_path / "data", "--out", out)
        assert called.code == 2
        assert f"another process (pid {other.pid} on" in called.error
        assert not out.exists()


def test_a_folder_that_stays_empty_is_gone(tmp_path):
    with locked_folder(tmp_path / "a" / "run"):
        pass
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "kind", "message"),
    [
        (errno.ENOLCK, DataWarning, "the file system has no locks"),
        (errno.EACCES, DataError, r"cannot be written \(Permission denied\)"),
    ],
)
def test_without_locks(tmp_path, monkeypatch, number, kind, message):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    check = pytest.warns if issubclass(kind, Warning) else pytest.raises
    with check(kind, match=message), locked_folder(tmp_path / "run"):
        pass


@pytest.mark.parametrize("kind", ["atomic_write", "scratch_folder"])
def test_what_a_killed_process_left_goes_and_what_a_living_one_has_stays(tmp_path, kind):
    block = f"{kind}(Path({str(tmp_path / 'x.bin')!r}))"
    suffix = {"atomic_write": ".part", "scratch_folder": ".scratch"}[kind]
    with Holder(block):
        pass
    assert sorted(Path(name).suffix for name in names(tmp_path)) == [".lock", suffix]
    with Holder(block) as living:
        assert sorted(Path(name).suffix for name in names(tmp_path)) == [".lock", suffix]  # those of the dead are gone
        assert all(name.startswith(f".x.bin.{host_name()}.{living.pid}.") for name in names(tmp_path))
        with scratch_folder(tmp_path / "x.bin"), atomic_write(tmp_path / "x.bin") as temporary:
            temporary.write_text("whole")
        assert len(names(tmp_path)) == 3
    with scratch_folder(tmp_path / "y.bin"):  # of another name
        pass
    assert len(names(tmp_path)) == 3
    remove_leftovers(tmp_path)
    assert names(tmp_path) == ["x.bin"]


def test_the_leftovers_of_another_machine_stay(tmp_path):
    kept = [f".x.elsewhere{host_name()}.1.0123abcd.{suffix}" for suffix in ("lock", "part")]
    for name in kept:
        (tmp_path / name).write_text("")
    remove_leftovers(tmp_path)
    assert names(tmp_path) == kept


@pytest.mark.parametrize("replaced", [False, True])
def test_a_folder_that_was_set_aside_comes_back(tmp_path, replaced):
    beginning = f".data.{host_name()}.1.0123abcd"
    (tmp_path / f"{beginning}.lock").write_text("")
    for suffix in ("old", "part"):
        (tmp_path / f"{beginning}.{suffix}").mkdir()
        (tmp_path / f"{beginning}.{suffix}" / suffix).write_text("")
    if replaced:
        (tmp_path / f"{beginning}.part").rename(tmp_path / "data")
    with pytest.raises(DataError, match="data: exists already"), atomic_write(tmp_path / "data"):
        pass
    assert names(tmp_path) == ["data"]
    assert names(tmp_path / "data") == ["part" if replaced else "old"]
