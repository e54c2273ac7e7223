"""``subgnn data generate``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from subgnn.cli.output import JsonFlag, print_json, print_line, print_table
from subgnn.cli.settings import read_pairs
from subgnn.data.catalog import CATALOG, COLUMNS, differences_from_paper
from subgnn.data.describe import describe
from subgnn.data.formats.folder import write_folder
from subgnn.data.synthetic import RECIPES, find_recipe, generate, read_settings
from subgnn.errors import DataError

_FORMATS = {"nodes": ".1f", "density": ".3f", "cut_ratio": ".3g", "components": ".1f"}
_TARGETS = "Targets"


def _option(flag: str, text: str) -> Any:
    return typer.Option(flag, help=text, rich_help_panel=_TARGETS)


def generate_dataset(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of: {', '.join(RECIPES)}.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write.")],
    seed: Annotated[int, typer.Option("--seed", help="Every draw follows from it: same seed, same bytes.")] = 0,
    num_nodes: Annotated[int | None, typer.Option("--num-nodes", help="Nodes of the base graph.")] = None,
    num_subgraphs: Annotated[int | None, typer.Option("--num-subgraphs", help="How many subgraphs.")] = None,
    subgraph_size: Annotated[int | None, typer.Option("--subgraph-size", help="Nodes of each subgraph.")] = None,
    bins: Annotated[int | None, typer.Option("--bins", help="Classes: quantiles of the property.")] = None,
    min_density: Annotated[float | None, _option("--min-density", "Lowest density inside a subgraph.")] = None,
    max_density: Annotated[float | None, _option("--max-density", "Highest density inside a subgraph.")] = None,
    min_cut_ratio: Annotated[float | None, _option("--min-cut-ratio", "cut-ratio: lowest cut ratio.")] = None,
    max_cut_ratio: Annotated[float | None, _option("--max-cut-ratio", "cut-ratio: highest cut ratio.")] = None,
    min_core: Annotated[float | None, _option("--min-core", "coreness: lowest mean core number.")] = None,
    max_core: Annotated[float | None, _option("--max-core", "coreness: highest mean core number.")] = None,
    min_components: Annotated[
        int | None, _option("--min-components", "component: fewest components that are multiple.")
    ] = None,
    max_components: Annotated[int | None, _option("--max-components", "component: most components.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any other setting of the recipe; may be given repeatedly."),
    ] = None,
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress the edge list.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is at DIR.")] = False,
    json: JsonFlag = False,
) -> None:
    """Draw a synthetic dataset from a recipe and a seed, and print its properties beside the paper's.

    Examples:
    subgnn data generate density --out density

    subgnn data generate density --num-nodes 1000000 --num-subgraphs 10000 --out large

    subgnn data generate coreness --set subgraph_retention=0.6 --seed 3 --out coreness_3
    """
    given = {
        "num_nodes": num_nodes,
        "num_subgraphs": num_subgraphs,
        "subgraph_size": subgraph_size,
        "bins": bins,
        "min_density": min_density,
        "max_density": max_density,
        "min_cut_ratio": min_cut_ratio,
        "max_cut_ratio": max_cut_ratio,
        "min_core": min_core,
        "max_core": max_core,
        "min_components": min_components,
        "max_components": max_components,
    }
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    options |= read_pairs(settings or [])
    resolved = read_settings(find_recipe(name), options)
    if not force and (out.is_file() or (out.is_dir() and any(out.iterdir()))):
        raise DataError("exists already", where=str(out), hint="choose another place, or pass --force to replace it")
    dataset = generate(name, seed=seed, **options)
    write_folder(dataset, out, compress=gzip, overwrite=force)
    found = describe(dataset)
    if json:
        keys = ("num_nodes", "num_edges", "num_subgraphs", "num_labels", "subgraphs")
        paper = {key: getattr(CATALOG[name], key) for key in keys} if name in CATALOG else None
        print_json({**found, "out": str(out), "seed": seed, "settings": asdict(resolved), "paper": paper})
        return
    _print_tables(name, found)
    if name in CATALOG and resolved == find_recipe(name).settings():
        unlike = sorted(differences_from_paper(name, [found]))
        if unlike:
            print_line(
                f"note: unlike the paper's tables: {', '.join(unlike)}; docs/datasets.md says by how much, and why"
            )
    print_line(f"labels: {', '.join(f'{label} {count:,}' for label, count in found['label_counts'].items())}")
    print_line(f"next: subgnn data describe {out}")


def _print_tables(name: str, found: dict[str, Any]) -> None:
    """The paper's two property tables, the paper's line above ours where it has one."""
    graph_rows, subgraph_rows = [], []
    paper = CATALOG.get(name)
    if paper is not None and paper.subgraphs is not None:
        density = 2 * paper.num_edges / (paper.num_nodes * (paper.num_nodes - 1))
        sizes = (paper.num_nodes, paper.num_edges, density, paper.num_subgraphs, paper.num_labels)
        graph_rows.append(("paper", *_sizes(*sizes)))
        subgraph_rows.append(("paper", *(_spread(key, *paper.subgraphs[key]) for key in COLUMNS)))
    keys = ("num_nodes", "num_edges", "density", "num_subgraphs", "num_labels")
    graph_rows.append(("this", *_sizes(*(found[key] for key in keys))))
    ours = found["subgraphs"]
    subgraph_rows.append(("this", *(_spread(key, ours[key]["mean"], ours[key]["std"]) for key in COLUMNS)))
    print_table(f"Base graph of {name}", ("", "nodes", "edges", "density", "subgraphs", "labels"), graph_rows)
    print_table(
        "Subgraphs, mean ± standard deviation", ("", "nodes", "density", "cut ratio", "components"), subgraph_rows
    )


def _sizes(nodes: int, edges: int, density: float, subgraphs: int, labels: int) -> tuple[str, ...]:
    return f"{nodes:,}", f"{edges:,}", f"{density:.4f}", f"{subgraphs:,}", str(labels)


def _spread(key: str, mean: float, std: float) -> str:
    return f"{mean:{_FORMATS[key]}} ± {std:{_FORMATS[key]}}"
