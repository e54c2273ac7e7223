"""The browser that all tests of pages share."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

FLAGS = ["--headless", "--no-sandbox", "--no-first-run"]
FLAGS += [f"--disable-{one}" for one in ("gpu", "quic", "background-networking", "component-update", "sync")]


# Not of the session: while Playwright is there, its event loop runs in this thread, and tests elsewhere run their own.
@pytest.fixture(scope="package")
def browser() -> Iterator[object]:
    """Debian's Chromium where it is there, else Playwright's own; else these tests are skipped."""
    playwright = pytest.importorskip("playwright.sync_api")
    installed = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with playwright.sync_playwright() as here, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        executable = installed or here.chromium.executable_path
        if not Path(executable).exists():
            pytest.skip("there is no Chromium: apt-get install chromium, or playwright install chromium")
        found = here.chromium.launch_persistent_context(profile, executable_path=executable, args=FLAGS)
        yield found
        found.close()
