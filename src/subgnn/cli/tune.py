"""``subgnn tune``: search for better settings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from subgnn.api.options import with_options
from subgnn.api.progress import progress_bar
from subgnn.cli.options import DatasetPath, IdBase, JsonFlag, MemoryLimit, RecipeName, Settings
from subgnn.cli.output import print_json, print_line, print_next
from subgnn.errors import extra_package
from subgnn.training.options import CacheFlag, DeviceName


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """Options of the search, as :func:`subgnn.lab.tuning.tune.tune` takes them."""

    trials: Annotated[int, Option(min=1, help="Trials in the study, over all calls.")] = 50
    storage: Annotated[str | None, Option(metavar="URL", help="Database or SQLite file; default OUT/study.db.")] = None
    study: Annotated[str | None, Option(metavar="NAME", help="The study; default DATASET/RECIPE/SPACE.")] = None
    folds: Annotated[int, Option(min=2, metavar="K", help="Score on K folds of train and val.")] = 5
    timeout: Annotated[float | None, Option(min=0, metavar="SECONDS", help="Start no trial after this time.")] = None
    seed: Annotated[int, Option(min=0, help="Seed of the search.")] = 0
    device: DeviceName = "auto"
    cache: CacheFlag = True


@with_options(TuneOptions)
def tune_recipe(
    *,
    path: DatasetPath,
    out: Annotated[Path, Option(metavar="DIR", help="The folder for results.")] = Path("tuned"),
    recipe: RecipeName = "subgnn",
    space: Annotated[str | None, Option(help="Search space: a name or .toml file; default the paper's.")] = None,
    settings: Settings = None,
    id_base: IdBase = None,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
    options: TuneOptions,
) -> None:
    """Search for better settings by cross-validation with Optuna; test subgraphs are never used.

    The same command continues the study. Commands with the same --storage, here or on other machines, share one.

    Example:
    $ subgnn tune genes --recipe subgnn --trials 50 --out tuned
    genes/subgnn/paper: 50 complete; tuned/trials.tsv lists them
    ...
    best out-of-fold micro-F1 ... (trial ...); no test subgraph was seen
    next: subgnn train genes --recipe tuned/recipe.toml --out runs/subgnn_tuned
    """
    with extra_package("optuna", extra="tune", feature="tune"):
        import optuna  # noqa: F401
    from subgnn.data.formats import read_dataset
    from subgnn.lab.tuning.search_space import find_space
    from subgnn.models.recipes import find_recipe

    chosen = find_recipe(recipe, settings or ())
    wanted = None if space is None else find_space(space)
    from subgnn.lab.tuning.tune import tune
    from subgnn.training.devices import quiet_lightning

    quiet_lightning()
    dataset = read_dataset(path, id_base=id_base)
    with progress_bar() as bar:
        found = tune(dataset, chosen, out, space=wanted, on_progress=bar.prepare, **asdict(options))
    if json:
        print_json(found)
        return
    best = found["best"]
    counts = ", ".join(f"{count} {state}" for state, count in found["trials"].items())
    print_line(f"{found['study']}: {counts}; {found['files']['trials']} lists them")
    for name, value in best["parameters"].items():
        print_line(f"  {name} = {f'{value:.4g}' if isinstance(value, float) else value}")
    print_line(f"best {found['score_name']} {best['score']:.3f} (trial {best['trial']}); no test subgraph was seen")
    print_next("train", path, "--recipe", found["files"]["recipe"], "--out", f"runs/{found['recipe']}_tuned")
