"""``subgnn tune``: search for better settings."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from subgnn.api.options import with_options
from subgnn.api.progress import progress_bar
from subgnn.cli.options import DatasetPath, ExperimentOptions, RecipeName
from subgnn.cli.output import print_json, print_line, print_next, print_table

_MAX_ROWS = 5


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """Options of the search, as :func:`subgnn.lab.tuning.tune.tune` takes them."""

    trials: Annotated[int, Option(min=1, help="Trials in the study, over all workers and calls.")] = 50
    storage: Annotated[str | None, Option(metavar="URL", help="Database or SQLite file; default OUT/study.db.")] = None
    study: Annotated[str | None, Option(metavar="NAME", help="The study; default DATASET/RECIPE/SPACE.")] = None
    folds: Annotated[
        int, Option(min=0, metavar="K", help="Score on K folds of train and val; 0 scores on the validation split.")
    ] = 5
    timeout: Annotated[float | None, Option(min=0, metavar="SECONDS", help="Start no trial after this time.")] = None
    seed: Annotated[int, Option(min=0, help="Seed of the search.")] = 0


@with_options(TuneOptions, ExperimentOptions)
def tune_recipe(
    *,
    path: DatasetPath,
    out: Annotated[Path, Option(metavar="DIR", help="The folder for results.")] = Path("tuned"),
    recipe: RecipeName = "subgnn",
    space: Annotated[str | None, Option(help="Search space: a name or .toml file; default the paper's.")] = None,
    search: TuneOptions,
    options: ExperimentOptions,
) -> None:
    """Search for better settings by cross-validation; test subgraphs are never used.

    The same command continues the study. Several machines share a study through the same --storage.

    Example: subgnn tune my_folder --recipe subgnn --space paper --trials 50 --out tuned
    """
    from subgnn.data.formats import read_dataset
    from subgnn.lab.tuning.search_space import find_space
    from subgnn.lab.tuning.study import require_optuna
    from subgnn.models.recipes import find_recipe

    require_optuna()
    chosen = find_recipe(recipe, options.settings or ())
    wanted = None if space is None else find_space(space)
    from subgnn.lab.tuning.tune import tune
    from subgnn.parallel.engine import LocalEngine
    from subgnn.training.devices import quiet_lightning

    quiet_lightning()
    dataset = read_dataset(path, id_base=options.id_base)
    processes = options.processes or 1
    with (
        progress_bar() as bar,
        options.open(processes=options.processes, device=options.device) as workers,
        LocalEngine(processes, threads=max(1, (os.cpu_count() or 1) // processes)) as here,
    ):
        found = tune(
            dataset,
            chosen,
            out,
            space=wanted,
            device=options.device,
            cache=options.cache,
            engine=workers or here,
            on_progress=bar.prepare,
            **asdict(search),
        )
    if options.json:
        print_json(found)
    else:
        _print_result(found, path)


def _print_result(found: dict[str, Any], path: Path) -> None:
    from subgnn.lab.tuning.tune import score_word

    best = found["best"]
    counts = ", ".join(f"{count} {state}" for state, count in found["trials"].items() if count)
    scored = [row for row in found["leaderboard"] if row["state"] == "complete"][:_MAX_ROWS]
    rows = [(str(row["trial"]), *(f"{row[name]:.3f}" for name in ("score", "loss", "seconds"))) for row in scored]
    print_table(f"{found['study']}: {counts}", ("trial", score_word(found), "loss", "seconds"), rows)
    values = ((name, f"{v:.4g}" if isinstance(v, float) else v) for name, v in best["parameters"].items())
    print_line(f"settings of trial {best['trial']}: {', '.join(f'{name}={value}' for name, value in values)}")
    print_line(
        f"best {score_word(found)} {best['score']:.3f}, loss {best['loss']:.3f} (trial {best['trial']}); "
        "no test subgraph was seen"
    )
    print_next("train", path, "--recipe", found["files"]["recipe"], "--out", f"runs/{found['recipe']}_tuned")
