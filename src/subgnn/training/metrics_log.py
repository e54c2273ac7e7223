"""metrics.jsonl: a line an epoch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from subgnn.errors import DataError
from subgnn.storage.files import atomic_write


class MetricsLog:
    """Lines that can be read while the run goes on; what they are is also in the run's progress.

    So a run that goes on writes the file anew, whatever became of it: half a line, or lines of epochs not saved.

    Args:
        text: the lines of the epochs that are done.
    """

    def __init__(self, path: Path, text: str = "") -> None:
        self.path, self.text = path, text
        with atomic_write(path, overwrite=True) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def append(self, record: dict[str, Any]) -> None:
        """Add an epoch."""
        line = json.dumps(record) + "\n"
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            what = f"cannot be written ({error.strerror or error})"
            raise DataError(what, where=str(self.path), hint="make room there, then go on with --resume") from error
        self.text += line
