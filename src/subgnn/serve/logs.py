"""Logs, a JSON object a line on stderr.

Requests are logged without their bodies and queries: names of nodes may say something about a person.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from typing import Any

LOGGER = logging.getLogger("subgnn.serve")


class JsonLines(logging.Formatter):
    """A record as one line of JSON; what was given as ``fields`` stands beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        seconds, milliseconds = divmod(int(record.created * 1000), 1000)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        found: dict[str, Any] = {
            "time": f"{stamp}.{milliseconds:03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        found |= getattr(record, "fields", {})
        if record.exc_info:
            found["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(found)


def log_to_stderr(level: int = logging.INFO) -> None:
    """Send the server's own records, and uvicorn's, to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("subgnn.serve", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], False
        logger.setLevel(level)
    for name in ("subgnn.serve", "uvicorn"):
        logging.getLogger(name).addHandler(handler)
    logging.getLogger("uvicorn.error").propagate = True
    logging.getLogger("uvicorn.access").disabled = True


def log(event: str, level: int = logging.INFO, *, error: BaseException | None = None, **fields: Any) -> None:
    """One event with its fields."""
    LOGGER.log(level, event, extra={"fields": fields}, exc_info=error)
