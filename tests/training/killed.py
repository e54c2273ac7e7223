"""A process that runs commands in children of its own, some of which kill themselves: everything is imported once.

A line of JSON on stdin, ``{"arguments": [...], "kill_at": number or null, "folder": ...}``, is answered by one on
stdout: ``{"killed": bool, "code": exit code or null, "changes": number}``. A change is the opening of a file for
writing, a rename, a link, a removal or a new folder, anywhere under the folder; the child kills itself before the
change of that number. Changes are counted rather than seconds: a kill between two of them is as good as any other.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import subgnn.api.train_recipe
import subgnn.reports.run_page  # noqa: F401
from subgnn.cli.app import main
from subgnn.training import run as run_module

_CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate")


class Changes:
    """Counts the changes of files under a folder, and kills the process before a given one."""

    def __init__(self, folder: str, kill_at: int | None) -> None:
        self.folder, self.kill_at, self.count = folder, kill_at, 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook."""
        if event == "open":
            writes = isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        else:
            writes = event in _CHANGES
        if not writes or not isinstance(arguments[0], str | bytes | Path):
            return
        if os.fsdecode(arguments[0]).startswith(self.folder):
            if self.count == self.kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            self.count += 1


def child(arguments: list[str], changes: Changes, report: int) -> None:
    """Run a command and leave, as the interpreter would but without its farewells."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    run_module.SECONDS_BETWEEN_SAVES = 0.0
    sys.addaudithook(changes)
    code = main(arguments)
    os.write(report, str(changes.count).encode())
    os._exit(code)


def run(arguments: list[str], kill_at: int | None, folder: str) -> dict[str, object]:
    """Run a command in a child."""
    if len(list(Path("/proc/self/task").glob("*"))) > 1:
        raise RuntimeError("a process with threads must not fork: locks they hold are never released in the child")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        child(arguments, Changes(folder, kill_at), write)
    os.close(write)
    with os.fdopen(read) as pipe:
        changes = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return {"killed": code == -signal.SIGKILL, "code": code, "changes": int(changes) if changes else None}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(**json.loads(line))), flush=True)
