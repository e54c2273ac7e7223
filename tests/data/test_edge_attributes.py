"""Types and times of edges: in graphs, tables, folders and bundles."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn.data.convert import convert
from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.data.formats.folder import write_folder
from subgnn.data.formats.format import Columns, ReadOptions
from subgnn.data.formats.graph_tables import read_edges
from subgnn.data.formats.libraries import from_pyg, to_pyg
from subgnn.data.graph import Graph
from subgnn.data.read_tables import read_tables
from subgnn.data.subgraphs import SubgraphSet
from subgnn.data.values import MAX_TYPES, parse_time
from subgnn.errors import DataError

N = 6
NODE = st.integers(0, N - 1)
EDGES = st.lists(st.tuples(NODE, NODE, st.sampled_from("abc"), st.integers(-3, 3), st.integers(1, 9)), max_size=25)


def build(edges: list, *, directed: bool = False, types: bool = True, times: bool = True) -> Graph:
    u, v, kinds, when, weights = zip(*edges, strict=True) if edges else ((),) * 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Graph.from_edges(
            np.array(u, int),
            np.array(v, int),
            num_nodes=N,
            weights=np.array(weights, float),
            directed=directed,
            types=np.array(kinds, str) if types else None,
            times=np.array(when, int) if times else None,
        )


def as_dict(graph: Graph) -> dict:
    """Weight and time of every entry, by its ends."""
    return {
        (u, int(graph.neighbors[i])): (float(graph.weights[i]), None if graph.times is None else int(graph.times[i]))
        for u in range(graph.num_nodes)
        for i in range(graph.offsets[u], graph.offsets[u + 1])
    }


def naive(edges: list, *, directed: bool) -> dict:
    """The earliest edge of each pair; of equals that of the first type, then the first given."""
    found: dict = {}
    for u, v, _, time, weight in sorted(edges, key=lambda edge: (edge[3], edge[2])):
        for pair in [(u, v)] if directed else [(u, v), (v, u)]:
            if u != v:
                found.setdefault(pair, (float(weight), time))
    return found


@given(EDGES, st.booleans())
def test_layers_and_union_equal_a_naive_graph(edges: list, directed: bool) -> None:
    graph = build(edges, directed=directed)
    assert graph.types == tuple(sorted({edge[2] for edge in edges}))
    assert as_dict(graph) == naive(edges, directed=directed)
    for kind in graph.types:
        of_type = [edge for edge in edges if edge[2] == kind]
        assert as_dict(graph.of_type(kind)) == naive(of_type, directed=directed)


@given(EDGES, st.booleans(), st.integers(-4, 4))
def test_until_equals_the_graph_of_earlier_edges(edges: list, directed: bool, time: int) -> None:
    graph = build(edges, directed=directed).until(time)
    earlier = [edge for edge in edges if edge[3] <= time]
    assert as_dict(graph) == naive(earlier, directed=directed)
    for kind in graph.types:
        assert as_dict(graph.of_type(kind)) == naive([e for e in earlier if e[2] == kind], directed=directed)


@given(EDGES)
def test_undirected_and_reversed_forms_keep_types_and_times(edges: list) -> None:
    graph = build(edges, directed=True)
    plain, back = graph.undirected(), graph.reverse()
    for one, of_plain, of_back in zip(
        (graph, *graph.layers), (plain, *plain.layers), (back, *back.layers), strict=True
    ):
        times = {}
        for (u, v), (_, time) in as_dict(one).items():
            for pair in ((u, v), (v, u)):
                times[pair] = min(time, times.get(pair, time))
        assert {pair: time for pair, (_, time) in as_dict(of_plain).items()} == times
        assert as_dict(of_back) == {(v, u): value for (u, v), value in as_dict(one).items()}
    later = plain.until(0)
    assert later.oriented is not None
    assert as_dict(later.oriented) == as_dict(graph.until(0))


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"types": ["a"]}, "the types have shape"),
        ({"types": ["a", ""]}, "has no type"),
        ({"times": [1.0, np.nan]}, "times must be finite"),
        ({"times": ["1", "y"]}, "times: row 1: 'y' is not a time"),
        (
            {"times": ["2024-03-01", "7"]},
            "row 1: '7' is a number, but '2024-03-01' before it is a date; the times in a",
        ),
        ({"times": [[1], [2]]}, "the times have type"),
        ({"times": np.array(["2024-01-01", "NaT"], "M8[D]")}, "times must be finite"),
    ],
)
def test_bad_types_and_times_are_refused(given_: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Graph.from_edges([0, 1], [1, 2], **given_)


def test_too_many_types_and_an_unknown_one_are_refused() -> None:
    ends = np.arange(MAX_TYPES + 1)
    with pytest.raises(DataError, match="1,001 types of edges"):
        Graph.from_edges(ends, ends + 1, types=ends.astype(str))
    with pytest.raises(DataError, match=r"no edge type 'bind'.*binds"):
        Graph.from_edges([0], [1], types=["binds"]).of_type("bind")
    with pytest.raises(DataError, match="the edges have no times"):
        Graph.from_edges([0], [1]).until(3)


TABLE = "source,target,relation,date\na,b,binds,2024-01-02\na,b,inhibits,2024-01-01\nb,c,binds,2024-01-01T12:00:00\n"


def test_a_table_of_edges_has_types_and_times(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text(TABLE)
    graph = read_edges(tmp_path / "edges.csv")
    assert graph.types == ("binds", "inhibits")
    day = 86400
    start = 19723 * day
    assert graph.edge_columns()["time"].tolist() == [start + day, start + day // 2, start]
    frame = pd.read_csv(tmp_path / "edges.csv")
    frame["date"] = pd.to_datetime(frame["date"], format="ISO8601")
    assert read_edges(frame).content_hash == graph.content_hash


def test_a_column_that_is_only_called_time_is_noted(tmp_path: Path) -> None:
    path, notes = tmp_path / "edges.csv", []
    path.write_text("source,target,time\na,b,early\n")
    assert read_edges(path, ReadOptions(on_note=notes.append)).times is None
    assert notes == [f"{path}: column 'time' is not used: 'early' is not a time"]
    with pytest.raises(DataError, match=r"row 1: 'early' is not a time; accepted: a number, or a date"):
        read_edges(path, ReadOptions(columns=Columns(time="time")))


def sample(*, types: bool = True, times: bool = True) -> Dataset:
    edges = [(0, 1, "a", 2, 1.5), (1, 0, "b", 1, 2.5), (1, 2, "a", 3, 1), (2, 3, "b c", 4, 1), (4, 5, "a", 0, 2)]
    graph = build(edges, types=types, times=times)
    subgraphs = SubgraphSet.from_lists(
        [[0, 1], [2, 3], [4, 5]], num_nodes=N, labels=["x", "y", "x"], splits=["train", "val", "test"], times=[3, 4, 5]
    )
    return Dataset("sample", graph, subgraphs)


@pytest.mark.parametrize("types", [True, False])
@pytest.mark.parametrize("times", [True, False])
def test_folders_and_bundles_hold_types_and_times(tmp_path: Path, types: bool, times: bool) -> None:
    dataset = sample(types=types, times=times)
    write_folder(dataset, tmp_path / "folder")
    convert(tmp_path / "folder", tmp_path / "b.subgnn")
    for path in (tmp_path / "folder", tmp_path / "b.subgnn"):
        again = read_dataset(path)
        assert again.graph.content_hash == dataset.graph.content_hash
        assert again.subgraphs.content_hash == dataset.subgraphs.content_hash
        assert [as_dict(layer) for layer in again.graph.layers] == [as_dict(layer) for layer in dataset.graph.layers]
        assert again.graph.dropped == dataset.graph.dropped


def test_a_file_of_attributes_must_fit_the_edge_list(tmp_path: Path) -> None:
    write_folder(sample(), tmp_path / "folder")
    path = tmp_path / "folder" / "edge_attributes.tsv"
    text = path.read_text()
    for changed, message in (
        (text + "a\t9\n", "6 lines below the titles, but 5 edges"),
        (text.replace("type\ttime", "kind\ttime"), "accepted: type, time, or both"),
        (text.replace("b c", ""), "no edge type"),
    ):
        path.write_text(changed)
        with pytest.raises(DataError, match=message):
            read_dataset(tmp_path / "folder")


def test_tables_of_subgraphs_have_times(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text(TABLE)
    long = "subgraph,node,label,time,split\ns,a,x,1,train\ns,b,x,3,train\nt,b,y,2,val\nu,c,y,4,test\n"
    wide = "subgraph,nodes,label,time,split\ns,a;b,x,3,train\nt,b,y,2,val\nu,c,y,4,test\n"
    for name, text in (("long.csv", long), ("wide.csv", wide)):
        (tmp_path / name).write_text(text)
        subgraphs = read_tables(tmp_path / "edges.csv", tmp_path / name).subgraphs
        assert subgraphs.times is not None
        assert subgraphs.times.tolist() == [3, 2, 4]
        assert subgraphs.take([2, 0]).times.tolist() == [4, 3]


def test_pyg_data_has_types_and_times() -> None:
    graph = sample().graph
    data = to_pyg(graph)
    assert data.edge_type_names == ["a", "b", "b c"]
    assert from_pyg(data).content_hash == graph.content_hash
    del data.edge_type_names
    assert from_pyg(data).types == ("0", "1", "2")
    data.edge_type_names = ["a"]
    with pytest.raises(DataError, match=r"Data.edge_type: .* whole numbers from 0 to 0"):
        from_pyg(data)
    dated = sample(types=False).graph
    assert from_pyg(to_pyg(dated)).content_hash == dated.content_hash


@pytest.mark.parametrize("time", [2**63, 2**64 - 1])
def test_times_that_need_64_bits_without_a_sign_are_refused(time: int) -> None:
    times = np.array([1, time], np.uint64)
    with pytest.raises(DataError, match=f"time {time} at row 1; whole numbers are accepted below"):
        Graph.from_edges([0, 1], [1, 2], times=times)
    with pytest.raises(DataError, match=f"time {time} at row 1"):
        SubgraphSet.from_lists([[0], [1]], num_nodes=2, times=times)
    frame = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "date": times})
    with pytest.raises(DataError, match=f"time {time} at row 1"):
        read_edges(frame, ReadOptions(columns=Columns(time="date")))
    kept = Graph.from_edges([0, 1], [1, 2], times=np.array([1, 2**63 - 1], np.uint64)).times
    assert kept.max() == 2**63 - 1


@pytest.mark.parametrize("text", ["9223372036854775808", "-4611686018427387904", "1" * 5000])
def test_whole_numbers_that_64_bits_do_not_hold_are_no_times(text):
    with pytest.raises(DataError, match=r"accepted: whole numbers below 2\^62"):
        parse_time(text)
