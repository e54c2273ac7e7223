"""How Ray is imported, reached and kept private.

Whoever reaches the ports of a Ray cluster can run code on it, so it belongs on a private network. The Ray that
:class:`~subgnn.parallel.ray_engine.RayEngine` starts listens on 127.0.0.1 alone, asks for a secret of its own, has no
dashboard, and reports nothing to anybody.
"""

from __future__ import annotations

import os
import socket
from functools import lru_cache
from secrets import token_hex
from typing import Any

from subgnn.errors import MissingExtra, UserError

_SECONDS_TO_ANSWER = 10
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # A cluster that does not answer is told in half a minute, not in a quarter of an hour.
    "RAY_NUM_REDIS_GET_RETRIES": "1",
}
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


def import_ray(*, loopback: bool = False) -> Any:
    """The package, set up so that it tells nobody of its use.

    Args:
        loopback: let a Ray that is started from here listen on 127.0.0.1 alone.

    Raises:
        MissingExtra: where it is not installed.
    """
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if loopback:
        # Ray's own switch for systems where it is kept to one machine; without it, it replaces 127.0.0.1.
        os.environ.setdefault(LOOPBACK, "0")
    try:
        import ray
    except ImportError:
        raise MissingExtra("ray", extra="ray", feature="--engine ray") from None
    return ray


@lru_cache(maxsize=1)
def own_token() -> dict[str, str]:
    """A secret for a Ray of one's own, which keeps other users of this machine out; unless there is one.

    Ray would make one itself, but leave it in the user's home. Versions that know of none ignore it.
    """
    if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH"):
        return {}
    return {"RAY_AUTH_TOKEN": token_hex(32)}


def check_answers(address: str) -> None:
    """Raise :class:`UserError` within seconds unless something that may be Ray answers there; Ray itself takes minutes.

    Ray speaks HTTP/2, in which either side begins with its settings: a frame whose fourth byte is 4.
    """
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    where = "--address"
    if not host or not port.isdecimal() or "/" in host:
        raise UserError(f"'{address}'", where=where, hint="accepted: HOST:PORT of the cluster's head, or auto")
    hint = "is the cluster up (ray status), and its port that of ray start --head --port?"
    try:
        with socket.create_connection((host, int(port)), _SECONDS_TO_ANSWER) as connection:
            connection.sendall(_PREFACE)
            answer = connection.recv(9)
    except (OSError, OverflowError) as error:
        raise UserError(f"no answer from '{address}' ({error})", where=where, hint=hint) from None
    if len(answer) < 4 or answer[3] != 4:
        raise UserError(f"what answers at '{address}' is no Ray cluster", where=where, hint=hint)
