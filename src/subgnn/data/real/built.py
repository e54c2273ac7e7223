"""What a builder hands over: a dataset with its card, and what the subgraphs are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from subgnn.data.dataset import Dataset
from subgnn.data.formats.folder import write_folder
from subgnn.data.graph import Graph
from subgnn.data.real.sources import SourceFile
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.errors import DataError
from subgnn.versions import __version__

Note = Callable[[str], None]


def silent(step: str) -> None:
    """A listener for steps that says nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """A dataset from primary sources.

    ``titles`` are what people call each subgraph, behind its name in subgraph_names.tsv, where it has a title.
    """

    dataset: Dataset
    titles: Sequence[str] | None

    def write(self, folder: Path, *, compress: bool = False, overwrite: bool = False) -> None:
        """Write the dataset as a folder."""
        write_folder(self.dataset, folder, compress=compress, overwrite=overwrite, subgraph_titles=self.titles)


def assemble(
    name: str,
    graph: Graph,
    subgraphs: SubgraphSet,
    *,
    titles: Sequence[str] | None,
    note: str,
    sources: Sequence[SourceFile],
    settings: Any,
    seed: int,
    dropped: Mapping[str, int],
) -> Built:
    """Put the parts together, with a card that says where they come from and what was counted.

    Args:
        settings: a dataclass.
        dropped: counts of what was left out, by reason.

    Raises:
        DataError: where a split is empty.
    """
    splits = {split: len(subgraphs.indices(split)) for split in SPLITS}
    for split, count in splits.items():
        if not count:
            what = f"no subgraph in split '{split}', of {len(subgraphs)} in all"
            raise DataError(what, where=name, hint="larger sources are needed, or other fractions")
    card = {
        "name": name,
        "source": "; ".join(
            f"{s.source.what}, {s.version or 'version not stated'} ({s.source.published})" for s in sources
        ),
        "licence": "; ".join(f"{s.source.what}: {s.source.licence}" for s in sources),
        "note": note,
        "built_with": f"subgnn {__version__}",
        "seed": seed,
        "settings": asdict(settings),
        "sources": [source.as_card() for source in sources],
        "counts": {
            "nodes": graph.num_nodes,
            "edges": graph.num_edges,
            "subgraphs": len(subgraphs),
            "labels": subgraphs.label_counts(),
            "splits": splits,
        },
        "dropped": dict(dropped),
    }
    return Built(Dataset(name=name, graph=graph, subgraphs=subgraphs, card=card), titles)
