"""Suites: a claim as a file; datasets, models, protocol, study, and the published numbers with their source."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def suite_names() -> list[str]:
    """The suites that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))
