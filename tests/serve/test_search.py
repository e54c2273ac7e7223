"""Searches by the server, beside the command line; and examples to start with."""

import json

import numpy as np
import pytest

from tests.cli.command import call
from tests.serve.examples import SOME, client, run_folder, served


def search(asking, **body):
    answer = asking.post("/api/runs/small/search", json={"subgraphs": [SOME, ["gene5"]], **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_server_answers_as_the_command_does(tmp_path):
    (tmp_path / "new.tsv").write_text("GENE0-GENE1-GENE2-#9-HLA-A\nGENE5\n")
    options = ("--top", 4, "--by", "class", "--include-test", "--json")
    done = call("search", run_folder(), "--subgraphs", tmp_path / "new.tsv", *options)
    with client() as asking:
        found = search(asking, top=4, by="class", include_test=True)
    assert (found["run"], found["by"], found["dropped"]) == ("small", "class", [[], []])
    theirs = json.loads(done.out)["results"]
    for ours, other in zip(found["results"], theirs, strict=True):
        assert [one["rank"] for one in ours["nearest"]] == [1, 2, 3, 4]
        assert [one["place"] for one in ours["nearest"]] == [one["row"] for one in other["nearest"]]
        assert [one["split"] for one in ours["nearest"]] == [one["split"] for one in other["nearest"]]
        assert [one["labels"] for one in ours["nearest"]] == [[one["label"]] for one in other["nearest"]]
        for one, same in zip(ours["nearest"], other["nearest"], strict=True):
            assert one["distance"] == pytest.approx(same["distance"], abs=1e-5)


def test_a_known_subgraph_is_nearest_to_itself_and_test_is_not_known():
    run = served()
    known, tested = (int(run.subgraphs.indices(split)[0]) for split in ("train", "test"))
    with client() as asking:
        own = [[f"#{node}" for node in run.subgraphs.nodes[place]] for place in (known, tested)]
        found = search(asking, subgraphs=own, top=100)["results"]
        every = search(asking, subgraphs=own, top=100, include_test=True)["results"]
    first = found[0]["nearest"][0]
    assert (first["nodes"], first["distance"]) == (run.subgraphs.nodes[known].tolist(), 0)
    assert first["labels"] == [run.subgraphs.classes[run.subgraphs.targets[known]]]
    splits = [one["split"] for one in found[1]["nearest"]]
    assert set(splits) == {"train", "val"}
    assert len(splits) == np.count_nonzero(run.subgraphs.splits < 2) == run.card()["num_known"]
    assert len(every[1]["nearest"]) == len(run.subgraphs)
    assert every[1]["nearest"][0]["distance"] == 0
