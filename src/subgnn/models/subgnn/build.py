"""From settings and prepared subgraphs to a network and its tensors, for training and prediction alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.channels.channel import SharedAnchors, draw_seed
from subgnn.channels.table import check_channels, similarity_of
from subgnn.channels.topology import Standard, node_set_statistics
from subgnn.config.files import tuned_recipes
from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.embeddings.sources import PRETRAINED, feature_rows, feature_standard, node_vectors, require_features
from subgnn.errors import DataError, UserError
from subgnn.kernels import node_set_keys
from subgnn.models.registry import uses_embeddings
from subgnn.models.scores import BaselineScores
from subgnn.models.spec import Checkpoint
from subgnn.models.subgnn import Inputs, SubGNN
from subgnn.models.subgnn.layer import layer_width, layers_width
from subgnn.prepare.measure import Frame, Measuring, Prepared, measure
from subgnn.ragged import Ragged
from subgnn.rng import stream_key


def check_recipe(recipe: Recipe, graph: Graph) -> None:
    """Raise :class:`UserError` for settings that do not fit together or do not fit the graph, before any work."""
    check_channels(recipe.channels, recipe.prepare)
    layer_width(recipe.channels, recipe.model, recipe.embeddings.dim)
    tuned_recipes(recipe)
    if recipe.embeddings.features != "none":
        require_features(graph)
    if recipe.prepare.directed and recipe.prepare.own_hops == "bounded":
        hint = "bounds hold for undirected hops alone: set prepare.own_hops=exact or prepare.directed=false"
        raise UserError("prepare.directed with prepare.own_hops=bounded", where="recipe", hint=hint)
    if recipe.method != "subgnn" and recipe.training.members > 1:
        hint = "several networks are there for SubGNN alone: leave training.members out"
        raise UserError(
            f"training.members is {recipe.training.members}, and the method {recipe.method}", where="recipe", hint=hint
        )
    if recipe.prepare.draws < 1:
        raise UserError("prepare.draws is 0", where="recipe", hint="accepted: a whole number from 1")
    if recipe.method == "subgnn" and (recipe.model.baseline, recipe.baseline.classifier) == ("topology", "head"):
        hint = "to be corrected, a baseline must be fitted in one go; accepted: auto, boosting, forest"
        raise UserError("baseline.classifier is 'head', and model.baseline 'topology'", where="recipe", hint=hint)


def unused_data(recipe: Recipe, graph: Graph) -> list[str]:
    """What a graph has and a recipe does not look at, in words, each with the setting that decides it.

    No method looks at edge weights. Direction counts in hops alone (prepare.directed), which SubGNN measures for
    position and for drawn border anchors of neighborhood. Features are for SubGNN (embeddings.features) and for
    pretraining (embeddings.source), where a method starts from embeddings.

    Args:
        graph: as it was read, directed where it is.
    """
    network = recipe.method == "subgnn"
    found = ["edge weights"] if graph.weights is not None else []
    if graph.directed and not (network and recipe.prepare.directed and _measures_hops(recipe)):
        why = ""
        if network:
            why = " (no channel measures hops)" if recipe.prepare.directed else " (prepare.directed = false)"
        found.append(f"direction of edges{why}")
    pretrained = uses_embeddings(recipe) and recipe.embeddings.source in PRETRAINED
    wanted = network and recipe.embeddings.features != "none"
    if graph.features is not None and graph.features.shape[1] and not (pretrained or wanted):
        found.append("node features" + (' (embeddings.features = "none")' if network else ""))
    return found


def _measures_hops(recipe: Recipe) -> bool:
    searches = any(similarity_of(channel, recipe.prepare).searches for channel in recipe.channels)
    return searches and recipe.model.layers > 0


def check_sight(recipe: Recipe) -> None:
    """Raise :class:`UserError` for a network that sees nothing of a subgraph, whose answer is the same for all.

    A search may start from one: what its trials draw is what counts.
    """
    model = recipe.model
    width = layers_width(recipe.channels, model, recipe.embeddings.dim, layers=model.layers)
    if recipe.method == "subgnn" and not (width or model.initial or model.topology or model.size_aware):
        hint = "give it [[channels]] and a layer; or set model.initial, model.topology or model.size_aware to true"
        raise UserError("the network sees nothing of a subgraph", where="recipe", hint=hint)


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


def target_tensor(subgraphs: SubgraphSet, standards: dict[str, Standard]) -> torch.Tensor:
    """Targets as the loss takes them; real-valued ones standardised.

    Shapes:
        returns: (n,), or (n, classes) for multi-label.
    """
    if subgraphs.targets is None:
        raise DataError("the subgraphs have no labels", where="train", hint="give each one a label")
    if "target" in standards:
        return torch.from_numpy(standards["target"](subgraphs.targets[:, None])[:, 0])
    return torch.from_numpy(np.array(subgraphs.targets))


def label_unit(standards: dict[str, Standard]) -> float:
    """What 1 of :func:`target_tensor` is in units of the label: the deviation of training labels; 1 for classes."""
    return float(standards["target"].deviation[0]) if "target" in standards else 1.0


def component_keys(subgraphs: SubgraphSet, recipe: Recipe, prepared: Prepared) -> NDArray[np.uint64]:
    """Keys of the components that have a learned offset, sorted: one for each distinct node set of the training split.

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


def measure_draws(
    checkpoint: Checkpoint, graph: Graph, subgraphs: Ragged, *, draws: int, measuring: Measuring | None = None
) -> list[Prepared]:
    """Subgraphs measured against the anchors of a checkpoint's first draws."""
    recipe = checkpoint.spec
    shared: list[list[list[SharedAnchors | None]]] = [checkpoint.spec.shared, *checkpoint.spec.redrawn]
    frames = [
        Frame(recipe.channels, recipe.prepare, shared[draw], draw_seed(checkpoint.spec.seed, draw))
        for draw in range(draws)
    ]
    return [(measuring or measure)(graph, subgraphs, frame) for frame in frames]


def touched_nodes(draws: Sequence[Prepared], subgraphs: NDArray[np.int64] | None = None) -> NDArray[np.int32]:
    """The nodes that any draw touches, sorted; those of the chosen subgraphs, by default of all."""
    return np.unique(np.concatenate([prepared.touched(subgraphs) for prepared in draws]))


def build_model(
    checkpoint: Checkpoint, graph: Graph, table: NDArray[np.int32], *, vectors: NDArray[np.float32] | None = None
) -> SubGNN:
    """The network of a checkpoint over a table of nodes; a fresh one where the checkpoint has no weights yet.

    Nodes the checkpoint has no vector for have the one they would have started from.

    Args:
        vectors: embeddings of all nodes (N, d), unless they are random.
    """
    recipe, standards, weights = checkpoint.spec, checkpoint.spec.standards, checkpoint.weights
    rows = None
    if recipe.embeddings.features != "instead":
        seed = checkpoint.spec.seed
        rows = node_vectors(recipe.embeddings, table, num_nodes=graph.num_nodes, seed=seed, table=vectors)
        if "table" in weights:  # where frozen vectors are many, a checkpoint has none
            rows[np.searchsorted(table, checkpoint.spec.table_nodes)] = weights["table"].numpy()
    model = SubGNN(
        None if rows is None else torch.from_numpy(rows),
        table,
        channels=recipe.channels,
        shared=checkpoint.spec.shared,
        settings=recipe.model,
        num_outputs=1 if checkpoint.spec.task == "regression" else len(checkpoint.spec.classes),
        trainable=recipe.embeddings.trainable,
        features=torch.from_numpy(standards["feature"](feature_rows(graph, table))) if "feature" in standards else None,
        dim=recipe.embeddings.dim,
        redrawn=checkpoint.spec.redrawn,
        num_known=len(checkpoint.spec.component_keys),
        num_component_stats=len(standards["component"].mean) if "component" in standards else 0,
        num_subgraph_stats=len(standards["subgraph"].mean) if "subgraph" in standards else 0,
    )
    if weights:
        own = {name: value for name, value in model.state_dict().items() if _of_table(name)}
        model.load_state_dict(own | {name: value for name, value in weights.items() if not _of_table(name)})
    return model


def kept_weights(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What a checkpoint keeps of a network's state: all but places in the table, which follow from its anchors."""
    return {name: value for name, value in state.items() if not name.startswith("anchors.")}


def _of_table(name: str) -> bool:
    """Whether a tensor of the network's state depends on which nodes are in the table."""
    return name == "table" or name.startswith("anchors.")


def build_inputs(
    checkpoint: Checkpoint,
    graph: Graph,
    subgraphs: Ragged,
    *,
    draws: Sequence[Prepared],
    table: NDArray[np.int32],
    device: torch.device | str = "cpu",
    scores: NDArray[np.float32] | None = None,
) -> list[Inputs]:
    """Prepared subgraphs as tensors, for each draw; with statistics where the topology channel is on.

    Args:
        scores: of the baseline that the network corrects; by default its checkpoint is asked.
    """
    prepared = draws[0]
    about = beside_channels(checkpoint, graph, subgraphs, prepared, scores)
    first = Inputs(prepared, table, known=known_components(checkpoint, prepared.components.nodes), **about).to(device)
    return [first, *(first.redrawn(other, table, draw=i) for i, other in enumerate(draws[1:], start=1))]


def beside_channels(
    checkpoint: Checkpoint,
    graph: Graph,
    subgraphs: Ragged,
    prepared: Prepared,
    scores: NDArray[np.float32] | None = None,
) -> dict[str, NDArray[np.float32]]:
    """What the network is given beside its channels, where its recipe asks for it.

    Standardised statistics of components and subgraphs with the topology channel, and the scores of the baseline that
    is corrected.

    Args:
        scores: those of the baseline; by default its checkpoint is asked.
    """
    found = {}
    standards = checkpoint.spec.standards
    if "component" in standards:
        found["component_stats"] = standards["component"](node_set_statistics(graph, prepared.components.nodes))
        found["subgraph_stats"] = standards["subgraph"](node_set_statistics(graph, subgraphs))
    if checkpoint.baseline is not None:
        asked = BaselineScores(checkpoint.baseline, graph).of(subgraphs) if scores is None else scores
        found["baseline_scores"] = asked
    return found


def known_components(checkpoint: Checkpoint, components: Ragged) -> NDArray[np.int64] | None:
    """For each component the row of its learned offset; 0, the row of no offset, for those not met in training."""
    known = checkpoint.spec.component_keys
    if not len(known):
        return None
    keys = _keys(components)
    places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[places] == keys, places + 1, 0).astype(np.int64)
