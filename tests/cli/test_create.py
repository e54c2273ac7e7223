"""``data generate``, ``data build``, ``data download`` and ``data split``: what they write, print and refuse."""

import re

import pytest

from subgnn import read_dataset
from subgnn.data.splits import split_warnings
from tests.cli.command import call
from tests.lab.datasets.samples import write_ppi

SMALL = ("--num-nodes", 500, "--num-subgraphs", 24, "--subgraph-size", 10)


def refused(tmp_path, words, message):
    called = call(*words, "--out", tmp_path / "out")
    assert called.code == 2
    assert re.search(message, called.error), called.error
    assert not (tmp_path / "out").exists()


def test_a_generated_folder_is_shown_beside_the_paper(tmp_path):
    called = call("data", "generate", "density", "--out", tmp_path / "d", *SMALL, "--seed", 4)
    lines = called.out.splitlines()
    assert sum("paper" in line for line in lines) >= 2
    assert any("29,521" in line for line in lines)
    assert lines[-1] == f"next: subgnn data check {tmp_path / 'd'}"
    dataset = read_dataset(tmp_path / "d")
    assert 495 <= dataset.graph.num_nodes <= 500  # without nodes that were cut off
    assert dataset.card["seed"] == 4


def test_generate_as_json_and_over_an_existing_folder(tmp_path):
    command = ("data", "generate", "density", *SMALL, "--out", tmp_path / "d")
    found = call(*command, "--bins", 2, "--json").json
    assert (found["num_subgraphs"], found["label_counts"]) == (24, {"0": 13, "1": 11})
    assert found["settings"]["bins"] == 2
    assert found["paper"]["num_edges"] == 29_521
    before = (tmp_path / "d" / "subgraphs.tsv").read_bytes()
    assert re.search(r"exists already; .*--force", call(*command, "--seed", 1).error)
    assert (tmp_path / "d" / "subgraphs.tsv").read_bytes() == before
    assert call(*command, "--seed", 1, "--force").code == 0
    assert (tmp_path / "d" / "subgraphs.tsv").read_bytes() != before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("densty",), r"unknown synthetic dataset 'densty'; accepted: density, .*; did you mean 'density'\?"),
        (("component", "--bins", 2), "recipe component: no option 'bins'; accepted: num_nodes, num_subgraphs"),
        (("density", "--bins", 100, "--subgraph-size", 5), "different values for 100 bins; use fewer bins"),
    ],
)
def test_generate_refuses(tmp_path, words, message):
    refused(tmp_path, ("data", "generate", *words), message)


@pytest.fixture
def ppi(tmp_path):
    folder = write_ppi(tmp_path / "sources")
    flags = {"--interactome": "network.csv", "--go": "go.obo", "--annotations": "gene2go.tsv"}
    flags["--gene-symbols"] = "symbols.tsv"
    return ("data", "build", "ppi-bp", *(part for flag, name in flags.items() for part in (flag, folder / name)))


def test_ppi_bp_replaces_a_folder_if_forced_and_prints_counts_and_sources(ppi, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine").write_text("kept")
    assert "exists already" in call(*ppi, "--out", out).error
    assert (out / "mine").read_text() == "kept"
    called = call(*ppi, "--out", out, "--force")
    assert (called.code, (out / "mine").exists()) == (0, False)
    assert f"{out}: 52 nodes, 52 edges, 10 subgraphs (train 6, val 2, test 2)" in called.out
    assert "dropped: pairs of a gene with itself 1; pairs with another species 1; repeated pairs 1" in called.out
    assert "source: Gene Ontology in OBO, releases/2022-07-01; licence: CC BY 4.0" in called.out
    assert called.out.endswith(f"next: subgnn data check {out}\n")
    assert read_dataset(out).name == "ppi-bp"


def test_ppi_bp_as_json_with_settings(ppi, tmp_path):
    found = call(*ppi, "--out", tmp_path / "a", "--json", "--seed", 3, "--set", "min-genes=4").json
    assert (found["name"], found["num_nodes"], found["num_subgraphs"], found["seed"]) == ("ppi-bp", 52, 10, 3)
    assert (found["task"], found["settings"]["min_genes"]) == ("binary", 4)
    assert found["counts"]["labels"] == {"metabolism": 5, "transport": 5}
    counts = call(*ppi, "--set", "fractions=0.6,0.2,0.2", "--out", tmp_path / "b", "--json").json["counts"]
    assert counts["splits"] == {"train": 6, "val": 2, "test": 2}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ppi-pb",), "name: unknown dataset 'ppi-pb'; accepted: ppi-bp, hpo-metab, hpo-neuro, patients, "),
        (("hpo-neuro",), "hpo-neuro: --orphapacket is missing: Orphanet's rare diseases as ORPHApacket JSON; it is"),
        (("hpo-metab", "--go", "x"), "hpo-metab: --go is not one of its sources"),
        (("hpo-metab", "--orphapacket", "none", "--hpo", "none"), "none"),
        (("hpo-metab", "--orphapacket", "none", "--set", "min_phenotype=1"), "hpo-metab: no option 'min_phenotype'; "),
    ],
)
def test_build_refuses(tmp_path, words, message):
    refused(tmp_path, ("data", "build", *words), message)


@pytest.fixture
def chain(tmp_path):
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "edge_list.txt").write_text("".join(f"{i} {i + 1}\n" for i in range(24)))
    splits = ["train"] * 18 + ["val", "test"]
    rows = [f"{i}-{i + 1}\t{'ab'[i % 2]}\t{split}\n" for i, split in enumerate(splits)]
    (folder / "subgraphs.tsv").write_text("".join(rows))
    return folder


def test_split_writes_the_same_subgraphs_under_a_new_split(chain, tmp_path):
    out = tmp_path / "out"
    assert f"{out}: train 10, val 5, test 5" in call("data", "split", chain, "--out", out).out
    before, after = read_dataset(chain).subgraphs, read_dataset(out).subgraphs
    assert [row.tolist() for row in before.nodes] == [row.tolist() for row in after.nodes]
    assert read_dataset(out).card["split"] == {"method": "stratified", "fractions": [0.5, 0.25, 0.25], "seed": 0}
    assert not any("same nodes" in what for what, _ in split_warnings(after))
    assert call("data", "split", chain, "--out", tmp_path / "out.subgnn").code == 0
    assert len(read_dataset(tmp_path / "out.subgnn").subgraphs.indices("train")) == 10


def test_groups_of_the_dataset_stay_together(chain, tmp_path):
    groups = [f"family {i // 2}" for i in range(20)]
    (chain / "subgraph_names.tsv").write_text("".join(f"name {i}\ttitle\t{g}\n" for i, g in enumerate(groups)))
    assert call("data", "split", chain, "--method", "group", "--out", tmp_path / "new").code == 0
    splits = read_dataset(tmp_path / "new").subgraphs.splits
    assert (splits[::2] == splits[1::2]).all()


def test_split_refuses(chain, tmp_path):
    for words, message in (
        (("--fractions", "half"), "three numbers separated by commas"),
        (("--fractions", "0.5,0.5"), "three numbers above 0"),
        (("--method", "group"), "no groups are given"),
    ):
        refused(tmp_path, ("data", "split", chain, *words), message)
    assert "exists already" in call("data", "split", chain, "--out", chain).error


def test_download_fetches_nothing_and_checks_what_was_unpacked(tmp_path):
    refused(tmp_path, ("data", "download", "nosuch"), "NAME: 'nosuch' .*; accepted: ppi-bp")
    refused(tmp_path, ("data", "download", "density"), "it is synthetic: subgnn data generate density")
    refused(tmp_path, ("data", "download", "PPI_BP"), "no checksum; open https://.* unpack its folder ppi_bp as .*/out")
    out = tmp_path / "ppi"
    out.mkdir()
    assert "edge_list.txt" in call("data", "download", "ppi-bp", "--out", out).error
    (out / "edge_list.txt").write_text("0 1\n1 2\n")
    (out / "subgraphs.pth").write_text("0-1\tA\ttrain\n1-2\tB\tval\n2\tA\ttest\n")
    called = call("data", "download", "ppi-bp", "--out", out)
    assert f"{out}: 3 nodes, 2 edges, 3 subgraphs\n" in called.out
    assert "2 edges, but the paper has 316,951" in called.out
    found = call("data", "download", "ppi-bp", "--out", out, "--json").json
    assert (found["name"], found["num_nodes"], found["num_subgraphs"], len(found["notes"])) == ("ppi-bp", 3, 3, 3)
