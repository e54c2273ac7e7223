"""Components, borders and core numbers beside networkx, scipy and igraph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernel_cases.measure import Case, Rival
from kernel_cases.workloads import Workload
from subgnn.kernels.borders import border_sets
from subgnn.kernels.induced import Components, core_numbers, induced_components
from subgnn.ragged import Ragged


def structure_cases(load: Workload) -> Iterator[Case]:
    """2,000 subgraphs of 20 nodes, then the whole graph."""
    yield _components(load)
    yield _borders(load)
    yield _cores(load)


def _components(load: Workload) -> Case:
    subgraphs, forms = load.subgraphs, load.rivals
    rows = [row.tolist() for row in subgraphs]
    slow, sliced = load.part(len(rows), 500), load.part(len(rows), 200)
    arrays = list(subgraphs)[:sliced]

    def by_networkx() -> Any:
        import networkx

        graph = forms.networkx()
        return [list(networkx.connected_components(graph.subgraph(nodes))) for nodes in rows[:slow]]

    def by_scipy() -> Any:
        from scipy.sparse.csgraph import connected_components

        matrix = forms.scipy()
        return [connected_components(matrix[nodes][:, nodes], directed=False)[1] for nodes in arrays]

    def by_igraph() -> Any:
        graph = forms.igraph()
        return [graph.induced_subgraph(nodes).connected_components().membership for nodes in rows[:sliced]]

    def same_sets(ours: Components, theirs: Any) -> bool:
        return all(a == {frozenset(c) for c in b} for a, b in zip(_families(ours), theirs, strict=False))

    def same_labels(ours: Components, theirs: Any) -> bool:
        grouped = [_group(nodes, labels) for nodes, labels in zip(rows, theirs, strict=False)]
        return all(a == b for a, b in zip(_families(ours), grouped, strict=False))

    return Case(
        "induced_components",
        load.name,
        len(rows),
        "subgraphs of 20",
        lambda: induced_components(*load.graph.csr, subgraphs),
        [
            Rival("networkx connected_components", "networkx", by_networkx, same_sets, slow, prepare=forms.networkx),
            Rival("scipy slices, connected_components", "scipy", by_scipy, same_labels, sliced, prepare=forms.scipy),
            Rival("igraph induced_subgraph", "igraph", by_igraph, same_labels, sliced, prepare=forms.igraph),
        ],
    )


def _families(components: Components) -> Iterator[set[frozenset[int]]]:
    """For each subgraph, its components as sets."""
    nodes = iter(components.nodes)
    for count in components.counts.tolist():
        yield {frozenset(next(nodes).tolist()) for _ in range(count)}


def _group(nodes: list[int], labels: Any) -> set[frozenset[int]]:
    groups: dict[int, set[int]] = {}
    for node, label in zip(nodes, labels, strict=True):
        groups.setdefault(int(label), set()).add(node)
    return {frozenset(g) for g in groups.values()}


def _borders(load: Workload) -> Case:
    components, forms = load.components, load.rivals
    rows = [row.tolist() for row in components]
    slow = load.part(len(rows), 500)

    def by_networkx() -> Any:
        import networkx

        graph = forms.networkx()
        return [networkx.node_boundary(graph, nodes) for nodes in rows[:slow]]

    def by_scipy() -> Any:
        matrix = forms.scipy()
        return [np.setdiff1d(matrix[nodes].indices, nodes) for nodes in components]

    def by_igraph() -> Any:
        graph = forms.igraph()
        return [set().union(*graph.neighborhood(nodes)).difference(nodes) for nodes in rows]

    def same(ours: Ragged, theirs: Any) -> bool:
        return all(row.tolist() == sorted(b) for row, b in zip(ours, theirs, strict=False))

    return Case(
        "border_sets, 1 hop",
        load.name,
        len(rows),
        "components of 20",
        lambda: border_sets(*load.graph.csr, components, hops=1),
        [
            Rival("networkx node_boundary", "networkx", by_networkx, same, slow, prepare=forms.networkx),
            Rival("scipy rows, setdiff1d", "scipy", by_scipy, same, prepare=forms.scipy),
            Rival("igraph neighborhood", "igraph", by_igraph, same, prepare=forms.igraph),
        ],
    )


def _cores(load: Workload) -> Case:
    forms = load.rivals

    def by_networkx() -> Any:
        import networkx

        return networkx.core_number(forms.networkx())

    def same_table(ours: Any, theirs: dict[int, int]) -> bool:
        return ours.tolist() == [theirs[v] for v in range(len(ours))]

    return Case(
        "core_numbers",
        load.name,
        load.graph.num_nodes,
        "nodes",
        lambda: core_numbers(*load.graph.csr),
        [
            Rival("networkx core_number", "networkx", by_networkx, same_table, prepare=forms.networkx),
            Rival("igraph coreness", "igraph", lambda: forms.igraph().coreness(), np.array_equal, prepare=forms.igraph),
        ],
    )
