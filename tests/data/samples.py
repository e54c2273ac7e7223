"""Small datasets, as files and in memory."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from subgnn import Dataset, Graph, NodeNames, SubgraphSet
from subgnn.data.strings import Strings

Content = str | bytes | None

EDGES = "0 1\n1 2\n2 3\n3 4\n4 0\n"
SUBGRAPHS = "0-1\ta\ttrain\n1-2\tb\ttrain\n2-3\ta\tval\n3-4\tb\tval\n0-4\ta\ttest\n0-2\tb\ttest\n"
NODES = "id\tname\tkind\n0\tTP53\tgene\n1\tHLA-A\tgene\n2\tA1BG\tgene\n3\tEGFR\tgene\n4\tMYC\tgene\n"
CARD = '{"name": "five", "source": "made by hand", "licence": "none", "note": "a ring of five"}\n'


def npy(array: Any) -> bytes:
    """An array as the bytes of a .npy file."""
    file = io.BytesIO()
    np.save(file, np.asarray(array), allow_pickle=False)
    return file.getvalue()


FEATURES = npy(np.arange(10, dtype=np.float32).reshape(5, 2))
NEEDED: dict[str, Content] = {"edge_list.txt": EDGES, "subgraphs.tsv": SUBGRAPHS}
WHOLE: dict[str, Content] = {**NEEDED, "nodes.tsv": NODES, "features.npy": FEATURES, "dataset.json": CARD}


def write_files(folder: Path, files: Mapping[str, Content]) -> Path:
    """Write the files that are not None."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if content is not None:
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def write_sample(folder: Path, changed: Mapping[str, Content] | None = None) -> Path:
    """The two needed files, with some changed, added or (None) left out."""
    return write_files(folder, {**NEEDED, **(changed or {})})


def tree(folder: Path) -> dict[str, bytes]:
    """Every file under a folder, hidden ones too."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def whole_dataset(*, directed: bool = False) -> Dataset:
    """A dataset with every optional part; node 5 has no edges."""
    graph = Graph.from_edges(
        [0, 1, 2, 3, 4],
        [1, 2, 3, 4, 0],
        num_nodes=6,
        weights=[1.0, 0.5, -2.0, 3.25, 1e-3],
        features=np.arange(12, dtype=np.float32).reshape(6, 2) / 7,
        names=NodeNames(
            {
                "symbol": Strings.of(["TP53", "HLA-A", "", "Ä1", "MYC", "lone"]),
                "name": Strings.of(["p53", "hla", "x", "y", "", "z"]),
            },
            primary="name",
        ),
        directed=directed,
    )
    subgraphs = SubgraphSet.from_lists(
        [[0, 1], [1, 2], [2, 3, 5], [3], [0, 4], [0, 2]],
        num_nodes=6,
        labels=[["a", "b"], ["b"], ["a"], ["c", "b"], ["a"], ["c"]],
        splits=["train", "train", "val", "val", "test", "test"],
        names=["first", "second", "Dritte ß", "4", "fifth", "sixth"],
    )
    return Dataset("whole", graph, subgraphs, card={"licence": "none", "extra": [1, {"two": None}]})


def assert_same(a: Dataset, b: Dataset) -> None:
    """Every array, name and word equal, but for what a card gains when it is written."""
    assert (a.name, a.graph.directed) == (b.name, b.graph.directed)
    assert a.graph.compute_hash() == b.graph.compute_hash() == b.graph.content_hash
    ours, theirs = (
        names and (names.primary_column, {title: list(column) for title, column in names.columns.items()})
        for names in (a.graph.names, b.graph.names)
    )
    assert ours == theirs
    assert a.subgraphs.content_hash == b.subgraphs.content_hash
    assert list(a.subgraphs.names or ()) == list(b.subgraphs.names or ())
    gained = {"name", "num_nodes", "task", "label_separator", "directed"}
    assert {k: v for k, v in a.card.items() if k not in gained} == {k: v for k, v in b.card.items() if k not in gained}
