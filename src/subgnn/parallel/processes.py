"""A function run in several local processes at once, with a Ctrl-C that reaches each of them once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import connection, get_context
from typing import Any, TypeVar

from subgnn.errors import DataWarning, UserError
from subgnn.parallel.interrupts import raise_on_signals
from subgnn.parallel.memory import share_of_each, within

Task = TypeVar("Task")
_SECONDS_BETWEEN_LOOKS = 1.0
_GRACE_SECONDS = 5.0


def run_processes(
    function: Callable[[Task], int], tasks: Sequence[Task], *, while_waiting: Callable[[], None] | None = None
) -> list[int]:
    """Run a module's function on each task, every one in a fresh process, and return what they return.

    Each process has an equal share of the memory limit.

    Args:
        function: importable by name; its tasks and results must be picklable.
        while_waiting: called about every second.

    Raises:
        UserError: where one of them did.
        RuntimeError: where one of them failed in another way; its traceback is the message.
        KeyboardInterrupt: after Ctrl-C, once all have ended.
    """
    context, memory = get_context("spawn"), share_of_each(max(1, len(tasks)))
    started = []
    for task in tasks:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_child, args=(function, task, sender, memory))
        process.start()
        sender.close()
        started.append((process, receiver))
    processes = [process for process, _ in started]
    try:
        while alive := [process.sentinel for process in processes if process.is_alive()]:
            connection.wait(alive, timeout=_SECONDS_BETWEEN_LOOKS)
            if while_waiting is not None:
                while_waiting()
    except KeyboardInterrupt:
        for process in processes:
            if process.is_alive() and process.pid is not None:
                os.kill(process.pid, signal.SIGINT)
        for process in processes:
            process.join()
        raise
    return [_outcome(receiver, process.exitcode) for process, receiver in started]


def _child(function: Callable[[Any], int], task: Any, sender: connection.Connection, memory: int) -> None:
    """Run the function, and send how it ended."""
    # In a group of its own, so that Ctrl-C in a terminal reaches the parent alone, which passes it on.
    os.setpgrp()
    end_with_parent()
    warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
    try:
        with within(memory):
            done = function(task)
        how: tuple[str, Any] = "done", done
    except KeyboardInterrupt:
        how = "interrupted", None
    except UserError as error:
        how = "refused", (error.what, error.where, error.hint)
    except Exception:
        how = "failed", traceback.format_exc()
    with suppress(BrokenPipeError):  # the parent is gone
        sender.send(how)


def end_with_parent() -> None:
    """Let this process end in an orderly way on signals, and when the process that started it is gone.

    For the start of a process of :mod:`multiprocessing`. Work that does not end by itself is given up after a while.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    raise_on_signals()
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(_GRACE_SECONDS)
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _outcome(receiver: connection.Connection, code: int | None) -> int:
    try:
        how, what = receiver.recv()
    except EOFError:
        words = f"a worker was killed (exit code {code}), and the trial it had begun is lost; the others went on"
        warnings.warn(f"{words}. The same command again makes up for it", DataWarning, stacklevel=3)
        return 0
    if how == "refused":
        raise UserError(what[0], where=what[1], hint=what[2])
    if how == "interrupted":
        raise KeyboardInterrupt
    if how == "failed":
        raise RuntimeError(what)
    return int(what)
