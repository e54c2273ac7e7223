"""What the builders of real datasets share: a request, options from texts, checks, and the dataset card."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from subgnn.data.dataset import Dataset
from subgnn.data.formats.folder import write_folder
from subgnn.data.graph import Graph
from subgnn.data.splits import split_sizes
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.errors import DataError, excerpt
from subgnn.lab.datasets.sources import SOURCES, SourceFile
from subgnn.parallel.progress import ignore
from subgnn.versions import __version__

OnStep = Callable[[str], None]
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True)
class Request:
    """Input of a builder: source files by their key in ``SOURCES``, options and labels as texts, and the seed."""

    sources: Mapping[str, Path]
    options: Mapping[str, str] = field(default_factory=dict)
    labels: Sequence[str] = ()
    seed: int = 0
    on_step: OnStep = ignore


@dataclass(frozen=True, slots=True)
class Provenance:
    """How a dataset was built.

    Args:
        note: what nodes, edges, subgraphs and labels are.
        settings: a dataclass.
        dropped: counts of what was left out, by reason.
    """

    note: str
    sources: Sequence[SourceFile]
    settings: Any
    seed: int
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class BuiltDataset:
    """A dataset from published sources; ``titles`` are the second column of subgraph_names.tsv."""

    dataset: Dataset
    titles: Sequence[str] | None = None

    def write(self, folder: Path, *, compress: bool = False, overwrite: bool = False) -> None:
        """Write the dataset as a folder."""
        write_folder(self.dataset, folder, compress=compress, overwrite=overwrite, subgraph_titles=self.titles)


@dataclass(frozen=True, slots=True)
class Builder:
    """A real dataset that can be built from sources; ``needs`` and ``takes`` are keys of ``SOURCES``."""

    name: str
    needs: tuple[str, ...]
    takes: tuple[str, ...]
    run: Callable[[Request], BuiltDataset]


def make_dataset(name: str, graph: Graph, subgraphs: SubgraphSet, provenance: Provenance) -> Dataset:
    """A dataset with a card that states sources, licences, settings and counts.

    Raises:
        DataError: where a split is empty.
    """
    splits = {split: len(subgraphs.indices(split)) for split in SPLITS}
    for split, count in splits.items():
        if not count:
            what = f"no subgraph in split '{split}', of {len(subgraphs)} in all"
            raise DataError(what, where=name, hint="larger sources are needed, or other fractions")
    files = [(SOURCES[file.key], file.version or "version not stated") for file in provenance.sources]
    card = {
        "name": name,
        "source": "; ".join(f"{source.what}, {version} ({source.published})" for source, version in files),
        "licence": "; ".join(f"{source.what}: {source.licence}" for source, _ in files),
        "note": provenance.note,
        "built_with": f"subgnn {__version__}",
        "seed": provenance.seed,
        "settings": asdict(provenance.settings),
        "sources": [source.as_card() for source in provenance.sources],
        "counts": {
            "nodes": graph.num_nodes,
            "edges": graph.num_edges,
            "subgraphs": len(subgraphs),
            "labels": subgraphs.label_counts(),
            "splits": splits,
        },
        "dropped": dict(provenance.dropped),
    }
    return Dataset(name=name, graph=graph, subgraphs=subgraphs, card=card)


def at_least(least: float, **given: float) -> None:
    """Raise :class:`DataError` for a setting below ``least``."""
    for name, value in given.items():
        if not value >= least:
            raise DataError(f"{value:g}", where=name, hint=f"at least {least:g} is accepted")


def within(low: float, high: float, **given: float) -> None:
    """Raise :class:`DataError` for a setting outside a closed range."""
    for name, value in given.items():
        if not low <= value <= high:
            raise DataError(f"{value:g}", where=name, hint=f"{low:g} to {high:g} is accepted")


def check_fractions(fractions: tuple[float, ...]) -> None:
    """Raise :class:`DataError` unless there are three shares above 0 that sum to 1."""
    split_sizes(len(fractions) or 3, fractions)


def read_labels(pairs: Sequence[str], prefix: str) -> dict[str, tuple[str, ...]]:
    """``NAME=ROOT`` or ``NAME=ROOT,ROOT`` as a mapping; ``prefix`` is taken off the roots.

    Example:
        >>> read_labels(["Lipid=ORPHA:309005", "Rest=1,2"], "ORPHA:")
        {'Lipid': ('309005',), 'Rest': ('1', '2')}
    """
    labels: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        name, _, roots = pair.partition("=")
        split = tuple(root.strip().removeprefix(prefix) for root in roots.split(",") if root.strip())
        if not name.strip() or not split or "-" in name or name.strip() in labels:
            hint = "NAME=ROOT or NAME=ROOT,ROOT is accepted, each name once and without '-', which joins labels"
            raise DataError(f"{excerpt(pair)} is not a label", where="labels", hint=hint)
        labels[name.strip()] = split
    return labels
