"""WEIGHT-, DIRECTION- and TYPE-PLANTED: one attribute of edges alone carries the label; beyond the paper.

Two random regions of equal size, and subgraphs that share no node: each is a ring with random chords. Every node of a
subgraph has the same number of ties to either region, to nodes drawn at random. The label says which region a subgraph
belongs to, and only an attribute of its ties shows it:

- WEIGHT-PLANTED: ties to that region are heavy, those to the other one are light.
- DIRECTION-PLANTED: ties lead to that region, and come from the other one.
- TYPE-PLANTED: ties to that region are of the type ``left``, those to the other one of the type ``right``.

All else is drawn in the same way for both labels: who is tied to whom, degrees, also those of leaving and of entering
edges, the shape of a subgraph, and the attributes of all edges that are not ties. A subgraph's nodes are in no other
one, so membership says nothing. A model that does not use the attribute can only guess.

    python examples/planted.py weight-planted FOLDER [SEED]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from subgnn.data.dataset import Dataset
from subgnn.data.formats.folder import write_folder
from subgnn.data.graph import Graph
from subgnn.data.synthetic import Recipe, assemble
from subgnn.data.synthetic.graphs import Draft
from subgnn.kernels.arrays import Array
from subgnn.ragged import Ragged
from subgnn.rng import stream

TYPES = ("left", "right")


@dataclass(frozen=True, slots=True)
class PlantedSettings:
    """Sizes of a planted dataset.

    Args:
        num_subgraphs, subgraph_size: how many subgraphs, of how many nodes.
        chords: random edges of a subgraph, beside its ring, for each of its nodes; on average.
        region_size: nodes of each of the two regions.
        region_degree: mean number of edges of a node of a region to others of it.
        ties: edges of each node of a subgraph to each of the regions.
    """

    num_subgraphs: int = 250
    subgraph_size: int = 10
    chords: float = 0.5
    region_size: int = 100
    region_degree: float = 6.0
    ties: int = 2


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """Subgraphs tied to two regions, before edges have attributes.

    Edges that are no ties come first: those of regions, then those of subgraphs.

    Shapes:
        tails, heads: (edges,); the tail of a tie is in a subgraph. region: (edges,), the region that a tie leads to, 0
        or 1, and -1 for other edges. owner: (edges,), the subgraph of a tie, and -1 for other edges.
        labels: (num_subgraphs,), 0 or 1: the region that a subgraph belongs to.
    """

    tails: Array
    heads: Array
    region: Array
    owner: Array
    subgraphs: Ragged
    labels: Array

    @property
    def own(self) -> Array:
        """For each edge, whether it is a tie to the region that its subgraph belongs to (edges,)."""
        return np.asarray((self.region >= 0) & (self.labels[self.owner] == self.region))

    def draft(self, graph: Graph, amounts: Array, name: str) -> Draft:
        """The finished dataset; its property is the share of the amounts of ties that is at those to region 1."""
        tied = self.region >= 0
        whole = np.bincount(self.owner[tied], amounts[tied])
        share = np.bincount(self.owner[tied], (amounts * self.region)[tied]) / whole
        return Draft(graph, self.subgraphs, [str(label) for label in self.labels.tolist()], {name: share})


def _pairs(size: int, count: int, left_out: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Different pairs of 0..size-1, the first below the second, without those left out (as first x size + second)."""
    low, high = np.triu_indices(size, 1)
    free = np.flatnonzero(~np.isin(low * size + high, left_out))
    chosen = rng.choice(free, size=min(count, len(free)), replace=False)
    return low[chosen], high[chosen]


def draw_ties(settings: PlantedSettings, seed: int, name: str) -> Ties:
    """Draw regions, subgraphs, their ties and labels."""
    rng, size, count = stream(seed, f"{name}/graph"), settings.subgraph_size, settings.num_subgraphs
    first = 2 * settings.region_size  # the regions' nodes come first
    tails, heads = [], []
    for region in (0, 1):
        wanted = round(settings.region_degree * settings.region_size / 2)
        low, high = _pairs(settings.region_size, wanted, np.empty(0, np.int64), rng)
        tails.append(low + region * settings.region_size)
        heads.append(high + region * settings.region_size)
    ring = np.arange(size), (np.arange(size) + 1) % size
    around = np.minimum(*ring) * size + np.maximum(*ring)
    for s in range(count):
        low, high = _pairs(size, rng.binomial(2 * size, settings.chords / 2), around, rng)
        tails.append(first + s * size + np.concatenate([ring[0], low]))
        heads.append(first + s * size + np.concatenate([ring[1], high]))
    plain = sum(map(len, tails))
    members = np.arange(first, first + count * size)
    for region in (0, 1):
        # Sorted draws, each moved up by its rank, are different nodes.
        drawn = np.sort(rng.integers(settings.region_size - settings.ties + 1, size=(len(members), settings.ties)))
        tails.append(np.repeat(members, settings.ties))
        heads.append((drawn + np.arange(settings.ties) + region * settings.region_size).reshape(-1))
    ties = len(members) * settings.ties
    nothing = np.full(plain, -1, np.int64)
    return Ties(
        np.concatenate(tails).astype(np.int32),
        np.concatenate(heads).astype(np.int32),
        np.concatenate([nothing, np.repeat([0, 1], ties)]),
        np.concatenate([nothing, np.tile(np.repeat(np.arange(count), size * settings.ties), 2)]),
        Ragged.from_lengths(members.astype(np.int32), np.full(count, size)),
        stream(seed, f"{name}/labels").permutation(np.arange(count) % 2),
    )


def make_weight_planted(settings: PlantedSettings, seed: int) -> Draft:
    """Draw a WEIGHT-PLANTED graph and its subgraphs."""
    name = "synthetic/weight-planted"
    found, rng = draw_ties(settings, seed, name), stream(seed, f"{name}/weights")
    spread = rng.uniform(0.5, 1.5, len(found.tails)).astype(np.float32)
    heavy = np.where(found.region >= 0, found.own, rng.random(len(spread)) < 0.5)
    weights = np.where(heavy, np.float32(10), np.float32(1)) * spread
    graph = Graph.from_edges(found.tails, found.heads, weights=weights)
    return found.draft(graph, weights, "weight_to_1")


def make_direction_planted(settings: PlantedSettings, seed: int) -> Draft:
    """Draw a DIRECTION-PLANTED graph and its subgraphs."""
    name = "synthetic/direction-planted"
    found, rng = draw_ties(settings, seed, name), stream(seed, f"{name}/direction")
    along = np.where(found.region >= 0, found.own, rng.random(len(found.tails)) < 0.5)
    tails, heads = np.where(along, found.tails, found.heads), np.where(along, found.heads, found.tails)
    graph = Graph.from_edges(tails, heads, directed=True)
    return found.draft(graph, along.astype(np.float64), "leading_to_1")


def make_type_planted(settings: PlantedSettings, seed: int) -> Draft:
    """Draw a TYPE-PLANTED graph and its subgraphs."""
    name = "synthetic/type-planted"
    found, rng = draw_ties(settings, seed, name), stream(seed, f"{name}/types")
    left = np.where(found.region >= 0, found.own, rng.random(len(found.tails)) < 0.5)
    graph = Graph.from_edges(found.tails, found.heads, types=np.where(left, *TYPES))
    return found.draft(graph, left.astype(np.float64), "left_to_1")


PLANTED = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "weight-planted",
            PlantedSettings,
            make_weight_planted,
            "label: the region, 0 or 1, to which the heavy ties of the subgraph lead; only weights of edges show it",
        ),
        Recipe(
            "direction-planted",
            PlantedSettings,
            make_direction_planted,
            "label: the region, 0 or 1, to which ties of the subgraph lead; those with the other region come from it; "
            "only the direction of edges shows it",
        ),
        Recipe(
            "type-planted",
            PlantedSettings,
            make_type_planted,
            "label: the region, 0 or 1, to which ties of the subgraph are of the type 'left'; only types of edges show "
            "it",
        ),
    )
}


def generate_planted(name: str, *, seed: int = 0, **settings: float) -> Dataset:
    """Draw a planted dataset; settings are those of :class:`PlantedSettings`."""
    return assemble(PLANTED[name], PlantedSettings(**settings), seed)  # type: ignore[arg-type]


if __name__ == "__main__":
    name, folder, *seed = sys.argv[1:]
    write_folder(generate_planted(name, seed=int(*seed) if seed else 0), Path(folder))
