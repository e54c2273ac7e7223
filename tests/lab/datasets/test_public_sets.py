"""Builders of the seven public sets, on tiny made-up files of the same form."""

import json
import zipfile
from itertools import combinations
from pathlib import Path

import pytest

from subgnn.data.formats import read_dataset
from subgnn.data.formats.folder import write_folder
from subgnn.errors import DataError
from subgnn.lab.datasets.build import build
from tests.cli.command import call
from tests.lab.datasets.samples import write_hpo

RECIPES = [
    {"cuisine": ("greek", "thai")[i % 2], "ingredients": [f"food {j}" for j in range(i % 5, i % 5 + 3 + i % 4)]}
    for i in range(60)
]


def lines(count: int = 60) -> str:
    return "".join(f"{','.join(str(i % 9 + j * 2) for j in range(4 + i % 5))} {1 + i % 2}\n" for i in range(count))


def write(folder: Path, name: str) -> Path:
    path = folder / f"{name}.txt"
    if name == "recipes":
        path = folder / "train.json.zip"
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr("train.json", json.dumps(RECIPES))
    elif name == "dblp":
        papers = {f"author {i}": [i % 20, (i + 1) % 20, (i + 3) % 20, (i * 7) % 20, i % 11] for i in range(60)}
        path.write_text(json.dumps({"papers": papers, "areas": [paper % 2 for paper in range(20)]}))
    elif name == "movies":
        head = "color,director_name,actor_2_name,genres,actor_1_name,actor_3_name,plot_keywords\n"
        rows = (
            f'Color,D{i % 5},B{i % 3},{"Sci-Fi|Drama" if i % 2 else "Drama"},A{i % 4},C{i},k{i % 6}|"x y"|z'
            for i in range(60)
        )
        path.write_text(head + "\n".join(row.replace('"x y"', "x y") for row in rows) + "\n")
    else:
        path.write_text(lines())
    return path


@pytest.mark.parametrize("name", ["recipes", "walmart", "mag10", "dblp", "movies"])
def test_sets(tmp_path, name):
    options = {"subgraphs": "6", "min_nodes": "3"}
    found, _ = build(name, {"source": write(tmp_path, name)}, options=options)
    graph, subgraphs = found.graph, found.subgraphs
    inside = set(subgraphs.nodes.values.tolist())
    assert inside == set(range(len(inside)))  # labelled nodes come first
    joined = {node for node in range(graph.num_nodes) if len(graph.neighbors_of(node))}
    assert inside | joined == set(range(graph.num_nodes))
    assert len(subgraphs) == pytest.approx(6, abs=1)
    assert found.card["licence"]
    assert len({tuple(row.tolist()) for row in subgraphs.nodes}) == len(subgraphs)
    again, _ = build(name, {"source": write(tmp_path, name)}, options=options)
    assert again.subgraphs.content_hash == subgraphs.content_hash


def test_edges_are_of_sets_without_a_label(tmp_path):
    path = write(tmp_path, "walmart")
    found, _ = build("walmart", {"source": path}, options={"subgraphs": "6", "min_sets": "1"})
    names = [name.removeprefix("product_") for name in found.graph.names]
    labelled = {frozenset(names[node] for node in row) for row in found.subgraphs.nodes}
    sets = [frozenset(line.split()[0].split(",")) for line in path.read_text().splitlines()]
    expected = {pair for one in sets if one not in labelled for pair in combinations(sorted(one, key=int), 2)}
    columns = found.graph.edge_columns()
    pairs = zip(columns["tail"], columns["head"], strict=True)
    assert {tuple(sorted((names[a], names[b]), key=int)) for a, b in pairs} == expected


def test_reactions(tmp_path):
    reactions = [
        {"metabolites": {"a_c": -1.0, "b_c": -1.0, f"m{i}_c": 1.0}, "subsystem": ("Purine, x", "Lipid")[i % 2]}
        for i in range(12)
    ]
    transport = {"metabolites": {"a_c": -1, "b_c": 1, "m1_c": 1}, "subsystem": "Transport, Inner Membrane"}
    reactions.append(transport)
    names = ["a_c", "b_c", *(f"m{i}_c" for i in range(12))]
    model = {"metabolites": [{"id": name, "name": name.upper()} for name in names], "reactions": reactions}
    (tmp_path / "model.json").write_text(json.dumps(model))
    out = tmp_path / "out"
    done = call("data", "build", "ecoli", "--source", tmp_path / "model.json", "--set", "min_reactions=6", "--out", out)
    assert done.code == 0, done.err
    found = read_dataset(out)
    assert found.subgraphs.classes == ("Lipid", "Purine__x")
    assert found.graph.names[0] == "a_c A_C"
    assert set(found.graph.neighbors_of(0).tolist()) == set(range(1, 14))  # b by the transport, products by the rest
    assert len(found.subgraphs) == 12


def phenopacket(i: int, publication: int, terms: list[str], absent: list[str]) -> dict:
    features = [{"type": {"id": term}} for term in terms] + [{"type": {"id": t}, "excluded": True} for t in absent]
    disease = {"id": f"OMIM:{i % 2}", "label": f"disease {i % 2}"}
    solved = [{"id": "x", "progressStatus": "SOLVED", "diagnosis": {"disease": disease}}]
    about = {"externalReferences": [{"id": f"PMID:{publication}"}]}
    return {"id": f"P{i}", "phenotypicFeatures": features, "interpretations": solved, "metaData": about}


def test_patients(tmp_path):
    hpo, _ = write_hpo(tmp_path)
    folder = tmp_path / "packets" / "phenopackets"
    folder.mkdir(parents=True)
    for i in range(24):
        terms = [f"HP:00003{i % 6}{(i // 6 + j) % 8}" for j in range(3)] + [f"HP:000030{i % 8}"]
        packet = phenopacket(i, i // 2, terms, ["HP:0000357", "HP:0009999", terms[0]])
        (folder / f"p{i:02}.json").write_text(json.dumps(packet))
    (folder / "notes.json").write_text("{}")
    files = {"source": folder.parent, "hpo": hpo}
    found, titles = build("patients", files, options={"min_patients": "5"})
    subgraphs = found.subgraphs
    places = {name: i for i, name in enumerate(found.graph.names.columns["hpo_id"])}
    assert subgraphs.classes == ("OMIM:0", "OMIM:1")
    assert all(row.tolist() in ([places["HP:0000357"]], []) for row in subgraphs.absent)  # known, and not present
    splits = {(group, split) for group, split in zip(subgraphs.groups, subgraphs.splits, strict=True)}
    assert len(splits) == len(set(subgraphs.groups))  # a publication is in one split
    write_folder(found, tmp_path / "out", subgraph_titles=titles)
    assert read_dataset(tmp_path / "out").subgraphs.content_hash == subgraphs.content_hash
    with pytest.raises(DataError, match="no patient is left"):
        build("patients", files)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("walmart", "1,2 x\n", "not a set"),
        ("recipes", "[{}]", "a recipe without 'ingredients'"),
        ("dblp", '{"papers": {"a": [9]}, "areas": [1]}', "papers and areas do not fit"),
        ("movies", "a,b\n1,2\n", "no column 'director_name'"),
        ("ecoli", "{}", "not a metabolic model"),
    ],
)
def test_wrong_files(tmp_path, name, content, message):
    (tmp_path / "file").write_text(content)
    with pytest.raises(DataError, match=message):
        build(name, {"source": tmp_path / "file"})
