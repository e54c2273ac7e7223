"""The command ``subgnn``, and ``python -m subgnn``.

Signals are handled before the slow imports, so that Ctrl-C works from the beginning.
"""

import sys

from subgnn.parallel.interrupts import exit_code, leave_on_signals, raise_on_signals


def run() -> None:
    """Run the command line, and exit with its code."""
    leave_on_signals()
    from subgnn.cli.app import main

    try:
        raise_on_signals()
        code = main()
    except KeyboardInterrupt:
        code = exit_code()
    leave_on_signals()
    sys.exit(code)


if __name__ == "__main__":
    run()
