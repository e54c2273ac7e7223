"""The definition of a triangular walk, by sets and fractions, for the walks that are drawn to be held against."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import networkx as nx

from tests.kernels.chance import uniform
from tests.kernels.graphs import SmallGraph


@dataclass(frozen=True)
class Law:
    """How a triangular walk moves over the allowed nodes of a graph, from a uniform one of its starts."""

    graph: SmallGraph
    allowed: frozenset[int]
    starts: frozenset[int]
    beta: float

    @cached_property
    def near(self) -> dict[int, set[int]]:
        """Allowed neighbours; for a directed graph, where its edges lead."""
        return {v: set(self.graph.networkx.adj[v]) & self.allowed for v in range(self.graph.num_nodes)}

    def second(self, x: int) -> dict[int, float]:
        """The distribution of X_1 after X_0 = x; empty where the walk ends."""
        return uniform(self.near[x])

    def after(self, x: int, y: int) -> dict[int, float]:
        """The distribution of the node after x and y; empty where the walk ends."""
        closing, opening = self.near[y] & self.near[x], self.near[y] - self.near[x]
        if not closing or not opening:
            return uniform(closing | opening)
        chances = {z: self.beta / len(closing) for z in closing} | {z: (1 - self.beta) / len(opening) for z in opening}
        return {z: chance for z, chance in chances.items() if chance > 0}

    def step(self, before: list[int]) -> dict[int, float]:
        """The distribution of the node after all those before."""
        if not before:
            return uniform(self.starts)
        return self.second(before[0]) if len(before) == 1 else self.after(*before[-2:])

    def permits(self, walk: list[int], length: int) -> bool:
        """Whether every step has a chance, and the walk ends at ``length`` nodes or where it must."""
        steps = all(node in self.step(walk[:t]) for t, node in enumerate(walk))
        return steps and (len(walk) == length or not self.step(walk))


def graph_law(graph: SmallGraph, beta: float) -> Law:
    """Over the whole graph."""
    everyone = frozenset(range(graph.num_nodes))
    return Law(graph, everyone, everyone, beta)


def inside_law(graph: SmallGraph, patch: list[int], beta: float) -> Law:
    """Inside a patch."""
    return Law(graph, frozenset(patch), frozenset(patch), beta)


def border_law(graph: SmallGraph, patch: list[int], hops: int, beta: float) -> Law:
    """From the patch's border nodes, over them and the nodes outside within ``hops`` of the patch."""
    starts = frozenset(v for v in patch if set(graph.networkx.adj[v]) - set(patch))
    near = nx.multi_source_dijkstra_path_length(graph.networkx, patch, cutoff=hops) if patch else {}
    return Law(graph, starts | (set(near) - set(patch)), starts, beta)
