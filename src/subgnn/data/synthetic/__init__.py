"""The four synthetic datasets of the paper (appendix B), drawn from a recipe and a seed.

A recipe draws a base graph, places subgraphs in it, brings a property of each to a target and labels them by quantiles
of the property that the finished graph has. The same seed gives the same bytes.
"""

from __future__ import annotations

from dataclasses import fields
from math import isfinite
from typing import Any, get_type_hints

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
        DataError: for an option that the recipe does not have, or a value that is not a number of its kind.
    """
    kinds = get_type_hints(recipe.settings)
    known = [field.name for field in fields(recipe.settings)]
    values = {}
    for option, given in options.items():
        if option not in known:
            raise DataError(f"no option '{option}'", where=f"recipe {recipe.name}", hint=choices(option, known))
        whole = kinds[option] in (int, int | None)
        try:
            values[option] = int(given) if whole else float(given)
            if not isfinite(values[option]) or values[option] != float(given):
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            hint = f"a {'whole' if whole else 'finite'} number is needed"
            raise DataError(f"{option} is '{given}'", where=f"recipe {recipe.name}", hint=hint) from None
    return recipe.settings(**values)


def generate(name: str, *, seed: int = 0, **options: Any) -> Dataset:
    """Draw a synthetic dataset.

    Args:
        name: a key of :data:`RECIPES`.
        seed: every draw follows from it.
        **options: fields of the recipe's settings.

    Raises:
        DataError: for an unknown name or option, and for targets that cannot be met; the message says what can.

    Example:
        >>> d = generate("density", seed=1, num_nodes=500, num_subgraphs=12, subgraph_size=8)
        >>> d.graph.num_nodes, d.subgraphs.label_counts()
        (499, {'0': 4, '1': 4, '2': 4})
    """
    recipe = find_recipe(name)
    return assemble(recipe, read_settings(recipe, options), seed)
