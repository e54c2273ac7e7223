"""``subgnn train`` and ``subgnn evaluate``."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from subgnn.cli.output import CacheFlag, IdBase, JsonFlag, MemoryLimit, print_json, print_line, print_table, unused_line
from subgnn.cli.progress import progress_bar
from subgnn.config.recipes import find_recipe
from subgnn.data.describe import task_line
from subgnn.data.formats import read_dataset


class Device(StrEnum):
    """Where to compute."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class Split(StrEnum):
    """Which part of the dataset."""

    train = "train"
    val = "val"
    test = "test"


def train_run(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="A dataset folder or bundle.")],
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="The run's folder.")],
    recipe: Annotated[str, typer.Option("--recipe", help="A recipe by name, or a .toml file.")] = "default",
    seed: Annotated[int, typer.Option("--seed", help="Of anchors, weights, batches and dropout.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Override a setting; repeat.")
    ] = None,
    device: Annotated[Device, typer.Option("--device", help="Where to compute.")] = Device.auto,
    devices: Annotated[
        int | None, typer.Option("--devices", metavar="N", min=1, help="Processes or GPUs to train on together.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write event files into RUN/tensorboard.")] = False,
    cache: CacheFlag = True,
    id_base: IdBase = None,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Train a recipe on a dataset, select on validation, score once on test.

    Example: subgnn train my_folder --recipe default --out runs/first --seed 0
    """
    from subgnn.experiments.train import train
    from subgnn.models.subgnn.build import unused_data
    from subgnn.training.devices import current_ranks, quiet_lightning
    from subgnn.training.run_dir import PAGE

    quiet_lightning()

    chosen = find_recipe(recipe, settings or ())
    dataset = read_dataset(path, id_base=id_base)
    speaks = (ranks := current_ranks(devices)) is None or not ranks.rank  # of many ranks, one does
    unused = unused_data(chosen, dataset.graph)
    if speaks and not json:
        print_line(task_line(dataset.subgraphs))
        if unused:
            print_line(unused_line("recipe", unused))
    with progress_bar(chosen.training.epochs, chosen.pretrain.epochs) as bar:
        results = train(
            dataset,
            chosen,
            out,
            seed=seed,
            device=device.value,
            devices=devices,
            resume=resume,
            source=str(path.resolve()),
            cache=cache,
            on_epoch=bar.epoch,
            on_prepare=bar.prepare,
            on_pretrain=bar.pretrain,
            tensorboard=tensorboard,
        )
    if not speaks:
        return
    if json:
        print_json(_finite(results))
        return
    _print_results(results)
    if (out / PAGE).is_file():
        print_line(f"the page of the run: {out / PAGE}")
    print_line(f"next: subgnn predict {out} --subgraphs FILE --out predictions.tsv")


def evaluate_run(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    split: Annotated[Split, typer.Option("--split", help="What to score.")] = Split.test,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="The dataset; by default where the run read it.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Score a run on a split of its dataset.

    Example: subgnn evaluate runs/first --split test
    """
    from subgnn.inference.evaluate import evaluate_split

    results = evaluate_split(run, split.value, data)
    if json:
        print_json(_finite(results))
        return
    _print_results(results)


def _finite(value: Any) -> Any:
    """JSON has no NaN: an undefined metric is null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _print_results(results: dict[str, Any]) -> None:
    from subgnn.training.metrics import metric_text

    shown = {name: results[name] for name in ("train", "val", "test") if name in results}
    metrics = list(next(iter(shown.values()))) if "test" not in shown else list(shown["test"])
    rows = [(split, *(metric_text(m, values.get(m, math.nan)) for m in metrics)) for split, values in shown.items()]
    title = f"{results['run']}: {results['recipe']} on {results['dataset']}, seed {results['seed']}"
    print_table(title, ("split", *(m.replace("_", "-") for m in metrics)), rows)
    if results.get("published", {}).get("micro_f1") is not None:
        published = results["published"]
        print_line(f"published: micro-f1 {published['micro_f1']} ({published.get('source', '')})")
    if "candidate" in results:
        print_line(f"kept on validation: {results['candidate']}, of {len(results['candidates'])} tried")
    if "members" in results:
        print_line(f"the mean of {len(results['members'])} networks; below, the epoch of the first")
    print_line(f"selected epoch {results['selected_epoch']} of {results['epochs']}")
