"""How to reproduce a run: its settings as TOML, and the command."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from subgnn.config.recipes import recipe_names
from subgnn.config.settings import Recipe
from subgnn.models.recipes import find_recipe
from subgnn.result import RunResult

_SECTIONS = tuple(f.name for f in fields(Recipe) if is_dataclass(f.default_factory))


def recipe_toml(recipe: Recipe) -> str:
    """All settings of a recipe, as a file for ``--recipe``."""
    content = recipe.plain()
    lines = [f"{key} = {setting_text(content[key])}" for key in ("name", "note", "method")]
    for channel in content["channels"]:
        lines += ["", "[[channels]]", *_pairs(channel)]
    for section in (*_SECTIONS, *recipe.methods, "published"):
        if content[section]:
            lines += ["", f"[{section}]", *_pairs(content[section])]
    return "\n".join(lines) + "\n"


def command(recipe: Recipe, result: RunResult) -> tuple[str, bool]:
    """The command that trains a run again, and whether it needs the settings as a file; packaged recipes do not."""
    packaged = find_recipe(recipe.name) if recipe.name in recipe_names() else None
    needs_file = packaged is None or (recipe.channels, recipe.method) != (packaged.channels, packaged.method)
    name = f"{recipe.name}.toml" if needs_file else recipe.name
    words = ["subgnn", "train", result.source or "DIR", "--recipe", name]
    if packaged is not None and not needs_file:
        ours, theirs = recipe.plain(), packaged.plain()
        for section in (*_SECTIONS, *recipe.methods):
            for key, value in ours[section].items():
                if section not in theirs or value != theirs[section][key]:
                    words += ["--set", f"{section}.{key}={setting_text(value)}"]
    words += ["--out", "RUN", "--seed", str(result.seed)]
    words += ["--split", result.split] if result.split != "stored" else []
    words += ["--device", result.device.partition(":")[0]]
    return shlex.join(words), needs_file


def _pairs(content: Mapping[str, Any]) -> list[str]:
    keys = (key if key.isidentifier() else json.dumps(key) for key in content)
    return [f"{key} = {setting_text(value)}" for key, value in zip(keys, content.values(), strict=True)]


def setting_text(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(_pairs(value)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(setting_text, value)) + "]"
    if isinstance(value, (bool, str)):
        # TOML escapes as JSON does, plus one character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)
