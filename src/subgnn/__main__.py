"""The command ``subgnn``, also ``python -m subgnn``; it handles signals before the slow imports, for Ctrl-C."""

import gc
import os
import sys

from subgnn.parallel.interrupts import exit_code, leave_on_signals, raise_on_signals


def run() -> None:
    """Run the command line, and exit with its code."""
    usual = gc.get_threshold()

    def collect_as_usual(phase: str, _: dict[str, int]) -> None:
        if phase == "stop":
            gc.callbacks.remove(collect_as_usual)
            gc.set_threshold(*usual)

    gc.callbacks.append(collect_as_usual)
    gc.set_threshold(500_000, *usual[1:])  # objects; collecting before takes an eighth of a prediction
    leave_on_signals()
    threads = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if threads.isdigit() and int(threads):  # numba would set this to its own number when it starts its threads
        os.environ.setdefault("NUMBA_NUM_THREADS", threads)
    from subgnn.cli.app import main

    try:
        raise_on_signals()
        code = main()
    except KeyboardInterrupt:
        code = exit_code()
    leave_on_signals()
    gc.freeze()  # otherwise the interpreter searches all modules for garbage several times before it ends
    sys.exit(code)


if __name__ == "__main__":
    run()
