"""Benchmark suites: datasets, models, a protocol and published numbers in a file; run over seeds, and reported.

:mod:`~subgnn.lab.suites.spec` reads a suite, :mod:`~subgnn.lab.suites.run` runs it and
:mod:`~subgnn.lab.suites.report` writes its report.
"""

from pathlib import Path

FOLDER = Path(__file__).parent


def suite_names() -> list[str]:
    """The suites that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))
