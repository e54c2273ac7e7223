"""Networks and inputs whose steps do not look at the whole table of nodes; for tables that are large.

Up to :data:`LARGE` numbers, or a quarter of it where they are frozen, a step works on the whole table, which needs no
numbering of its own for each batch. Above, batches number their nodes themselves
(:mod:`subgnn.models.subgnn.batches`). Which way is taken follows from the size of the table alone, for a learned one
that of its rows which training subgraphs touch, never from the memory at hand. Frozen random embeddings are then a
function of node and seed: a checkpoint has none of them, and rows are drawn when a batch asks, or kept where memory
allows, which gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.config.settings import EmbeddingSettings
from subgnn.data.graph import Graph
from subgnn.embeddings.sources import feature_rows, node_vectors
from subgnn.errors import UserError
from subgnn.models.spec import Checkpoint
from subgnn.models.subgnn import SubGNN
from subgnn.models.subgnn.batches import StreamedInputs
from subgnn.models.subgnn.build import beside_channels, known_components
from subgnn.parallel.memory import limit, share
from subgnn.prepare.measure import Prepared
from subgnn.ragged import Ragged

LARGE = 2**25
"""Numbers in a learned table of nodes from which on steps do without the whole of it."""


def is_large(num_nodes: int, settings: EmbeddingSettings) -> bool:
    """Whether a table of this many nodes is too large to be looked at in every step.

    A frozen one is so from a quarter of the size on, where streaming begins to be faster: it computes the same. A
    learned one is moved in another way then (:mod:`subgnn.training.optimizer`).
    """
    return num_nodes * settings.dim > (LARGE if settings.trainable else LARGE // 4)


def is_carried(checkpoint: Checkpoint) -> bool:
    """Whether a trained network has no table because batches bring its frozen embeddings along."""
    return bool(checkpoint.weights) and "table" not in checkpoint.weights and _embedded(checkpoint)


def _embedded(checkpoint: Checkpoint) -> bool:
    return checkpoint.spec.embeddings.features != "instead"


def anchor_nodes(checkpoint: Checkpoint) -> NDArray[np.int32]:
    """The nodes of shared anchors and of walks over them, of all draws, sorted."""
    found = [np.empty(0, np.int32)]
    for draw in (checkpoint.spec.shared, *checkpoint.spec.redrawn):
        found += [anchors.touched for layer in draw for anchors in layer if anchors is not None]
    return np.unique(np.concatenate(found))


class NodeLookup:
    """Embeddings of the nodes that are asked for.

    Args:
        vectors: embeddings of all nodes (N, d), unless they are random.
        learned: nodes, sorted, and the rows that were learned for them; all others are as they were drawn.
        ahead: nodes, sorted, whose rows are kept from the start, where memory allows; others are not asked for then.
    """

    def __init__(
        self,
        settings: EmbeddingSettings,
        *,
        num_nodes: int,
        seed: int,
        vectors: NDArray[np.float32] | None = None,
        learned: tuple[NDArray[np.int32], NDArray[np.float32]] | None = None,
        ahead: NDArray[np.int32] | None = None,
    ) -> None:
        self._settings, self._num_nodes, self._seed, self._vectors = settings, num_nodes, seed, vectors
        self._learned, self._ahead = learned, None
        if ahead is not None and vectors is None and len(ahead) * settings.dim * 4 <= share(0.25):
            self._ahead = ahead, self._draw(ahead)

    def _draw(self, nodes: NDArray[np.int32]) -> NDArray[np.float32]:
        return node_vectors(self._settings, nodes, num_nodes=self._num_nodes, seed=self._seed, table=self._vectors)

    def __call__(self, nodes: NDArray[np.int32]) -> NDArray[np.float32]:
        """Shapes: nodes: (n,). returns: (n, d) float32."""
        if self._ahead is not None:
            kept, rows = self._ahead
            return rows[np.searchsorted(kept, nodes)]
        found = self._draw(nodes)
        if self._learned is not None:
            known, rows = self._learned
            places = np.minimum(np.searchsorted(known, nodes), len(known) - 1)
            met = known[places] == nodes
            found[met] = rows[places[met]]
        return found


def build_streamed_model(
    checkpoint: Checkpoint,
    graph: Graph | None,
    *,
    table: NDArray[np.int32] | None = None,
    vectors: NDArray[np.float32] | None = None,
) -> SubGNN:
    """The network of a checkpoint for batches that number their nodes themselves.

    Args:
        graph: where embeddings are learned.
        table: the nodes whose embeddings are learned; None where batches bring embeddings along.
        vectors: embeddings of all nodes (N, d), unless they are random.
    """
    recipe, standards, weights = checkpoint.spec, checkpoint.spec.standards, checkpoint.weights
    model = SubGNN(
        None if table is None else torch.empty(0, recipe.embeddings.dim),
        anchor_nodes(checkpoint),
        channels=recipe.channels,
        shared=checkpoint.spec.shared,
        settings=recipe.model,
        num_outputs=checkpoint.spec.num_outputs,
        dim=recipe.embeddings.dim,
        redrawn=checkpoint.spec.redrawn,
        num_known=len(checkpoint.spec.component_keys),
        num_component_stats=len(standards["component"].mean) if "component" in standards else 0,
        num_subgraph_stats=len(standards["subgraph"].mean) if "subgraph" in standards else 0,
        carried=_embedded(checkpoint),
        num_features=len(standards["feature"].mean) if "feature" in standards else 0,
    )
    if table is not None and graph is not None:
        check_room(len(table), recipe.embeddings)
        rows = node_vectors(recipe.embeddings, table, num_nodes=graph.num_nodes, seed=recipe.seed, table=vectors)
        model.table = torch.nn.Parameter(torch.from_numpy(rows))
    if weights:
        own = {name: value for name, value in model.state_dict().items() if name.startswith("anchors.")}
        model.load_state_dict(own | {name: value for name, value in weights.items() if name != "table"})
    return model


def check_room(rows: int, settings: EmbeddingSettings) -> None:
    """Refuse a table that is too large to be learned: it needs its rows, two moments of each, and a copy of the best.

    Raises:
        UserError: where memory is too small for it.
    """
    needed = 4 * rows * settings.dim * 4
    if needed > 0.8 * limit():
        what = f"a learned table of {rows:,} nodes x {settings.dim} numbers needs {needed / 1e9:.1f} GB to train"
        hint = (
            "set embeddings.trainable=false; or a smaller embeddings.dim, fewer anchors or --processes, more --memory"
        )
        raise UserError(what, where="--memory", hint=hint)


def build_streams(
    checkpoint: Checkpoint,
    graph: Graph,
    subgraphs: Ragged,
    *,
    draws: Sequence[Prepared],
    table: NDArray[np.int32] | None = None,
    lookup: NodeLookup | None = None,
    scores: NDArray[np.float32] | None = None,
) -> list[StreamedInputs]:
    """Prepared subgraphs for each draw, read batch by batch.

    Args:
        table: the nodes of the network's table, where it has one.
        lookup: gives embeddings, where the network has no table.
        scores: of the baseline that the network corrects; by default its checkpoint is asked.
    """
    standards = checkpoint.spec.standards

    def features(nodes: NDArray[np.int32]) -> NDArray[np.float32]:
        return standards["feature"](feature_rows(graph, nodes))

    options: dict[str, Any] = {
        "table": table,
        "vectors": lookup if table is None and _embedded(checkpoint) else None,
        "features": features if "feature" in standards else None,
        "known": known_components(checkpoint, draws[0].components.nodes),
        **beside_channels(checkpoint, graph, subgraphs, draws[0], scores),
    }
    anchors = anchor_nodes(checkpoint)
    return [StreamedInputs(prepared, anchors, draw=draw, **options) for draw, prepared in enumerate(draws)]
