"""docs/settings.md has every setting, with its default and choices, and every recipe."""

import itertools
import json
import re
import typing
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Literal

import pytest

from subgnn.channels.table import CHANNELS, SIMILARITIES
from subgnn.config.recipes import recipe_names
from subgnn.config.settings import ChannelSettings, ModelSettings, Recipe
from subgnn.models.registry import MODELS, names_where
from tests.pages import ROOT

PAGE = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")


def sections() -> dict[str, type]:
    """The tables of a recipe; of a list of tables, one."""
    found = {}
    for name, kind in typing.get_type_hints(Recipe).items():
        inner = typing.get_args(kind)[0] if typing.get_origin(kind) is tuple else kind
        if is_dataclass(inner):
            found[name] = inner
    found |= {kind.section: kind for model in MODELS.values() for kind in model.settings}
    return typing.cast(dict[str, type], found)


def accepted(kind: Any) -> str:
    return ", ".join(map(str, typing.get_args(kind))) if typing.get_origin(kind) is Literal else ""


def default(field: Field[Any]) -> str:
    if field.default is MISSING:
        return "needed"
    return field.default if isinstance(field.default, str) else json.dumps(field.default)


def wanted_rows(kind: type) -> dict[str, tuple[str, str]]:
    hints = typing.get_type_hints(kind, include_extras=True)
    rows = {field.name: (default(field), accepted(hints[field.name])) for field in fields(kind)}
    if kind is ChannelSettings:  # names of tables that more can be entered in
        sides = dict.fromkeys(side for sides in CHANNELS.values() for side in sides)
        rows |= {"kind": ("needed", ", ".join(CHANNELS)), "side": ("needed", ", ".join(sides))}
        rows["similarity"] = ("the channel's own", ", ".join(SIMILARITIES))
    if kind is ModelSettings:
        rows["baseline"] = ("none", ", ".join(["none", *names_where("is_fitted_in_one_go")]))
    return rows


def page_rows(section: str) -> dict[str, tuple[str, str, str]]:
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|(?: (.*?))? \| (.*) \|$", text, re.MULTILINE)
    return {key: (shown, choices, meaning) for key, shown, choices, meaning in rows}


@pytest.mark.parametrize("section", sections())
def test_settings(section):
    wanted, there = wanted_rows(sections()[section]), page_rows(section)
    lines = [f"| `{key}` | {row[0]} | {row[1]} | ... |" for key, row in wanted.items() if there.get(key, ())[:2] != row]
    assert not lines, f"docs/settings.md, {section}: rows to add or mend:\n" + "\n".join(lines)
    assert list(there) == list(wanted), "rows stand in the order of config.py, and none is left over"
    assert all(meaning.strip() for _, _, meaning in there.values())


def test_keys_outside_of_sections():
    for field in fields(Recipe):
        assert field.metadata.get("derived") or field.name in sections() or f"`{field.name}`" in PAGE, field.name


def spelled_out(pattern: str) -> list[str]:
    """All names of a pattern: each of ``a_{b,c}`` is a_b or a_c."""
    parts = [part.split(",") for part in re.split(r"[{}]", pattern)]
    return ["".join(chosen) for chosen in itertools.product(*parts)]


def test_recipes():
    table = PAGE.split("## Packaged recipes", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    named = [name for row in rows for pattern in re.findall(r"`(.*?)`", row) for name in spelled_out(pattern)]
    assert sorted(named) == recipe_names()
