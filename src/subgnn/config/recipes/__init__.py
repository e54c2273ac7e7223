"""Packaged recipes: settings of a run as a file, with the published number where there is one.

Besides the TOML files there is a recipe for each row of ``alsentzer2020.tsv``, the settings that the paper's authors
published. A column with a dot is a setting, one with a slash the number of anchors of a subchannel; ``channels`` are
the properties the run uses, P, N or S. The table has everything that was published, also what a run without that
channel ignores. Its last columns are micro-F1 in the paper and its deviation over ten seeds, with GIN and with
GraphSAINT embeddings.

A table with the name of a recipe, ``wlks.tsv`` beside ``wlks.toml``, has the settings that were published with that
model for certain datasets: row ``ppi_bp`` is the recipe ``wlks_ppi_bp``. A column with a dot is a setting; where it is
empty, that of the plain recipe holds. The others are the published ``micro_f1``, its ``std`` and its ``source``.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

from subgnn.config.files import parse_recipe, read_recipe
from subgnn.config.plugins import allow_plugins
from subgnn.config.settings import Recipe
from subgnn.errors import UserError, choices

_FOLDER = Path(__file__).parent
_TABLE = _FOLDER / "alsentzer2020.tsv"
_KINDS = {"P": "position", "N": "neighborhood", "S": "structure"}
_EMBEDDINGS = {"gin-untrained": "gin", "graphsaint": "graphsaint"}
"""The column of the published numbers, by source: the authors' "GIN" embeddings are those of an untrained GIN."""


def recipe_names() -> list[str]:
    """Names of the packaged recipes."""
    return sorted(name for names in recipe_groups().values() for name in names)


def recipe_groups() -> dict[str, list[str]]:
    """Names of the packaged recipes, by the title of the group they are listed in; ``auto`` is the first."""
    return {
        "recipes": sorted(_plain_names(), key=lambda name: (name != "auto", name)),
        "runs of the paper": sorted(_published_rows()),
        "settings published with later models": sorted(_peer_rows()),
    }


def find_recipe(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """A packaged recipe by name, or a recipe file by its path.

    Args:
        overrides: ``section.key=value``.
    """
    if name.endswith(".toml"):
        recipe = read_recipe(Path(name), overrides)
        allow_plugins(recipe)
        return recipe
    if name not in recipe_names():
        raise UserError(f"unknown recipe '{name}'", where="--recipe", hint=choices(name, recipe_names()))
    if name in _published_rows():
        return _published_recipe(name, overrides)
    if name in _peer_rows():
        return _peer_recipe(name, overrides)
    return read_recipe(_FOLDER / f"{name}.toml", overrides)


def portfolio(recipe: Recipe, attributes: Collection[str] | None = None) -> dict[str, Recipe]:
    """The recipes of a portfolio by the names of its candidates: those of ``auto.only``, or all.

    Args:
        attributes: of the graph; candidates for graphs with another one are left out. None leaves out none.

    Raises:
        UserError: where a candidate's recipe or settings are unknown, or all candidates are for other graphs.
    """
    auto = recipe.auto
    wanted = [one for one in auto.candidates if not auto.only or one.name in auto.only]
    chosen = [one for one in wanted if attributes is None or set(one.for_graphs_with) <= set(attributes)]
    if wanted and not chosen:
        needed = ", ".join(sorted({name for one in wanted for name in one.for_graphs_with}))
        what = f"{', '.join(one.name for one in wanted)}: for graphs with {needed}, and this one has none"
        raise UserError(what, where="auto.candidates", hint="name other candidates, or none, in auto.only")
    return {one.name: replace(find_recipe(one.recipe, one.set), name=one.name) for one in chosen}


@cache
def _plain_names() -> list[str]:
    """Names of the recipes that have a file of their own."""
    return [path.stem for path in _FOLDER.glob("*.toml")]


@cache
def _published_rows() -> dict[str, dict[str, str]]:
    """Rows of the table by the names of their recipes; a headline run of a synthetic dataset has two names."""
    with _TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return {f"alsentzer2020_{name}": row for row in rows for name in row["recipes"].split()}


@cache
def _peer_rows() -> dict[str, tuple[str, dict[str, str]]]:
    """The plain recipe and the row of each recipe in a table that has a plain recipe's name, by name."""
    found: dict[str, tuple[str, dict[str, str]]] = {}
    for table in sorted(_FOLDER.glob("*.tsv")):
        if table != _TABLE:
            with table.open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file, delimiter="\t"))
            found |= {f"{table.stem}_{row['recipe']}": (table.stem, row) for row in rows}
    return found


def _peer_recipe(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """The plain recipe with the settings of a row."""
    plain, row = _peer_rows()[name]
    settings = [f"{column}={value}" for column, value in row.items() if "." in column and value]
    published: dict[str, float | str] = {
        column: float(row[column]) for column in ("micro_f1", "std") if row.get(column)
    }
    if published:
        published["source"] = row["source"]
    read = asdict(read_recipe(_FOLDER / f"{plain}.toml", settings)) | {"name": name}
    read["note"] = f"{plain.upper()}, with the settings that its authors published for this dataset. {read['note']}"
    return replace(parse_recipe(read, str(_FOLDER / f"{plain}.tsv"), overrides), published=published)


def _published_recipe(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe of a row; its published number is that of the embeddings it uses, if there is one."""
    row = _published_rows()[name]
    kinds = [_KINDS[letter] for letter in row["channels"]]
    content = {
        "name": name,
        "note": f"The paper's run, as its authors published it: {', '.join(kinds)}. Channels are on both sides, node "
        "embeddings are those of an untrained GIN, fine-tuned.",
        "channels": [
            {"kind": kind, "side": side, "num_anchors": int(row[f"{kind}/{side}"])}
            for kind in kinds
            for side in ("internal", "border")
        ],
        "embeddings": {"source": "gin-untrained", "trainable": True},
    }
    settings = [f"{column}={value}" for column, value in row.items() if "." in column]
    recipe = parse_recipe(asdict(parse_recipe(content, str(_TABLE), settings)), str(_TABLE), overrides)
    return replace(recipe, published=_published(row, recipe.embeddings.source))


def _published(row: dict[str, str], source: str) -> dict[str, float | str]:
    column = _EMBEDDINGS.get(source, "")
    if not row.get(column):
        return {}
    named = {"gin": "GIN", "graphsaint": "GraphSAINT"}[column]
    where = f"Alsentzer et al., NeurIPS 2020, Table {row['table']}, with {named} embeddings"
    return {"micro_f1": float(row[column]), "std": float(row[f"{column}_std"]), "source": where}
