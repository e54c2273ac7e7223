"""A PostgreSQL server for a test, on a socket in a folder of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SECONDS = 30.0


class NoServer(Exception):
    """Why none could be started."""


def _binaries() -> list[Path]:
    """Folders with initdb and postgres: of the package pgserver, of the system, of Debian's packages."""
    found = importlib.util.find_spec("pgserver")
    folders = [Path(place) / "pginstall" / "bin" for place in (found.submodule_search_locations or [])] if found else []
    on_path = shutil.which("initdb")
    folders += [Path(on_path).parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return [folder for folder in folders if all((folder / name).exists() for name in ("initdb", "postgres"))]


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a server that lives as long as the block.

    PostgreSQL refuses to run as root: then it runs as ``nobody``.
    """
    user = "nobody" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # short, as the path of a socket must be
    reasons = ["neither the package pgserver nor the system has initdb and postgres"]
    try:
        if user is not None:
            shutil.chown(folder, user)
        for place in _binaries():
            data = folder / f"data{len(reasons)}"
            try:
                made = subprocess.run(
                    [place / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
                    user=user, cwd=folder, capture_output=True, text=True, timeout=120,
                )  # fmt: skip
            except OSError as error:
                reasons.append(f"{place}: {error}")
                continue
            if made.returncode:
                reasons.append(f"{place}: {made.stderr.strip()[:200]}")
                continue
            options = ["-k", folder, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB"]
            with (folder / "log").open("wb") as log:
                server = subprocess.Popen([place / "postgres", "-D", data, *options], user=user, cwd=folder, stderr=log)
            try:
                _wait(server, folder)
                yield f"postgresql://postgres@/postgres?host={folder}"
            finally:
                server.send_signal(signal.SIGINT)  # ends it at once, whoever is still connected
                server.wait(_SECONDS)
            return
        raise NoServer(reasons[-1])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(server: subprocess.Popen[bytes], folder: Path) -> None:
    until = time.monotonic() + _SECONDS
    while "ready to accept connections" not in (folder / "log").read_text(errors="replace"):
        if server.poll() is not None or time.monotonic() > until:
            raise NoServer((folder / "log").read_text(errors="replace")[-200:])
        time.sleep(0.05)
