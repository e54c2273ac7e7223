"""Set-up of all tests."""

import os
import secrets
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest

# Before torch and numba are imported: tests run side by side, and waiting threads would spin against each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Some sandboxes announce AMX and forbid it: a product in bfloat16 would end the process (subgnn.training.devices).
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
# Before Ray is imported: it keeps to 127.0.0.1, tells nobody, and leaves no secret in the user's home.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))

# Many tests compare runs bit for bit, which a GPU does not give: only `make test-gpu` shows them one.
if os.environ.get("SUBGNN_TEST_GPU") != "1":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

# Processes of tests would compile the package again each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell starts background jobs with Ctrl-C ignored, and nohup with SIGHUP, which the processes of tests would inherit.
for ignored, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, handler)


def _refuse_own_process(send: Callable[..., None], own: int = os.getpid()) -> Callable[..., None]:
    """A signal that a test sends to its own process may arrive in pytest, in hypothesis or in another test."""

    def guarded(*arguments: int) -> None:
        if os.getpid() == own and arguments[-1] and (len(arguments) == 1 or arguments[0] == own):
            raise AssertionError("a test sends a signal to its own process; call the handler, or use a child process")
        send(*arguments)

    return guarded


# A deadline would depend on the load of the machine, and on what is compiled already.
hypothesis.settings.register_profile("subgnn", deadline=None)
hypothesis.settings.load_profile("subgnn")

os.kill = _refuse_own_process(os.kill)
signal.raise_signal = _refuse_own_process(signal.raise_signal)


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of a parametrised test as slow that come after those that ``quick`` counts."""
    seen: Counter[str] = Counter()
    for item in items:
        if (quick := item.get_closest_marker("quick")) is not None:
            name = item.nodeid.partition("[")[0]
            seen[name] += 1
            if seen[name] > quick.args[0]:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def databases_without_waiting() -> Iterator[None]:
    """Let no database wait for the disk after each write: only a machine that loses power would lose anything."""
    from sqlalchemy import Engine, event

    def set_up(connection: Any, _: Any) -> None:
        if type(connection).__module__.startswith("sqlite3"):
            connection.execute("PRAGMA synchronous = OFF")

    event.listen(Engine, "connect", set_up)
    yield
    event.remove(Engine, "connect", set_up)


@pytest.fixture(scope="session", autouse=True)
def _cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the user's cache out of the tests, and the tests out of it."""
    before = os.environ.get("SUBGNN_CACHE")
    os.environ["SUBGNN_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["SUBGNN_CACHE"]
    else:
        os.environ["SUBGNN_CACHE"] = before


def pytest_make_parametrize_id(val, argname):
    """Name long bytes by their argument: packed files hold the time, and workers must collect the same names."""
    return argname if isinstance(val, bytes) and len(val) > 40 else None
