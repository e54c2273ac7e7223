"""The four synthetic datasets of the paper (appendix B), drawn from a recipe and a seed.

A recipe draws a base graph, places subgraphs in it, brings a property of each to a target and labels them by quantiles
of the property that the finished graph has. The same seed gives the same bytes.
"""

from __future__ import annotations

from typing import Any

from subgnn.config.files import parse_options
from subgnn.data.dataset import Dataset
from subgnn.data.synthetic.component import COMPONENT
from subgnn.data.synthetic.coreness import CORENESS
from subgnn.data.synthetic.cut_ratio import CUT_RATIO
from subgnn.data.synthetic.density import DENSITY
from subgnn.data.synthetic.recipe import Recipe, assemble
from subgnn.errors import DataError, choices

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (DENSITY, CUT_RATIO, CORENESS, COMPONENT)}


def find_recipe(name: str) -> Recipe:
    """The recipe of that name; an unknown name lists the choices."""
    if name not in RECIPES:
        raise DataError(f"unknown synthetic dataset '{name}'", where="name", hint=choices(name, RECIPES))
    return RECIPES[name]


def read_settings(recipe: Recipe, options: dict[str, Any]) -> Any:
    """The settings of a recipe with some options changed; numbers may be given as text.

    Raises:
        UserError: for an option that the recipe does not have, or a value that is not a number of its kind.
    """
    values = parse_options({"settings": recipe.settings}, options, f"recipe {recipe.name}")
    return recipe.settings(**values["settings"])


def generate(name: str, *, seed: int = 0, **options: Any) -> Dataset:
    """Draw a synthetic dataset.

    Args:
        name: a key of :data:`RECIPES`.
        seed: every draw follows from it.
        **options: fields of the recipe's settings.

    Raises:
        UserError: for an unknown name or option, and for targets that cannot be met; the message says what can.

    Example:
        >>> d = generate("density", seed=1, num_nodes=500, num_subgraphs=12, subgraph_size=8)
        >>> d.graph.num_nodes, d.subgraphs.label_counts()
        (499, {'0': 4, '1': 4, '2': 4})
    """
    recipe = find_recipe(name)
    return assemble(recipe, read_settings(recipe, options), seed)
