"""What SubGNN is measured against, one file each, all behind the same training, prediction, metrics and run folder.

========== ===================================================== ==================== =============
method     a subgraph is                                         file                 new subgraphs
========== ===================================================== ==================== =============
avg        the mean of its nodes' embeddings                     avg                  yes
mn-gin     a meta node joined to its nodes, embedded with G      meta_node            no
mn-gat     the same, with attention                              meta_node            no
s2v-n      documents of random walks over its nodes (doc2vec)    sub2vec              no
s2v-s      the same walks, nodes replaced by binned degrees      sub2vec              no
s2v-ns     both                                                  sub2vec              no
gc         a graph of its own (GIN, sum pooling)                 graph_classification yes
topology   statistics of it and of its border                    topology             yes
bag        the bag of its nodes                                  bag                  yes
bag-1hop   the bag beside itself spread one hop                  bag                  yes
========== ===================================================== ==================== =============

The first seven are the paper's (section 5, appendix D); topology and bag are beyond it: a model that does not beat
them has learned nothing that needs it.

A method is a few functions (:class:`Method`). Everything it knows is a dictionary of tensors: ``begin`` makes what is
there before training, ``module`` makes a network from it whose ``state_dict`` has all of it again beside what was
learned, and that is what a checkpoint holds. So training and prediction build the same network from the same kind of
dictionary, and nothing is pickled. A module takes what ``inputs(...).batch(rows)`` gives and has ``embed`` and
``forward``; one that has ``solve`` is fitted in one go (:class:`~subgnn.training.candidates.Solvable`), the others by
the training loop. Choices that a recipe leaves open become candidates, and validation decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from subgnn.config.files import tuned_recipes
from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError
from subgnn.models import (
    avg,
    bag,
    graph_classification,
    known_subgraphs,
    meta_node,
    node_table,
    sub2vec,
    topology,
)
from subgnn.models.spec import Checkpoint, ModelSpec
from subgnn.ragged import Ragged
from subgnn.rng import stream_key
from subgnn.training.candidates import Candidate
from subgnn.training.evaluation import Source
from subgnn.training.loop import State

Vectors = NDArray[np.float32] | None


class Begin(Protocol):
    """What a method knows before training; it may look at all node sets, and at labels of the training split alone."""

    def __call__(
        self,
        graph: Graph,
        subgraphs: SubgraphSet,
        recipe: Recipe,
        *,
        seed: int,
        device: torch.device,
        vectors: Vectors,
    ) -> State:
        """Tensors by name, as the module's ``state_dict`` will name them."""


def _as_it_is(checkpoint: Checkpoint, graph: Graph, nodes: Ragged, vectors: Vectors) -> Checkpoint:
    return checkpoint


@dataclass(frozen=True, slots=True)
class Method:
    """The functions that make a method.

    candidates gives the recipe once for each way to make its open choices, by name. problems says what is wrong with
    weights read from a file beyond their shapes: nodes that the graph does not have, and the like. cover makes room for
    nodes that are first met in prediction.
    """

    begin: Begin
    inputs: Callable[[Checkpoint, Graph, Ragged], Source]
    module: Callable[[Checkpoint], nn.Module]
    candidates: Callable[[Recipe], dict[str, Recipe]]
    problems: Callable[[Checkpoint, int], Iterator[str]]
    cover: Callable[[Checkpoint, Graph, Ragged, Vectors], Checkpoint] = _as_it_is
    needs_edges: bool = True
    uses_embeddings: bool = False


def head_candidates(recipe: Recipe) -> dict[str, Recipe]:
    """Frozen and trainable embeddings, or the one the recipe says, with each of the settings it leaves open."""
    ways = {"frozen": False, "trainable": True}
    return {
        f"{name}, {settings}" if settings else name: replace(
            tuned, embeddings=replace(recipe.embeddings, trainable=trainable)
        )
        for settings, tuned in tuned_recipes(recipe).items()
        for name, trainable in ways.items()
        if recipe.baseline.tune_embeddings or trainable == recipe.embeddings.trainable
    }


_META_NODE = Method(
    meta_node.begin, known_subgraphs.inputs, known_subgraphs.module, head_candidates, known_subgraphs.problems
)
_SUB2VEC = replace(_META_NODE, begin=sub2vec.begin)
_BAG = Method(bag.begin, bag.inputs, bag.module, bag.candidates, bag.problems, needs_edges=False)

METHODS: dict[str, Method] = {
    "avg": Method(
        node_table.begin,
        avg.inputs,
        avg.module,
        head_candidates,
        node_table.problems,
        cover=node_table.cover,
        needs_edges=False,
        uses_embeddings=True,
    ),
    "mn-gin": _META_NODE,
    "mn-gat": _META_NODE,
    "s2v-n": _SUB2VEC,
    "s2v-s": _SUB2VEC,
    "s2v-ns": _SUB2VEC,
    "gc": Method(
        node_table.begin,
        graph_classification.inputs,
        graph_classification.module,
        head_candidates,
        node_table.problems,
        cover=node_table.cover,
        uses_embeddings=True,
    ),
    "topology": Method(topology.begin, topology.inputs, topology.module, topology.candidates, topology.problems),
    "bag": _BAG,
    "bag-1hop": replace(_BAG, needs_edges=True),
}


def uses_embeddings(recipe: Recipe | ModelSpec) -> bool:
    """Whether a recipe's method starts from node embeddings."""
    if recipe.method == "subgnn":
        return recipe.embeddings.features != "instead"
    return METHODS[recipe.method].uses_embeddings


def set_up(
    graph: Graph,
    subgraphs: SubgraphSet,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device,
    vectors: Vectors = None,
) -> tuple[list[Candidate], Source]:
    """The candidates of a recipe, unfitted, and the subgraphs as they take them.

    Args:
        vectors: embeddings of all nodes (N, d), for methods that use them, unless they are random.
    """
    method = METHODS[recipe.method]
    if subgraphs.targets is None:
        raise DataError("the subgraphs have no labels", where="train", hint="give each one a label")
    if method.needs_edges and not graph.num_edges:
        can = ", ".join(name for name, other in METHODS.items() if not other.needs_edges)
        raise DataError(f"{recipe.method} needs edges, and the graph has none", where="train", hint=f"without: {can}")
    spec = ModelSpec.of(recipe, graph, subgraphs, seed=seed)
    checkpoint = Checkpoint(spec, method.begin(graph, subgraphs, recipe, seed=seed, device=device, vectors=vectors))
    candidates = []
    for name, resolved in method.candidates(recipe).items():
        own = replace(checkpoint, spec=spec.with_settings(resolved))
        with torch.random.fork_rng():
            torch.manual_seed(stream_key(seed, "initialisation"))
            candidates.append(Candidate(name, method.module(own), own, resolved))
    return candidates, method.inputs(checkpoint, graph, subgraphs.nodes)


class Answers:
    """A fitted baseline, asked about subgraphs; the network is built once, and again only for nodes it has not met."""

    def __init__(self, checkpoint: Checkpoint, graph: Graph, device: torch.device, vectors: Vectors = None) -> None:
        self.checkpoint, self.graph, self.device, self.vectors = checkpoint, graph, device, vectors
        self.method = METHODS[checkpoint.spec.method]
        self._built = self._build(checkpoint)

    def _build(self, checkpoint: Checkpoint) -> nn.Module:
        model = self.method.module(checkpoint)
        model.load_state_dict(checkpoint.weights)
        return model.to(self.device).eval()

    @torch.no_grad()
    def ask(self, subgraphs: Ragged, what: str) -> NDArray[np.float32]:
        """``forward`` or ``embed`` of every subgraph."""
        covering = self.method.cover(self.checkpoint, self.graph, subgraphs, self.vectors)
        model: Any = self._built if covering is self.checkpoint else self._build(covering)
        inputs = self.method.inputs(covering, self.graph, subgraphs).to(self.device)
        answer: torch.Tensor = getattr(model, what)(inputs.batch(np.arange(len(subgraphs))))
        return answer.float().cpu().numpy()
