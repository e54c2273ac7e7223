"""A process that runs commands in children of its own and kills them: everything is imported once.

A line of JSON on stdin, ``{"arguments": [...], "delay": seconds or null}``, is answered by one on stdout:
``{"killed": bool, "code": exit code or null, "seconds": ...}``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time

from subgnn.cli.app import main
from subgnn.training import resume


def child(arguments: list[str]) -> None:
    """Run a command and leave, as the interpreter would but without its farewells."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    resume.SECONDS_BETWEEN_SAVES = 0.0
    os._exit(main(arguments))


def run(arguments: list[str], delay: float | None) -> dict[str, object]:
    """Run a command in a child, and kill it after ``delay`` seconds."""
    if threading.active_count() > 1:
        raise RuntimeError("a process with threads must not fork: locks they hold are never released in the child")
    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        child(arguments)
    while delay is None or time.monotonic() - begin < delay:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return {"killed": False, "code": os.waitstatus_to_exitcode(status), "seconds": time.monotonic() - begin}
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return {"killed": code == -signal.SIGKILL, "code": code, "seconds": time.monotonic() - begin}


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(run(asked["arguments"], asked["delay"])), flush=True)
