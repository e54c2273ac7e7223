"""``python -m subgnn``."""

from subgnn.cli.app import run

run()
