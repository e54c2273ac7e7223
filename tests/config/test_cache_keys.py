"""Settings that came later leave the keys of what was kept before as they are."""

from __future__ import annotations

import typing
from dataclasses import asdict

import pytest

from subgnn.config.cache_keys import ADDED_LATER, SECTIONS_ADDED_LATER, recipe_key, section_key
from subgnn.config.recipes import find_recipe, recipe_names
from subgnn.config.settings import Recipe

FIRST_USES = {
    "surroundings": {"prepare": {"border_anchors"}, "training": {"members"}},
    "diffusion": {"baseline": {"damping"}},
    "diffusion-root": {"baseline": {"damping", "views"}},
    "diffusion-bag": {"baseline": {"views"}},
    "diffusion-types": {"baseline": {"damping", "views"}},
    "diffusion-directed": {"baseline": {"views"}},
    "diffusion-topology": {"baseline": {"views"}},
    "diffusion-logistic": {"baseline": {"views", "kernel", "loss"}},
    "profiles": {"baseline": {"damping"}},
    "unsupervised": {"baseline": {"damping", "loss", "views"}},
    "contrastive": {"baseline": {"damping", "loss", "views"}},
}
"""Settings added later in the keys of the first recipes with them: no run was kept under another key."""


@pytest.mark.parametrize("section", ADDED_LATER)
def test_a_setting_that_came_later_is_in_keys_only_where_it_was_changed(section):
    plain = asdict(typing.get_type_hints(Recipe)[section]())
    assert set(ADDED_LATER[section]) <= set(plain)
    before = {name: value for name, value in plain.items() if name not in ADDED_LATER[section]}
    assert section_key(section, plain) == before
    for name in ADDED_LATER[section]:
        assert section_key(section, plain | {name: "another"}) == before | {name: "another"}
    assert section_key("pretrain", {"layers": 2}) == {"layers": 2}


@pytest.mark.parametrize("name", recipe_names())
def test_keys_of_recipes_are_what_they_were_but_for_settings_that_came_later(name):
    settings = asdict(find_recipe(name))
    for channel in settings["channels"]:
        assert channel.pop("similarity") == ""
    candidates = settings["auto"]["candidates"]
    settings["auto"]["candidates"] = tuple(one for one in candidates if not one.pop("for_graphs_with"))
    found = recipe_key(find_recipe(name))
    method, plain = find_recipe(name).method, asdict(Recipe())
    sections = {"glass": {"message_passing"}, "ssnp": {"message_passing"}, "unsupervised": {"vectors"}}
    used = sections.get(method, {method})
    used = {section for section in used & set(SECTIONS_ADDED_LATER) if settings[section] != plain[section]}
    assert settings.keys() - found.keys() == {"name", "note", "published"} | set(SECTIONS_ADDED_LATER) - used
    changed = {section: set(found.get(section, ())) & set(names) for section, names in ADDED_LATER.items()}
    for section, value in found.items():
        assert (
            value == section_key(section, settings[section]) if section in ADDED_LATER else value == settings[section]
        )
    ours = dict(FIRST_USES.get(name, {}))
    ours |= {"model": {"hidden_norm"}} if find_recipe(name).model.hidden_norm == "batch" else {}
    if method in ("glass", "ssnp", "s2n"):
        ours |= {"training": changed["training"], "s2n": changed["s2n"]}
    assert changed == {section: set() for section in ADDED_LATER} | ours


def test_default_is_another_name_of_auto():
    assert find_recipe("default") == find_recipe("auto")
