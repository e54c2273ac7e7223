"""``subgnn tune``: search for better settings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Option

from subgnn.api.options import with_options
from subgnn.api.progress import progress_bar
from subgnn.cli.options import DatasetPath, ExperimentOptions, RecipeName
from subgnn.cli.output import print_json, print_line, print_next, print_table

_MAX_ROWS = 10


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """Options of the search, as :func:`subgnn.lab.tuning.tune.tune` takes them."""

    trials: Annotated[int, Option(min=1, help="Trials in the study, over all workers and calls.")] = 50
    storage: Annotated[str | None, Option(metavar="URL", help="Database or SQLite file; default OUT/study.db.")] = None
    study: Annotated[str | None, Option(metavar="NAME", help="The study; default DATASET/RECIPE/SPACE.")] = None
    seeds: Annotated[int, Option(min=1, help="Training runs per trial; their scores are averaged.")] = 1
    folds: Annotated[
        int, Option(min=0, metavar="K", help="Score on K folds of train and val; 0 scores on the validation split.")
    ] = 5
    split: Annotated[
        Literal["stored", "random"],
        Option(help="With --folds 0: validate on the stored split, or on a new split for each seed."),
    ] = "stored"
    pruner: Annotated[Literal["none", "median", "hyperband"], Option(help="Rule that ends trials early.")] = "median"
    timeout: Annotated[float | None, Option(min=0, metavar="SECONDS", help="Start no trial after this time.")] = None
    seed: Annotated[int, Option(min=0, help="Seed of the search; trainings use seeds from 0.")] = 0


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
    from subgnn.training.devices import quiet_lightning

    quiet_lightning()
    dataset = read_dataset(path, id_base=options.id_base)
    with progress_bar() as bar, options.open(processes=options.processes, device=options.device) as workers:
        found = tune(
            dataset,
            chosen,
            out,
            space=wanted,
            processes=options.processes or 1,
            device=options.device,
            cache=options.cache,
            engine=workers,
            on_progress=bar.prepare,
            **asdict(search),
        )
    if options.json:
        print_json(found)
    else:
        _print_result(found, path)


def _print_result(found: dict[str, Any], path: Path) -> None:
    from subgnn.lab.tuning.trial import score_kind

    best, importance = found["best"], found["importance"]
    counts = ", ".join(f"{count} {state}" for state, count in found["trials"].items() if count)
    order = sorted(best["parameters"], key=lambda name: (-importance.get(name, 0.0), name))
    rows = [
        (name, _value(best["parameters"][name]), f"{importance[name]:.2f}" if name in importance else "")
        for name in order[:_MAX_ROWS]
    ]
    print_table(f"{found['study']}: {counts}", ("setting", "best", "importance"), rows)
    if len(order) > _MAX_ROWS:
        print_line(f"and {len(order) - _MAX_ROWS} more settings, in {found['files']['recipe']}")
    metric = f"{score_kind(found['folds'])} {found['metric'].replace('_', '-')}"
    print_line(
        f"best {metric} {best['score']:.3f}, loss {best['loss']:.3f} (trial {best['trial']}); no test subgraph was seen"
    )
    print_line(f"the page of the search: {found['files']['page']}")
    print_next("train", path, "--recipe", found["files"]["recipe"], "--out", f"runs/{found['recipe']}_tuned")


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
