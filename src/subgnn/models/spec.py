"""Specifications of models, and checkpoints: a specification with the weights that were fitted to it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.channel import SharedAnchors
from subgnn.config.settings import ModelRecipe, Recipe
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.metrics.coverage import HeldOutScores
from subgnn.metrics.thresholds import Decision
from subgnn.models.novelty import Novelty
from subgnn.rng import stream_key
from subgnn.task import Standard, TaskName, task_of

Weights = dict[str, Any]
"""By name, tensors; or NumPy arrays, for a model that needs no PyTorch."""
BASELINE = "baseline"
"""The name of the part that a network corrects."""
# Before the names of weights of all networks of an ensemble but the first.
_MEMBER = re.compile(r"member([1-9]\d{0,5})\.")


@dataclass(frozen=True, slots=True, eq=False)
class ModelSpec(ModelRecipe):
    """Everything needed to build a model again, except its weights; nothing about how it was trained.

    Settings are those of the recipe; ``name`` is the recipe's, or that of the candidate that was selected. ``members``
    is the number of networks in an ensemble.

    The arrays are those the model was built from: ``standards`` are means and deviations used to standardise, of
    components, subgraphs, targets and features, where there are any; ``table_nodes`` are the nodes of a table of
    vectors, sorted; ``shared`` are shared anchors by layer and channel; ``component_keys`` are the sorted keys of
    components with a learned initial state.
    ``graph_hash`` and ``names_hash`` identify the graph and the names of its nodes, empty where it has none, and
    ``vectors_hash`` the table of node embeddings the model started from, empty for random ones. ``decision`` has
    the thresholds that were chosen for an aim, where there is one; ``held_out`` and ``novelty`` are what sets of labels
    and comparisons with training need. Parts of another model have none of these three.
    """

    seed: int
    task: TaskName
    classes: tuple[str, ...]
    graph_hash: str
    names_hash: str = ""
    members: int = 1
    vectors_hash: str = ""
    standards: dict[str, Standard] = field(default_factory=dict)
    table_nodes: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    shared: list[list[SharedAnchors | None]] = field(default_factory=list)
    component_keys: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    decision: Decision | None = None
    held_out: HeldOutScores | None = None
    novelty: Novelty | None = None

    @classmethod
    def for_recipe(cls, recipe: Recipe, graph: Graph, subgraphs: SubgraphSet, *, seed: int, **arrays: Any) -> Self:
        """The specification of a recipe's model for a dataset; ``arrays`` are fields such as ``standards``.

        The graph is undirected. Real-valued targets are standardised by the training split.
        """
        standards: dict[str, Standard] = dict(arrays.pop("standards", {}))
        if task_of(subgraphs.task).real and subgraphs.targets is not None:
            standards["target"] = Standard.of(subgraphs.targets[subgraphs.indices("train")][:, None])
        return cls(
            seed=seed,
            task=subgraphs.task,
            classes=subgraphs.classes,
            graph_hash=graph.content_hash,
            names_hash=graph.names_hash,
            members=recipe.training.members,
            standards=standards,
            **settings_of(recipe),
            **arrays,
        )

    @property
    def num_outputs(self) -> int:
        return task_of(self.task).num_outputs(len(self.classes))

    def recipe(self) -> dict[str, Any]:
        """The settings as a recipe has them; of training, the number of members alone."""
        return ModelRecipe(**settings_of(self)).plain() | {"training": {"members": self.members}}


def settings_of(recipe: ModelRecipe) -> dict[str, Any]:
    """Those settings of a recipe that are part of a specification, by field."""
    return {each.name: getattr(recipe, each.name) for each in fields(ModelRecipe)}


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A specification and weights.

    ``weights`` hold all that a model learned, those of every network of an ensemble (:func:`join_weights`). ``parts``
    are checkpoints of the models that this one is built of, by name: the baseline that a network corrects, or the
    members of a portfolio.
    """

    spec: ModelSpec
    weights: Weights
    parts: dict[str, "Checkpoint"] = field(default_factory=dict)

    def each(self) -> Iterator["Checkpoint"]:
        """This checkpoint, and all that it is built of, at any depth."""
        yield self
        for part in self.parts.values():
            yield from part.each()

    def tables(self) -> dict[str, ModelSpec]:
        """The tables of node embeddings it needs, by hash: specifications that name them."""
        return {one.spec.vectors_hash: one.spec for one in self.each() if one.spec.vectors_hash}

    @property
    def held_members(self) -> int:
        return len({_network_and_name(name)[0] for name in self.weights} | {0})

    def member(self, i: int) -> Self:
        """The checkpoint of one member of an ensemble; the first has the seed of the run.

        It serves to build the network; anchors of subgraphs follow the seed of the run.
        """
        by_network: dict[int, Weights] = {i: {}, 0: {}}
        for name, value in self.weights.items():
            network, short = _network_and_name(name)
            by_network.setdefault(network, {})[short] = value
        weights, first = by_network[i], by_network[0]
        if weights.keys() != first.keys():
            raise KeyError(f"weights of network {i}")
        return replace(self, spec=replace(self.spec, seed=member_seed(self.spec.seed, i)), weights=weights)


def member_seed(seed: int, i: int) -> int:
    """The seed of a member of an ensemble; the first has that of the run."""
    return stream_key(seed, f"member/{i}") if i else seed


def join_weights(members: Sequence[Weights]) -> Weights:
    """The weights of an ensemble: the first member's under their names, the others' with the member's number before."""
    numbered = ((f"member{i}." if i else "", weights) for i, weights in enumerate(members))
    return {prefix + name: value for prefix, weights in numbered for name, value in weights.items()}


def _network_and_name(name: str) -> tuple[int, str]:
    """The number of the network that has the weights of a name, and their name in it."""
    found = _MEMBER.match(name)
    return (0, name) if found is None else (int(found[1]), name[found.end() :])
