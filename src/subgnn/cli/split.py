"""``subgnn data split``: the same dataset under another split."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from subgnn.cli.output import IdBase, JsonFlag, print_json, print_line, print_table
from subgnn.data.formats import read_dataset
from subgnn.data.formats.bundle import SUFFIX, write_bundle
from subgnn.data.formats.folder import write_folder
from subgnn.data.formats.text import read_lines
from subgnn.data.splits import FRACTIONS, split_subgraphs
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.errors import DataError, UserError, excerpt


class SplitMethod(StrEnum):
    """How subgraphs are given to splits."""

    random = "random"
    stratified = "stratified"
    group = "group"


def split_dataset(
    source: Annotated[Path, typer.Argument(metavar="DIR", help="A dataset folder or bundle.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR2", help=f"The folder to write, or a bundle where it ends in {SUFFIX}.")
    ],
    method: Annotated[
        SplitMethod, typer.Option("--method", help="At random, every class by its share, or whole groups.")
    ] = SplitMethod.stratified,
    fractions: Annotated[str, typer.Option("--fractions", help="Shares of train, val and test.")] = ",".join(
        map(str, FRACTIONS)
    ),
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same split.")] = 0,
    groups: Annotated[
        Path | None,
        typer.Option(
            "--groups",
            metavar="FILE",
            help="With --method group: a group a line, in the subgraphs' order; by default the dataset's.",
        ),
    ] = None,
    refuse_duplicates: Annotated[
        bool,
        typer.Option(
            "--refuse-duplicates", help="Stop at two subgraphs with equal nodes; by default they stay together."
        ),
    ] = False,
    id_base: IdBase = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is at DIR2.")] = False,
    json: JsonFlag = False,
) -> None:
    """Split the subgraphs of a dataset anew; subgraphs with equal nodes never stand in two splits.

    Example: subgnn data split my_folder --out my_folder_seed1 --method stratified --fractions 0.5,0.25,0.25 --seed 1
    """
    dataset = read_dataset(source, id_base=id_base)
    shares = _parse_fractions(fractions)
    given = None if groups is None else _read_groups(groups, len(dataset.subgraphs))
    if method is SplitMethod.group and given is None and dataset.subgraphs.groups is not None:
        given = list(dataset.subgraphs.groups)
    subgraphs = split_subgraphs(
        dataset.subgraphs,
        method=method.value,
        seed=seed,
        fractions=shares,
        groups=given,
        duplicates="refuse" if refuse_duplicates else "together",
    )
    made = {"method": method.value, "fractions": list(shares), "seed": seed}
    again = replace(dataset, subgraphs=subgraphs, card={**dataset.card, "split": made})
    if out.suffix == SUFFIX:
        write_bundle(again, out, overwrite=force)
    else:
        write_folder(again, out, overwrite=force)
    sizes = {split: len(subgraphs.indices(split)) for split in SPLITS}
    if json:
        print_json({"out": str(out), **made, "splits": sizes, "labels": _labels_by_split(subgraphs)})
        return
    print_line(f"{out}: " + ", ".join(f"{split} {count:,}" for split, count in sizes.items()))
    counts = _labels_by_split(subgraphs)
    if counts:
        rows = [(name, *(f"{counts[name][split]:,}" for split in SPLITS)) for name in counts]
        print_table("Subgraphs by label and split", ("label", *SPLITS), rows)
    print_line(f"next: subgnn data check {out}")


def _parse_fractions(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(piece) for piece in text.split(","))
    except ValueError:
        hint = "three numbers joined by commas, as 0.5,0.25,0.25"
        raise UserError(f"fractions {excerpt(text)}", where="--fractions", hint=hint) from None


def _read_groups(path: Path, count: int) -> list[str]:
    found = [line.strip() for _, line in read_lines(path)]
    if len(found) != count:
        what = f"{len(found):,} groups for {count:,} subgraphs"
        raise DataError(what, where=str(path), hint="a group a line, in the subgraphs' order")
    return found


def _labels_by_split(subgraphs: SubgraphSet) -> dict[str, dict[str, int]]:
    """Subgraphs of each label in each split; nothing where there are no classes."""
    by_split = {split: subgraphs.take(np.asarray(subgraphs.indices(split))).label_counts() for split in SPLITS}
    return {name: {split: by_split[split][name] for split in SPLITS} for name in subgraphs.classes}
