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


def _binaries() -> Path:
    """A folder with initdb and postgres: of the package pgserver, of the system, of Debian's packages."""
    package, on_path = importlib.util.find_spec("pgserver"), shutil.which("initdb")
    folders = [Path(place) / "pginstall" / "bin" for place in (package and package.submodule_search_locations) or ()]
    folders += [Path(on_path).parent] if on_path else []
    for folder in [*folders, *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]:
        if all(os.access(folder / name, os.X_OK) for name in ("initdb", "postgres")):
            return folder
    raise NoServer("neither the package pgserver nor the system has initdb and postgres")


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a server that lives as long as the block; as root, which PostgreSQL refuses, it runs as ``nobody``."""
    place, user = _binaries(), "nobody" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # short, as the path of a socket must be
    try:
        if user is not None:
            shutil.chown(folder, user)
        data, log = folder / "data", folder / "log"
        create = [place / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
        made = subprocess.run(create, user=user, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
        if made.returncode:
            raise NoServer(f"{place}: {made.stderr.strip()[:200]}")
        options = ["-k", folder, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB"]
        with log.open("wb") as file:
            server = subprocess.Popen([place / "postgres", "-D", data, *options], user=user, cwd=folder, stderr=file)
        try:
            until = time.monotonic() + _SECONDS
            while "ready to accept connections" not in log.read_text(errors="replace"):
                if server.poll() is not None or time.monotonic() > until:
                    raise NoServer(log.read_text(errors="replace")[-200:])
                time.sleep(0.05)
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            server.send_signal(signal.SIGINT)  # ends it at once, whoever is still connected
            server.wait(_SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
