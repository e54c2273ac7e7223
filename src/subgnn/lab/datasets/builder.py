"""Parts of every builder of a real dataset: its declaration, its result, the lines of its sources, and its settings.

A builder is a function from source files and settings to a :class:`Draft`, and a :class:`Builder` that declares it;
:mod:`~subgnn.lab.datasets.build` reads options, calls the function and writes the card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from subgnn.config.files import parse_options
from subgnn.data.formats.text import read_lines
from subgnn.data.graph import Graph
from subgnn.data.splits import split_sizes
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError, choices, excerpt

OnStep = Callable[[str], None]
Files = Mapping[str, Path]
source_lines = partial(read_lines, max_line=64 * 2**20)


@dataclass(frozen=True, slots=True)
class Source:
    """A published file: its content, its address and its licence."""

    what: str
    published: str
    licence: str


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A dataset without its card.

    Args:
        note: what nodes, edges, subgraphs and labels are.
        dropped: counts of what was left out, by reason.
        titles: of subgraphs, for the second column of subgraph_names.tsv.
        versions: of sources, by key, as far as the files state them.
        files: that were read for a source, by key, unless it is the given path.
    """

    graph: Graph
    subgraphs: SubgraphSet
    note: str
    dropped: Mapping[str, int]
    titles: Sequence[str] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)


def read_settings(default: Any, options: Mapping[str, Any], labels: Sequence[str], where: str) -> Any:
    """Settings with some options changed, in the dataclass itself or in one of its fields that is one.

    Args:
        default: a dataclass.
        labels: ``NAME=ROOT`` or ``NAME=ROOT,ROOT``, for the field ``labels`` of a dataclass that has one.
    """
    parts = {"": default} | {f.name: part for f in fields(default) if is_dataclass(part := getattr(default, f.name))}
    values = parse_options({name: type(part) for name, part in parts.items()}, options, where)
    if labels:
        owner = next((name for name, part in parts.items() if hasattr(part, "labels")), None)
        if owner is None:
            raise DataError("labels are given", where=where, hint="its labels are fixed")
        values[owner]["labels"] = read_labels(labels)
    top = values.pop("")
    return replace(default, **top, **{name: replace(parts[name], **given) for name, given in values.items()})


@dataclass(frozen=True, slots=True)
class Builder:
    """A real dataset that can be built: its sources by key, those that may be missing, and its default settings.

    ``build`` takes the files by key, the settings, the seed and a function that is called with each step.
    """

    name: str
    sources: Mapping[str, Source]
    settings: Any
    build: Callable[[Files, Any, int, OnStep], Draft]
    optional: tuple[str, ...] = ()


def read_columns(path: Path, wanted: tuple[str, ...], *, hint: str = "") -> Iterator[dict[str, str]]:
    """Rows of a tab-separated table by the titles of its header, which is the first line that is not a comment."""
    titles: list[str] = []
    for number, line in source_lines(path):
        where, comment = f"{path}:{number}", line.startswith("#")
        cells = line.lstrip("#").split("\t")
        if titles and not comment:
            if len(cells) < len(titles):
                raise DataError(f"{len(cells)} columns", where=where, hint=f"the header has {len(titles)}")
            yield dict(zip(titles, cells, strict=False))
        elif not titles and set(wanted) <= set(cells):
            titles = cells
        elif not titles and not comment:
            missing = next(name for name in wanted if name not in cells)
            raise DataError(f"no column '{missing}'", where=where, hint=choices(missing, cells) + hint)
    if not titles:
        raise DataError("the file is empty", where=str(path), hint=f"a table with {', '.join(wanted)} is accepted")


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


def read_labels(pairs: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """``NAME=ROOT`` or ``NAME=ROOT,ROOT`` as a mapping; an Orphanet entry is its code, with or without ``ORPHA:``.

    Example:
        >>> read_labels(["Lipid=ORPHA:309005", "Rest=1,2"])
        {'Lipid': ('309005',), 'Rest': ('1', '2')}
    """
    labels: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        roots = tuple(root.strip().removeprefix("ORPHA:") for root in text.split(",") if root.strip())
        if not name.strip() or not roots or "-" in name or name.strip() in labels:
            hint = "NAME=ROOT or NAME=ROOT,ROOT is accepted, each name once and without '-', which joins labels"
            raise DataError(f"{excerpt(pair)} is not a label", where="labels", hint=hint)
        labels[name.strip()] = roots
    return labels
