"""Drawings beside networkx; pictures hold all of them, marked as on the page, and no text from data becomes markup."""

import sys
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

from subgnn import Graph, NodeNames, UserError
from subgnn.reports import drawing as module
from subgnn.reports.drawing import draw, picture
from tests.serve.examples import served

RANDOM = nx.gnp_random_graph(60, 0.08, seed=3)
GRAPH = Graph.from_edges(*zip(*RANDOM.edges, strict=True), num_nodes=60)
SVG = "{http://www.w3.org/2000/svg}"
# 0-1 is one component, 4 another; 2 and 3 are neighbours, 5 is far away.
NAMES = ["a", "b", "<i>&", "d", "e", "f"]
SMALL = Graph.from_edges([0, 1, 2, 3, 3], [1, 2, 3, 4, 5], num_nodes=6, names=NodeNames.of(NAMES))
NODES = np.array([0, 1, 4], np.int32)


@pytest.mark.parametrize("most", [0, 7, 200])
def test_nodes_components_border_and_edges(most):
    nodes = np.array([0, 1, 2, 17, 18, 40], np.int32)
    found = draw(GRAPH, nodes, most=most)
    border = set().union(*(RANDOM.neighbors(int(node)) for node in nodes)) - set(nodes.tolist())
    drawn = {node["id"]: node for node in found["nodes"]}
    outside = [node for node in found["nodes"] if node["kind"] == "border"]
    assert {i for i, node in drawn.items() if node["kind"] == "inside"} == set(nodes.tolist())
    assert {node["id"] for node in outside} <= border
    assert len(outside) == min(most, len(border))
    assert found["num_border"] == len(border)
    assert found["left_out"] == {"inside": 0, "border": len(border) - len(outside)}

    inside = RANDOM.subgraph(nodes.tolist())
    components = {frozenset(part) for part in nx.connected_components(inside)}
    by_component: dict[int, set[int]] = {}
    for i, node in drawn.items():
        if node["kind"] == "inside":
            by_component.setdefault(node["component"], set()).add(i)
    assert {frozenset(part) for part in by_component.values()} == components
    assert found["num_components"] == len(components)

    expected = {(min(e), max(e)) for e in RANDOM.subgraph(list(drawn)).edges}
    assert {(edge["source"], edge["target"]) for edge in found["edges"]} == expected
    assert found["num_inside_edges"] == inside.number_of_edges()
    for node in outside:
        assert node["links"] == len(set(RANDOM.neighbors(node["id"])) & set(nodes.tolist()))
    fewest = min((node["links"] for node in outside), default=len(nodes))
    left = border - {node["id"] for node in outside}
    assert all(len(set(RANDOM.neighbors(v)) & set(nodes.tolist())) <= fewest for v in left)


def test_anchors_are_those_of_the_run():
    run = served()
    found = run.draw(np.array([0, 1, 9], np.int32), most=100)
    marked = {node["id"]: node["channels"] for node in found["nodes"] if node["channels"]}
    prepared = run.predictor.measured(run.subgraphs.nodes.take([0])).prepared
    assert any("neighborhood/border" in channels for channels in marked.values())
    assert all(marked[node] for node in marked)
    shared = prepared.frame.shared[0][1].nodes  # position/border
    assert {node for node, channels in marked.items() if "position/border" in channels} <= set(shared.tolist())


def drawn():
    return draw(SMALL, NODES, most=10)


def marks(svg: str) -> dict[str, ET.Element]:
    """The group of each node, by the name that is written under it."""
    groups = [group for group in ET.fromstring(svg).iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
    return {group.findtext(f"{SVG}text"): group for group in groups}


def test_every_node_and_the_edges_of_the_subgraph_are_there():
    svg = picture(drawn()).svg
    assert set(marks(svg)) == {"a", "b", "<i>&", "d", "e"}
    lines = list(ET.fromstring(svg).iter(f"{SVG}line"))
    # 2-3 joins two neighbours; it is not shown, as on the page.
    assert sorted(line.get("stroke") for line in lines) == ["#6b7a8c", "#dfe5eb", "#dfe5eb"]


def test_files_are_what_their_names_say(tmp_path):
    pushes = [SimpleNamespace(node=node, contributions=push) for node, push in ((0, 1.0), (1, -0.5))]
    one = picture(drawn(), SimpleNamespace(by_node=pushes, of_class=float, classes=["$x_1$"], leading=0))
    begins = {".svg": b"<svg", ".png": b"\x89PNG\r\n", ".pdf": b"%PDF-", ".PNG": b"\x89PNG\r\n"}
    for kind, begin in begins.items():
        one.save(tmp_path / f"a{kind}", overwrite=True)
        assert (tmp_path / f"a{kind}").read_bytes().startswith(begin)
        one.save(tmp_path / f"b{kind}", overwrite=True)
        assert (tmp_path / f"a{kind}").read_bytes() == (tmp_path / f"b{kind}").read_bytes()
    pixels = module._figure(one.svg)
    assert tuple((pixels.get_size_inches() * 96).round()) == tuple(
        map(float, ET.fromstring(one.svg).get("viewBox").split()[2:])
    )
    shown = [text.get_text() for text in pixels.axes[0].texts]
    assert sorted(shown) == sorted(text.text for text in ET.fromstring(one.svg).iter(f"{SVG}text"))
    for name in ("a.jpg", "a"):
        with pytest.raises(UserError, match=r"accepted: \.svg, \.png, \.pdf"):
            one.save(tmp_path / name)
        assert not (tmp_path / name).exists()


def test_a_picture_without_matplotlib_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UserError, match=r"a picture as \.png or \.pdf needs the package matplotlib"):
        picture(drawn()).save(tmp_path / "a.png")
    assert not list(tmp_path.iterdir())
    picture(drawn()).save(tmp_path / "a.svg")
