"""``subgnn train EDGES MEMBERS``: the dataset is stored in the run, and belongs to it."""

import pytest

from subgnn import read_dataset
from subgnn.cli.output import command_line
from tests.cli.command import call
from tests.cli.test_entry_cases import EDGES, MEMBERS, ROWS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two tables, and a run on them."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "edges.csv").write_text(EDGES)
    (folder / "members.csv").write_text(MEMBERS)
    trained = train(folder, "members.csv", folder / "run")
    assert (trained.code, trained.err) == (0, "")
    return folder


def train(folder, members, out, *options):
    return call("train", folder / "edges.csv", folder / members, "--recipe", "bag", "--out", out, *options)


def test_the_run_stores_its_dataset(folder):
    dataset = read_dataset(folder / "run" / "dataset.subgnn")
    assert dataset.name == "members"
    assert list(dataset.subgraphs.names) == [row.name for row in ROWS]
    evaluated = call("evaluate", folder / "run", "--json").json
    assert evaluated["test"]["accuracy"] == 1
    assert evaluated["source"] == str((folder / "run" / "dataset.subgnn").resolve())


def test_a_run_that_was_moved_finds_its_dataset(folder, tmp_path):
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for path in (folder / "run").iterdir():
        (moved / path.name).write_bytes(path.read_bytes())
    (moved / "run.json").write_text((moved / "run.json").read_text().replace(str(folder), "/nowhere"))
    assert call("evaluate", moved).code == 0


def test_an_interrupted_run_goes_on_with_the_same_tables_only(folder, tmp_path):
    out = tmp_path / "run"
    assert train(folder, "members.csv", out).code == 0
    for name in ("run.json", "checkpoint.safetensors", "report.html"):
        (out / name).unlink()
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "members.csv").write_text(MEMBERS.replace("set 00,a0", "set 00,a6"))
    refused = train(tmp_path, "members.csv", out, "--resume")
    assert refused.code == 2
    assert refused.error == (
        f"{out}: the existing run used a different dataset; continue with the dataset in {out}/dataset.subgnn, or give "
        "another --out"
    )
    assert train(folder, "members.csv", out, "--resume").code == 0


def test_tables_are_checked_and_described(folder):
    tables = folder / "edges.csv", folder / "members.csv"
    checked = call("data", "check", *tables, "--node-column", "node")
    assert (checked.code, checked.err) == (0, "")
    words = [*map(str, tables), "--node-column", "node"]
    assert checked.out.splitlines()[-1] == f"next: {command_line(['data', 'describe', *words])}"
    described = call("data", "describe", *words)
    assert described.out.splitlines()[-1] == f"next: {command_line(['train', *words, '--out', 'run'])}"
    found, stored = (
        call("data", "describe", *data, "--json").json for data in (tables, [folder / "run/dataset.subgnn"])
    )
    assert all(found[key] == stored[key] for key in ("num_edges", "label_counts", "splits", "subgraphs"))


ALONE = "this option is for tables, but a dataset is given; use it with tables: subgnn"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("train DATA --node-column x", f"--node-column: {ALONE} train EDGES MEMBERS"),
        ("train DATA --unknown drop", f"--unknown: {ALONE} train EDGES MEMBERS"),
        ("train DATA --nodes x.csv", f"--nodes: {ALONE} train EDGES MEMBERS"),
        ("data check DATA --task binary", f"--task: {ALONE} data check EDGES MEMBERS"),
        ("train EDGES", "if these are edges, give their subgraphs too: subgnn train EDGES MEMBERS --out RUN"),
        ("data check EDGES", "give their subgraphs too: subgnn data check EDGES MEMBERS"),
        ("train DATA MEMBERS", "this is a dataset, which already has subgraphs; give only the dataset, or give a "),
    ],
)
def test_tables_and_datasets_are_not_mixed(folder, tmp_path, command, message):
    paths = {"DATA": folder / "run/dataset.subgnn", "EDGES": folder / "edges.csv", "MEMBERS": folder / "members.csv"}
    words = [paths.get(word, word) for word in command.split()]
    refused = call(*words, *(["--recipe", "bag", "--out", tmp_path / "no"] if words[0] == "train" else []))
    assert refused.code == 2
    assert message in refused.err.splitlines()[-1]
    assert not (tmp_path / "no").exists()
