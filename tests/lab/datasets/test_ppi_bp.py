"""PPI-BP from an interactome, the Gene Ontology and annotations."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from subgnn.data.dataset import Dataset
from subgnn.data.describe import check
from subgnn.data.formats.folder import write_folder
from subgnn.errors import DataError
from subgnn.lab.datasets.build import build
from subgnn.lab.datasets.ppi_bp import read_annotations, read_gene_symbols, read_interactome
from tests.lab.datasets.samples import gene2go, obo, ppi_rows, symbols, write_ppi


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_ppi(tmp_path / "sources")


def test_the_interactome_is_one_component_of_human_genes(folder: Path) -> None:
    found = read_interactome(folder / "network.csv", read_gene_symbols(folder / "symbols.tsv"))
    assert found.genes == ["7", "8", *(str(g) for g in range(100, 150))]
    assert found.dropped == {
        "pairs of a gene with itself": 1,
        "pairs with another species": 1,
        "repeated pairs": 1,
        "genes outside the largest component": 0,
    }
    names = found.graph.names
    assert names is not None
    assert (names[0], found.graph.num_nodes, found.graph.num_edges) == ("GENE7", 52, 52)


def test_a_smaller_component_goes_and_a_first_line_of_ids_is_an_edge(tmp_path: Path) -> None:
    path = tmp_path / "network.csv"
    path.write_text("1,2\n2,3\n8,9\n")
    found = read_interactome(path)
    assert (found.genes, found.graph.num_edges) == (["1", "2", "3"], 2)
    assert found.dropped["genes outside the largest component"] == 2


def test_annotations_that_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "gene2go"
    text = gene2go([(1, "GO:1", "IDA"), (2, "GO:1", "IEA"), (3, "GO:1", "ND")])
    text += "9606\t4\tGO:1\tIDA\tNOT involved_in\tx\t-\tProcess\n9606\t5\tGO:1\tIDA\tenables\tx\t-\tFunction\n"
    text += "10090\t6\tGO:1\tIDA\tinvolved_in\tx\t-\tProcess\n"
    path.write_text(text)
    genes, dropped = read_annotations(path, ("IEA", "ND"))
    assert genes == {"GO:1": {"1"}}
    assert dropped == {"other species": 1, "other aspect": 1, "negated": 1, "weak evidence": 2}


def built(
    folder: Path, annotations: str = "gene2go.tsv", *, seed: int = 0, **changes: Any
) -> tuple[Dataset, Sequence[str] | None]:
    """A build with other source files, which are given by a path, or other settings."""
    files = {"interactome": folder / "network.csv", "go": folder / "go.obo", "annotations": folder / annotations}
    files |= {key: changes.pop(key) for key in list(changes) if isinstance(changes[key], Path)}
    return build("ppi-bp", files, options=changes, seed=seed)


def test_a_build_is_a_dataset_that_reads_back(folder: Path, tmp_path: Path) -> None:
    made, titles = built(folder, gene_symbols=folder / "symbols.tsv")
    write_folder(made, tmp_path / "out", subgraph_titles=titles)
    problems, dataset = check(tmp_path / "out")
    assert dataset is not None
    assert not problems.errors
    assert dataset.subgraphs.label_counts() == {"metabolism": 5, "transport": 5}
    assert Counter(dataset.subgraphs.splits.tolist()) == {0: 6, 1: 2, 2: 2}  # type: ignore[union-attr]
    assert list(dataset.subgraphs.names or ()) == [f"GO:00000{10 + k}" for k in range(10)]
    names = dataset.graph.names
    assert names is not None
    assert names.primary_column == "symbol"
    assert {names[node] for node in dataset.subgraphs.nodes[0]} == {f"GENE{100 + i}" for i in range(5)}
    lines = (tmp_path / "out" / "subgraph_names.tsv").read_text().splitlines()
    assert lines[0] == "GO:0000010\tname of GO:0000010"
    card = dataset.card
    assert card["counts"]["splits"] == {"train": 6, "val": 2, "test": 2}
    assert card["sources"][1]["version"] == "releases/2022-07-01"
    assert len(card["sources"][0]["files"]["network.csv"]) == 64
    assert "CC BY 4.0" in card["licence"]
    assert card["settings"]["max_genes"] == 160


def names_after(folder: Path, rows: list[tuple[int, str, str]], **settings: Any) -> set[str]:
    (folder / "gene2go.tsv").write_text(gene2go([*ppi_rows(), *rows]))
    return set(built(folder, **settings)[0].subgraphs.names or ())


def add_terms(folder: Path, *terms: tuple[str, list[str]]) -> None:
    path = folder / "go.obo"
    path.write_text(path.read_text() + obo(terms).partition("\n\n")[2].replace("[Typedef]\nid: part_of", "[Typedef]"))


def test_sets_are_filtered_by_size_and_label(folder: Path) -> None:
    add_terms(
        folder,
        ("GO:1", ["is_a: GO:0008152"]),
        ("GO:2", ["is_a: GO:0008152", "relationship: part_of GO:0006810"]),
        ("GO:3", ["relationship: part_of GO:0016043"]),
        ("GO:4", []),
        ("GO:5", ["is_a: GO:0008152", "is_obsolete: true"]),
    )
    spread = [100, 111, 122, 133, 144]
    rows = [(g, "GO:1", "IDA") for g in (105, 116, 127, 138)]
    rows += [(g, term, "IDA") for term in ("GO:2", "GO:3", "GO:4", "GO:5") for g in spread]
    kept = {f"GO:00000{10 + k}" for k in range(10)}
    assert names_after(folder, rows) == kept | {"GO:3"}
    assert names_after(folder, rows, min_genes=4) >= {"GO:1", "GO:3"}
    with pytest.raises(DataError, match="no gene set is left"):
        names_after(folder, rows, max_genes=6, min_genes=6)


def test_a_set_near_a_larger_one_goes(folder: Path) -> None:
    add_terms(folder, ("GO:1", ["is_a: GO:0008152"]), ("GO:2", ["is_a: GO:0008152"]))
    rows = [(g, "GO:1", "IDA") for g in (100, 101, 102, 103, 110, 120)]
    rows += [(g, "GO:2", "IDA") for g in (105, 106, 107, 111, 121, 131)]
    found = names_after(folder, rows)
    assert "GO:1" in found
    assert "GO:0000010" not in found  # four of its five genes are in GO:1
    assert {"GO:2", "GO:0000011"} <= found  # three of five shared, 60 percent
    assert "GO:0000011" not in names_after(folder, rows, max_overlap=0.6)


def test_an_annotation_with_a_merged_term_counts(folder: Path) -> None:
    path = folder / "go.obo"
    path.write_text(path.read_text().replace("name: name of GO:0000010", "name: x\nalt_id: GO:77"))
    (folder / "gene2go.tsv").write_text(gene2go([*ppi_rows(), (149, "GO:77", "IDA")]))
    assert len(built(folder)[0].subgraphs.nodes[0]) == 6


def test_what_cannot_be_built_says_why(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "go.obo").write_text(obo([("GO:0008152", [])]))
    with pytest.raises(DataError, match="label root GO:0032502 is not in the ontology"):
        built(folder, go=tmp_path / "go.obo")
    with pytest.raises(DataError, match="none of the 10 subgraphs is in split 'val'"):
        built(folder, fractions=[0.98, 0.01, 0.01])
    (folder / "symbols.tsv").write_text(symbols([1]))
    with pytest.raises(DataError, match="no pair of genes is left"):
        built(folder, gene_symbols=folder / "symbols.tsv")


def test_symbols_of_other_species_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "gene_info"
    path.write_text("#tax_id\tGeneID\tSymbol\n9606\t1\tA1BG\n10090\t2\tMouse\n")
    assert read_gene_symbols(path) == {"1": "A1BG"}
