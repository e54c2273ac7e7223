"""Settings that came later leave the keys of what was kept before as they are."""

from __future__ import annotations

import typing
from dataclasses import asdict

import pytest

from subgnn.config.recipes import find_recipe, recipe_names
from subgnn.config.settings import LATER, Recipe, lasting, lasting_settings


@pytest.mark.parametrize("section", LATER)
def test_a_setting_that_came_later_is_in_keys_only_where_it_was_changed(section):
    plain = asdict(typing.get_type_hints(Recipe)[section]())
    assert set(LATER[section]) <= set(plain)
    before = {name: value for name, value in plain.items() if name not in LATER[section]}
    assert lasting(section, plain) == before
    for name in LATER[section]:
        assert lasting(section, plain | {name: "another"}) == before | {name: "another"}
    assert lasting("pretrain", {"layers": 2}) == {"layers": 2}


@pytest.mark.parametrize("name", recipe_names())
def test_keys_of_recipes_are_what_they_were_but_for_settings_that_came_later(name):
    settings = asdict(find_recipe(name))
    for channel in settings["channels"]:
        assert channel.pop("similarity") == ""
    found = lasting_settings(find_recipe(name))
    assert settings.keys() - found.keys() == {"name", "note", "published"}
    changed = {section: set(found[section]) & set(names) for section, names in LATER.items()}
    for section, value in found.items():
        assert value == lasting(section, settings[section]) if section in LATER else value == settings[section]
    # No run was kept under another key: these are the first recipes with these settings.
    ours = {"prepare": {"border_anchors"}, "training": {"members"}} if name == "surroundings" else {}
    ours |= {"model": {"hidden_norm"}} if find_recipe(name).model.hidden_norm == "batch" else {}
    assert changed == {section: set() for section in LATER} | ours
