"""Suite files in TOML (docs/reproduce.md has one): title, protocol, datasets, models, published numbers; and splits."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from subgnn.channels.table import check_channels
from subgnn.config.files import Count, Seed, parse_table, read_toml
from subgnn.config.plugins import is_plugin
from subgnn.config.recipes import recipe_names
from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.splits import Method, draw_folds, named_split, split_subgraphs
from subgnn.data.subgraphs import SPLITS
from subgnn.data.synthetic import RECIPES as GENERATORS
from subgnn.errors import DataError, UserError, choices, excerpt
from subgnn.lab.suites import FOLDER, suite_names
from subgnn.models.recipes import check_tunable, find_recipe, parse_recipe
from subgnn.models.tensor_model import PaperBaselineSettings

Splitting = Literal["random", "stored", "published", "folds"]
FOLDS = 10
"""Folds of all subgraphs, by the protocol ``folds``."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Protocol:
    """The split (:func:`with_split`) and the number of runs of a model on a dataset."""

    split: Splitting = "random"
    seeds: Count = 10


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """A dataset: generated, or read from a folder that is given when the suite is run."""

    name: str
    generate: str = ""
    instance: Seed = 0  # of the generator
    options: dict[str, Any] = field(default_factory=dict)
    like: str = ""  # the dataset whose recipes and published numbers apply; by default itself
    folder_of: str = ""  # the dataset whose folder it is read from, if none is given under its name
    split: Literal["", "random", "stored", "published", "folds"] = ""  # instead of the protocol's


@dataclass(frozen=True, slots=True)
class Published:
    """Published numbers by dataset, and their source."""

    source: str = ""
    micro_f1: dict[str, float] = field(default_factory=dict)
    micro_f1_std: dict[str, float] = field(default_factory=dict)
    auroc: dict[str, float] = field(default_factory=dict)
    auroc_std: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A recipe with a label; in its name, ``{dataset}`` is replaced. ``package.module:NAME`` is of a plug-in."""

    label: str
    recipe: str
    otherwise: str = ""  # the recipe for datasets that have none of that name
    set: tuple[str, ...] = ()
    tune: tuple[tuple[str, ...], ...] = ()  # lists of overrides to choose among on validation, in every run
    variant_of: str = ""  # the model whose variants share a row of the benchmark, which shows the best on validation
    seeds: int = 0  # the most runs on a given split; 0 is the protocol's number
    published: Published = field(default_factory=Published)


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite; paths of recipes are relative to ``folder``, and all models are compared with those of ``compare``."""

    name: str
    title: str
    datasets: tuple[DatasetSpec, ...]
    models: tuple[ModelSpec, ...]
    note: str = ""
    protocol: Protocol = field(default_factory=Protocol)
    compare: tuple[str, ...] = ()
    folder: str = ""

    def like(self, dataset: str) -> str:
        """The dataset whose recipes and published numbers apply to a dataset."""
        return next((spec.like for spec in self.datasets if spec.name == dataset and spec.like), dataset)

    def recipe(self, model: ModelSpec, dataset: str, overrides: Sequence[str] = ()) -> Recipe:
        """The settings of a model on a dataset; overrides follow those of the model."""
        if is_plugin(model.recipe):
            content = {"name": model.recipe.partition(":")[2], "method": model.recipe}
            return parse_recipe(content, model.recipe, [*model.set, *overrides])
        name = model.recipe.replace("{dataset}", self.like(dataset).replace("-", "_"))
        if model.otherwise and name not in recipe_names():
            name = model.otherwise
        if name.endswith(".toml"):
            name = str(Path(self.folder) / name)
        found = find_recipe(name, [*model.set, *overrides])
        if model.tune:
            found = found.with_method_settings(replace(found.of(PaperBaselineSettings), tune_settings=model.tune))
            check_tunable(found)
        check_channels(found.channels, found.prepare, where=f"{self.name}, {name}")
        return found


def find_suite(name: str) -> Suite:
    """A suite by name, or by the path of a file."""
    if not name.endswith(".toml") and name not in suite_names():
        hint = f"{choices(name, suite_names())}; or the path of a .toml file"
        raise UserError(f"unknown suite '{name}'", where="benchmark run", hint=hint)
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    return parse_suite({"name": path.stem, "folder": str(path.resolve().parent)} | read_toml(path, "suite"), str(path))


def parse_suite(content: dict[str, Any], where: str) -> Suite:
    """Make a suite from a mapping, and check it."""
    suite = parse_table(Suite, content, where)
    datasets, labels = [d.name for d in suite.datasets], [m.label for m in suite.models]
    for what, names in (("dataset", datasets), ("model", labels)):
        if not names:
            raise UserError(f"there is no {what}", where=where, hint=f"add a [[{what}s]] entry")
        for name in names:
            if names.count(name) > 1:
                raise UserError(f"the {what} '{name}' occurs twice", where=where, hint="give each a name of its own")
    for dataset in suite.datasets:
        if not _NAME.fullmatch(dataset.name):  # it is the name of a folder, and comes before the = of --data
            hint = "accepted: letters, digits, '.', '_' and '-', of which the first is a letter or digit"
            raise UserError(f"a dataset has the name {excerpt(dataset.name)}", where=where, hint=hint)
    for what, name, known in (
        *((f"unknown generator '{d.generate}'", d.generate, list(GENERATORS)) for d in suite.datasets),
        *((f"'{d.name}' has the folder of '{d.folder_of}'", d.folder_of, datasets) for d in suite.datasets),
        *((f"compare: unknown model '{label}'", label, labels) for label in suite.compare),
    ):
        if name and name not in known:
            raise UserError(what, where=where, hint=choices(name, known))
    return suite


def with_split(dataset: Dataset, split: str, seed: int) -> Dataset:
    """A dataset with a split: ``random``, ``folds``, or one of :data:`~subgnn.data.splits.NAMED_SPLITS`.

    Subgraphs with equal nodes, and those of one group, are in one part of a random split (50/25/25 by seed) and in one
    fold. With ``folds``, the seed also numbers the fold: the test split of seed s is fold s mod 10 of the draw s // 10,
    the validation split the fold after it, and all other folds are the training split, so that ten runs predict every
    subgraph once.
    """
    subgraphs = dataset.subgraphs
    subgraphs.require_labels(dataset.name)
    if split == "random":
        method: Method = "random" if subgraphs.groups is None else "group"
        groups = None if subgraphs.groups is None else list(subgraphs.groups)
        return replace(dataset, subgraphs=split_subgraphs(subgraphs, method=method, groups=groups, seed=seed))
    if split == "folds":
        folds = draw_folds(subgraphs, seed // FOLDS, "suites/folds", folds=FOLDS)
        if len(np.unique(folds)) < FOLDS:
            what = f"{len(subgraphs)} subgraphs are too few for {FOLDS} folds"
            hint = "subgraphs of one group or with equal nodes share a fold; set protocol.split = 'random'"
            raise DataError(what, where=dataset.name, hint=hint)
        parts = [SPLITS.index(name) for name in ("test", "val", *["train"] * (FOLDS - 2))]
        return replace(dataset, subgraphs=replace(subgraphs, splits=np.array(parts, np.int8)[(folds - seed) % FOLDS]))
    if subgraphs.splits is None:
        hint = "draw one with subgnn data split, or use a suite with protocol.split = 'random'"
        raise DataError("the subgraphs have no splits", where=dataset.name, hint=hint)
    return replace(dataset, subgraphs=named_split(subgraphs, split))
