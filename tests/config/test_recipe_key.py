"""The cache key of a recipe: every setting is in it, and what changes no result is not."""

from dataclasses import fields, is_dataclass, replace

import pytest

from subgnn.config.settings import Recipe, recipe_key
from subgnn.models.recipes import find_recipe

SETTINGS = [
    (section.name, setting.name)
    for section in fields(Recipe)
    if is_dataclass(section_of := getattr(Recipe(), section.name))
    for setting in fields(section_of)
]


@pytest.mark.parametrize(("section", "setting"), SETTINGS)
def test_every_setting_is_in_the_key(section, setting):
    recipe = Recipe()
    changed = replace(recipe, **{section: replace(getattr(recipe, section), **{setting: ({"for_graphs_with": ""},)})})
    assert recipe_key(changed) != recipe_key(recipe)


def test_names_and_notes_are_not():
    recipe = find_recipe("subgnn")
    renamed = replace(recipe, name="other", note="other", published={"micro_f1": 1.0})
    assert recipe_key(renamed) == recipe_key(recipe)
    assert recipe.plain().keys() - recipe_key(recipe).keys() == {"name", "note", "published"}


def test_candidates_for_graphs_with_certain_attributes_are_not():
    recipe = find_recipe("auto")
    always = tuple(one for one in recipe.auto.candidates if not one.for_graphs_with)
    assert 0 < len(always) < len(recipe.auto.candidates)
    assert recipe_key(replace(recipe, auto=replace(recipe.auto, candidates=always))) == recipe_key(recipe)
    assert recipe_key(replace(recipe, auto=replace(recipe.auto, candidates=always[1:]))) != recipe_key(recipe)
