"""The eight datasets of the paper: their sizes and properties (appendix B), and the commands that get them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from subgnn.config.files import parse_table, read_toml

COLUMNS = ("nodes", "density", "cut_ratio", "components")
COUNT_TOLERANCE = 0.05
SPREAD_TOLERANCE = 1 / 6
AUTHORS_PAGE = "https://github.com/mims-harvard/SubGNN"
_PUBLISHED = f"by hand from the authors, and read as it is: {AUTHORS_PAGE} links the data"
_HOW = {
    "synthetic": "subgnn data generate NAME --out DIR --seed 0",
    "real": f"{_PUBLISHED}, or from primary sources: subgnn data build NAME --out DIR",
    "em-user": _PUBLISHED,
}


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A dataset of the paper with the paper's numbers; ``how`` is the command that gets it.

    ``subgraphs`` is the mean and standard deviation over subgraphs of each of :data:`COLUMNS`, for synthetic datasets.
    """

    name: str
    kind: Literal["synthetic", "real"]
    about: str
    num_nodes: int
    num_edges: int
    num_subgraphs: int
    num_labels: int
    task: str
    how: str
    subgraphs: dict[str, tuple[float, float]] | None = None


_ENTRIES = read_toml(Path(__file__).with_name("catalog.toml"), "catalog")
CATALOG = {
    name: parse_table(CatalogEntry, {"name": name, "how": _HOW.get(name, _HOW[entry["kind"]]), **entry}, "catalog.toml")
    for name, entry in _ENTRIES.items()
}


def differences_from_paper(name: str, found: Sequence[dict[str, Any]]) -> set[str]:
    """Properties that differ from the paper's tables, as ``edges``, ``density mean`` or ``density spread``.

    The count of every seed is to be within 5 % of the paper's, the mean of every seed within the paper's standard
    deviation of the paper's mean, and the standard deviation, averaged over seeds, within a sixth of the paper's: that
    of a cut ratio, which has a long tail, varies by a fifth from seed to seed.

    Args:
        found: descriptions (:func:`subgnn.data.describe.describe`) of the dataset, one a seed.
    """
    paper, out = CATALOG[name], set()
    for key, wanted in (("nodes", paper.num_nodes), ("edges", paper.num_edges), ("subgraphs", paper.num_subgraphs)):
        if any(abs(one[f"num_{key}"] - wanted) > COUNT_TOLERANCE * wanted for one in found):
            out.add(key)
    for key, (mean, std) in (paper.subgraphs or {}).items():
        if any(abs(one["subgraphs"][key]["mean"] - mean) > std + 1e-12 for one in found):
            out.add(f"{key} mean")
        if abs(fmean(one["subgraphs"][key]["std"] for one in found) - std) > SPREAD_TOLERANCE * std + 1e-12:
            out.add(f"{key} spread")
    return out
