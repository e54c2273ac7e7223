"""``subgnn tune``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from subgnn.cli.engine import Address, EngineChoice, EngineKind, cluster
from subgnn.cli.output import CacheFlag, IdBase, JsonFlag, MemoryLimit, print_json, print_line, print_table
from subgnn.cli.progress import progress_bar
from subgnn.cli.train import Device
from subgnn.config.recipes import find_recipe
from subgnn.data.formats import read_dataset

_SHOWN = 10


class Splitting(StrEnum):
    """What a trial is judged on."""

    stored = "stored"
    random = "random"


class PrunerName(StrEnum):
    """What ends trials that fall behind."""

    none = "none"
    median = "median"
    hyperband = "hyperband"


def tune_recipe(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="A dataset folder or bundle.")],
    out: Annotated[Path, typer.Option("--out", metavar="OUT", help="Where the result goes.")] = Path("tuned"),
    recipe: Annotated[
        str, typer.Option("--recipe", help="Where to start: a recipe by name, or a .toml file.")
    ] = "default",
    space: Annotated[
        str | None,
        typer.Option("--space", help="What may change: a search space by name, or a .toml file; the paper's ranges."),
    ] = None,
    trials: Annotated[int, typer.Option("--trials", min=1, help="The study's total, over all workers and calls.")] = 50,
    storage: Annotated[
        str | None, typer.Option("--storage", metavar="URL", help="A database, or a SQLite file; OUT/study.db.")
    ] = None,
    study: Annotated[
        str | None, typer.Option("--study", metavar="NAME", help="The study's name; of dataset, recipe and space.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Trainings of a trial, whose scores are averaged.")] = 1,
    split: Annotated[
        Splitting, typer.Option("--split", help="Validate on the stored split, or on one drawn for each seed.")
    ] = Splitting.stored,
    pruner: Annotated[PrunerName, typer.Option("--pruner", help="What ends trials early.")] = PrunerName.median,
    timeout: Annotated[
        float | None, typer.Option("--timeout", min=0, metavar="SECONDS", help="Begin no trial after this time.")
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option("--processes", min=1, help="Workers on this machine, 1; of Ray, as many as there are cores."),
    ] = None,
    engine: EngineChoice = EngineKind.local,
    address: Address = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the search; trainings have seeds from 0.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Override a setting; repeat.")
    ] = None,
    device: Annotated[Device, typer.Option("--device", help="Where to compute.")] = Device.auto,
    cache: CacheFlag = True,
    id_base: IdBase = None,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Search for better settings on validation; test subgraphs are never looked at.

    Given again, the command goes on with the study. Several machines share one by the same --storage.

    Example: subgnn tune my_folder --recipe default --space paper --trials 50 --out tuned
    """
    from subgnn.experiments.spaces import find_space
    from subgnn.experiments.study import require_optuna

    require_optuna()
    chosen = find_recipe(recipe, settings or ())
    wanted = None if space is None else find_space(space)
    from subgnn.experiments.tune import tune
    from subgnn.training.devices import quiet_lightning

    quiet_lightning()

    dataset = read_dataset(path, id_base=id_base)
    with progress_bar() as bar, cluster(engine, address, processes=processes, device=device.value) as workers:
        found = tune(
            dataset,
            chosen,
            out,
            space=wanted,
            trials=trials,
            storage=storage,
            study=study,
            seeds=seeds,
            split=split.value,
            pruner=pruner.value,
            timeout=timeout,
            processes=processes or 1,
            seed=seed,
            device=device.value,
            cache=cache,
            engine=workers,
            on_progress=bar.prepare,
        )
    if json:
        print_json(found)
        return
    _print_result(found, path)


def _print_result(found: dict[str, Any], path: Path) -> None:
    best, importance = found["best"], found["importance"]
    counts = ", ".join(f"{count} {state}" for state, count in found["trials"].items() if count)
    order = sorted(best["parameters"], key=lambda name: (-importance.get(name, 0.0), name))
    rows = [
        (name, _value(best["parameters"][name]), f"{importance[name]:.2f}" if name in importance else "")
        for name in order[:_SHOWN]
    ]
    print_table(f"{found['study']}: {counts}", ("setting", "best", "importance"), rows)
    if len(order) > _SHOWN:
        print_line(f"and {len(order) - _SHOWN} more settings, in {found['files']['recipe']}")
    print_line(
        f"best validation {found['metric'].replace('_', '-')} {best['score']:.3f}, loss {best['loss']:.3f} "
        f"(trial {best['trial']}); no test subgraph was seen"
    )
    print_line(f"the page of the search: {found['files']['page']}")
    print_line(f"next: subgnn train {path} --recipe {found['files']['recipe']} --out runs/{found['recipe']}_tuned")


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
