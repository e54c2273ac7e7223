"""Train one recipe on one dataset and write its page: what ``subgnn train`` and :func:`subgnn.train` call."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.api.options import with_options
from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.own_times import snapshot_step, timed
from subgnn.data.splits import first_held_out, looks_ahead, named_split, refuse_look_ahead, split_warnings
from subgnn.data.subgraphs import SPLITS, SubgraphSet, label_notes, single_classes
from subgnn.data.values import time_text
from subgnn.errors import UserError, excerpt, warn
from subgnn.models.registry import model_of, names_where
from subgnn.render import write_page
from subgnn.reports.run_page import MODEL_CARD, model_card, run_report
from subgnn.result import RunResult
from subgnn.task import metric_name, task_of
from subgnn.training.devices import Ranks
from subgnn.training.ensemble_selection import is_ranking
from subgnn.training.options import NO_CALLBACKS, Callbacks, RunOptions, TrainedRun, TrainOptions
from subgnn.training.run import train_run
from subgnn.training.run_dir import DATASET, PAGE


@with_options(TrainOptions)
def train(
    dataset: Dataset,
    recipe: Recipe,
    out: Path | str,
    *,
    options: TrainOptions,
    ranks: Ranks | None = None,
    source: str = "",
    keep_data: bool = False,
    callbacks: Callbacks = NO_CALLBACKS,
    report: bool = True,
) -> RunResult:
    """Train a recipe on a dataset, write the run's folder, and return the result, on every rank.

    Args:
        ranks: the ranks that torchrun started this process among (:func:`~subgnn.training.devices.current_ranks`); N of
            them at batches of b do what one does at N x b. None trains in this process alone.
        source: where the dataset was read from, stored so that ``predict`` finds the graph.
        keep_data: store the dataset in the run's folder, so that the run needs no other file.
    """
    dataset = replace(dataset, subgraphs=named_split(dataset.subgraphs, options.split))
    if options.time is not None:
        if not recipe.is_portfolio:
            hint = "leave it out; training.epochs decides how long a recipe is trained"
            raise UserError(f"the recipe {recipe.name} has no time budget", where="--time", hint=hint)
        recipe = replace(recipe, auto=replace(recipe.auto, time=options.time))
    if options.threshold is not None:
        recipe = replace(recipe, training=replace(recipe.training, threshold=str(options.threshold)))
    recipe = with_metric(recipe, dataset.subgraphs)
    if options.edges_until is not None:
        until, times = options.edges_until, dataset.graph.times
        if times is None:
            raise UserError("the edges have no times", where="--edges-until", hint="leave it out")
        dataset = replace(dataset, graph=dataset.graph.until(until))
        if len(times) and not dataset.graph.num_edges:
            known = f"their times are {time_text(times.min().item())} to {time_text(times.max().item())}"
            hint = f"{known}; give one of these, as a number or a date"
            raise UserError(f"no edge is from {time_text(until)} or before", where="--edges-until", hint=hint)
    options, step = _resolve_as_of(options, recipe, dataset)
    if options.as_of == "subgraph":
        dataset = replace(dataset, subgraphs=timed(dataset.subgraphs, step))
    elif not options.allow_look_ahead:
        refuse_look_ahead(dataset.graph, dataset.subgraphs)
    run = RunOptions(
        recipe,
        Path(out),
        source=str((Path(out) / DATASET).resolve()) if keep_data else source,
        keep_data=keep_data,
        write_page=write_run_page if report else None,
        callbacks=callbacks,
        look_ahead=options.as_of != "subgraph" and looks_ahead(dataset.graph, dataset.subgraphs),
        as_of_step=step,
        **asdict(options),
    )
    warned = [*split_warnings(dataset.subgraphs, run.fitted_to), *single_classes(dataset.subgraphs)]
    warned += _rare_in_test(recipe, dataset.subgraphs)
    rounded = [f"subgraphs are measured at their own times, rounded down to steps of {step:g}"] if step else []
    found = [*rounded, *label_notes(dataset.subgraphs), *map("; ".join, warned)]
    first = ranks is None or not ranks.rank
    for line in found if first else ():
        warn(line)
    result = train_run(dataset, replace(run, warnings=tuple(found)), ranks=ranks)
    if report and first:
        write_page(model_card(result), Path(out) / MODEL_CARD)
    return result


def _resolve_as_of(options: TrainOptions, recipe: Recipe, dataset: Dataset) -> tuple[TrainOptions, float]:
    """Whether subgraphs are measured at their own times, by default for a split by time, and the step of times."""
    graph, subgraphs = dataset.graph, dataset.subgraphs
    able = model_of(recipe).measures_at_own_time or recipe.is_portfolio
    if options.as_of is None:
        chosen = options.edges_until is None and not options.allow_look_ahead and able
        chosen = chosen and graph.times is not None and first_held_out(subgraphs) is not None
        options = replace(options, as_of="subgraph" if chosen else "now")
    if options.as_of != "subgraph":
        return options, 0.0
    if graph.times is None or subgraphs.times is None:
        lacking = "edges" if graph.times is None else "subgraphs"
        raise UserError(f"the {lacking} have no times", where="--as-of", hint="leave it out, or add a column of times")
    if not able:
        hint = f"methods that can: {', '.join(names_where('measures_at_own_time'))}; or give --as-of now"
        raise UserError(f"{recipe.method} cannot measure a subgraph as of its time", where="--as-of", hint=hint)
    return options, snapshot_step(graph, subgraphs.times)


def with_metric(recipe: Recipe, subgraphs: SubgraphSet) -> Recipe:
    """The recipe, and the candidates of a portfolio, with AUPRC as the metric of selection where a class is rare."""
    task = task_of(subgraphs.task)
    metric = task.default_metric(_targets_outside_test(subgraphs))
    if recipe.training.select_by != "auto" or metric == task.headline:
        return recipe
    candidates = tuple(replace(one, set=(f"training.select_by={metric}", *one.set)) for one in recipe.auto.candidates)
    training, auto = replace(recipe.training, select_by=metric), replace(recipe.auto, candidates=candidates)
    return replace(recipe, training=training, auto=auto)


def metric_line(recipe: Recipe, subgraphs: SubgraphSet) -> str:
    """A line about the metric of selection, if it is one for rare classes that the recipe does not name; or nothing."""
    metric = with_metric(recipe, subgraphs).training.select_by
    if metric == recipe.training.select_by:
        return ""
    targets = _targets_outside_test(subgraphs)
    rarer = task_of(subgraphs.task).positive(targets)
    share = f"{(targets == rarer).mean():.1%} of the subgraphs are {subgraphs.classes[rarer]}".replace("%", " %", 1)
    return f"compared by {metric_name(metric)}: {share}; set training.select_by to choose another"


def _rare_in_test(recipe: Recipe, subgraphs: SubgraphSet) -> list[tuple[str, str]]:
    """A test split with few subgraphs of the class that a ranking is about, as a fact and its consequence."""
    rarer = task_of(subgraphs.task).positive(_targets_outside_test(subgraphs))
    if rarer < 0 or subgraphs.splits is None or not is_ranking(recipe.training.select_by):
        return []
    test, name = np.asarray(subgraphs.targets)[subgraphs.indices("test")], excerpt(subgraphs.classes[rarer])
    count = int((test == rarer).sum())
    what = f"test has {count} {name} subgraph" + "s" * (count != 1)
    few = len(test) and count < 10  # so that a ranking of them is no evidence
    return [(what, "its scores say little")] if few else []


def _targets_outside_test(subgraphs: SubgraphSet) -> NDArray[Any]:
    targets = np.empty(0) if subgraphs.targets is None else np.asarray(subgraphs.targets)
    return targets if subgraphs.splits is None else targets[subgraphs.splits[: len(targets)] != SPLITS.index("test")]


def write_run_page(dataset: Dataset, out: Path, trained: TrainedRun | None) -> None:
    """Write the page of a finished run; the run is done, so a failure is only a warning."""
    try:
        write_page(run_report(out, dataset, trained), out / PAGE)
    except Exception as error:
        what = f"the run is done, but its page could not be written ({type(error).__name__}: {error})"
        warn(f"{what}; try again with: subgnn report {out}")
