"""The eight datasets of the paper: what they are, how large (paper, appendix B), and how they are had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A named dataset; sizes are the paper's."""

    name: str
    kind: Literal["synthetic", "real"]
    about: str
    num_nodes: int
    num_edges: int
    num_subgraphs: int
    num_labels: int
    task: str
    how: str


_AUTHORS = (
    "subgnn data download NAME --out DIR (the authors' edge_list.txt and subgraphs.pth, linked from "
    "github.com/mims-harvard/SubGNN; a folder unpacked by hand is read as it is), or from primary sources: "
    "subgnn data build NAME --out DIR"
)
_RECIPE = "subgnn data generate NAME --out DIR --seed 0"

CATALOG: dict[str, CatalogEntry] = {
    entry.name: entry
    for entry in (
        CatalogEntry(
            "density",
            "synthetic",
            "internal structure: density of the subgraph",
            5_000,
            29_521,
            250,
            3,
            "multi-class",
            _RECIPE,
        ),
        CatalogEntry(
            "cut-ratio",
            "synthetic",
            "border structure: share of edges that leave",
            5_000,
            83_969,
            250,
            3,
            "multi-class",
            _RECIPE,
        ),
        CatalogEntry(
            "coreness",
            "synthetic",
            "mean core number inside the subgraph",
            5_000,
            118_785,
            221,
            3,
            "multi-class",
            _RECIPE,
        ),
        CatalogEntry("component", "synthetic", "one component or several", 19_555, 43_701, 250, 2, "binary", _RECIPE),
        CatalogEntry(
            "ppi-bp",
            "real",
            "genes of a biological process in the interactome; its function",
            17_080,
            316_951,
            1_591,
            6,
            "multi-class",
            _AUTHORS,
        ),
        CatalogEntry(
            "hpo-metab",
            "real",
            "phenotypes of a rare metabolic disease; its class",
            14_587,
            3_238_174,
            2_400,
            6,
            "multi-class",
            _AUTHORS,
        ),
        CatalogEntry(
            "hpo-neuro",
            "real",
            "phenotypes of a rare neurological disease; its classes",
            14_587,
            3_238_174,
            4_000,
            10,
            "multi-label",
            _AUTHORS,
        ),
        CatalogEntry(
            "em-user",
            "real",
            "workouts of a user of a fitness network; gender",
            57_333,
            4_573_417,
            324,
            2,
            "binary",
            _AUTHORS,
        ),
    )
}
