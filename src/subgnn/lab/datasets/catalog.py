"""The eight datasets of the paper: their sizes and properties (appendix B), and the commands that get them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from subgnn.config.files import parse_table, read_toml

COLUMNS = ("nodes", "density", "cut_ratio", "components")
AUTHORS_PAGE = "https://github.com/mims-harvard/SubGNN"
_PUBLISHED = f"by hand from the authors, and read as it is: {AUTHORS_PAGE} links the data"
_HOW = {
    "synthetic": "subgnn data generate NAME --out DIR --seed 0",
    "real": f"{_PUBLISHED}, or from primary sources: subgnn data build NAME --out DIR",
    "em-user": _PUBLISHED,
}


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A dataset of the paper with the paper's numbers."""

    name: str
    kind: Literal["synthetic", "real"]
    about: str
    num_nodes: int
    num_edges: int
    num_subgraphs: int
    num_labels: int
    task: str
    how: str  # the command that gets it
    subgraphs: dict[str, tuple[float, float]] | None = None  # mean and deviation of :data:`COLUMNS`, if synthetic


_ENTRIES = read_toml(Path(__file__).with_name("catalog.toml"), "catalog")
CATALOG = {
    name: parse_table(CatalogEntry, {"name": name, "how": _HOW.get(name, _HOW[entry["kind"]]), **entry}, "catalog.toml")
    for name, entry in _ENTRIES.items()
}
