"""The paper's two property tables for its synthetic datasets (appendix B)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

COLUMNS = ("nodes", "density", "cut_ratio", "components")
COUNT_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class PaperProperties:
    """A line of each table: sizes, and mean and standard deviation over subgraphs of each of :data:`COLUMNS`.

    The cut ratio of DENSITY is as printed; its spread suggests that 0.0100 was meant.
    """

    num_nodes: int
    num_edges: int
    num_subgraphs: int
    num_labels: int
    subgraphs: dict[str, tuple[float, float]]


def _spreads(*pairs: tuple[float, float]) -> dict[str, tuple[float, float]]:
    return dict(zip(COLUMNS, pairs, strict=True))


PAPER: dict[str, PaperProperties] = {
    "density": PaperProperties(
        5_000, 29_521, 250, 3, _spreads((20.0, 0.0), (0.232, 0.146), (0.0010, 0.0062), (3.8, 3.7))
    ),
    "cut-ratio": PaperProperties(
        5_000, 83_969, 250, 3, _spreads((20.0, 0.0), (0.945, 0.028), (0.0072, 0.0011), (1.0, 0.0))
    ),
    "coreness": PaperProperties(
        5_000, 118_785, 221, 3, _spreads((20.0, 0.0), (0.219, 0.062), (0.0082, 0.0081), (1.0, 0.0))
    ),
    "component": PaperProperties(
        19_555, 43_701, 250, 2, _spreads((74.2, 52.8), (0.150, 0.161), (5.1e-6, 3.4e-6), (4.9, 3.5))
    ),
}


def misses(name: str, found: dict[str, Any]) -> list[str]:
    """What of a description (:func:`subgnn.data.describe.describe`) lies outside the paper's tables.

    Node and edge counts may be 5 % off; the mean of a property may be as far off as the spread the paper gives.
    """
    paper = PAPER[name]
    out = []
    for key, wanted in (("num_nodes", paper.num_nodes), ("num_edges", paper.num_edges)):
        if abs(found[key] - wanted) > COUNT_TOLERANCE * wanted:
            out.append(f"{key} is {found[key]:,}, the paper's {wanted:,}")
    for key, (mean, std) in paper.subgraphs.items():
        ours = found["subgraphs"][key]["mean"]
        if abs(ours - mean) > std + 1e-12:
            out.append(f"{key} is {ours:.3g}, the paper's {mean:g} ± {std:g}")
    return out
