import platform

import numba
import numpy as np

from subgnn import __version__
from tests.cli.command import call


def test_json():
    called = call("info", "--json")
    assert (called.code, called.err) == (0, "")
    found = called.json
    assert (found["subgnn"], found["python"]) == (__version__, platform.python_version())
    assert found["packages"]["numpy"] == np.__version__
    assert found["devices"][0] == "cpu"
    assert found["threads"]["numba"] == numba.get_num_threads()
    assert found["threads"]["cpus"] >= 1


def test_table():
    called = call("info")
    assert (called.code, called.err) == (0, "")
    for word in (__version__, platform.python_version(), "numpy", "torch", "devices", "threads", "cache"):
        assert word in called.out


def test_a_package_that_is_not_there(monkeypatch):
    monkeypatch.setattr("subgnn.cli.info._PACKAGES", ("numpy", "no-such-package"))
    assert call("info", "--json").json["packages"] == {"numpy": np.__version__, "no-such-package": "not installed"}


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path / "mine"))
    assert call("info", "--json").json["cache"] == str(tmp_path / "mine")
    monkeypatch.delenv("SUBGNN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert call("info", "--json").json["cache"] == str(tmp_path / "subgnn")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert call("info", "--json").json["cache"] == str(tmp_path / "home" / ".cache" / "subgnn")
    assert list(tmp_path.iterdir()) == []
