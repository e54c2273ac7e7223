"""Access to the server: tokens, hosts, origins, and the security headers of answers.

- On a loopback address everybody on the machine has access, but not the pages of other sites in a browser there:
  requests must name this machine as their host (which stops DNS rebinding), and must not come from another origin.
- On any other address requests need a bearer token, and the server does not start without one.
"""

import hmac
import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from subgnn.errors import UserError
from subgnn.serve.limits import Refusal

TOKEN_VARIABLE = "SUBGNN_TOKEN"
_MIN_TOKEN = 16
_LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?")
_OPEN_PATHS = frozenset({"/", "/health", "/openapi.json"})
STATIC = "/static/"

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Whether an address can be reached only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_token(file: Path | None) -> str | None:
    """The token in a file, or else in SUBGNN_TOKEN; None without either."""
    given = file.read_text(encoding="utf-8").strip() if file is not None else os.environ.get(TOKEN_VARIABLE, "").strip()
    where = str(file) if file is not None else TOKEN_VARIABLE
    if not given and file is None:
        return None
    if len(given) < _MIN_TOKEN or not given.isascii() or not given.isprintable() or " " in given:
        hint = f"accepted: at least {_MIN_TOKEN} printable ASCII characters, for example from: openssl rand -hex 32"
        raise UserError(f"the token of {len(given)} characters is not valid", where=where, hint=hint)
    return given


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Who may send requests to ``host``; ``names`` are further host names to accept.

    Starlette's TrustedHostMiddleware is not used: it answers with plain text, and checks neither origins nor tokens.
    """

    host: str = "127.0.0.1"
    token: str | None = None
    names: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            hint = f"give one with --token-file FILE or {TOKEN_VARIABLE}, or listen on 127.0.0.1"
            what = f"{self.host} can be reached from other machines, but there is no token"
            raise UserError(what, where="--host", hint=hint)

    def check(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Raise :class:`Refusal` (400, 401 or 403) for a request without access."""
        host = headers.get("host", "")
        found = _HOST.fullmatch(host)
        if found is None or int(found["port"] or 1) not in range(1, 2**16):
            raise Refusal(400, "the Host header is missing or not valid", hint="accepted: NAME or NAME:PORT")
        known = self.names
        if is_loopback(self.host):
            known |= _LOOPBACK_HOSTS | {f"[{self.host}]" if ":" in self.host else self.host}
        if known and found["name"].lower() not in known:
            raise Refusal(400, "the Host header names a different host", hint=f"accepted: {', '.join(sorted(known))}")
        origin = headers.get("origin")
        hint = "open the server's own page"
        if origin is not None and origin.partition("://")[2] != host:
            raise Refusal(403, "the request comes from a page with a different origin", hint=hint)
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and method != "GET":
            raise Refusal(403, "the request comes from another site", hint=hint)
        # No token is needed for the state of the server and for the page, which holds no data.
        if self.token is not None and path not in _OPEN_PATHS and not path.startswith(STATIC):
            scheme, _, given = headers.get("authorization", "").partition(" ")
            right = hmac.compare_digest(given.strip().encode(), self.token.encode())
            if scheme.lower() != "bearer" or not right:
                raise Refusal(401, "the token is missing or wrong", hint="send it as: Authorization: Bearer TOKEN")
