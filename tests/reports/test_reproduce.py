"""Settings as TOML come back as they were, and the command trains the same recipe."""

import shlex
import tomllib
from dataclasses import replace

import pytest

from subgnn.config.recipes import recipe_names
from subgnn.models.recipes import find_recipe, parse_recipe, recipe_toml, train_command
from tests.results import result
from tests.training.examples import recipe


@pytest.mark.parametrize("name", recipe_names())
def test_recipes_come_back_from_toml(name):
    found = find_recipe(name, ["training.clip=1e-05"])
    assert parse_recipe(tomllib.loads(recipe_toml(found)), "page") == found


def test_any_text_comes_back_from_toml():
    odd = replace(recipe(), name='a "b" \\ é \x7f', note="two\nlines", published={"a b": [1, {"c": True}], "d": 0.5})
    assert parse_recipe(tomllib.loads(recipe_toml(odd)), "page") == odd


def test_the_command_names_what_was_changed():
    changes = ["training.epochs=7", "model.head=[8, 4]", "model.readout=mean", "embeddings.trainable=true"]
    found = find_recipe("structure", changes)
    line, needs_file = train_command(found, result(source="/some where/x", seed=3, device="cuda:0"))
    assert not needs_file
    words = shlex.split(line)
    assert words[:5] == ["subgnn", "train", "/some where/x", "--recipe", "structure"]
    assert words[-6:] == ["--out", "RUN", "--seed", "3", "--device", "cuda"]
    given = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
    assert find_recipe("structure", given) == found
    assert len(given) == 4


def test_a_recipe_of_ones_own_is_needed_as_a_file():
    line, needs_file = train_command(recipe(), result())
    assert needs_file
    assert line == "subgnn train DIR --recipe small.toml --out RUN --seed 0 --device cpu"
    other = find_recipe("structure")
    assert train_command(replace(other, channels=other.channels[:1]), result())[1]
