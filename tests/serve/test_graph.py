"""A server answers on a graph that changes, while requests go on."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from fastapi.testclient import TestClient

from subgnn.data.dataset import Dataset
from subgnn.data.formats.bundle import write_bundle
from subgnn.data.graph import Graph
from subgnn.data.strings import NodeNames
from subgnn.inference.verify import verify
from subgnn.serve.app import create_app
from subgnn.serve.limits import Limits
from subgnn.serve.runs import open_runs
from tests.serve.examples import HOST, NAMES, SOME, client, run_folder
from tests.training.examples import dataset

MANY = Limits(waiting=1000)


def grown(extra: int) -> Dataset:
    """The graph of the run with further nodes, each joined to the first ones."""
    data = dataset("multi-class")
    tails, heads, _ = data.graph.edges()
    new = np.repeat(np.arange(len(NAMES), len(NAMES) + extra), 3)
    ends = np.concatenate([tails, new]), np.concatenate([heads, np.tile([0, 1, 2], extra)])
    names = NodeNames.of([*NAMES, *(f"NEW{i}" for i in range(extra))])
    return replace(data, graph=Graph.from_edges(*ends, names=names))


def test_a_hundred_clients_see_the_old_graph_or_the_new_one(tmp_path):
    run, path = run_folder(method="bag-1hop"), tmp_path / "graph.subgnn"

    def open_again():
        return open_runs([f"small={run}"], limits=MANY, graph=path)

    def ask(_: int = 0):
        return http.post("/api/runs/small/predict", json={"subgraphs": [SOME]})

    write_bundle(grown(1), path)
    app = create_app(open_again(), limits=MANY, open_again=open_again)
    with TestClient(app, base_url=HOST) as http:
        before = ask().json()["predictions"]
        write_bundle(grown(4), path, overwrite=True)
        replaced = threading.Event()

        def replace_graph():
            found = http.post("/api/graph")
            replaced.set()
            return found

        with ThreadPoolExecutor(101) as clients:
            answer = clients.submit(replace_graph)
            during = list(clients.map(ask, range(300)))
            assert replaced.wait(60)
            after = [found.json()["predictions"] for found in clients.map(ask, range(10))]
        assert answer.result().status_code == 200
        (differs, *_) = answer.result().json()["runs"]["small"]["differs"]
        assert differs.startswith("24 nodes as in training, 4 new, 0 gone")
        assert all(found == after[0] for found in after)
        assert after[0] != before
        assert {found.status_code for found in during} == {200}
        assert all(found.json()["predictions"] in (before, after[0]) for found in during)
        (tmp_path / "damaged").write_bytes(b"damaged")
        (tmp_path / "damaged").rename(path)  # the server has mapped the file that was there
        assert http.post("/api/graph").status_code == 422
        assert ask().json()["predictions"] == after[0]


def test_a_server_records_what_it_answers(tmp_path):
    run, path, file = run_folder(method="bag-1hop"), tmp_path / "graph.subgnn", tmp_path / "answers.jsonl"
    write_bundle(grown(2), path)
    runs = open_runs([f"small={run}"], limits=MANY, graph=path, record=file)
    table = "members\nGENE0 GENE1\nnowhere NEW0\nnowhere elsewhere NEW0\n"
    with TestClient(create_app(runs, limits=MANY), base_url=HOST) as http:
        some = {"subgraphs": [SOME, ["NEW0", "nowhere", "elsewhere"]], "unknown": "drop"}
        assert http.post("/api/runs/small/predict", json={**some, "coverage": 0.8}).status_code == 200
        assert http.post("/api/runs/small/explain", json={"subgraphs": [[*SOME, "NEW1"]]}).status_code == 200
        assert http.post("/api/runs/small/table?unknown=drop", content=table).status_code == 200
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["given"] for line in lines] == [SOME, [*SOME, "NEW1"], ["GENE0", "GENE1"], ["nowhere", "NEW0"]]
    assert ["explanation" in line for line in lines] == [False, True, False, False]
    assert lines[0]["answer"]["coverage"] == 0.8
    assert [problem for _, problem in verify(file)] == [""] * 4
    assert "the graph is another one" in verify(file, data=run.parent / "data")[0][1]


def test_a_server_without_another_graph_has_none_to_replace():
    with client() as http:
        found = http.post("/api/graph")
    assert found.status_code == 409
    assert "--graph" in found.json()["hint"]
