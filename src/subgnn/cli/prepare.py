"""``subgnn prepare``."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from subgnn.cli.output import CacheFlag, IdBase, JsonFlag, print_json, print_line, print_table
from subgnn.cli.progress import progress_bar
from subgnn.config import Recipe
from subgnn.data.formats import read_dataset
from subgnn.recipes import find_recipe


def prepare_dataset(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="A dataset folder or bundle.")],
    recipe: Annotated[str, typer.Option("--recipe", help="A recipe by name, or a .toml file.")] = "default",
    seed: Annotated[int, typer.Option("--seed", help="Of anchors and walks.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Override a setting; repeat.")
    ] = None,
    cache: CacheFlag = True,
    id_base: IdBase = None,
    json: JsonFlag = False,
) -> None:
    """Compute components, anchors and similarities, and keep them in the cache, where train finds them.

    Example: subgnn prepare my_folder --recipe default --seed 0
    """
    from subgnn.prepare_cached import prepare_cached

    chosen = find_recipe(recipe, settings or ())
    dataset = read_dataset(path, id_base=id_base)
    begin = time.perf_counter()
    with progress_bar() as bar:
        kept = prepare_cached(
            dataset.graph.undirected(),
            dataset.subgraphs.nodes,
            channels=chosen.channels,
            layers=chosen.model.layers,
            settings=chosen.prepare,
            seed=seed,
            cache=cache,
            on_progress=bar.prepare,
        )
    found = {
        "dataset": dataset.name,
        "recipe": chosen.name,
        "seed": seed,
        "num_subgraphs": len(dataset.subgraphs),
        "num_components": len(kept.prepared.components.nodes),
        "num_touched_nodes": len(kept.prepared.touched()),
        "layers": kept.prepared.layers,
        "anchors": {channel.name: channel.num_anchors for channel in chosen.channels},
        "seconds": time.perf_counter() - begin,
        "found": kept.found,
        "file": None if kept.path is None else str(kept.path),
        "bytes": None if kept.path is None else kept.path.stat().st_size,
    }
    if json:
        print_json(found)
        return
    _print_table(found)
    print_line(f"next: {_train(path, chosen, recipe, seed, settings or [])}")


def _print_table(found: dict[str, Any]) -> None:
    rows = [
        ("subgraphs", f"{found['num_subgraphs']:,}"),
        ("components", f"{found['num_components']:,}"),
        ("touched nodes", f"{found['num_touched_nodes']:,}"),
        ("layers", f"{found['layers']}"),
    ]
    rows += [(f"anchors, {name}", f"{count:,}") for name, count in found["anchors"].items()]
    rows += [("seconds", f"{found['seconds']:.2f}")]
    if found["file"] is None:
        rows += [("file", "not kept")]
    else:
        rows += [("size", f"{found['bytes'] / 1e6:,.1f} MB"), ("there already", "yes" if found["found"] else "no")]
        rows += [("file", found["file"])]
    print_table(f"{found['dataset']}: {found['recipe']}, seed {found['seed']}", ("what", "value"), rows)


def _train(path: Path, chosen: Recipe, recipe: str, seed: int, settings: list[str]) -> str:
    """The command that uses what was prepared."""
    overrides = [word for setting in settings for word in ("--set", setting)]
    words = ["subgnn", "train", str(path), "--recipe", recipe, "--seed", str(seed), *overrides]
    return shlex.join([*words, "--out", f"runs/{chosen.name}_{seed}"])
