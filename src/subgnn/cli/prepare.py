"""``subgnn prepare``."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from subgnn.cli.engine import Address, EngineChoice, EngineKind, cluster
from subgnn.cli.output import CacheFlag, IdBase, JsonFlag, MemoryLimit, print_json, print_line, print_table, unused_line
from subgnn.cli.progress import progress_bar
from subgnn.config.recipes import find_recipe
from subgnn.config.settings import Recipe
from subgnn.data.formats import read_dataset
from subgnn.data.graph import Graph
from subgnn.parallel.engine import Engine
from subgnn.parallel.progress import OnProgress
from subgnn.ragged import Ragged

if TYPE_CHECKING:
    from subgnn.prepare.measure import Measuring


def prepare_dataset(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="A dataset folder or bundle.")],
    recipe: Annotated[str, typer.Option("--recipe", help="A recipe by name, or a .toml file.")] = "default",
    seed: Annotated[int, typer.Option("--seed", help="Of anchors and walks.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Override a setting; repeat.")
    ] = None,
    cache: CacheFlag = True,
    id_base: IdBase = None,
    engine: EngineChoice = EngineKind.local,
    address: Address = None,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Compute components, anchors and similarities, and keep them in the cache, where train finds them.

    Example: subgnn prepare my_folder --recipe default --seed 0
    """
    from subgnn.models.subgnn.build import unused_data

    chosen = find_recipe(recipe, settings or ())
    dataset = read_dataset(path, id_base=id_base)
    begin = time.perf_counter()
    with progress_bar() as bar, cluster(engine, address) as workers:
        graph = dataset.graph.undirected()
        measuring = _over(workers, graph, path)
        done = _prepare(
            chosen, graph, dataset.subgraphs.nodes, seed=seed, cache=cache, on_progress=bar.prepare, measuring=measuring
        )
    found = {
        "dataset": dataset.name,
        "recipe": chosen.name,
        "seed": seed,
        "num_subgraphs": len(dataset.subgraphs),
        **done,
        "unused": unused_data(chosen, dataset.graph),
        "layers": chosen.model.layers,
        "anchors": {channel.name: channel.num_anchors for channel in chosen.channels},
        "seconds": time.perf_counter() - begin,
    }
    if json:
        print_json(found)
        return
    _print_table(found)
    if found["unused"]:
        print_line(unused_line("recipe", found["unused"]))
    print_line(f"next: {_train(path, chosen, recipe, seed, settings or [])}")


def _over(workers: Engine | None, graph: Graph, path: Path) -> Measuring | None:
    if workers is None:
        return None
    from subgnn.prepare.distributed import place_graph, spread_over

    return spread_over(workers, place_graph(workers, graph, source=path))


def _prepare(
    recipe: Recipe,
    graph: Graph,
    subgraphs: Ragged,
    *,
    seed: int,
    cache: bool,
    on_progress: OnProgress,
    measuring: Measuring | None,
) -> dict[str, Any]:
    """Prepare every draw that train would, one at a time, and add them up."""
    from subgnn.prepare.cached import prepare_draws_cached

    touched, components, found, files = np.empty(0, np.int32), 0, [], []
    draws = prepare_draws_cached(
        recipe, graph, subgraphs, seed=seed, cache=cache, on_progress=on_progress, measuring=measuring
    )
    for kept in draws:
        touched = np.union1d(touched, kept.prepared.touched())
        components = len(kept.prepared.components.nodes)
        found.append(kept.found)
        if kept.path is not None:
            files.append(kept.path)
    return {
        "num_components": components,
        "num_touched_nodes": len(touched),
        "draws": len(found),
        "found": all(found),
        "files": [str(file) for file in files],
        "bytes": sum(file.stat().st_size for file in files),
    }


def _print_table(found: dict[str, Any]) -> None:
    rows = [
        ("subgraphs", f"{found['num_subgraphs']:,}"),
        ("components", f"{found['num_components']:,}"),
        ("touched nodes", f"{found['num_touched_nodes']:,}"),
        ("draws", f"{found['draws']:,}"),
        ("layers", f"{found['layers']}"),
    ]
    rows += [(f"anchors, {name}", f"{count:,}") for name, count in found["anchors"].items()]
    rows += [("seconds", f"{found['seconds']:.2f}")]
    files = found["files"]
    if files:
        rows += [("size", f"{found['bytes'] / 1e6:,.1f} MB"), ("there already", "yes" if found["found"] else "no")]
        rows += [("file", files[0]) if len(files) == 1 else ("files", f"{len(files):,} in {Path(files[0]).parent}")]
    if len(files) < found["draws"]:
        rows += [("not kept", f"{found['draws'] - len(files):,} of {found['draws']:,}")]
    print_table(f"{found['dataset']}: {found['recipe']}, seed {found['seed']}", ("what", "value"), rows)


def _train(path: Path, chosen: Recipe, recipe: str, seed: int, settings: list[str]) -> str:
    """The command that uses what was prepared."""
    overrides = [word for setting in settings for word in ("--set", setting)]
    words = ["subgnn", "train", str(path), "--recipe", recipe, "--seed", str(seed), *overrides]
    return shlex.join([*words, "--out", f"runs/{chosen.name}_{seed}"])
