"""What the builders of real datasets share: a request, options from texts, checks, and the dataset card."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from subgnn.data.assign_splits import split_sizes
from subgnn.data.dataset import Dataset
from subgnn.data.formats.folder import write_folder
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.errors import DataError, choices, excerpt
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


def read_options(kinds: Mapping[str, type], options: Mapping[str, str], where: str) -> dict[str, dict[str, Any]]:
    """Values for each of several settings classes, every option going to the class that has such a field.

    Args:
        kinds: the classes, by a name for each; no two have a field in common.
        options: texts by field name.
        where: what the options belong to, for errors.

    Raises:
        DataError: for an option that no class has, or a text that is not a value of its type.
    """
    found: dict[str, dict[str, Any]] = {name: {} for name in kinds}
    owner = {field.name: name for name, kind in kinds.items() for field in fields(kind) if _readable(kind, field.name)}
    for option, text in options.items():
        if option not in owner:
            raise DataError(f"no option '{option}'", where=where, hint=choices(option, sorted(owner)))
        kind = get_type_hints(kinds[owner[option]])[option]
        found[owner[option]][option] = _value(kind, text.strip(), f"{where}: {option}")
    return found


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


def _readable(kind: type, name: str) -> bool:
    """Whether a field can be given as one text: numbers, words and lists of them, not further settings."""
    hint = get_type_hints(kind)[name]
    return hint in (int, float, bool, str) or get_origin(hint) in (tuple, Literal)


def _value(kind: Any, text: str, where: str) -> Any:
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise DataError(f"{excerpt(text)}", where=where, hint=choices(text, get_args(kind)))
        return text
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        return tuple(_value(inner, piece.strip(), where) for piece in text.split(",") if piece.strip())
    try:
        return _TRUTH[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        accepted = {int: "a whole number", float: "a number", bool: "true or false"}.get(kind, "a value")
        raise DataError(f"{excerpt(text)}", where=where, hint=f"{accepted} is accepted") from None
