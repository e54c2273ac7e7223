"""Bounds of TOML and JSON: what nobody writes is refused at once, and what people write is not."""

import json
from pathlib import Path

import pytest

from subgnn.errors import DataError, UserError
from subgnn.models.recipes import find_recipe
from subgnn.storage.files import MAX_DEPTH, MAX_TOML, parse_json, parse_toml, read_bounded
from tests.cli.command import call
from tests.data.samples import write_sample

DEEP_TOML = {
    "dotted key": "a." * 100_000 + "a = 1",
    "dotted table": "[" + "a." * 100_000 + "a]",
    "list": "a = " + "[" * 100_000 + "]" * 100_000,
    "table": "a = " + "{a = " * 50_000 + "1" + "}" * 50_000,
    "dotted key in a table": "a = {" + "a." * 100_000 + "a = 1}",
}


@pytest.mark.parametrize("text", DEEP_TOML.values(), ids=DEEP_TOML)
def test_deep_toml(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(UserError, match=r"x\.toml: tables, lists or dotted keys are nested more than 32 deep"):
        find_recipe(str(tmp_path / "x.toml"))


def test_a_large_settings_file(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b"#" * (MAX_TOML + 1))
    with pytest.raises(UserError, match=r"x\.toml: more than 1,048,576 bytes; is this the right file\?"):
        find_recipe(str(tmp_path / "x.toml"))


@pytest.mark.parametrize(
    "text",
    [
        "a.b.c = 1\n[d.e.f]\ng = 1.5\n",
        "a = [" + "1.5," * 1000 + "]\n",
        "a = [" + "1.5, 2.5,\n" * 100 + "]\n",
        'a = "' + "[.{" * 100 + '"\n',
        'a = """' + '[.{"\n' * 100 + '"""\n',
        "a = '''" + "[.{'\n" * 100 + "'''\n",
        "# " + "[.{" * 100 + "\na = 1\n",
        "[[a]]\nb = [[1, 2], [3]]\n" * 100,
    ],
)
def test_what_people_write_is_read(text: str) -> None:
    assert "a" in parse_toml(text, "x")


@pytest.mark.parametrize("value", ["[" * 100_000, "[" * 500 + "]" * 500, "{a=" * 5000 + "1" + "}" * 5000])
def test_a_deep_value_of_set(tmp_path: Path, value: str) -> None:
    called = call("train", write_sample(tmp_path / "d"), "--out", tmp_path / "r", "--set", f"training.lr={value}")
    assert called.code == 2
    assert called.error.startswith("--set: training.lr is '")


def _nested(depth: int) -> str:
    return '{"a": ' * depth + "1" + "}" * depth


def test_deep_json() -> None:
    assert parse_json(_nested(MAX_DEPTH), "x", "") == json.loads(_nested(MAX_DEPTH))
    for text in (_nested(MAX_DEPTH + 1), _nested(500), "[" * 900 + "]" * 900):
        with pytest.raises(DataError, match="x: nested more than 32 deep; hint"):
            parse_json(text, "x", "hint")
    for text in ("[" * 100_000, "{", "[1", b"\xff", "1" * 5000):
        with pytest.raises(DataError, match="x: this is not valid JSON; hint"):
            parse_json(text, "x", "hint")


def test_a_large_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert read_bounded(tmp_path / "x", 5) == b"12345"
    with pytest.raises(DataError, match="x: more than 4 bytes"):
        read_bounded(tmp_path / "x", 4)
    with pytest.raises(DataError, match="no such file"):
        read_bounded(tmp_path / "y", 4)
    with pytest.raises(DataError, match="this is a folder, not a file"):
        read_bounded(tmp_path, 4)
