"""Networks and their inputs, from a specification and prepared subgraphs, for training and prediction alike.

Up to :data:`LARGE` numbers, or a quarter of it if they are frozen, a step works on the whole table of node vectors,
which needs no numbering of nodes for each batch. Above, batches number their nodes themselves
(:mod:`subgnn.models.subgnn.batches`). Only the size of the table decides, for a learned one that of the rows that
training subgraphs touch, never the memory at hand. Large tables of frozen random embeddings are not stored: a row is a
function of node and seed, drawn when a batch needs it, or kept if memory allows, which gives the same numbers.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.channels.topology import node_set_statistics
from subgnn.config.settings import EmbeddingSettings, Recipe
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.embeddings.sources import feature_rows, feature_standard, node_vectors
from subgnn.errors import MemoryLimitError
from subgnn.kernels.draws import node_set_keys
from subgnn.models.interface import Settings, Vectors
from subgnn.models.spec import Checkpoint, ModelSpec
from subgnn.models.subgnn import Inputs, SubGNN
from subgnn.models.subgnn.batches import Beside, StreamedInputs
from subgnn.parallel.memory import limit
from subgnn.prepare.measure import Prepared
from subgnn.ragged import Ragged
from subgnn.rng import stream_key
from subgnn.task import Standard

LARGE = 2**25
"""Numbers in a learned table of nodes above which steps do without the whole of it."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeTable:
    """The nodes that a network may meet, sorted, and how it gets their vectors.

    It has the ``whole`` table; or a batch numbers its nodes itself, and looks up ``rows`` of a large learned table, or
    has vectors ``carried`` along, as large frozen or no longer learned ones are.
    """

    nodes: NDArray[np.int32]
    access: Literal["whole", "rows", "carried"] = "whole"


def has_embeddings(settings: Settings) -> bool:
    """Whether nodes have embeddings; features may stand in their place."""
    return settings.embeddings.features != "instead"


def is_large(num_nodes: int, settings: EmbeddingSettings) -> bool:
    """Whether a table of this many nodes is too large to be worked on as a whole in every step.

    A frozen one is streamed from a quarter of the size on, where that begins to be faster and computes the same; a
    large learned one is updated in another way (:mod:`subgnn.training.steps`).
    """
    return num_nodes * settings.dim > (LARGE if settings.trainable else LARGE // 4)


def check_table_fits(rows: int, settings: EmbeddingSettings) -> None:
    """Refuse a table that is too large to be learned: its rows, two moments of each, and a copy of the best."""
    needed = 4 * rows * settings.dim * 4
    if needed > 0.8 * limit():
        what = f"a learned table of {rows:,} nodes x {settings.dim} numbers needs {needed / 1e9:.1f} GB to train"
        hint = "set embeddings.trainable=false; or a smaller embeddings.dim, fewer anchors or --processes"
        raise MemoryLimitError(what, where="--memory", hint=f"{hint}, more --memory")


def table_for_training(prepared: Prepared, train: NDArray[np.int64], settings: EmbeddingSettings) -> NodeTable:
    """The table of a network over all touched nodes; ``train`` are the training subgraphs."""
    nodes = prepared.touched()
    if not is_large(len(nodes), settings):
        return NodeTable(nodes)
    if not settings.trainable or settings.features == "instead":
        return NodeTable(nodes, "carried")
    if is_large(len(prepared.touched(train)), settings):
        return NodeTable(nodes, "rows")
    # A large table is learned in another way, which subgraphs outside the training split must not decide.
    check_table_fits(len(nodes), settings)
    return NodeTable(nodes)


def build_standards(graph: Graph, subgraphs: SubgraphSet, recipe: Recipe, prepared: Prepared) -> dict[str, Standard]:
    """Means and deviations: of the training split for statistics, of all nodes for features."""
    train = subgraphs.indices("train")
    found = {}
    if recipe.model.topology:
        found["component"] = Standard.of(node_set_statistics(graph, _components_of(prepared, train)))
        found["subgraph"] = Standard.of(node_set_statistics(graph, subgraphs.nodes.take(train)))
    if recipe.embeddings.features != "none":
        found["feature"] = feature_standard(graph)
    return found


def component_keys(subgraphs: SubgraphSet, recipe: Recipe, prepared: Prepared) -> NDArray[np.uint64]:
    """Keys of the components with a learned initial state, sorted: one for each node set of the training split.

    A key is 64 bits, so that two node sets share one with a probability of about 1e-10 among a hundred thousand.
    """
    if not recipe.model.trainable_components:
        return np.empty(0, np.uint64)
    return np.unique(_keys(_components_of(prepared, subgraphs.indices("train"))))


def _components_of(prepared: Prepared, subgraphs: NDArray[np.int64]) -> Ragged:
    components = prepared.components
    return components.nodes.take(np.flatnonzero(np.isin(components.subgraph, subgraphs)))


def _keys(rows: Ragged) -> NDArray[np.uint64]:
    return node_set_keys(stream_key(0, "components"), rows)


def anchor_nodes(spec: ModelSpec) -> NDArray[np.int32]:
    """The nodes of shared anchors and of walks over them, sorted."""
    touched = [anchors.touched for layer in spec.shared for anchors in layer if anchors is not None]
    return np.unique(np.concatenate([np.empty(0, np.int32), *touched]))


def build_network(checkpoint: Checkpoint, graph: Graph, table: NodeTable, *, vectors: Vectors = None) -> SubGNN:
    """The network of a checkpoint over a table of nodes; a fresh one if the checkpoint has no weights yet.

    Nodes that the checkpoint has no vector for get the one they would have started from.
    """
    spec, weights, standards = checkpoint.spec, checkpoint.weights, checkpoint.spec.standards
    whole, rows, features = table.access == "whole", None, None
    if has_embeddings(spec) and table.access != "carried":
        if not whole:
            check_table_fits(len(table.nodes), spec.embeddings)
        rows = node_vectors(spec.embeddings, table.nodes, num_nodes=graph.num_nodes, seed=spec.seed, table=vectors)
        if whole and "table" in weights:  # which many frozen vectors are not
            rows[np.searchsorted(table.nodes, spec.table_nodes)] = weights["table"].numpy()
    if whole and "feature" in standards:
        features = torch.from_numpy(standards["feature"](feature_rows(graph, table.nodes)))
    network = SubGNN(
        None if rows is None else torch.from_numpy(rows) if whole else torch.empty(0, spec.embeddings.dim),
        table.nodes if whole else anchor_nodes(spec),
        channels=spec.channels,
        shared=spec.shared,
        settings=spec.model,
        num_outputs=spec.num_outputs,
        embeddings=spec.embeddings,
        features=features,
        num_features=len(standards["feature"].mean) if "feature" in standards else 0,
        num_known=len(spec.component_keys),
    )
    if not whole and rows is not None:
        network.table = torch.nn.Parameter(torch.from_numpy(rows))  # without the copy that the network makes
    if weights:  # but for what depends on which nodes are in the table
        own = {name: value for name, value in network.state_dict().items() if name.startswith(("table", "anchors."))}
        network.load_state_dict({name: value for name, value in weights.items() if name != "table"} | own)
    return network


@dataclass(frozen=True, slots=True, eq=False)
class NodeLookup:
    """Embeddings (n, d) of nodes (n,), as they were drawn, or given for all nodes in ``vectors`` (N, d).

    ``known`` are nodes, sorted, and rows of theirs that were learned, or that were drawn at once.
    """

    spec: ModelSpec
    num_nodes: int
    vectors: Vectors = None
    known: tuple[NDArray[np.int32], NDArray[np.float32]] | None = None

    def __call__(self, nodes: NDArray[np.int32]) -> NDArray[np.float32]:
        met, own = np.zeros(len(nodes), bool), np.empty((0, self.spec.embeddings.dim), np.float32)
        if self.known is not None:
            known, rows = self.known
            places = np.minimum(np.searchsorted(known, nodes), len(known) - 1)
            met = known[places] == nodes
            own = rows[places[met]]
        if met.all():
            return own
        spec = self.spec
        found = node_vectors(spec.embeddings, nodes, num_nodes=self.num_nodes, seed=spec.seed, table=self.vectors)
        found[met] = own
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Subgraphs as they were prepared; ``scores`` (n, outputs) are those of the baseline that is corrected."""

    subgraphs: Ragged
    prepared: Prepared
    scores: NDArray[np.float32] | None = None


def build_inputs(
    spec: ModelSpec, graph: Graph, data: Measured, table: NodeTable, *, lookup: NodeLookup | None, device: torch.device
) -> Inputs | StreamedInputs:
    """Measured subgraphs as a network takes them; ``lookup`` gives the vectors that batches carry."""
    prepared, standards, known = data.prepared, spec.standards, spec.component_keys
    given: dict[str, Any] = {"scores": data.scores}
    if len(known):  # for each component the row of its learned initial state; 0 for those not met in training
        keys = _keys(prepared.components.nodes)
        places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        given["known"] = np.where(known[places] == keys, places + 1, 0).astype(np.int64)
    if "component" in standards:
        given["component_stats"] = standards["component"](node_set_statistics(graph, prepared.components.nodes))
        given["subgraph_stats"] = standards["subgraph"](node_set_statistics(graph, data.subgraphs))
    beside = Beside(**given)
    if table.access == "whole":
        return Inputs(prepared, table.nodes, beside).to(device)

    def features(nodes: NDArray[np.int32]) -> NDArray[np.float32]:
        return standards["feature"](feature_rows(graph, nodes))

    return StreamedInputs(
        prepared,
        anchor_nodes(spec),
        table=table.nodes if table.access == "rows" else None,
        vectors=lookup if table.access == "carried" and has_embeddings(spec) else None,
        features=features if "feature" in standards else None,
        beside=beside,
    ).to(device)
