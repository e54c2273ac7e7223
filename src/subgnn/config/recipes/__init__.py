"""Packaged recipes: settings of a run as a file, with the published number where there is one.

Each row of ``alsentzer2020.tsv``, the settings that the paper's authors published, is a recipe, too. A column with a
dot is a setting, one with a slash the number of anchors of a subchannel; ``channels`` are the properties the run uses.
Its last columns are micro-F1 in the paper and its deviation over ten seeds, by the source of embeddings. A table with
the name of a recipe has settings that were published for certain datasets: row ``ppi_bp`` of ``wlks.tsv`` is the recipe
``wlks_ppi_bp``; where a column is empty, ``wlks.toml`` holds.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from subgnn.config.files import CHANNEL_LETTERS, parse_table, read_toml, with_overrides
from subgnn.config.settings import Recipe
from subgnn.errors import UserError, choices, excerpt
from subgnn.ranking import recall_count
from subgnn.storage.files import MAX_JSON, parse_json, read_bounded

_FOLDER = Path(__file__).parent
_TABLE = _FOLDER / "alsentzer2020.tsv"
RUN_RECIPE = "recipe.json"  # the file of a run that holds its recipe
RUN_OPTIONS = ("seed", "split", "edges_until", "as_of")
"""Options of the command that a run keeps beside its recipe, in the same file."""
SELECT_BY = ("auto", "micro_f1", "macro_f1", "accuracy", "auroc", "auprc", "r2")
"""The metrics that tasks can be selected by, beside ``recall@K``."""
_EMBEDDINGS = {"gin-untrained": ("gin", "GIN"), "graphsaint": ("graphsaint", "GraphSAINT")}
"""Column and name of the published numbers, by source: the authors' "GIN" embeddings are those of an untrained GIN."""


def recipe_names() -> list[str]:
    """Names of the packaged recipes."""
    return sorted(name for names in recipe_groups().values() for name in names)


def recipe_groups() -> dict[str, list[str]]:
    """Names of the packaged recipes, by the title of the group they are listed in; ``auto`` is the first."""
    return {
        "recipes": sorted(_plain_names(), key=lambda name: (name != "auto", name)),
        "runs of the paper": sorted(name for name, (table, _) in _rows().items() if table == _TABLE),
        "settings published with later models": sorted(name for name, (table, _) in _rows().items() if table != _TABLE),
    }


@dataclass(frozen=True, slots=True)
class PackagedRecipe:
    """The content of a packaged recipe."""

    path: Path
    content: dict[str, Any]
    settings: tuple[str, ...] = ()  # of its row in a table, as after --set
    published: dict[str, dict[str, float | str]] = field(default_factory=dict)  # by source of embeddings, "" for any


def packaged_recipe(name: str) -> PackagedRecipe:
    """A packaged recipe by name."""
    if name in _rows():
        table, row = _rows()[name]
        published: dict[str, dict[str, float | str]] = {}
        if table == _TABLE:
            kinds = [CHANNEL_LETTERS[letter] for letter in row["channels"]]
            content: dict[str, Any] = {
                "note": f"The paper's run, as its authors published it: {', '.join(kinds)}. Channels are on both "
                "sides, node embeddings are those of an untrained GIN, fine-tuned.",
                "channels": [
                    {"kind": kind, "side": side, "num_anchors": int(row[f"{kind}/{side}"])}
                    for kind in kinds
                    for side in ("internal", "border")
                ],
                "embeddings": {"source": "gin-untrained", "trainable": True},
            }
            for source, (column, named) in _EMBEDDINGS.items():
                if row.get(column):
                    where = f"Alsentzer et al., NeurIPS 2020, Table {row['table']}, with {named} embeddings"
                    score, deviation = float(row[column]), float(row[f"{column}_std"])
                    published[source] = {"micro_f1": score, "std": deviation, "source": where}
        else:
            content, numbers = read_toml(table.with_suffix(".toml"), "recipe"), dict[str, float | str]()
            about = f"{table.stem.upper()}, with the settings that its authors published for this dataset."
            content["note"] = f"{about} {content['note']}"
            numbers |= {column: float(row[column]) for column in ("micro_f1", "std") if row.get(column)}
            published = {"": numbers | ({"source": row["source"]} if numbers else {})}
        settings = tuple(f"{column}={value}" for column, value in row.items() if "." in column and value)
        return PackagedRecipe(table, content | {"name": name}, settings, published)
    path = _FOLDER / f"{name}.toml"
    if name not in _plain_names():
        raise UserError(f"unknown recipe '{name}'", where="--recipe", hint=choices(name, recipe_names()))
    content = {"name": name} | read_toml(path, "recipe")
    return PackagedRecipe(path, content, published={"": content.get("published", {})})


def read_recipe_file(name: str) -> tuple[Path, dict[str, Any]] | None:
    """A recipe's file and content: TOML, or that of a run, by its folder or recipe.json; None for any other name."""
    path = Path(name)
    if path.suffix == ".toml":
        return path, {"name": path.stem} | read_toml(path, "recipe")
    path = path / RUN_RECIPE if path.is_dir() and (path / RUN_RECIPE).is_file() else path
    if path.suffix != ".json":
        return None
    if not path.is_file():
        raise UserError("no such recipe", where=name)
    content = parse_json(read_bounded(path, MAX_JSON), str(path), "the recipe.json of a run is accepted")
    if not isinstance(content, dict):
        raise UserError("this is not a recipe", where=str(path), hint="the recipe.json of a run is accepted")
    return path, {key: value for key, value in content.items() if key not in RUN_OPTIONS}


def check_recipe_early(name: str, overrides: Sequence[str]) -> None:
    """Refuse an unknown recipe, and wrong values of settings that all methods share, before models are imported."""
    file = read_recipe_file(name)
    if file is None:
        packaged = packaged_recipe(name)
        file = packaged.path, packaged.content
    merged, place = with_overrides(file[1], str(file[0]), overrides)
    known = {one.name for one in fields(Recipe)}
    shared = parse_table(Recipe, {key: value for key, value in merged.items() if key in known}, place)
    if (select_by := shared.training.select_by) not in SELECT_BY and recall_count(select_by) is None:
        what, hint = f"training.select_by is {excerpt(select_by)}", choices(select_by, [*SELECT_BY, "recall@K"])
        raise UserError(what, where=place("training.select_by"), hint=hint)


@cache
def _plain_names() -> list[str]:
    return [path.stem for path in _FOLDER.glob("*.toml")]


@cache
def _rows() -> dict[str, tuple[Path, dict[str, str]]]:
    """The table and the row of recipes by name; a headline run of a synthetic dataset has two names."""
    found: dict[str, tuple[Path, dict[str, str]]] = {}
    for table in sorted(_FOLDER.glob("*.tsv")):
        with table.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                found |= {f"{table.stem}_{name}": (table, row) for name in row["recipe"].split()}
    return found
