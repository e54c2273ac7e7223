"""Rules of access."""

import pytest

from subgnn.errors import UserError
from subgnn.serve.app import AccessRules, is_loopback, read_token
from subgnn.serve.limits import Refusal

TOKEN = "a-token-of-some-length"


def status(rules: AccessRules, path: str = "/api/runs", method: str = "GET", **headers: str) -> int:
    try:
        rules.check(method, path, {name.replace("_", "-"): value for name, value in headers.items()})
    except Refusal as refusal:
        return refusal.status
    return 200


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "example.org", ""])
def test_elsewhere_than_loopback_a_token_is_needed(host):
    with pytest.raises(UserError, match=r"--host: .*reached from other machines.*--token-file FILE or SUBGNN_TOKEN"):
        AccessRules(host)
    assert AccessRules(host, TOKEN).token == TOKEN


def test_loopback():
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(is_loopback, ("10.0.0.1", "localhost.evil.example")))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:1", "LOCALHOST", "[::1]:8000", "[::1]"])
def test_this_machine_may_be_named(host):
    assert status(AccessRules(), host=host) == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "localhost.", "[::2]:1", "x@127.0.0.1"]
)
def test_another_host_on_loopback_is_refused(host):
    assert status(AccessRules(), host=host) == 400


@pytest.mark.parametrize(
    "host",
    [
        *("localhost:8765@evil.com", "localhost:80:80", "localhost:8765:evil.com", "user@localhost", "a:b@localhost:1"),
        *("localhost:", "localhost:+80", "localhost:-1", "localhost:0", "localhost:65536", "localhost:8_0"),
        *("localhost:\xb2", "localhost: 80", " localhost", "localhost ", "localhost\t", "localhost\n", "localhost\x00"),
        *("localhost, evil.com", "localhost,evil.com:80", "localhost evil.com", "localhost/", "localhost/@evil.com"),
        *("localhost?", "localhost#@evil.com", "http://localhost", "localhost\\@evil.com", "localhost%00"),
        *("%6cocalhost", "::1", "[::1", "::1]", "[::1]evil.com", "[::1]:80:80", "[::1%25lo]", "[::1]@evil.com"),
        *("[[::1]]", "[]", ":80"),
        "localhost:" + "8" * 10_000,
    ],
)
@pytest.mark.parametrize("rules", [AccessRules(), AccessRules("0.0.0.0", TOKEN)])
def test_what_is_not_a_host_is_refused(host, rules):
    assert status(rules, path="/health", host=host) == 400


def test_further_names_may_be_allowed():
    rules = AccessRules("127.0.0.1", names=frozenset({"genes.example"}))
    assert status(rules, host="genes.example:443") == 200
    assert status(rules, host="localhost") == 200
    outside = AccessRules("0.0.0.0", TOKEN, frozenset({"genes.example"}))
    assert status(outside, host="other.example", authorization=f"Bearer {TOKEN}") == 400
    assert status(outside, host="genes.example", authorization=f"Bearer {TOKEN}") == 200


def test_pages_of_other_origins_are_refused():
    assert status(AccessRules(), host="localhost:8000", origin="http://localhost:8000") == 200
    assert status(AccessRules(), host="localhost:8000", origin="http://localhost:9000") == 403
    assert status(AccessRules(), host="localhost:8000", origin="http://evil.example") == 403
    assert status(AccessRules(), host="localhost:8000", origin="null") == 403
    assert status(AccessRules(), host="localhost:8000", origin="http://[") == 403
    assert status(AccessRules(), method="POST", host="localhost", sec_fetch_site="cross-site") == 403
    assert status(AccessRules(), method="POST", host="localhost", sec_fetch_site="same-origin") == 200


@pytest.mark.parametrize(
    "given",
    ["", "Bearer", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", TOKEN, "Bearer \xff"],
)
@pytest.mark.parametrize("path", ["/api/runs", "/metrics", "/api/../api/runs", "//api/runs", "/anything"])
def test_a_wrong_token_is_refused_wherever_there_is_data(given, path):
    assert status(AccessRules("0.0.0.0", TOKEN), path, host="x", authorization=given) == 401


def test_the_right_token_is_let_in_and_the_page_is_open():
    rules = AccessRules("0.0.0.0", TOKEN)
    assert status(rules, host="x", authorization=f"Bearer {TOKEN}") == 200
    assert status(rules, host="x", authorization=f"bearer {TOKEN}") == 200
    for path in ("/", "/static/main.js", "/health", "/openapi.json"):
        assert status(rules, path, host="x") == 200
    assert status(AccessRules("127.0.0.1", TOKEN), host="localhost") == 401


def test_tokens_are_read_from_a_file_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("SUBGNN_TOKEN", raising=False)
    assert read_token(None) is None
    monkeypatch.setenv("SUBGNN_TOKEN", TOKEN)
    assert read_token(None) == TOKEN
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}-of-a-file\n")
    assert read_token(file) == f"{TOKEN}-of-a-file"
    for bad in ("", "short", "with spaces in between it", "größer-als-sechzehn-zeichen"):
        file.write_text(bad)
        with pytest.raises(UserError, match="at least 16 printable ASCII"):
            read_token(file)
    monkeypatch.setenv("SUBGNN_TOKEN", "short")
    with pytest.raises(UserError, match="SUBGNN_TOKEN: the token of 5 characters"):
        read_token(None)
