"""From a recipe and a search space to the recipe of a trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from subgnn.channels.table import channel_names
from subgnn.config.files import parse_recipe
from subgnn.config.settings import Recipe
from subgnn.errors import UserError
from subgnn.experiments.search_space import Choices, Dimension, SearchSpace

Suggest = Callable[[str, Dimension, Any], Any]
"""Called with a parameter's name, what it may be, and what the recipe has; gives what the trial has."""

Parameters = Mapping[str, Any]
"""Values of a trial by name, as a study keeps them: ``training.lr``, ``model.head[0]``, ``channels.structure.use``."""


def draw(space: SearchSpace, recipe: Recipe, suggest: Suggest) -> Recipe:
    """The recipe with all that the space names replaced by what ``suggest`` gives.

    A subchannel that the recipe does not have, and that the space does not switch on, stays away, and is not asked
    for; nor are the anchors of one that is off. Baselines have no subchannels.
    """
    content = asdict(recipe)
    for path, dimension in space.settings.items():
        section, _, key = path.partition(".")
        current = content[section][key]
        if isinstance(current, tuple) and not isinstance(dimension, Choices):
            drawn: Any = [suggest(f"{path}[{i}]", dimension, value) for i, value in enumerate(current)]
        else:
            drawn = suggest(path, dimension, current)
        content[section][key] = drawn
    if recipe.method == "subgnn":
        content["channels"] = _channels(space, recipe, suggest)
    return parse_recipe(content, f"search space {space.name}")


def _channels(space: SearchSpace, recipe: Recipe, suggest: Suggest) -> list[dict[str, Any]]:
    """The subchannels of a trial: those of the recipe in their order, then the others."""
    given = {channel.name: channel for channel in recipe.channels}
    kept = []
    for name in (*given, *(name for name in channel_names() if name not in given)):
        key, found = space.channel(name)
        used = name in given
        if found.use is not None:
            used = suggest(f"channels.{key}.use", found.use, used)
        if not used:
            continue
        anchors = given[name].num_anchors if name in given else None
        if found.num_anchors is not None:
            anchors = suggest(f"channels.{key}.num_anchors", found.num_anchors, anchors)
        if anchors is None:
            hint = f"give channels.{key}.num_anchors a range, too, or the recipe the channel"
            raise UserError(f"{name} may be switched on, but has no number of anchors", where=space.name, hint=hint)
        kind, _, side = name.partition("/")
        similarity = given[name].similarity if name in given else ""
        kept.append({"kind": kind, "side": side, "num_anchors": anchors, "similarity": similarity})
    return kept


def apply_parameters(space: SearchSpace, recipe: Recipe, parameters: Parameters) -> Recipe:
    """The recipe of a trial whose parameters are known."""

    def suggest(name: str, dimension: Dimension, current: Any) -> Any:
        value = parameters[name]
        return dimension.value(value) if isinstance(dimension, Choices) else value

    return draw(space, recipe, suggest)


def own_parameters(space: SearchSpace, recipe: Recipe) -> dict[str, Any]:
    """The recipe's own values, by name, as far as they lie in the space.

    Raises:
        UserError: where the space has nothing that could be changed in this recipe, or a subchannel it may switch on
            has no number of anchors.
    """
    asked = 0
    own: dict[str, Any] = {}

    def suggest(name: str, dimension: Dimension, current: Any) -> Any:
        nonlocal asked
        asked += 1
        if current in dimension:
            own[name] = dimension.label(current) if isinstance(dimension, Choices) else current
        return current

    draw(space, recipe, suggest)
    draw(space, recipe, _first)  # which switches on whatever can be
    if not asked:
        what = f"nothing in it can be changed in the recipe {recipe.name}"
        raise UserError(what, where=f"search space {space.name}", hint="name settings, or subchannels it has")
    return own


def _first(name: str, dimension: Dimension, current: Any) -> Any:
    """On, where something may be switched; else any value."""
    if name.endswith(".use") and isinstance(dimension, Choices):
        return True in dimension.values
    return dimension.values[0] if isinstance(dimension, Choices) else dimension.low
