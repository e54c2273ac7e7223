"""``subgnn data build``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from subgnn import read_dataset
from subgnn.cli.create import build_dataset
from subgnn.errors import UserError
from tests.lab.datasets.samples import fitness_records, workout, write_hpo, write_ppi, write_records

app = typer.Typer()
app.command()(build_dataset)


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, UserError | SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, str(result.exception or "")


@pytest.fixture
def ppi(tmp_path: Path) -> list[str]:
    folder = write_ppi(tmp_path / "sources")
    flags = {"--interactome": "network.csv", "--go": "go.obo", "--annotations": "gene2go.tsv"}
    flags["--gene-symbols"] = "symbols.tsv"
    return [part for flag, name in flags.items() for part in (flag, str(folder / name))]


def test_ppi_bp_prints_counts_and_what_is_next(ppi: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, text, error = run("ppi-bp", *ppi, "--out", out, "--gzip")
    assert code == 0, error
    assert f"{out}: 52 nodes, 52 edges, 10 subgraphs (train 6, val 2, test 2)" in text
    assert "metabolism" in text
    assert "dropped: pairs of a gene with itself 1; pairs with another species 1; repeated pairs 1" in text
    assert "source: Gene Ontology in OBO, releases/2022-07-01; licence: CC BY 4.0" in text
    assert text.endswith(f"next: subgnn data check {out}\n")
    assert (out / "edge_list.txt.gz").is_file()
    assert read_dataset(out).name == "ppi-bp"


def test_json_is_one_object(ppi: list[str], tmp_path: Path) -> None:
    code, text, error = run("ppi-bp", *ppi, "--out", tmp_path / "out", "--json", "--seed", 3, "--set", "min-genes=4")
    assert code == 0, error
    found = json.loads(text)
    assert (found["name"], found["num_nodes"], found["num_subgraphs"], found["seed"]) == ("ppi-bp", 52, 10, 3)
    assert found["counts"]["labels"] == {"metabolism": 5, "transport": 5}
    assert found["settings"]["min_genes"] == 4
    assert found["task"] == "binary"


def test_labels_and_fractions_are_options(ppi: list[str], tmp_path: Path) -> None:
    labels = ("--label", "one=GO:0008152,GO:0006810", "--label", "two=GO:0007165")
    code, text, error = run(
        "ppi-bp", *ppi, *labels, "--set", "fractions=0.5,0.3,0.2", "--out", tmp_path / "out", "--json"
    )
    assert code == 0, error
    assert json.loads(text)["counts"] == {
        "nodes": 52,
        "edges": 52,
        "subgraphs": 10,
        "labels": {"one": 10},
        "splits": {"train": 5, "val": 3, "test": 2},
    }


def test_rare_diseases_and_their_patients(tmp_path: Path) -> None:
    hpo, orpha = write_hpo(tmp_path)
    given = ("hpo-metab", "--orphapacket", orpha, "--hpo", hpo, "--json")
    code, text, error = run(*given, "--out", tmp_path / "a", "--set", "min_shared_genes=1")
    assert code == 0, error
    found = json.loads(text)
    assert found["settings"]["graph"]["min_shared_genes"] == 1
    assert found["settings"]["patients"] is None
    code, text, error = run(*given, "--out", tmp_path / "b", "--patients", 2, "--set", "noise=0")
    assert code == 0, error
    found = json.loads(text)
    assert found["settings"]["patients"]["per_disease"] == 2
    assert len(set(found["counts"]["labels"].values())) == 1
    assert read_dataset(tmp_path / "b").graph.num_nodes == 73


def test_em_user(tmp_path: Path) -> None:
    records = write_records(tmp_path / "records.json", fitness_records(), style="dict")
    code, text, error = run("em-user", "--records", records, "--out", tmp_path / "out", "--set", "keep=1")
    assert code == 0, error
    assert "8 nodes" in text
    assert read_dataset(tmp_path / "out").subgraphs.task == "binary"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ppi-pb"], "name: unknown dataset 'ppi-pb'; accepted: ppi-bp, hpo-metab, hpo-neuro, em-user; did you mean"),
        (["hpo-neuro"], "hpo-neuro: no --orphapacket is given: Orphanet's rare diseases as ORPHApacket JSON; it is"),
        (["em-user", "--go", "x"], "em-user: --go is not a source of it"),
        (["em-user", "--records", "none"], "none: no such file"),
        (["em-user", "--records", "none", "--set", "kep=1"], "em-user: no option 'kep'; accepted: .*'keep'"),
        (["em-user", "--records", "none", "--set", "keep"], "--set: 'keep' is not a setting; KEY=VALUE is accepted"),
        (["em-user", "--records", "none", "--patients", "2"], "em-user: no option 'patients'"),
    ],
)
def test_errors_are_the_users(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "out")])
    assert isinstance(result.exception, UserError)
    with pytest.raises(UserError, match=message):
        raise result.exception
    assert not (tmp_path / "out").exists()


def test_a_bad_record_leaves_nothing(tmp_path: Path) -> None:
    records = write_records(tmp_path / "r", [*fitness_records(), workout(40, 1, sport=None)])
    code, _, error = run("em-user", "--records", records, "--out", tmp_path / "out")
    assert code != 0
    assert f"{records}: record 101: no field 'sport'" in error
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r"]


def test_a_folder_that_is_there_is_kept_unless_forced(ppi: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine").write_text("kept")
    _, _, error = run("ppi-bp", *ppi, "--out", out)
    assert "exists already" in error
    assert (out / "mine").read_text() == "kept"
    code, _, error = run("ppi-bp", *ppi, "--out", out, "--force")
    assert code == 0, error
    assert not (out / "mine").exists()
