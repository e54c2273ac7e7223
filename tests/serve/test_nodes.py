"""Nodes found by name, beside a slow look at every name."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn import Graph
from subgnn.data.strings import NodeNames, Strings
from subgnn.serve.nodes import NodeIndex

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=6)
NAMES = st.lists(
    TEXTS
    | st.sampled_from(["TP53", "tp53", "TP53BP1", "p5", "P53", "xp5", "53", "0", "#0", "#1", "Straße", "STRASSE"]),
    min_size=1,
    max_size=12,
)


def index(*columns: list[str]) -> NodeIndex:
    names = NodeNames({f"column{i}": Strings.of(column) for i, column in enumerate(columns)})
    return NodeIndex(Graph.from_edges([], [], num_nodes=len(columns[0]), names=names))


def meant(names: list[str], text: str) -> list[int]:
    """The nodes of that very name, or of that row number."""
    exact = [i for i, name in enumerate(names) if name == text]
    row = re.fullmatch(r"#([0-9]{1,18})", text)
    return exact or ([int(row[1])] if row and int(row[1]) < len(names) else [])


@pytest.mark.slow
@settings(max_examples=60)
@given(NAMES, TEXTS.filter(lambda text: text.strip()) | st.sampled_from(["p5", "TP", "5", "#1", "tp53", "b"]))
def test_search_finds_all_that_hold_the_query_the_very_names_first(names, query):
    found = index(names).search(query, limit=100)
    wanted = query.strip().casefold()
    holds = {i for i, name in enumerate(names) if wanted in name.casefold()}
    by_row = meant(names, query.strip())
    assert {each.id for each in found} == holds | set(by_row)
    assert len(found) == len({each.id for each in found})

    def rank(i):
        name = names[i].casefold()
        return 0 if name == wanted or [i] == by_row else 1 if name.startswith(wanted) else 2

    ranks = [rank(each.id) for each in found]
    assert ranks == sorted(ranks)


def test_a_number_is_a_name_where_there_are_names():
    entrez = index(["11", "5", "2"])
    assert [entrez.find(given) for given in (5, "5", 0, "#0", "11")] == [1, 1, None, 0, 0]
    assert [each.id for each in entrez.search("2", limit=5)] == [2]
    assert [each.id for each in entrez.search("#2", limit=5)] == [2]


def test_the_answer_is_bounded_and_well_connected_nodes_come_first():
    names = NodeNames.of([f"N{i:03d}" for i in range(500)])
    graph = Graph.from_edges([7, 7, 7], [1, 2, 3], num_nodes=500, names=names)
    found = NodeIndex(graph).search("n", limit=4)
    assert [each.id for each in found] == [7, 1, 2, 3]
    assert found[0].degree == 3
